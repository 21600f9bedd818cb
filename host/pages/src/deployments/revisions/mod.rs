//! Revisions: a frontend's history. Drafts are looked at, promoted, and rolled back, without a lost update.

mod edits;
mod line_changes;
mod model;
pub mod operations;
mod preview;
mod problems;
mod release_pages;
mod releases;
pub mod requests;
pub mod routes;
mod service;
pub mod sites;
mod store;
pub mod views;

pub use line_changes::LineChanges;
pub use model::{RevisionError, RevisionHistoryQuery};
pub use preview::PreviewError;
pub use release_pages::{
    ExpectedPage, ExpectedRevision, LivePages, PageConflict, PageRelease, PageReleaseError,
    PageToRelease, PreparedPage, ReleasedContent, ReleasedPage, TriedPageChange, page_conflicts,
};
pub use service::Revisions;
