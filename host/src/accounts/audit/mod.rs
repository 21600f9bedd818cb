//! Audit of a workspace, for its admins: who changed what.

pub mod operations;
pub mod requests;
pub mod routes;
pub mod views;
