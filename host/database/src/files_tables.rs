//! The tables of visitors' files: `svc_files`, which tenants see, and the answers to uploads that are kept for their keys.

use rusqlite::Connection;

use super::connection::TenantConnection;
use super::error::{StatementRunError, internal_error};
use super::transaction::{begin, commit, roll_back};

/// Tables of visitors' files. Databases that were made before there were any get them when they are opened.
pub(super) const FILES_TABLES_SQL: &str = "
CREATE TABLE IF NOT EXISTS svc_files (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    width INTEGER,
    height INTEGER,
    user_id TEXT,
    created_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS svc_uploads (
    key BLOB PRIMARY KEY NOT NULL,
    body BLOB NOT NULL,
    answer BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS svc_uploads_by_time ON svc_uploads (at);";

/// Pages that these tables take while they are empty, with room for the schema: a full database gets them, too.
const EXTRA_PAGES: i64 = 8;

/// Whether a database has the tables.
pub(super) fn has_files_tables(c: &Connection) -> rusqlite::Result<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'svc_files')";
    c.query_row(sql, [], |row| row.get(0))
}

/// Adds the tables to a database.
pub(super) fn add_files_tables(handle: &TenantConnection) -> Result<(), StatementRunError> {
    let connection = &handle.connection;
    let limit: i64 = connection
        .pragma_query_value(None, "max_page_count", |row| row.get(0))
        .map_err(internal_error)?;
    let set_limit = |pages: i64| {
        let set = connection.pragma_update(None, "max_page_count", pages);
        set.map_err(internal_error)
    };
    set_limit(limit.saturating_add(EXTRA_PAGES))?;
    let added = begin(handle)
        .and_then(|()| {
            let made = handle.execute_as_platform(FILES_TABLES_SQL);
            made.map_err(|error| StatementRunError::from_sqlite(error, None))
        })
        .and_then(|()| commit(handle))
        .inspect_err(|_| roll_back(handle));
    set_limit(limit)?;
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::DatabaseOpenSettings;

    #[test]
    fn a_full_database_gets_the_tables() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("full.db");
        let settings = DatabaseOpenSettings::standalone(path, 65_536);
        let handle = TenantConnection::create(&settings).unwrap();
        handle.execute_as_platform("CREATE TABLE t (a)").unwrap();
        let fill = "INSERT INTO t VALUES (zeroblob(3000))";
        while handle.execute_as_platform(fill).is_ok() {}
        assert!(!has_files_tables(&handle.connection).unwrap());
        add_files_tables(&handle).unwrap();
        assert!(has_files_tables(&handle.connection).unwrap());
        assert!(handle.execute_as_platform(fill).is_err());
        // A second time does no harm.
        add_files_tables(&handle).unwrap();
    }
}
