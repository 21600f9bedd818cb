//! Migrations: applied in the tenant's file first, then recorded in the ledger, so that a recorded migration is always applied.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::model::{BackendError, LedgerEntry, MigrationStatus, RecordedMigration};
use super::nesting::ViewsBeforeScript;
use super::service::Backends;
use super::{store, verdicts};
use crate::access::run_while_client_waits;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{self};
use crate::projects;
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{MigrationOutcome, MigrationScript, MigrationScriptError, StatementRunError};
use svc_sandbox::{MAX_SCRIPT_BYTES, SharedBudget, SqlPurpose};

/// Locks of migrations and restores, one per backend.
pub(super) type MigrationLocks = Mutex<HashMap<BackendId, Arc<tokio::sync::Mutex<()>>>>;

impl Backends {
    /// Judges a script: the first one of a backend, or a migration of `backend`.
    ///
    /// # Errors
    /// Mostly [`BackendError::ScriptRefused`].
    pub async fn judge_script(
        &self,
        sql: String,
        backend: Option<BackendId>,
    ) -> Result<MigrationScript, BackendError> {
        let (budget, mut views) = (self.verdicts.budget(), ViewsBeforeScript::of(backend));
        let purpose = match backend {
            Some(_) => SqlPurpose::Migration,
            None => SqlPurpose::Schema,
        };
        self.judge_next_script(sql, purpose, (&budget, &mut views))
            .await
    }

    /// Judges a script that follows others, within the rest of their budget.
    pub(super) async fn judge_next_script(
        &self,
        sql: String,
        purpose: SqlPurpose,
        (budget, views): (&SharedBudget, &mut ViewsBeforeScript),
    ) -> Result<MigrationScript, BackendError> {
        if sql.len() > MAX_SCRIPT_BYTES {
            return Err(BackendError::Invalid(format!(
                "`ddl` has {} bytes; {MAX_SCRIPT_BYTES} is the most.",
                sql.len()
            )));
        }
        let statements = self.verdicts.script(&sql, purpose, budget).await?;
        self.check_views(views, (&sql, &statements), budget).await?;
        Ok(MigrationScript {
            checksum: Digest::of(sql.as_bytes()).to_string(),
            statements: statements.iter().map(|s| s.start..s.end).collect(),
            sql,
        })
    }

    /// Returns the lock of a backend: only its holder changes the backend's file.
    pub(super) fn migration_lock(&self, id: BackendId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self
            .migration_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A lock that only the map holds is not in use.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(id).or_default())
    }
}

/// Migrations of backends.
#[derive(Debug)]
pub struct MigrationService {
    pub(super) backends: Arc<Backends>,
}

impl MigrationService {
    /// Makes the service of the migrations of these backends.
    pub fn new(backends: &Arc<Backends>) -> Self {
        Self {
            backends: Arc::clone(backends),
        }
    }

