//! The ledger of verified events: only ever appended to, each event once.

pub use super::store::{
    LedgerEntry, RelatedEvents, append, claim, find_related, remove, unclaimed,
};
