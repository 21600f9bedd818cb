//! A database copied at one moment, while its server goes on writing to it.

use super::connection::{OpenSettings, TenantConnection};
use super::error::{RunError, internal};
use super::files::DatabaseFiles;
use svc_base::ids::BackendId;
use svc_base::sqlite;

/// A database to copy, opened beside the server that uses it. Its functions block.
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

    /// From now on it is seen as it is now. Its log cannot be begun anew meanwhile, so this must not last.
    pub fn begin_snapshot(&self) -> Result<(), RunError> {
        let look = "SELECT count(*) FROM sqlite_schema";
        self.0
            .execute_as_platform("BEGIN")
            .and_then(|()| self.0.connection.query_row(look, [], |_| Ok(())))
            .map_err(internal)
    }

    /// Copies it to a database of the same id that is not there yet. The copy is not synced.
    ///
    /// # Errors
    /// The databases'.
    pub fn copy_to(&self, files: &DatabaseFiles, id: &BackendId) -> Result<(), RunError> {
        sqlite::copy_database(&self.0.connection, &files.path(id)).map_err(internal)
    }
}

/// Makes of a copy what a server works with. Nobody has it open yet.
pub fn prepare_for_server(files: &DatabaseFiles, id: &BackendId) -> Result<(), RunError> {
    TenantConnection::writer(&settings(files, id)).map(drop)
}

/// Sets no bound on the size: the server of the database does that.
fn settings(files: &DatabaseFiles, id: &BackendId) -> OpenSettings {
    OpenSettings::standalone(files.path(id), 0)
}
