//! Backups: copies of all durable data as it was at one moment, made while the server runs, and restored atomically.
//!
//! The moment is the few milliseconds for which a backup keeps others from writing to the control database: within them
//! it begins to read the control database and every tenant's. So each tenant's file is as the control database knows it:
//! the copy is what a power cut at that moment would have left, which a start repairs. Content never changes, so it is
//! copied afterwards, while a hold keeps the collector from it.

mod directory;
mod from;
pub mod last;
mod make;
mod manifest;
mod objects;
mod outcome;
mod restore;
mod switch;
mod verify;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use directory::is_backup;
pub use from::{BucketSource, ClusterRestoreOutcome, RestoredDatabase, restore_from};
pub use make::make;
pub use outcome::{BackupOutcome, CopyStats};
pub use restore::{BackupRestoreOutcome, restore};
pub use switch::finish_interrupted;
pub use verify::verify;

/// Stage of a backup or a restore, for the display of its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupStage {
    /// Copying databases.
    Databases,
    /// Copying content, in bytes.
    Content,
    /// Checking the copy.
    Check,
}

/// Callback for progress: the stage, the finished amount, and the total.
pub type BackupProgressFn<'w> = &'w dyn Fn(BackupStage, u64, u64);

/// Converts a duration to whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
