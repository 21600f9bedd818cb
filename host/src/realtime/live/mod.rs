//! Live queries: a page is told what a reading action answers, now and whenever a commit has changed it.
//!
//! A query is an action with its params, and with a visitor where the action names one. Everybody who asks for the same is
//! served by one evaluation. Connections are WebSockets with many subscriptions, or streams of server-sent events
//! with one; they count as sockets in the quotas of rooms, and what ends rooms' sockets ends them.

mod backlog;
mod board;
mod budget;
mod connection;
mod identity;
mod listener;
mod listeners;
mod metrics;
mod problems;
pub mod protocol;
mod query;
pub mod routes;
mod service;
mod socket;
mod stream;
mod subscriber;

pub(super) use listeners::{Admission, Listeners};
pub use service::Live;
