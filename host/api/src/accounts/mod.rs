//! Workspaces over the network: their members, keys and plan, and their deletion.
//!
//! `workspaces` stores them. This module stands above all that a workspace owns, because deleting a workspace also deletes its contents.

pub mod audit;
pub mod metadata;
pub mod operations;
pub mod plans;
mod problems;
pub mod requests;
pub mod routes;
pub mod scope;
mod service;
pub mod views;

pub use plans::{PlanBilling, SubscriptionEventConsumer};
pub use service::{AccountError, Accounts};
