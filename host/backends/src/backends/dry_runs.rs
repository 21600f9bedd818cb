//! Dry runs: what a change would do to the schema and to the actions.

use super::actions::{ActionDefinitionEffect, ActionDefinitions};
use super::migrations::{self, MigrationService};
use super::model::{
    BackendError, DryRunEffect, MigrationStatus, NewAction, StoredActionVersion,
    is_writing_statement,
};
use super::store;
use crate::access::run_while_client_waits;
use crate::control::{self, ControlDatabase};
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{DryRunInput, DryRunOutcome, DryRunStatement, MigrationOutcome};

impl MigrationService {
    /// Tries a migration of a project's backend.
    ///
    /// # Errors
    /// [`BackendError`], as for the migration itself.
    pub async fn try_migration(
        &self,
        project: ProjectId,
        ddl: String,
    ) -> Result<DryRunEffect, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        let turn = self.backends.migration_lock(id);
        let _mine = turn.lock().await;
        let script = run_while_client_waits(self.backends.judge_script(ddl, Some(id))).await??;
        let recorded = self.recorded_version(id, &script.checksum).await?.is_some();
        if !recorded {
            self.check_definitions(id, &script, None).await?;
        }
        let actions = current_actions(&self.backends.infra.control, id).await?;
        let trial = DryRunInput {
            script: (!recorded).then(|| script.clone()),
            statements: actions.iter().map(trial_statement).collect(),
        };
        let outcome = self.backends.databases.dry_run(id, trial).await;
        let outcome = outcome.map_err(|error| migrations::script_error(&script, error))?;
        let status = match &outcome.migrated {
            None => MigrationStatus::AlreadyApplied,
            Some(MigrationOutcome::Applied(..)) => MigrationStatus::Applied,
            Some(MigrationOutcome::AlreadyApplied(_)) => MigrationStatus::Healed,
        };
        Ok(to_dry_run(status, outcome))
    }
}

impl ActionDefinitions {
    /// Tries a batch of actions: they would be `applied`, or they are there already.
    ///
    /// # Errors
    /// [`BackendError`], as for the batch itself.
    pub async fn try_actions(
        &self,
        project: ProjectId,
        batch: Vec<NewAction>,
    ) -> Result<DryRunEffect, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        let rows = run_while_client_waits(self.judge_batch(id, batch)).await??;
        let mut actions = current_actions(&self.backends.infra.control, id).await?;
        let mut status = MigrationStatus::AlreadyApplied;
        let most = self.backends.infra.config.limits.definition_bytes;
        let mut taken = self.backends.definition_bytes(id).await?;
        for row in rows {
            let known = actions.iter().position(|action| action.name == row.name);
            if let ActionDefinitionEffect::Version(_) =
                ActionDefinitionEffect::compare(&row, known.map(|at| &actions[at]))
            {
                status = MigrationStatus::Applied;
                taken += store::action_bytes(&row);
            }
            match known {
                Some(at) => actions[at] = row,
                None => actions.push(row),
            }
        }
        if status == MigrationStatus::Applied && taken > most {
            return Err(BackendError::definitions_full(most));
        }
        let trial = DryRunInput {
            script: None,
            statements: actions.iter().map(trial_statement).collect(),
        };
        let outcome = self.backends.databases.dry_run(id, trial).await;
        Ok(to_dry_run(
            status,
            outcome.map_err(|failure| failure.error)?,
        ))
    }
}

/// Returns the newest version of every action.
async fn current_actions(
    control: &ControlDatabase,
    id: BackendId,
) -> Result<Vec<StoredActionVersion>, control::Error> {
    control.read(move |c| store::actions(c, &id)).await
}

fn trial_statement(action: &StoredActionVersion) -> DryRunStatement {
    let range = action.verdict.start..action.verdict.end;
    DryRunStatement {
        name: action.name.clone(),
        sql: action.sql.get(range).unwrap_or_default().into(),
        writes: is_writing_statement(&action.verdict),
    }
}

fn to_dry_run(status: MigrationStatus, outcome: DryRunOutcome) -> DryRunEffect {
    let warnings = match outcome.migrated {
        Some(MigrationOutcome::Applied(_, new)) => new,
        _ => Vec::new(),
    };
    DryRunEffect {
        status,
        warnings,
        before: outcome.before,
        after: outcome.after,
        broken: outcome.broken_statements,
    }
}
