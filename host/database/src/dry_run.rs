//! Dry runs of a change, on a copy in memory that is thrown away.

use std::sync::Arc;
use std::time::Duration;

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{StatementRunError, internal_error};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::migrate::{self, MigrationOutcome, MigrationScript, MigrationScriptError};
use super::run::prepare;
use super::schema::{self, Schema};
use super::timing::StatementLane;
use svc_base::Stopwatch;
use svc_base::ids::BackendId;
use svc_base::sqlite;

/// A change to try.
#[derive(Clone, Debug)]
pub struct DryRunInput {
    /// The script to apply, if the schema is to change.
    pub script: Option<MigrationScript>,
    /// The statements that must still work after it.
    pub statements: Vec<DryRunStatement>,
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

/// Effects that a change would have.
#[derive(Clone, Debug)]
pub struct DryRunOutcome {
    /// Effect of the script on the file, if there was one.
    pub migrated: Option<MigrationOutcome>,
    /// The schema as it is.
    pub before: Schema,
    /// The schema as it would be.
    pub after: Schema,
    /// Names of statements that would not work, with the reasons.
    pub broken_statements: Vec<(String, String)>,
}

impl Databases {
    /// Tries a change in the long lane, while the writer goes on.
    ///
    /// # Errors
    /// [`MigrationScriptError`]: why the script would fail.
    pub async fn dry_run(
        &self,
        id: BackendId,
        trial: DryRunInput,
    ) -> Result<DryRunOutcome, MigrationScriptError> {
        let settings = self.settings(&id);
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let attempt =
            move |reader: &TenantConnection| Ok(try_change(reader, &settings, &trial, budget));
        self.load(id)
            .await?
            .with_reader(StatementLane::Long, attempt)
            .await?
    }
}

fn try_change(
    reader: &TenantConnection,
    settings: &DatabaseOpenSettings,
    trial: &DryRunInput,
    budget: Duration,
) -> Result<DryRunOutcome, MigrationScriptError> {
    let copy = TenantConnection::in_memory(settings, |connection| {
        sqlite::copy_pages(&reader.connection, connection)
    })?;
    let watch = Stopwatch::start();
    let look =
        |copy: &TenantConnection| schema::read_schema(&copy.connection).map_err(internal_error);
    let before = look(&copy)?;
    let script = trial.script.as_ref();
    let migrated = script.map(|script| migrate::migrate(&copy, script, budget));
    let migrated = migrated.transpose()?;
    let after = look(&copy)?;
    let mut broken = Vec::new();
    for statement in &trial.statements {
        let left = budget.saturating_sub(watch.elapsed());
        if left.is_zero() {
            return Err(StatementRunError::Timeout.into());
        }
        match prepare(&copy, &statement.sql, statement.writes, left) {
            Ok(()) => {}
            Err(StatementRunError::Refused { reason, .. }) => {
                broken.push((statement.name.clone(), reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(DryRunOutcome {
        migrated,
        before,
        after,
        broken_statements: broken,
    })
}
