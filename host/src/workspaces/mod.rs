//! Workspaces, which operators call namespaces: who is in them, the keys that act for them, and what they pay for.

mod audit;
pub mod credential;
mod error;
mod keys;
mod members;
pub mod model;
mod principal;
mod problems;
mod self_service;
pub mod service;
pub mod subscriptions;

mod store;

pub use error::WorkspaceError;
pub use keys::{KeySpec, NewKey};
pub use members::Person;
pub use model::{Caller, Member, Plan, Role, UserId, Workspace, WorkspaceAccess, WorkspaceRef};
pub use principal::Principal;
pub use self_service::{OwnershipLimits, WorkspaceChanges};
pub use service::Workspaces;
