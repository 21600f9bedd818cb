//! Serving: what answers at a slug, from memory, with views counted, and the end of shares whose time is over.

mod allowed;
pub mod answer;
mod expiry;
mod former_files;
mod large_files;
mod memory_answer;
mod origins;
mod page_cache;
pub mod pages;
pub mod password;
mod problems;
pub mod request_log;
pub mod routes;
mod service;
pub mod site_answer;
mod site_files;
mod visitor_files;
mod visits;

pub use expiry::ExpiredShareRemover;
pub use memory_answer::file_from_memory;
pub use origins::{PageMounts, ProjectOrigin};
pub use service::{PageLookupError, PageService, RawSource, UnlockError};
