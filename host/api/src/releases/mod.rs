//! Releases of a project: its schema, actions, pages and home become what they shall be together.

mod model;
pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
mod service;
mod trial;
pub mod views;

pub use service::ProjectReleases;
