//! A database copied at one moment, while its server goes on writing to it.

use super::connection::{OpenSettings, TenantConnection};
use super::error::{RunError, internal};
use super::files::DatabaseFiles;
use svc_base::ids::BackendId;
use svc_base::sqlite;

/// A database to back up, opened beside the server that uses it. Its functions block.
#[derive(Debug)]
pub struct BackupSource(TenantConnection);

impl BackupSource {
    /// Opens a database.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(files: &DatabaseFiles, id: &BackendId) -> Result<Self, RunError> {
        TenantConnection::reader(&settings(files, id)).map(Self)
    }

    /// Begins a read transaction, which fixes the state to copy. SQLite cannot restart the log until it ends, so it must be short.
    pub fn begin_snapshot(&self) -> Result<(), RunError> {
        let look = "SELECT count(*) FROM sqlite_schema";
        self.0
            .execute_as_platform("BEGIN")
            .and_then(|()| self.0.connection.query_row(look, [], |_| Ok(())))
            .map_err(internal)
    }

    /// Copies the database to one of the same id, which must not exist yet. The copy is not synced.
    ///
    /// # Errors
    /// Errors of either database.
    pub fn copy_to(&self, files: &DatabaseFiles, id: &BackendId) -> Result<(), RunError> {
        sqlite::copy_database(&self.0.connection, &files.path(id)).map_err(internal)
    }
}

/// Prepares a copy that no server has open yet: switches it to the write-ahead log.
pub fn prepare_for_server(files: &DatabaseFiles, id: &BackendId) -> Result<(), RunError> {
    TenantConnection::writer(&settings(files, id)).map(drop)
}

/// Settings without a size limit, which the server of the database sets.
fn settings(files: &DatabaseFiles, id: &BackendId) -> OpenSettings {
    OpenSettings::standalone(files.path(id), 0)
}
