//! The append-only ledger of verified events, each stored once.

pub use super::store::{
    LedgerEntry, RelatedEvents, append, claim, find_related, remove, unclaimed,
};
