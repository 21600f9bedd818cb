//! Principals in the control database.

use rusqlite::Connection;

use super::Principal;
use crate::workspaces::model::{Caller, UserId, user_principal_name, workspace_principal_name};
use crate::workspaces::store;
use svc_base::ids::WorkspaceId;

impl Principal {
    /// Returns the principal of a workspace.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn of_workspace(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<Self> {
        match store::founder_if_free(c, workspace)? {
            Some(founder) => Self::of_founder(c, &founder),
            None => Ok(Self {
                name: workspace_principal_name(workspace),
                workspaces: vec![*workspace],
                is_free_tier: false,
            }),
        }
    }

    /// Returns the principal of a caller.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn of_caller(c: &Connection, caller: &Caller) -> rusqlite::Result<Self> {
        match caller {
            Caller::Key { workspace, .. } => Self::of_workspace(c, workspace),
            Caller::User(user) => Self::of_founder(c, user),
        }
    }

    fn of_founder(c: &Connection, founder: &UserId) -> rusqlite::Result<Self> {
        Ok(Self {
            name: user_principal_name(founder),
            workspaces: store::free_workspaces_of(c, founder)?,
            is_free_tier: true,
        })
    }
}
