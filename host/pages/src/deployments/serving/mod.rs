//! Serving: what answers at a slug, from memory, with views counted, and the end of shares whose time is over.

mod allowed;
pub mod answer;
mod expiry;
pub mod pages;
pub mod password;
mod problems;
pub mod routes;
mod service;
mod visits;

pub use expiry::ExpiredShareRemover;
pub use service::{PageLookupError, PageService, RawSource, UnlockError};
