//! Visitors who are somebody: sign-in by the operator's providers, sessions on frontends, and what owners see of them.
//!
//! A sign-in leads from the frontend's own origin to the provider, back to one callback on the sites host, and with a ticket to the frontend's
//! origin again, where the session's cookie is set. What is between lies sealed in the `state` (`state.rs`); nothing is stored before the end.

pub mod check;
pub mod dev;
pub mod model;
pub mod operations;
pub mod operators;
pub mod providers;
pub mod requests;
pub mod return_to;
pub mod routes;
pub mod scope;
pub mod views;

mod cookies;
mod failures;
mod flow;
mod kinds;
mod pages;
mod places;
mod problems;
mod service;
mod sessions;
mod state;
mod store;
mod tickets;

pub use model::{Identity, Session, VisitorId};
pub use service::{Visitors, end_not_allowed};
