//! Limits that several modules use.

use std::time::Duration;

/// The longest value, and the longest statement, in bytes. Functions that work on such long values have a [cost].
///
/// [cost]: super::cost
pub(super) const VALUE_BYTES: i32 = 262_144;
/// The longest pattern of `LIKE` and `GLOB`, in bytes.
pub(super) const PATTERN_BYTES: i32 = 1000;
/// Name of the table of visitors' files.
pub(super) const FILES_TABLE: &str = "svc_files";
/// Size of a database's pages, in bytes.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Time that a call waits for its turn before it fails.
pub(super) const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a migration, in multiples of a statement's.
pub(super) const MIGRATION_BUDGET_FACTOR: u32 = 5;

/// Part of the kept databases that may be open beyond them, while databases are in use or being closed.
const SURPLUS_DIVISOR: u64 = 4;
/// Databases that may be open beyond the kept ones at least.
const LEAST_SURPLUS: u64 = 16;

/// Returns how many databases may be open where so many are kept.
pub const fn most_open_databases(kept: u64) -> u64 {
    let part = kept / SURPLUS_DIVISOR;
    let surplus = if part < LEAST_SURPLUS {
        LEAST_SURPLUS
    } else {
        part
    };
    kept.saturating_add(surplus)
}

/// Limits of the databases of an installation.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseLimits {
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
    /// Databases that are kept open.
    pub open_databases: u64,
    /// Free disk in bytes, below which no history is recorded.
    pub free_disk_bytes: u64,
}

/// Limits of one result.
#[derive(Clone, Copy, Debug)]
pub struct ResultLimits {
    /// Rows of a result.
    pub rows: u64,
    /// Bytes of the result's JSON.
    pub bytes: usize,
    /// Time limit of a statement.
    pub time: Duration,
}
