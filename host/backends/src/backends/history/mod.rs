//! History of a backend's database: lists its moments, and restores one.

pub mod requests;
pub mod routes;
pub mod views;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::migrations;
use super::model::{BackendError, LedgerEntry};
use super::service::Backends;
use super::store;
use crate::content::Digest;
use crate::control::audit::{self, AuditAction, AuditActor};
use crate::control::{self, ErrandWork, Tx};
use crate::projects;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{
    HistoryMoments, MigrationMarker, MigrationScript, PastSnapshot, RestorePlan, RestoreRecord,
    SnapshotError, StatementRunError,
};
use svc_sandbox::{SqlPurpose, StatementKind};

/// Maximum number of concurrent restores, and the time that another one waits to begin.
const MAX_RESTORES: usize = 2;
const RESTORE_QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Page of the moments of a history.
#[derive(Clone, Copy, Debug)]
pub struct MomentsPageRequest {
    /// Only moments before this one.
    pub before: Option<Timestamp>,
    /// Maximum number of moments.
    pub limit: usize,
}

/// Outcome of a restore.
#[derive(Clone, Copy, Debug)]
pub struct BackendRestoreOutcome {
    /// Time of the commit whose state is live now.
    pub restored_to: Timestamp,
    /// Moment to restore to undo this restore.
    pub previous: Timestamp,
}

/// Histories of backends, and their restores.
#[derive(Debug)]
pub struct BackendHistoryService {
    /// Slots of running restores.
    restore_permits: tokio::sync::Semaphore,
    backends: Arc<Backends>,
}

impl BackendHistoryService {
    /// Makes the service of the histories of these backends.
    pub fn new(backends: &Arc<Backends>) -> Self {
        Self {
            restore_permits: tokio::sync::Semaphore::new(MAX_RESTORES),
            backends: Arc::clone(backends),
        }
    }

    /// The moments that a project's backend can be restored to, newest first.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend; errors of the database.
    pub async fn history(
        &self,
        project: ProjectId,
        part: MomentsPageRequest,
    ) -> Result<HistoryMoments, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        Ok(self
            .backends
            .databases
            .list_moments(id, part.before, part.limit)
            .await?)
    }

    /// Restores the rows of a project's database as they were at `at`, under the current schema. Durable when it returns.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed. `NotRecorded` if a migration must be sent again first.
    pub async fn restore(
        &self,
        project: ProjectId,
        at: Timestamp,
    ) -> Result<BackendRestoreOutcome, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let turn = self.backends.migration_lock(id);
        let _mine = turn.lock().await;
        self.backends.record_restores(id).await?;
        // Each restore holds a copy in memory, so few run at once.
        let waited =
            tokio::time::timeout(RESTORE_QUEUE_TIMEOUT, self.restore_permits.acquire()).await;
        let _permit = waited.map_err(|_| StatementRunError::Busy)?;
        let databases = &self.backends.databases;
        let rewound = databases.snapshot_at(id, at).await.map_err(rewind_error)?;
        let control = &self.backends.infra.control;
        let ledger = control.read(move |c| store::ledger(c, &id)).await?;
        // A migration that is not in the ledger could not be applied again.
        let recorded =
            |m: &MigrationMarker| ledger.iter().any(|entry| entry.checksum == m.checksum);
        if !rewound.live_markers.iter().all(recorded) {
            return Err(BackendError::NotRecorded);
        }
        let record = self.new_restore_record(&ledger, &rewound);
        let missing: Vec<LedgerEntry> = ledger
            .into_iter()
            .filter(|entry| rewound.markers.iter().all(|m| m.checksum != entry.checksum))
            .collect();
        let later = self.schema_scripts_of(&missing).await?;
        let restored_to = rewound.at;
        let plan = RestorePlan {
            later_migrations: later.clone(),
            record: record.clone(),
        };
        let reinstated = databases.restore_snapshot(id, rewound, plan).await;
        let reinstated = reinstated.map_err(|failure| match failure.migration {
            Some(number) => {
                let error = migrations::script_error(&later[number].1, failure.error);
                migration_error(&missing[number], error)
            }
            None => failure.error.error.into(),
        })?;
        self.backends.note_file_changes(id);
        if let Err(error) = self.backends.record_restore(id, record).await {
            // It is done, and the next look at the backend records it.
            tracing::error!(%error, backend = %id, "a restore is not recorded yet");
        }
        Ok(BackendRestoreOutcome {
            restored_to,
            previous: reinstated.previous,
        })
    }

    /// Returns what each of these migrations does to the schema, beside its version.
    async fn schema_scripts_of(
        &self,
        migrations: &[LedgerEntry],
    ) -> Result<Vec<(u32, MigrationScript)>, BackendError> {
        let mut schemas = Vec::new();
        for entry in migrations {
            let script = self.script_without_inserts(entry).await;
            schemas.push((
                entry.version,
                script.map_err(|e| migration_error(entry, e))?,
            ));
        }
        Ok(schemas)
    }

    /// Creates the ledger entry of a restore. Its version is above those of all states of the file.
    fn new_restore_record(&self, ledger: &[LedgerEntry], rewound: &PastSnapshot) -> RestoreRecord {
        let recorded = ledger.iter().map(|entry| entry.version);
        let marked = rewound.live_markers.iter().chain(&rewound.markers);
        let version = recorded.chain(marked.map(|m| m.version)).max().unwrap_or(0) + 1;
        let made_at = self.backends.infra.clock.now();
        let sql = format!(
            "-- {version}: restored to {}, at {made_at}. Later migrations were applied again, without their rows.",
            rewound.at
        );
        let checksum = Digest::of(sql.as_bytes()).to_string();
        RestoreRecord {
            marker: MigrationMarker { version, checksum },
            sql,
            made_at,
            made_by: audit::current_actor().as_ref().map(AuditActor::encode),
        }
    }

    /// Returns the script of a ledger entry without its `INSERT`s, to apply it again.
    async fn script_without_inserts(
        &self,
        entry: &LedgerEntry,
    ) -> Result<MigrationScript, BackendError> {
        let mut statements = Vec::new();
        // Only the entry of an earlier restore is a comment alone.
        if !is_comment(&entry.sql) {
            let verdicts = &self.backends.verdicts;
            // A budget for each: together they may be more than one request could send.
            let budget = verdicts.budget();
            let judged = verdicts.script(&entry.sql, SqlPurpose::Migration, &budget);
            let judged = judged.await?;
            let changes = judged.iter().filter(|s| s.kind == StatementKind::Migration);
            statements.extend(changes.map(|s| s.start..s.end));
        }
        Ok(MigrationScript {
            sql: entry.sql.clone(),
            checksum: entry.checksum.clone(),
            statements,
        })
    }
}

