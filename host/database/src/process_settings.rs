//! Settings of SQLite for the whole process.

use std::path::Path;

/// Soft limit of SQLite's memory in the process, in bytes: above it, connections reuse their pages.
const SOFT_HEAP_LIMIT: i64 = 192 << 20;

/// Hard limit of SQLite's memory in the process, in bytes: above it, allocations fail.
const HARD_HEAP_LIMIT: i64 = 768 << 20;

/// Sets the directory of temporary files and the limits of memory, once, before the first connection: SQLite reads these settings
/// without a lock.
pub(super) fn configure_sqlite(directory: &Path) -> anyhow::Result<()> {
    static SET: std::sync::Once = std::sync::Once::new();
    std::fs::create_dir_all(directory)?;
    let directory = directory.canonicalize()?;
    let mut result = Ok(());
    SET.call_once(|| {
        let name = directory.to_str();
        result = rusqlite::Connection::open_in_memory().and_then(|connection| {
            connection.pragma_update(None, "temp_store_directory", name)?;
            connection.pragma_update(None, "soft_heap_limit", SOFT_HEAP_LIMIT)?;
            connection.pragma_update(None, "hard_heap_limit", HARD_HEAP_LIMIT)
        });
    });
    Ok(result?)
}
