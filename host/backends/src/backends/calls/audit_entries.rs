//! Audit log entries for rows that owners write.

use serde::{Deserialize, Serialize};

use super::ActionCalls;
use crate::backends::model::BackendError;
use crate::backends::store;
use crate::control::audit::{self, AuditAction, AuditWithdrawal, UncommittedAuditEntry};
use crate::control::{ErrandWork, Error, Tx};
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::BackendId;

/// Errand: rows of a backend are about to be written by an owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditAhead {
    pub backend: BackendId,
    pub act: AuditAction,
    /// Part of the backend that it is about, if it is about one.
    #[serde(default)]
    pub part: Option<String>,
    pub at: Timestamp,
}

/// Answer to [`AuditAhead`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditAheadAnswer {
    /// There is no such backend.
    NoBackend,
    /// The entry is durable, if there was an actor to name.
    Recorded(Option<UncommittedAuditEntry>),
}

impl ErrandWork for AuditAhead {
    const KIND: &'static str = "audit_ahead";
    type Answer = AuditAheadAnswer;

    fn perform(self, tx: &Tx<'_>) -> Result<AuditAheadAnswer, Error> {
        let Some(project) = store::project_of(tx, &self.backend)? else {
            return Ok(AuditAheadAnswer::NoBackend);
        };
        let target = match &self.part {
            Some(part) => format!("{}/{part}", self.backend),
            None => self.backend.to_string(),
        };
        let entry = projects::record_audit_ahead(tx, &project, self.act, &target, self.at)?;
        Ok(AuditAheadAnswer::Recorded(entry))
    }
}

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
            true => Box::pin(self.run_audited(id, (act, None), work())).await,
            false => work().await,
        }
    }

    /// Runs an owner's call that writes rows, with an entry in the audit log.
    ///
    /// # Errors
    /// Errors of the call and of the control database; then nothing is written.
    pub(super) async fn run_audited<T>(
        &self,
        id: BackendId,
        (act, part): (AuditAction, Option<String>),
        work: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let control = &self.backends.infra.control;
        let ahead = AuditAhead {
            backend: id,
            act,
            part,
            at: self.backends.infra.clock.now(),
        };
        let AuditAheadAnswer::Recorded(entry) = control.run_errand(ahead).await? else {
            return Err(BackendError::NotFound);
        };
        fault::point("query.noted");
        let done = work.await;
        fault::point("query.written");
        if let (Err(_), Some(entry)) = (&done, entry) {
            let withdrawn = control.run_errand(AuditWithdrawal(entry)).await;
            if let Err(error) = withdrawn {
                tracing::warn!(%error, "an entry of the audit stays of what was not done");
            }
        }
        done
    }
}
