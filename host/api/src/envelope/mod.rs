//! A project with its contents: its detail, its changes and its deletion.

pub mod operations;
pub mod routes;
mod teardown;
pub mod views;

pub use teardown::ProjectLifecycle;
