//! Calls of a database: a statement, or several in one transaction.

use std::sync::Arc;

use super::batch::{BatchError, BatchStep, WriteStatements};
use super::connection::TenantConnection;
use super::database::Database;
use super::error::StatementRunError;
use super::run::{ResultJson, StatementCall, has_rows};
use super::timing::StatementTiming;
use super::uploads::{UploadCall, VisitorFileRow, find_file};

impl Database {
    /// Runs a statement; a write is durable when it is answered.
    ///
    /// # Errors
    /// [`StatementRunError`]; nothing is changed then.
    pub async fn call(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
    ) -> Result<ResultJson, StatementRunError> {
        let answer = if call.writes {
            let work = WriteStatements::Call(call);
            let written = self.write(work, Arc::clone(timing)).await;
            written.map_err(|failure| failure.error)
        } else {
            // A read writes nothing but temporary files, so only the disk can be full.
            self.read(call, timing).await.map_err(|error| match error {
                StatementRunError::DatabaseFull => StatementRunError::DiskFull,
                other => other,
            })
        };
        answer.map_err(|error| self.settings.distinguish_full_disk(error))
    }

    /// Inserts the row of a file and runs the statement of its upload, both or neither; durable when it is answered. Returns the whole
    /// answer.
    ///
    /// # Errors
    /// [`StatementRunError`]; nothing is changed then. `NothingWritten` if the statement refuses the file.
    pub async fn upload(
        &self,
        upload: UploadCall,
        timing: &Arc<StatementTiming>,
    ) -> Result<ResultJson, StatementRunError> {
        let work = WriteStatements::Upload(Box::new(upload));
        let written = self.write(work, Arc::clone(timing)).await;
        written.map_err(|failure| self.settings.distinguish_full_disk(failure.error))
    }

    /// Runs the read that allows a download; returns the file's row if the read has a row, and the file is there.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn allowed_file(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
        file: Arc<str>,
    ) -> Result<Option<VisitorFileRow>, StatementRunError> {
        let find = move |read: ResultJson, reader: &TenantConnection| match has_rows(&read.json) {
            true => find_file(&reader.connection, &file),
            false => Ok(None),
        };
        let answer = self.read_then(call, timing, find).await.flatten();
        answer.map_err(|error| match error {
            StatementRunError::DatabaseFull => StatementRunError::DiskFull,
            other => other,
        })
    }

    /// Runs statements in one transaction: all or none, durable when it is answered.
    ///
    /// # Errors
    /// [`BatchError`]; nothing is changed then.
    pub async fn batch(&self, steps: Vec<BatchStep>) -> Result<ResultJson, BatchError> {
        let timing = WriteStatements::batch_timing(&steps);
        let written = self.write(WriteStatements::Batch(steps), timing).await;
        written.map_err(|failure| BatchError {
            error: self.settings.distinguish_full_disk(failure.error),
            ..failure
        })
    }
}
