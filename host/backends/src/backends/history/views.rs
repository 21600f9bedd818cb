//! Views of a backend's history.

use serde::Serialize;
use utoipa::ToSchema;

use super::BackendRestoreOutcome;
use svc_base::clock::Timestamp;
use svc_database::HistoryMoments;

/// The moments that a backend can be restored to.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryView {
    /// The first; null while nothing is kept.
    #[schema(value_type = Option<String>, format = "date-time")]
    oldest: Option<Timestamp>,
    /// The last: the state as it is.
    #[schema(value_type = Option<String>, format = "date-time")]
    newest: Option<Timestamp>,
    /// Size of the history on the disk, in bytes.
    bytes: u64,
    /// When something was committed, newest first. Any time from `oldest` on can be restored: it means the last commit until then.
    moments: Vec<MomentView>,
    /// Value to send as `before` for the moments before these; null if there are none.
    #[schema(value_type = Option<String>, format = "date-time")]
    next_before: Option<Timestamp>,
}

/// A moment at which something was committed.
#[derive(Debug, Serialize, ToSchema)]
pub struct MomentView {
    /// Time of the commit.
    #[schema(value_type = String, format = "date-time")]
    at: Timestamp,
}

/// Outcome of a restore.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestoredView {
    /// When the rows that are live now were committed.
    #[schema(value_type = String, format = "date-time")]
    restored_to: Timestamp,
    /// Moment to restore to undo this restore.
    #[schema(value_type = String, format = "date-time")]
    previous: Timestamp,
}

impl From<HistoryMoments> for HistoryView {
    fn from(past: HistoryMoments) -> Self {
        Self {
            oldest: past.oldest,
            newest: past.newest,
            bytes: past.bytes,
            next_before: past.moments.last().copied().filter(|_| past.has_more),
            moments: past
                .moments
                .into_iter()
                .map(|at| MomentView { at })
                .collect(),
        }
    }
}

impl From<BackendRestoreOutcome> for RestoredView {
    fn from(restored: BackendRestoreOutcome) -> Self {
        Self {
            restored_to: restored.restored_to,
            previous: restored.previous,
        }
    }
}
