//! Files of projects: sent ahead of the publication that names them, stored once, counted, and ended when nothing names them.

mod model;
pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
mod service;
mod site;
mod store;
mod sweep;

pub use model::{FileBytes, FileError, FileOwner, NewSite, NewSiteFile, SiteTitle};
pub use service::ProjectFiles;
pub use site::PreparedSite;

pub(super) use site::{PublishedFiles, move_to_project};
