//! Live queries: a page gets the answer of a reading action, now and whenever a commit has changed it.
//!
//! A query is an action with its params, and with a visitor if the action depends on one. All subscribers of the same query
//! share one evaluation. Connections are WebSockets with many subscriptions, or streams of server-sent events
//! with one. They count as sockets in the quotas of rooms, and end with the sockets of rooms.

mod backlog;
mod board;
mod budget;
mod connection;
mod error;
mod identity;
mod listener;
mod listeners;
mod metrics;
mod opening;
mod problems;
pub mod protocol;
mod query;
pub mod routes;
mod service;
mod socket;
mod stream;
mod subscriber;

pub(super) use listeners::{ConnectionAdmission, LiveConnections};
pub use service::LiveQueries;
