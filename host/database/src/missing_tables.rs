//! Tables of the platform that a database was made without, because there were none yet.

use super::database::Database;
use super::files_tables::{add_files_tables, has_files_tables};

impl Database {
    /// Adds the tables of visitors' files to a database that was made before there were any. Where that fails, all else works, and the
    /// next use tries again.
    pub(super) async fn add_missing_tables(&self) {
        let added = match self.inspect(has_files_tables).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.with_writer(|writer| add_files_tables(&writer.handle))
                    .await
            }
            Err(error) => Err(error),
        };
        match added {
            Ok(()) => self.note_all_tables(),
            Err(error) => {
                tracing::warn!(%error, backend = %self.id, "a database has no table of files yet");
            }
        }
    }
}
