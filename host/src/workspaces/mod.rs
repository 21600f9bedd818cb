//! Workspaces, which operators call namespaces, and the keys that act for them.

pub mod credential;
pub mod model;
mod problems;
pub mod service;

mod store;

pub use model::{Caller, Plan, Role, Workspace};
pub use service::{WorkspaceError, Workspaces};
