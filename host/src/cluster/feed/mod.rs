//! Feed of the control database: its owner names the commits that the ledger has acknowledged, and the other nodes follow them.
//!
//! It is a long poll, `GET /feed?after=N`: whoever asks for what comes after N has all up to N. A follower is fresh for a second from
//! sending the last poll that was answered, once it has everything that the answer named; it answers from its replica only while it
//! is. So the owner answers a write when each follower has the commit, or when the second of each answer without it is over.

mod follower;
mod lags;
mod log;
mod message;
mod owner;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod tests;

pub use follower::{FeedFollower, FeedFreshness};
pub(super) use lags::FeedLags;
pub(super) use owner::ControlFeed;

/// First segment of the path of polls.
const SERVICE: &str = "feed";
