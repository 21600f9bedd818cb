//! Work that needs a database's writer for itself, and what it tells those who watch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::changed_tables::ChangedTables;
use super::database::{Database, QueuedWork, await_answer};
use super::error::RunError;
use super::pending_commits::Replies;
use super::schema;
use super::writer::Writer;
use svc_base::work_state::WorkState;

impl Database {
    /// Runs `work` with the writer for itself, in the order of the queue. Followers are told that anything may have changed.
    ///
    /// # Errors
    /// The work's own, `Busy`, or `Closed`.
    pub(super) async fn with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        self.with_writer_announcing(ChangedTables::All, work).await
    }

    /// Runs work with the writer that changes nothing of what tenants see.
    ///
    /// # Errors
    /// The work's own, `Busy`, or `Closed`.
    pub(super) async fn with_writer_silently<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        self.with_writer_announcing(ChangedTables::default(), work)
            .await
    }

    async fn with_writer_announcing<T: Send + 'static>(
        &self,
        touches: ChangedTables,
        work: impl FnOnce(&mut Writer) -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        let (answer, answered) = oneshot::channel();
        let work_state = WorkState::new();
        let begun = Arc::clone(&work_state);
        let me = self.upgrade_self()?;
        self.enqueue(QueuedWork::Exclusive(Box::new(move |writer| {
            if begun.start() {
                let result = work(writer);
                me.settings.schema_changed();
                match schema::has_deferred_keys(&writer.handle.connection) {
                    Ok(deferred) => me.deferred_keys.store(deferred, Ordering::Relaxed),
                    Err(error) => tracing::error!(%error, "a schema cannot be read"),
                }
                // Only now, so that what is looked at again is looked at by the schema that it has.
                let answer = Replies::Exclusive(Box::new(move || {
                    // A caller that has gone away does not want it.
                    let _ = answer.send(result);
                }));
                writer.add_pending_commit(touches, answer);
            }
        })))?;
        await_answer(answered, &work_state).await
    }
}
