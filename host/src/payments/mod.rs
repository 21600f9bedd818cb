//! Payments: what projects sell, and who has paid.
//!
//! The catalog is ours, and needs no provider. A visitor pays on the provider's page. The provider's webhooks alone say the outcome,
//! as [`verdict`](verdict::verdict)s, which are functions of the ledger (`stripe/ledger.rs`). A project's own
//! database has a copy of its sessions, which follows (`mirror.rs`).

mod buyer;
mod cancellations;
mod catalog;
mod checkout;
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

pub use model::PaymentError;
pub use service::Payments;
