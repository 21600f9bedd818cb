//! Audit log of a workspace, for its admins.

pub mod operations;
pub mod requests;
pub mod routes;
pub mod views;
