//! The ledger of verified events: only ever appended to, each event once.

pub use super::store::{Entry, Found, append, claim, find, remove, unclaimed};
