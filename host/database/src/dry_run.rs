//! Dry runs of a change, on a database in memory that is thrown away.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{StatementRunError, internal_error};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::migrate::{self, MigrationOutcome, MigrationScript, MigrationScriptError};
use super::run::prepare;
use super::schema::{self, MigrationMarker, Schema};
use super::timing::StatementLane;
use svc_base::Stopwatch;
use svc_base::ids::BackendId;
use svc_base::sqlite;

/// Maximum size of the schemas that one dry run tells, as text: each would be held as often as there are scripts.
const MAX_TOLD_BYTES: usize = 16 << 20;

/// A change to try.
#[derive(Clone, Debug, Default)]
pub struct DryRunInput {
    /// Whether the database does not exist yet: the first script makes it.
    pub is_new: bool,
    /// The scripts to apply, in order.
    pub scripts: Vec<MigrationScript>,
    /// The statements that must work after them.
    pub statements: Vec<DryRunStatement>,
    /// Whether the schema after each script is told, too.
    pub tells_each: bool,
}

/// A statement that is tried after the change.
#[derive(Clone, Debug)]
pub struct DryRunStatement {
    /// Name of the action.
    pub name: String,
    /// The statement itself.
    pub sql: Arc<str>,
    /// Whether the statement changes rows.
    pub writes: bool,
}

/// A statement that would not work after the change.
#[derive(Clone, Debug)]
pub struct BrokenStatement {
    /// Index among the statements that were tried.
    pub index: usize,
    /// Name of the action.
    pub name: String,
    /// Reason of SQLite, or of the authorizer.
    pub reason: String,
    /// Place in the statement, in bytes, if it is known.
    pub offset: Option<usize>,
}

/// Effects that a change would have.
#[derive(Clone, Debug)]
pub struct DryRunOutcome {
    /// Effect of each script on the file.
    pub migrated: Vec<MigrationOutcome>,
    /// The schema as it is.
    pub before: Schema,
    /// The schema as it would be.
    pub after: Schema,
    /// The schema after each script, if it is told.
    pub after_each: Vec<Schema>,
    /// The statements that would not work.
    pub broken_statements: Vec<BrokenStatement>,
}

/// Error of a dry run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{failure}")]
pub struct DryRunError {
    /// Index of the script that fails; `None` if it is none of them.
    pub script: Option<usize>,
    /// Error of the script, or of the run.
    pub failure: MigrationScriptError,
}

impl From<StatementRunError> for DryRunError {
    fn from(error: StatementRunError) -> Self {
        Self {
            script: None,
            failure: error.into(),
        }
    }
}

impl Databases {
    /// Tries a change in the long lane, while the writer goes on. A database that does not exist yet is not made by this.
    ///
    /// # Errors
    /// [`DryRunError`] names the script that would fail.
    pub async fn dry_run(
        &self,
        id: BackendId,
        trial: DryRunInput,
    ) -> Result<DryRunOutcome, DryRunError> {
        let settings = self.settings(&id);
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        if trial.is_new {
            return self.dry_run_new(id, settings, trial, budget).await;
        }
        let attempt = move |reader: &TenantConnection| {
            let copy = TenantConnection::in_memory(&settings, |connection| {
                sqlite::copy_pages(&reader.connection, connection)
            })?;
            Ok(try_change(&copy, &trial, budget))
        };
        self.load(id)
            .await?
            .with_reader(StatementLane::Long, attempt)
            .await?
    }

    /// Tries a change of a database that its first script makes.
    async fn dry_run_new(
        &self,
        id: BackendId,
        settings: DatabaseOpenSettings,
        trial: DryRunInput,
        budget: Duration,
    ) -> Result<DryRunOutcome, DryRunError> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || {
            let tried = TenantConnection::in_memory(&settings, |_| Ok(()))
                .map_err(DryRunError::from)
                .and_then(|empty| try_change(&empty, &trial, budget));
            // The caller may have gone away.
            let _ = answer.send(tried);
        });
        if !self.lanes.queue_long(self.owner(id), job) {
            return Err(StatementRunError::Busy.into());
        }
        answered
            .await
            .unwrap_or(Err(StatementRunError::Closed.into()))
    }
}

/// Tries a change on a database in memory.
fn try_change(
    copy: &TenantConnection,
    trial: &DryRunInput,
    budget: Duration,
) -> Result<DryRunOutcome, DryRunError> {
    let watch = Stopwatch::start();
    let rest = || match budget.saturating_sub(watch.elapsed()) {
        Duration::ZERO => Err(StatementRunError::Timeout),
        rest => Ok(rest),
    };
    let look = || schema::read_schema(&copy.connection).map_err(internal_error);
    let before = look()?;
    let mut migrated = Vec::with_capacity(trial.scripts.len());
    let (mut after_each, mut told) = (Vec::new(), 0);
    for (number, script) in trial.scripts.iter().enumerate() {
        let done = match trial.is_new && number == 0 {
            true => create(copy, script, rest()?),
            false => migrate::migrate(copy, script, rest()?),
        };
        migrated.push(done.map_err(|failure| DryRunError {
            script: Some(number),
            failure,
        })?);
        if trial.tells_each {
            let schema = look()?;
            told += schema.text_bytes();
            if told > MAX_TOLD_BYTES {
                return Err(StatementRunError::ResultTooLarge.into());
            }
            after_each.push(schema);
        }
    }
    let after = look()?;
    let mut broken = Vec::new();
    for (index, statement) in trial.statements.iter().enumerate() {
        match prepare(copy, &statement.sql, statement.writes, rest()?) {
            Ok(()) => {}
            Err(StatementRunError::Refused { reason, offset }) => {
                broken.push(BrokenStatement {
                    index,
                    name: statement.name.clone(),
                    reason,
                    offset,
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(DryRunOutcome {
        migrated,
        before,
        after,
        after_each,
        broken_statements: broken,
    })
}

/// Applies the first script of a new database.
fn create(
    empty: &TenantConnection,
    script: &MigrationScript,
    budget: Duration,
) -> Result<MigrationOutcome, MigrationScriptError> {
    migrate::create_database(empty, script, budget)?;
    let marker = MigrationMarker {
        version: 1,
        checksum: script.checksum.clone(),
    };
    Ok(MigrationOutcome::Applied(marker, Vec::new()))
}
