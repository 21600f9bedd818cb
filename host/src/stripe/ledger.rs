//! The append-only ledger of verified events, each stored once.

pub use super::store::{Entry, Found, append, claim, find, remove, unclaimed};
