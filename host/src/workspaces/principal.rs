//! Principals, by which caps count: a workspace, or all free workspaces that one user made.
//!
//! A workspace that pays, or that the operator made, counts by itself. Free workspaces cost nothing to make, so all of one
//! founder are one principal.

use rusqlite::Connection;

use super::model::{Caller, UserId};
use super::store;
use svc_base::ids::WorkspaceId;

/// Principal of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Name that no other principal has.
    pub name: String,
    /// Workspaces of the principal.
    pub workspaces: Vec<WorkspaceId>,
    /// Whether its workspaces neither pay nor were made by the operator.
    pub is_unproven: bool,
}

impl Principal {
    /// Reads the principal that a workspace belongs to.
    ///
    /// # Errors
    /// The database's.
    pub fn of_workspace(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<Self> {
        match store::founder_of_free(c, workspace)? {
            Some(founder) => Self::of_founder(c, &founder),
            None => Ok(Self {
                name: format!("workspace:{workspace}"),
                workspaces: vec![*workspace],
                is_unproven: false,
            }),
        }
    }

    /// Reads the principal that a caller acts for.
    ///
    /// # Errors
    /// The database's.
    pub fn of_caller(c: &Connection, caller: &Caller) -> rusqlite::Result<Self> {
        match caller {
            Caller::Key { workspace, .. } => Self::of_workspace(c, workspace),
            Caller::User(user) => Self::of_founder(c, user),
        }
    }

    fn of_founder(c: &Connection, founder: &UserId) -> rusqlite::Result<Self> {
        Ok(Self {
            name: format!("user:{founder}"),
            workspaces: store::free_of_founder(c, founder)?,
            is_unproven: true,
        })
    }
}
