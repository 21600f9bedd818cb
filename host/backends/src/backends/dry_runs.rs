//! Dry runs: what a change would do to the schema and to the actions.

use std::collections::HashSet;

use super::action_changes::{ActionChanges, ActionDefinitionEffect};
use super::actions::ActionDefinitions;
use super::judging::trial_statement;
use super::migrations::{self, MigrationService};
use super::model::{BackendError, DryRunEffect, MigrationStatus, NewAction, StoredActionVersion};
use super::store;
use crate::access::run_while_client_waits;
use crate::control::{self, ControlDatabase};
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{DryRunInput, DryRunOutcome, MigrationOutcome};

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
            is_new: false,
            scripts: (!recorded).then(|| script.clone()).into_iter().collect(),
            statements: actions.iter().map(trial_statement).collect(),
            tells_each: false,
        };
        let outcome = self.backends.databases.dry_run(id, trial).await;
        let outcome = outcome.map_err(|error| migrations::script_error(&script, error.failure))?;
        let status = match outcome.migrated.first() {
            None => MigrationStatus::AlreadyApplied,
            Some(MigrationOutcome::Applied(..)) => MigrationStatus::Applied,
            Some(MigrationOutcome::AlreadyApplied(_)) => MigrationStatus::Healed,
        };
        Ok(to_dry_run(status, outcome))
    }
}

impl ActionDefinitions {
    /// Tries a batch of actions: they would be `applied`, or they are there already. With `replace`, those that it leaves out would end.
    ///
    /// # Errors
    /// [`BackendError`], as for the batch itself.
    pub async fn try_actions(
        &self,
        project: ProjectId,
        batch: Vec<NewAction>,
        replace: bool,
    ) -> Result<DryRunEffect, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        let define = run_while_client_waits(self.judge_batch(id, batch)).await??;
        let changes = ActionChanges {
            define,
            replace,
            ..ActionChanges::default()
        };
        let most = self.backends.infra.config.limits.definition_bytes;
        let expected = changes.clone();
        let look = move |c: &_| {
            let conflicts = store::version_conflicts(c, Some(&id), expected.expectations())?;
            let actions = store::actions(c, &id)?;
            let mut taken = store::definition_bytes(c, &id)?;
            for ended in expected.ended(actions.iter().map(|action| &*action.name)) {
                let freed = store::bytes_freed_by_end(c, &id, ended)?;
                taken = taken.saturating_sub(freed);
            }
            Ok((conflicts, actions, taken))
        };
        let (conflicts, actions, taken) = self.backends.infra.control.read(look).await?;
        if !conflicts.is_empty() {
            return Err(BackendError::ActionConflict(conflicts));
        }
        let after = try_changes(actions, taken, &changes, most)?;
        let trial = DryRunInput {
            statements: after.actions.iter().map(trial_statement).collect(),
            ..DryRunInput::default()
        };
        let outcome = self.backends.databases.dry_run(id, trial).await;
        let outcome = outcome.map_err(|error| error.failure.error)?;
        Ok(DryRunEffect {
            removed: Some(after.removed),
            ..to_dry_run(after.status, outcome)
        })
    }
}

/// Actions as they would be.
struct TriedActions {
    status: MigrationStatus,
    actions: Vec<StoredActionVersion>,
    /// Names of those that would end.
    removed: Vec<String>,
}

/// Finds what changes lead to, of actions and of the bytes that the definitions take without those that end.
fn try_changes(
    mut actions: Vec<StoredActionVersion>,
    mut taken: u64,
    changes: &ActionChanges,
    most: u64,
) -> Result<TriedActions, BackendError> {
    let ended = changes.ended(actions.iter().map(|action| &*action.name));
    let removed: Vec<String> = ended.into_iter().map(str::to_owned).collect();
    let gone: HashSet<&String> = removed.iter().collect();
    actions.retain(|action| !gone.contains(&action.name));
    let mut defines = false;
    for new in &changes.define {
        let known = actions.iter().position(|action| action.name == new.name());
        let newest = known.map(|at| &actions[at]);
        if ActionDefinitionEffect::compare(new, newest) == ActionDefinitionEffect::Version {
            defines = true;
            taken += store::action_bytes(&new.row);
        }
        match known {
            Some(at) => actions[at] = new.row.clone(),
            None => actions.push(new.row.clone()),
        }
    }
    if defines && taken > most {
        return Err(BackendError::definitions_full(most));
    }
    let status = match defines || !removed.is_empty() {
        true => MigrationStatus::Applied,
        false => MigrationStatus::AlreadyApplied,
    };
    Ok(TriedActions {
        status,
        actions,
        removed,
    })
}

/// Returns the newest version of every action.
async fn current_actions(
    control: &ControlDatabase,
    id: BackendId,
) -> Result<Vec<StoredActionVersion>, control::Error> {
    control.read(move |c| store::actions(c, &id)).await
}

fn to_dry_run(status: MigrationStatus, outcome: DryRunOutcome) -> DryRunEffect {
    let warnings = match outcome.migrated.into_iter().next() {
        Some(MigrationOutcome::Applied(_, new)) => new,
        _ => Vec::new(),
    };
    let broken = outcome.broken_statements.into_iter();
    DryRunEffect {
        status,
        warnings,
        before: outcome.before,
        after: outcome.after,
        broken: broken.map(|one| (one.name, one.reason)).collect(),
        removed: None,
    }
}
