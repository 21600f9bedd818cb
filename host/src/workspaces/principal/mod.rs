//! Principals, by which caps count: a workspace, or all free workspaces that one user made.
//!
//! A workspace that pays, or that the operator made, counts by itself. Free workspaces cost nothing to make, so all of one
//! founder are one principal.

mod store;

use svc_base::ids::WorkspaceId;

/// Principal of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Name that no other principal has.
    pub name: String,
    /// Workspaces of the principal.
    pub workspaces: Vec<WorkspaceId>,
    /// Whether its workspaces neither pay nor were made by the operator.
    pub is_free_tier: bool,
}
