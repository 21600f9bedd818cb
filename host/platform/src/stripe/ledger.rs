//! The append-only ledger of verified events, each stored once.

pub use super::store::{
    EventLedgerEntry, RelatedEvents, append, find_related, list_unclaimed, mark_claimed, remove,
};
