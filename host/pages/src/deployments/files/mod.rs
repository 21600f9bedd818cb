//! Files of projects: sent ahead of the publication that names them, stored once, counted, and ended when nothing names them.

mod checks;
mod encodings;
mod immutables;
mod model;
pub mod operations;
mod problems;
mod published;
pub mod requests;
pub mod routes;
mod rules;
mod service;
mod site;
mod store;
mod storing;
mod sweep;
mod title;
mod uploads;
pub mod visitors;
mod warnings;

pub use model::{FileBytes, FileError, FileOwner, NewSite, NewSiteFile, SiteTitle};
pub use service::ProjectFiles;
pub use site::PreparedSite;
pub use uploads::ReceivedFile;

pub(super) use immutables::{ImmutableVerdict, JudgedImmutables, release as release_immutables};
pub(super) use published::PublishedFiles;
pub(super) use site::{SiteTarget, UnstoredSite, move_to_project};
