//! Limits that several modules keep.

use std::time::Duration;

/// The longest value, and the longest statement, in bytes. Functions that work on values that long have a [cost].
///
/// [cost]: super::cost
pub(super) const VALUE_BYTES: i32 = 262_144;
/// The longest pattern of `LIKE` and `GLOB`, in bytes.
pub(super) const PATTERN_BYTES: i32 = 1000;
/// Size of a database's pages, in bytes.
pub(super) const PAGE_BYTES: u64 = 4096;
/// How long a call waits to begin.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// A migration may run as long as this many statements.
pub(super) const MIGRATION_BUDGET_FACTOR: u32 = 5;

/// Limits of the databases of an installation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows of a result.
    pub query_rows: u64,
    /// Bytes of a result.
    pub result_bytes: u64,
    /// Milliseconds of a tenant's statement.
    pub statement_ms: u64,
    /// Bytes of a database's file.
    pub database_bytes: u64,
    /// Bytes of a database's history; 0 keeps none.
    pub history_bytes: u64,
    /// Bytes of free disk below which nothing new is taken.
    pub free_disk_bytes: u64,
}

/// Limits of one result.
#[derive(Clone, Copy, Debug)]
pub struct ResultLimits {
    /// Rows of a result.
    pub rows: u64,
    /// Bytes of its JSON.
    pub bytes: usize,
    /// How long a statement may run.
    pub time: Duration,
}
