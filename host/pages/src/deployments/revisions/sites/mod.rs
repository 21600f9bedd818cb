//! Revisions of sites: made of whole sets of files or of changes, published at once or as drafts, and read.

mod archive;
mod ends;
mod model;
pub mod operations;
pub mod requests;
pub mod routes;
mod service;

pub use model::StoredSiteFile;
pub use service::SiteArchive;
