//! Jobs that need a database's writer for themselves.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::changed_tables::ChangedTables;
use super::database::{Database, QueuedWriterWork, await_answer};
use super::error::StatementRunError;
use super::pending_commits::CommitReplies;
use super::schema;
use super::writer::DatabaseWriter;
use svc_base::work_state::QueuedWorkState;

impl Database {
    /// Runs `work` with the writer for itself, in the order of the queue. The listener learns that anything may have changed.
    ///
    /// # Errors
    /// Errors of the work, `Busy`, or `Closed`.
    pub(super) async fn with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut DatabaseWriter) -> Result<T, StatementRunError> + Send + 'static,
    ) -> Result<T, StatementRunError> {
        self.with_writer_announcing(ChangedTables::All, work).await
    }

    /// Runs work that changes nothing that tenants see, with the writer for itself. The listener learns nothing.
    ///
    /// # Errors
    /// Errors of the work, `Busy`, or `Closed`.
    pub(super) async fn with_writer_silently<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut DatabaseWriter) -> Result<T, StatementRunError> + Send + 'static,
    ) -> Result<T, StatementRunError> {
        self.with_writer_announcing(ChangedTables::default(), work)
            .await
    }

    async fn with_writer_announcing<T: Send + 'static>(
        &self,
        touches: ChangedTables,
        work: impl FnOnce(&mut DatabaseWriter) -> Result<T, StatementRunError> + Send + 'static,
    ) -> Result<T, StatementRunError> {
        let (answer, answered) = oneshot::channel();
        let work_state = QueuedWorkState::new();
        let begun = Arc::clone(&work_state);
        let me = self.upgrade_self()?;
        self.enqueue(QueuedWriterWork::Exclusive(Box::new(move |writer| {
            if begun.start() {
                let result = work(writer);
                me.settings.record_schema_change();
                match schema::has_deferred_keys(&writer.handle.connection) {
                    Ok(deferred) => me.deferred_keys.store(deferred, Ordering::Relaxed),
                    Err(error) => tracing::error!(%error, "a schema cannot be read"),
                }
                // The caller is answered only after this, so that it sees the new schema.
                let answer = CommitReplies::Exclusive(Box::new(move || {
                    // The caller may have gone away.
                    let _ = answer.send(result);
                }));
                writer.add_pending_commit(touches, answer);
            }
        })))?;
        await_answer(answered, &work_state).await
    }
}
