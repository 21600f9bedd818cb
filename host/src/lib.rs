//! The host: everything of `svc` that is not a guest.

pub mod sandbox;
