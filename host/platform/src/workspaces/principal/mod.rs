//! Principals, which limits are counted for: one workspace, or all free workspaces that one user created.
//!
//! A workspace that pays, or that the operator created, counts by itself. Free workspaces cost nothing to create, so all of one
//! founder count together.

mod store;

use svc_base::ids::WorkspaceId;

/// Unit that limits are counted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Unique name of the principal.
    pub name: String,
    pub workspaces: Vec<WorkspaceId>,
    /// Whether the workspaces are free and were created by a user.
    pub is_free_tier: bool,
}
