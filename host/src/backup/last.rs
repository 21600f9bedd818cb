//! Record of the last backup of a data directory, and of a failure since.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::outcome::BackupOutcome;
use crate::overview::status_file;
use svc_base::clock::Timestamp;

/// Name of the file in the data directory, which a restore does not touch.
const LAST_BACKUP_FILE: &str = "backup.status";

/// Record of the last backups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LastBackupRecord {
    /// The last complete backup.
    pub complete: Option<CompleteBackup>,
    /// Time of a later failure.
    pub failed_at: Option<Timestamp>,
}

/// A complete backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompleteBackup {
    /// Moment of the backup's state.
    pub moment: Timestamp,
    /// Directory of the backup.
    pub directory: String,
    /// Size of the backup, in bytes.
    pub bytes: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// Reads the record.
pub fn read(data: &Path) -> io::Result<LastBackupRecord> {
    Ok(status_file::read_json(data, LAST_BACKUP_FILE)?.unwrap_or_default())
}

/// Records the outcome of a backup.
pub fn record(
    data: &Path,
    place: &Path,
    made: Option<&BackupOutcome>,
    now: Timestamp,
) -> io::Result<()> {
    let last = match made.filter(|made| made.complete) {
        Some(made) => LastBackupRecord {
            complete: Some(CompleteBackup {
                moment: made.moment,
                directory: std::path::absolute(place)?.display().to_string(),
                bytes: made.databases.bytes + made.content.bytes + made.guests.bytes,
                duration_ms: made.duration_ms,
            }),
            failed_at: None,
        },
        None => LastBackupRecord {
            failed_at: Some(now),
            ..read(data)?
        },
    };
    status_file::write(data, LAST_BACKUP_FILE, &last)
}
