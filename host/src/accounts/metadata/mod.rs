//! What clients of OAuth read first.

pub mod routes;
