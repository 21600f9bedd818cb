//! The audit of a workspace, as far as the caller may read it.

use serde::Deserialize;

use super::api::ApiClient;
use super::endpoints::{self, MAX_PAGE_ENTRIES};
use super::error::Result;
use svc_base::clock::Timestamp;

/// The most requests for the audit.
const MAX_PAGES: usize = 10;

/// An entry of the audit.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct AuditEntry {
    pub(super) at: Timestamp,
    pub(super) principal: String,
    pub(super) action: String,
    pub(super) target: String,
}

/// Newest entries of an audit.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditEntries {
    pub(super) entries: Vec<AuditEntry>,
    /// Whether the entries are all that were wanted.
    pub(super) is_enough: bool,
}

#[derive(Debug, Deserialize)]
struct AuditPage {
    entries: Vec<AuditEntry>,
    next_cursor: Option<String>,
}

/// Reads the audit of a workspace, newest entries first, until `is_enough` says so of those that were read.
///
/// # Errors
/// Failures of the server; only administrators may read the audit.
pub(super) async fn read_audit(
    api: &ApiClient,
    workspace: &str,
    is_enough: impl Fn(&[AuditEntry]) -> bool,
) -> Result<AuditEntries> {
    let (mut entries, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let asked = api.call(&endpoints::AUDIT, &[workspace]);
        let asked = asked
            .query("limit", Some(MAX_PAGE_ENTRIES))
            .query("cursor", cursor);
        let page: AuditPage = asked.send_and_parse().await?;
        entries.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() || is_enough(&entries) {
            return Ok(AuditEntries {
                entries,
                is_enough: true,
            });
        }
    }
    Ok(AuditEntries {
        entries,
        is_enough: false,
    })
}
