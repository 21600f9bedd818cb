//! Principals in the control database.

use rusqlite::Connection;

use super::Principal;
use crate::workspaces::model::{Caller, UserId};
use crate::workspaces::store;
use svc_base::ids::WorkspaceId;

impl Principal {
    /// Reads the principal that a workspace belongs to.
    ///
    /// # Errors
    /// The database's.
    pub fn of_workspace(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<Self> {
        match store::founder_if_free(c, workspace)? {
            Some(founder) => Self::of_founder(c, &founder),
            None => Ok(Self {
                name: format!("workspace:{workspace}"),
                workspaces: vec![*workspace],
                is_free_tier: false,
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
            workspaces: store::free_workspaces_of(c, founder)?,
            is_free_tier: true,
        })
    }
}
