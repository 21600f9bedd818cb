//! Calls of a database: a statement, or several in one transaction.

use std::sync::Arc;

use super::batch::{BatchError, BatchStep, WriteStatements};
use super::database::Database;
use super::error::StatementRunError;
use super::run::{ResultJson, StatementCall};
use super::timing::StatementTiming;

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
