//! Projects: each is owned by a workspace, and has one expiry for all its contents.

pub mod domains;
pub mod label;
pub mod model;
pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
pub mod scope;
pub mod service;
pub mod views;

mod store;

pub use model::{Project, ProjectError};
pub use service::{Projects, apply_changes};
pub use store::{
    all_ids, begin_deletion, begin_deletions, edge_root, is_live, mark_had_visitors,
    offers_provider, record_audit, record_audit_ahead, record_audit_as, set_edge_root,
};
