//! Revisions of sites: made of whole sets of files or of changes, published at once or as drafts, and read.

mod archive;
mod ends;
mod model;
pub mod operations;
mod releases;
pub mod requests;
pub mod routes;
mod service;
mod turns;

pub use model::{ReleasedSite, SiteSource, StoredSiteFile};
pub use releases::first_page_missing;
pub use service::SiteArchive;
pub(super) use turns::SiteTurns;
