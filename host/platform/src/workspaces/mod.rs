//! Workspaces, which operators' commands call namespaces: their members, keys and subscriptions.

mod audit;
mod console_links;
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

pub use console_links::{CONSOLE_LINK_SECONDS, ConsoleCode, ConsoleSession};
pub use error::WorkspaceError;
pub use keys::{KeyUse, MAX_KEY_SECONDS, NewKey, NewKeyOptions};
pub use members::{TokenHolder, UserSeen};
pub use model::{
    Caller, FileLimits, Plan, Role, UserId, Workspace, WorkspaceAccess, WorkspaceMember,
    WorkspaceRef,
};
pub use principal::Principal;
pub use self_service::{WorkspaceChanges, WorkspaceOwnershipLimits};
pub use service::Workspaces;
pub use store::plan_of;
