//! Visitors with a verified identity: sign-in by the operator's providers, sessions on frontends, and lists of visitors for owners.
//!
//! A sign-in leads from the frontend's own origin to the provider, back to one callback on the sites host, and with a ticket to the frontend's
//! origin again, where the session cookie is set. A pending sign-in is sealed in the `state` (`state.rs`); nothing is stored before it ends.
//! Codes by e-mail and passkeys have pages of the server's own in a provider's place (`own_pages`). A kind of provider is a module (`kinds`).

pub mod check;
pub mod dev;
pub mod email;
pub mod model;
pub mod operations;
pub mod operators;
pub mod passkey;
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
mod own_pages;
mod pages;
mod problems;
mod service;
mod sessions;
mod sign_in_page;
mod state;
mod store;
mod tickets;
mod used_ids;

pub use model::{ActionCallerIdentity, VisitorId, VisitorSession};
pub use service::{Visitors, end_disallowed_sessions};
pub use sessions::VisitorSeen;
