//! Outcome of a backup.

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;

/// Outcome of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupOutcome {
    /// When the installation was as the backup has it.
    pub moment: Timestamp,
    /// Whether the copy is whole; one that is not takes no earlier one's place.
    pub complete: bool,
    /// The control database, the counters and tenants' databases.
    pub databases: CopyStats,
    /// Sources and pages.
    pub content: CopyStats,
    /// Installed guests.
    pub guests: CopyStats,
    /// One-time shares, whose pages are in no backup.
    pub one_time_left_out: usize,
    /// Errors of the copy.
    pub errors: Vec<String>,
    /// Notes for the operator; nothing in them makes the copy less whole.
    pub notes: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl BackupOutcome {
    /// The outcome of a backup of which nothing is copied yet.
    pub(super) fn new(moment: Timestamp, one_time_left_out: usize) -> Self {
        Self {
            moment,
            complete: false,
            databases: CopyStats::default(),
            content: CopyStats::default(),
            guests: CopyStats::default(),
            one_time_left_out,
            errors: Vec::new(),
            notes: Vec::new(),
            duration_ms: 0,
        }
    }
}

/// Files that were copied, and files that had been before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyStats {
    /// Number of files.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Files that were copied now.
    pub copied_files: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

impl CopyStats {
    pub(super) fn count(&mut self, bytes: u64, now: bool) {
        self.files += 1;
        self.bytes += bytes;
        if now {
            self.copied_files += 1;
            self.copied_bytes += bytes;
        }
    }
}
