//! Files of projects: sent ahead of the publication that names them, stored once, counted, and ended when nothing names them.

mod model;
pub mod operations;
mod problems;
pub mod routes;
mod service;
mod store;

pub use model::{FileBytes, FileError};
pub use service::ProjectFiles;
