//! Views of the audit.

use serde::Serialize;
use utoipa::ToSchema;

use crate::control::audit::{AuditEntryPage, Entry};

/// A page of the audit.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryList {
    /// Newest first.
    entries: Vec<Entry>,
    /// The `cursor` of the next page, if there is one.
    next_cursor: Option<String>,
}

impl From<AuditEntryPage> for EntryList {
    fn from(found: AuditEntryPage) -> Self {
        Self {
            entries: found.entries,
            next_cursor: found.next.map(|number| number.to_string()),
        }
    }
}
