//! Sight of owners on their projects: counts by the hour or the day, and the log of the latest requests.

mod follow;
pub mod operations;
pub mod requests;
pub mod routes;
pub mod views;
