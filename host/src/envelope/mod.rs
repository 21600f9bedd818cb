//! A project with its contents, and its deletion.

pub mod operations;
pub mod routes;
mod teardown;
pub mod views;

pub use teardown::Teardown;
