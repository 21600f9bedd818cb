//! Views of the audit.

use serde::Serialize;
use utoipa::ToSchema;

use crate::control::audit::{Entries, Entry};

/// A page of the audit.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryList {
    /// Newest first.
    entries: Vec<Entry>,
    /// The `cursor` of the next page, if there is one.
    next_cursor: Option<String>,
}

impl From<Entries> for EntryList {
    fn from(found: Entries) -> Self {
        Self {
            entries: found.entries,
            next_cursor: found.next.map(|number| number.to_string()),
        }
    }
}
