//! Calls of a database: a statement, or several in one transaction.

use std::sync::Arc;

use super::batch::{BatchError, BatchStep, WriteRequest};
use super::database::Database;
use super::error::RunError;
use super::run::{ResultJson, StatementCall};
use super::timing::StatementTiming;

impl Database {
    /// Runs a statement; a write is durable when it is answered.
    ///
    /// # Errors
    /// [`RunError`]; nothing is changed then.
    pub async fn call(
        &self,
        call: StatementCall,
        timing: &Arc<StatementTiming>,
    ) -> Result<ResultJson, RunError> {
        let answer = if call.writes {
            let work = WriteRequest::Call(call);
            let written = self.write(work, Arc::clone(timing)).await;
            written.map_err(|failure| failure.error)
        } else {
            // A read fills nothing but the disk that its temporary files are on.
            self.read(call, timing).await.map_err(|error| match error {
                RunError::DatabaseFull => RunError::DiskFull,
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
        let timing = WriteRequest::batch_timing(&steps);
        let written = self.write(WriteRequest::Batch(steps), timing).await;
        written.map_err(|failure| BatchError {
            error: self.settings.distinguish_full_disk(failure.error),
            ..failure
        })
    }
}
