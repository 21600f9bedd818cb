//! Metadata that clients of OAuth read first.

pub mod routes;