impl Backends {
    /// Records the restores that are in the file and not in the ledger, because a crash came between the two writes.
    pub(super) async fn record_restores(&self, id: BackendId) -> Result<(), BackendError> {
        for record in self.databases.restore_records(id).await? {
            self.record_restore(id, record).await?;
        }
        Ok(())
    }

    async fn record_restore(
        &self,
        id: BackendId,
        record: RestoreRecord,
    ) -> Result<(), control::Error> {
        let restored = RestoreEntry {
            backend: id,
            made_by: record.made_by.as_deref().and_then(AuditActor::decode),
            entry: LedgerEntry {
                version: record.marker.version,
                checksum: record.marker.checksum,
                sql: record.sql,
                note: None,
                applied_at: record.made_at,
            },
        };
        self.infra.control.run_errand(restored).await
    }
}

/// Errand: a restore is in the file of a backend. It is recorded in the ledger, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestoreEntry {
    pub backend: BackendId,
    /// Caller who restored, which may be another one than the one who has it recorded.
    pub made_by: Option<AuditActor>,
    pub entry: LedgerEntry,
}

impl ErrandWork for RestoreEntry {
    const KIND: &'static str = "restore_entry";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), control::Error> {
        fault::point("rewind.recording");
        let (id, entry) = (&self.backend, &self.entry);
        let known = store::recorded_version(tx, id, &entry.checksum)?.is_some();
        let Some(project) = store::project_of(tx, id)?.filter(|_| !known) else {
            return Ok(());
        };
        store::append(tx, id, entry)?;
        match &self.made_by {
            Some(actor) => projects::record_audit_as(
                tx,
                actor,
                &project,
                AuditAction::BackendRestore,
                id,
                entry.applied_at,
            ),
            None => Ok(()),
        }
    }
}

fn is_comment(sql: &str) -> bool {
    sql.starts_with("--") && !sql.contains('\n')
}

fn rewind_error(error: SnapshotError) -> BackendError {
    match error {
        SnapshotError::TooOld { oldest } => BackendError::NoMoment(oldest),
        SnapshotError::Future => BackendError::Invalid(
            "`at` is in the future: name a moment that the history has.".to_owned(),
        ),
        SnapshotError::Run(error) => error.into(),
    }
}

fn migration_error(entry: &LedgerEntry, error: BackendError) -> BackendError {
    BackendError::Migration {
        version: entry.version,
        error: Box::new(error),
    }
}
