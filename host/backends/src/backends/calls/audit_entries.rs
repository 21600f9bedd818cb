//! Audit log entries for rows that owners write.

use super::ActionCalls;
use crate::backends::model::BackendError;
use crate::backends::store;
use crate::control::Error;
use crate::control::audit::{self, AuditAction};
use crate::projects;
use svc_base::fault;
use svc_base::ids::BackendId;

impl ActionCalls {
    /// Runs the work of a call; if it `writes` rows for an owner, it adds an entry to the audit log.
    ///
    /// # Errors
    /// Errors of the call and of the control database; then nothing is written.
    pub(super) async fn with_audit_entry<T, F>(
        &self,
        id: BackendId,
        act: AuditAction,
        writes: bool,
        work: impl FnOnce() -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        match writes && audit::current_actor().is_some() {
            // Boxed, because most calls are visitors' and must not carry its size.
            true => Box::pin(self.run_audited(id, act, work())).await,
            false => work().await,
        }
    }

    /// Runs an owner's call that writes rows, with an entry in the audit log.
    ///
    /// # Errors
    /// Errors of the call and of the control database; then nothing is written.
    async fn run_audited<T>(
        &self,
        id: BackendId,
        act: AuditAction,
        work: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let now = self.backends.infra.clock.now();
        let noted = self.backends.infra.control.write(move |tx| {
            let project = store::project_of(tx, &id).map_err(Error::from)?;
            let project = project.ok_or(BackendError::NotFound)?;
            Ok::<_, BackendError>(projects::record_audit_ahead(tx, &project, act, &id, now)?)
        });
        let entry = noted.await?;
        fault::point("query.noted");
        let done = work.await;
        fault::point("query.written");
        if let (Err(_), Some(entry)) = (&done, entry) {
            let taken: Result<(), Error> = self
                .backends
                .infra
                .control
                .write(move |tx| tx.withdraw_audit(&entry))
                .await;
            if let Err(error) = taken {
                tracing::warn!(%error, "an entry of the audit stays of what was not done");
            }
        }
        done
    }
}
