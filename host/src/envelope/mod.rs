//! A project as a whole: what is in it, its changes, and its end.

pub mod operations;
pub mod routes;
mod teardown;
pub mod views;

pub use teardown::Teardown;
