//! The form by which readers report a page.

pub mod routes;