    /// Returns the backends.
    pub(super) fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Migrates a project's backend. A script that is in the file and not in the ledger is recorded; one that is in
    /// both changes nothing.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed, except for `NotRecorded`.
    pub async fn migrate(
        &self,
        project: ProjectId,
        ddl: String,
        note: Option<String>,
    ) -> Result<RecordedMigration, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let turn = self.backends.migration_lock(id);
        let _mine = turn.lock().await;
        self.backends.record_restores(id).await?;
        let script = run_while_client_waits(self.backends.judge_script(ddl, Some(id))).await??;
        self.apply_judged(project, id, script, note).await
    }

    /// Applies a judged script, and records it. The caller holds the turn at the backend.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed, except for `NotRecorded`.
    pub(super) async fn apply_judged(
        &self,
        project: ProjectId,
        id: BackendId,
        script: MigrationScript,
        note: Option<String>,
    ) -> Result<RecordedMigration, BackendError> {
        if let Some(version) = self.recorded_version(id, &script.checksum).await? {
            return Ok(RecordedMigration {
                status: MigrationStatus::AlreadyApplied,
                version,
                checksum: script.checksum,
                warnings: Vec::new(),
            });
        }
        self.check_definitions(id, &script, note.as_deref()).await?;
        self.backends.check_disk()?;
        let migrated = self.backends.databases.migrate(id, script.clone()).await;
        let (status, marker, warnings) =
            match migrated.map_err(|error| script_error(&script, error))? {
                MigrationOutcome::Applied(marker, new) => (MigrationStatus::Applied, marker, new),
                MigrationOutcome::AlreadyApplied(marker) => {
                    (MigrationStatus::Healed, marker, Vec::new())
                }
            };
        let entry = LedgerEntry {
            version: marker.version,
            checksum: marker.checksum.clone(),
            sql: script.sql,
            note,
            applied_at: self.backends.infra.clock.now(),
        };
        self.append(project, id, entry).await?;
        Ok(RecordedMigration {
            status,
            version: marker.version,
            checksum: marker.checksum,
            warnings,
        })
    }

    /// Returns the version under which a script is in the ledger.
    pub(super) async fn recorded_version(
        &self,
        id: BackendId,
        checksum: &str,
    ) -> Result<Option<u32>, control::Error> {
        let checksum = checksum.to_owned();
        let look = move |c: &_| store::recorded_version(c, &id, &checksum);
        self.backends.infra.control.read(look).await
    }

    /// Checks that the ledger has room for a script. A script that is in the file already is always recorded.
    pub(super) async fn check_definitions(
        &self,
        id: BackendId,
        script: &MigrationScript,
        note: Option<&str>,
    ) -> Result<(), BackendError> {
        let most = self.backends.infra.config.limits.definition_bytes;
        let taken = self.backends.definition_bytes(id).await?;
        let more = script.sql.len() + note.map_or(0, str::len);
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        if taken.saturating_add(more) <= most {
            return Ok(());
        }
        let markers = self.backends.databases.inventory(id).await?.markers;
        if markers.iter().any(|m| m.checksum == script.checksum) {
            return Ok(());
        }
        Err(BackendError::definitions_full(most))
    }

    async fn append(
        &self,
        project: ProjectId,
        id: BackendId,
        entry: LedgerEntry,
    ) -> Result<(), BackendError> {
        let appended: Result<bool, control::Error> = self
            .backends
            .infra
            .control
            .write(move |tx| {
                fault::point("migrate.recording");
                if !store::exists(tx, &id).map_err(control::Error::from)? {
                    return Ok(false);
                }
                store::append(tx, &id, &entry)?;
                projects::record_audit(
                    tx,
                    &project,
                    AuditAction::BackendMigrate,
                    &id,
                    entry.applied_at,
                )?;
                Ok(true)
            })
            .await;
        match appended {
            Ok(true) => Ok(()),
            Ok(false) => Err(BackendError::NotFound),
            Err(error) => {
                tracing::error!(%error, backend = %id, "a migration was applied but not recorded");
                Err(BackendError::NotRecorded)
            }
        }
    }
}

/// Maps a failure to an error for the author of a script.
pub(super) fn script_error(
    script: &MigrationScript,
    failure: MigrationScriptError,
) -> BackendError {
    match (failure.error, failure.statement) {
        (StatementRunError::Refused { reason, offset }, Some(number)) => {
            script_refused(script, number, offset, reason)
        }
        // In a script, the author's own value has made the statement fail.
        (StatementRunError::Failed(reason), Some(number)) => {
            script_refused(script, number, None, reason)
        }
        (error, _) => error.into(),
    }
}

/// Without another position, the start of the statement is reported.
fn script_refused(
    script: &MigrationScript,
    number: usize,
    offset: Option<usize>,
    reason: String,
) -> BackendError {
    let start = script.statements.get(number).map_or(0, |range| range.start);
    let offset = start + offset.unwrap_or(0);
    BackendError::ScriptRefused(verdicts::to_refusal(
        &script.sql,
        number,
        Some(offset),
        reason,
    ))
}
