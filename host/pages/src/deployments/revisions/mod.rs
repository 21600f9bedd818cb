//! Revisions: a frontend's history. Drafts are looked at, promoted, and rolled back, without a lost update.

mod model;
pub mod operations;
mod preview;
mod problems;
mod releases;
pub mod requests;
pub mod routes;
mod service;
mod store;
pub mod views;

pub use model::{RevisionError, RevisionHistoryQuery};
pub use preview::PreviewError;
pub use service::Revisions;
