//! Settings of SQLite for the whole process.

use std::path::Path;

/// Memory that all connections may use together before each makes do with the pages that it has, in bytes.
const SOFT_HEAP_LIMIT: i64 = 192 << 20;

/// Memory that all connections never exceed: a connection that asks for more fails, and nothing else does.
const HARD_HEAP_LIMIT: i64 = 768 << 20;

/// Sets what holds for all of SQLite in the process, once: where temporary files are, which SQLite reads without a
/// lock, and how much memory is enough.
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
