//! Workspaces over the network: their people, the keys that act for them, their plan, and their end.
//!
//! `workspaces` has what is stored; this stands above what a workspace owns, because it ends all of that.

pub mod audit;
pub mod metadata;
pub mod operations;
pub mod plans;
pub mod requests;
pub mod routes;
pub mod scope;
mod service;
pub mod views;

pub use plans::{Billing, SubscriptionConsumer};
pub use service::Accounts;
