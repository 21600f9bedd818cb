//! Record of the directory's backups: when and where the last one was made, and whether one has failed since.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::outcome::BackupOutcome;
use crate::overview::status_file;
use svc_base::clock::Timestamp;

/// The name of the file in the data directory. A restore leaves it as it is.
const FILE: &str = "backup.status";

/// The last backups.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LastBackup {
    /// The last that is whole.
    pub complete: Option<CompleteBackup>,
    /// When one failed after it.
    pub failed_at: Option<Timestamp>,
}

/// A backup that is whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompleteBackup {
    /// When the installation was as the backup has it.
    pub moment: Timestamp,
    /// Where it is.
    pub directory: String,
    /// Size of the backup, in bytes.
    pub bytes: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// Reads what is known.
pub fn read(data: &Path) -> io::Result<LastBackup> {
    Ok(status_file::read_json(data, FILE)?.unwrap_or_default())
}

/// Writes down what became of a backup.
pub fn record(
    data: &Path,
    place: &Path,
    made: Option<&BackupOutcome>,
    now: Timestamp,
) -> io::Result<()> {
    let last = match made.filter(|made| made.complete) {
        Some(made) => LastBackup {
            complete: Some(CompleteBackup {
                moment: made.moment,
                directory: std::path::absolute(place)?.display().to_string(),
                bytes: made.databases.bytes + made.content.bytes + made.guests.bytes,
                duration_ms: made.duration_ms,
            }),
            failed_at: None,
        },
        None => LastBackup {
            failed_at: Some(now),
            ..read(data)?
        },
    };
    status_file::write(data, FILE, &last)
}
