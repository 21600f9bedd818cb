//! Projects, owned by a workspace, with one expiry for all that is in them.

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
pub use service::{Projects, change};
pub use store::{begin_end, begin_ends, did, did_by, does, ids, is_live, note_visitor, offers};
