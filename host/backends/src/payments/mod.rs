//! Payments: what projects sell, and which visitors have paid.
//!
//! The catalog is stored here and needs no provider. A visitor pays on the provider's page. Only the provider's webhooks decide the outcome:
//! [`verdict`](verdict::verdict)s are pure functions of the ledger (`stripe/ledger.rs`). A project's own
//! database gets a copy of its sessions (`mirror.rs`).

mod buyer;
mod cancellations;
mod catalog;
mod checkout;
mod cookie_links;
mod mirror;
pub mod model;
pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
mod service;
mod store;
pub mod verdict;
pub mod views;

pub use mirror::MirrorPosition;
pub use model::PaymentError;
pub use service::Payments;
