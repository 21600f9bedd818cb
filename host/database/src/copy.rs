//! A database copied at one moment, while its server goes on writing to it.

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::error::{StatementRunError, internal_error};
use super::files::DatabasesDirectory;
use super::files_tables::has_files_tables;
use svc_base::ids::BackendId;
use svc_base::sqlite;

/// A database to back up, opened beside the server that uses it. Its functions block.
#[derive(Debug)]
pub struct BackupSourceDatabase(TenantConnection);

impl BackupSourceDatabase {
    /// Opens a database.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(files: &DatabasesDirectory, id: &BackendId) -> Result<Self, StatementRunError> {
        TenantConnection::reader(&open_settings(files, id)).map(Self)
    }

    /// Begins a read transaction, which fixes the state to copy. SQLite cannot restart the log until it ends, so it must be short.
    pub fn begin_snapshot(&self) -> Result<(), StatementRunError> {
        let look = "SELECT count(*) FROM sqlite_schema";
        self.0
            .execute_as_platform("BEGIN")
            .and_then(|()| self.0.connection.query_row(look, [], |_| Ok(())))
            .map_err(internal_error)
    }

    /// Reads the ids of visitors' files; none of a database that was made before there were any.
    pub fn file_ids(&self) -> Result<Vec<String>, StatementRunError> {
        let ids = || {
            let connection = &self.0.connection;
            if !has_files_tables(connection)? {
                return Ok(Vec::new());
            }
            let mut read = connection.prepare("SELECT id FROM svc_files")?;
            let ids = read.query_map([], |row| row.get(0))?;
            ids.collect::<rusqlite::Result<_>>()
        };
        ids().map_err(internal_error)
    }

    /// Copies the database to one of the same id, which must not exist yet. The copy is not synced.
    ///
    /// # Errors
    /// Errors of either database.
    pub fn copy_to(
        &self,
        files: &DatabasesDirectory,
        id: &BackendId,
    ) -> Result<(), StatementRunError> {
        sqlite::copy_database(&self.0.connection, &files.path(id)).map_err(internal_error)
    }
}

/// Prepares a copy that no server has open yet: switches it to the write-ahead log.
pub fn prepare_for_server(
    files: &DatabasesDirectory,
    id: &BackendId,
) -> Result<(), StatementRunError> {
    TenantConnection::writer(&open_settings(files, id)).map(drop)
}

/// Settings without a size limit, which the server of the database sets.
fn open_settings(files: &DatabasesDirectory, id: &BackendId) -> DatabaseOpenSettings {
    DatabaseOpenSettings::standalone(files.path(id), 0)
}
