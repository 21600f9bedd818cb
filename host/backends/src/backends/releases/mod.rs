//! Migrations and actions of a project's release: judged together before anything is kept, then migrated, then changed in the
//! transaction of the release.

mod effects;

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::action_changes::{
    ActionChangeTarget, ActionChanges, ActionDefinitionEffect, ChangedActions, apply,
};
use super::actions::ActionDefinitions;
use super::judging::{GatedBatch, JudgedAction, PendingSchema, PreparationError, trial_statement};
use super::migrations::MigrationService;
use super::model::{
    ActionConflict, ActionRemoval, BackendError, MigrationStatus, NewAction, RecordedMigration,
    StoredActionVersion,
};
use super::nesting::ViewsBeforeScript;
use super::service::Backends;
use super::store;
use crate::access::{ClientDisconnected, run_while_client_waits};
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, Tx};
use crate::projects::Project;
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{DryRunOutcome, MigrationOutcome, MigrationScript};
use svc_sandbox::SqlPurpose;

pub use effects::{ActionEffect, DefinitionEffects};

/// Migration to apply.
#[derive(Clone, Debug)]
pub struct NewMigration {
    /// The script.
    pub ddl: String,
    /// Purpose of the migration.
    pub note: Option<String>,
}

/// Definitions of a release, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct NewDefinitions {
    pub migrations: Vec<NewMigration>,
    pub actions: Vec<NewAction>,
    pub removals: Vec<ActionRemoval>,
}

impl NewDefinitions {
    fn is_empty(&self) -> bool {
        self.migrations.is_empty() && self.actions.is_empty() && self.removals.is_empty()
    }
}

/// Part of the definitions of a release, with its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionPart {
    Migration(usize),
    Action(usize),
    Removal(usize),
}

/// Error of the definitions of a release, with the part at fault if it is one of them.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DefinitionsError {
    pub part: Option<DefinitionPart>,
    pub error: BackendError,
}

impl DefinitionsError {
    fn of(part: DefinitionPart, error: BackendError) -> Self {
        let part = Some(part);
        Self { part, error }
    }
}

impl From<BackendError> for DefinitionsError {
    fn from(error: BackendError) -> Self {
        Self { part: None, error }
    }
}

impl From<control::Error> for DefinitionsError {
    fn from(error: control::Error) -> Self {
        BackendError::from(error).into()
    }
}

impl From<ClientDisconnected> for DefinitionsError {
    fn from(error: ClientDisconnected) -> Self {
        BackendError::from(error).into()
    }
}

/// Turn at the schema of a project's backend. While this lives nobody else migrates or restores it, so that what is judged is what is
/// released.
#[derive(Debug)]
pub struct SchemaTurn {
    backend: BackendId,
    /// Whether the project has no backend yet: the first migration makes it.
    is_new: bool,
    _mine: Option<OwnedMutexGuard<()>>,
}

/// Definitions that may be released.
#[derive(Debug)]
pub struct JudgedDefinitions {
    migrations: Vec<JudgedMigration>,
    changes: ActionChanges,
    effect: Option<DryRunOutcome>,
}

#[derive(Debug)]
struct JudgedMigration {
    script: MigrationScript,
    note: Option<String>,
    /// Index among the scripts that were tried; none for one that is in the ledger, or comes before in the same release.
    pending: Option<usize>,
}

/// Changes of actions, for the transaction of a release.
#[derive(Debug)]
pub struct ActionRelease {
    target: ActionChangeTarget,
    changes: ActionChanges,
}

/// Actions of a release, after it.
#[derive(Clone, Debug, Default)]
pub struct ReleasedActions {
    /// Name and version of each action that was sent.
    pub defined: Vec<(String, u32)>,
    /// Names of the actions that have ended.
    pub ended: Vec<String>,
}

/// Releases of migrations and actions.
#[derive(Clone, Debug)]
pub struct DefinitionReleases {
    backends: Arc<Backends>,
    migrations: Arc<MigrationService>,
    definitions: Arc<ActionDefinitions>,
}

impl DefinitionReleases {
    /// Makes the service of the releases of these backends.
    pub fn new(
        backends: Arc<Backends>,
        migrations: Arc<MigrationService>,
        definitions: Arc<ActionDefinitions>,
    ) -> Self {
        Self {
            backends,
            migrations,
            definitions,
        }
    }

    /// Lists the actions that have other versions than expected.
    ///
    /// # Errors
    /// The database's.
    pub async fn conflicts(
        &self,
        project: ProjectId,
        new: &NewDefinitions,
    ) -> Result<Vec<ActionConflict>, control::Error> {
        let defined = new.actions.iter();
        let defined = defined.map(|action| (action.name.clone(), action.expected_version, false));
        let ended = new.removals.iter();
        let ended = ended.map(|removal| (removal.name.clone(), removal.expected_version, true));
        let expected: Vec<_> = defined.chain(ended).collect();
        let look = move |c: &_| {
            let backend = store::find_by_project(c, &project)?.map(|backend| backend.id);
            let expected = expected.iter();
            store::version_conflicts(
                c,
                backend.as_ref(),
                expected.map(|(name, expected, is_removal)| (&**name, *expected, *is_removal)),
            )
        };
        self.backends.infra.control.read(look).await
    }

    /// Waits for the turn at the schema of a project's backend, whose database is brought to this node. A release without definitions needs
    /// neither.
    ///
    /// # Errors
    /// When another node does not give the database up in time.
    pub async fn take_turn(
        &self,
        project: ProjectId,
        new: &NewDefinitions,
    ) -> Result<SchemaTurn, BackendError> {
        let found = self.backends.find_by_project(project).await?;
        let (backend, is_new) = match found {
            Some(backend) => (backend.id, false),
            None => (self.backends.new_id()?, true),
        };
        if new.is_empty() {
            return Ok(SchemaTurn {
                backend,
                is_new,
                _mine: None,
            });
        }
        if !is_new {
            self.backends.bring(backend).await?;
        }
        let waiting = self.backends.migration_lock(backend).lock_owned();
        let mine = run_while_client_waits(waiting).await?;
        if !is_new {
            self.backends.record_restores(backend).await?;
        }
        Ok(SchemaTurn {
            backend,
            is_new,
            _mine: Some(mine),
        })
    }

    /// Judges definitions, and tries them on a copy of the database: migrations one after another, and actions against the schema that
    /// they lead to. Nothing is kept. With `tells_broken` the other actions are tried, too.
    ///
    /// # Errors
    /// [`DefinitionsError`], as for the single operations.
    pub async fn judge(
        &self,
        project: &Project,
        turn: &SchemaTurn,
        new: NewDefinitions,
        tells_broken: bool,
    ) -> Result<JudgedDefinitions, DefinitionsError> {
        if turn.is_new && new.migrations.is_empty() {
            check_nothing_to_change(&new)?;
        }
        if new.is_empty() {
            return Ok(JudgedDefinitions {
                migrations: Vec::new(),
                changes: ActionChanges::default(),
                effect: None,
            });
        }
        let judging = self.judge_migrations(turn, new.migrations);
        let migrations = run_while_client_waits(judging).await??;
        if turn.is_new {
            self.backends
                .check_capacity(project.workspace.id)
                .await
                .map_err(|error| DefinitionsError::of(DefinitionPart::Migration(0), error))?;
        } else {
            self.backends.check_disk()?;
        }
        let trying = self.try_all(
            turn,
            &migrations,
            (new.actions, &new.removals),
            tells_broken,
        );
        let (define, effect) = run_while_client_waits(trying).await??;
        let judged = JudgedDefinitions {
            migrations,
            changes: ActionChanges {
                define,
                remove: new.removals,
                ..ActionChanges::default()
            },
            effect,
        };
        self.check_size(turn, &judged).await?;
        Ok(judged)
    }

    /// Judges scripts, which follow each other, within one budget.
    async fn judge_migrations(
        &self,
        turn: &SchemaTurn,
        new: Vec<NewMigration>,
    ) -> Result<Vec<JudgedMigration>, DefinitionsError> {
        let budget = self.backends.verdicts.budget();
        let mut views = ViewsBeforeScript::of((!turn.is_new).then_some(turn.backend));
        let (mut seen, mut pending) = (HashSet::new(), 0);
        let mut judged = Vec::with_capacity(new.len());
        for (index, NewMigration { ddl, note }) in new.into_iter().enumerate() {
            let purpose = match turn.is_new && index == 0 {
                true => SqlPurpose::Schema,
                false => SqlPurpose::Migration,
            };
            let script = self
                .backends
                .judge_next_script(ddl, purpose, (&budget, &mut views))
                .await
                .map_err(|error| DefinitionsError::of(DefinitionPart::Migration(index), error))?;
            let checksum = script.checksum.clone();
            let is_recorded = match turn.is_new {
                true => false,
                false => {
                    let version = self.migrations.recorded_version(turn.backend, &checksum);
                    version.await?.is_some()
                }
            };
            let is_pending = seen.insert(checksum) && !is_recorded;
            judged.push(JudgedMigration {
                script,
                note,
                pending: is_pending.then_some(pending),
            });
            pending += usize::from(is_pending);
        }
        Ok(judged)
    }

    /// Tries what would change; returns the actions to define, and the effect on the database if it was tried.
    async fn try_all(
        &self,
        turn: &SchemaTurn,
        migrations: &[JudgedMigration],
        (actions, removals): (Vec<NewAction>, &[ActionRemoval]),
        tells_broken: bool,
    ) -> Result<(Vec<JudgedAction>, Option<DryRunOutcome>), DefinitionsError> {
        let pending: Vec<usize> = (0..migrations.len())
            .filter(|index| migrations[*index].pending.is_some())
            .collect();
        if pending.is_empty() && actions.is_empty() && !tells_broken {
            return Ok((Vec::new(), None));
        }
        let sent: Vec<String> = actions.iter().map(|action| action.name.clone()).collect();
        let batch = match actions.is_empty() {
            true => GatedBatch::default(),
            false => self.definitions.gate_batch(actions).await?,
        };
        let others = match tells_broken && !turn.is_new {
            true => self.untouched(turn.backend, &sent, removals).await?,
            false => Vec::new(),
        };
        let schema = PendingSchema {
            backend: turn.backend,
            is_new: turn.is_new,
            scripts: pending
                .iter()
                .map(|index| migrations[*index].script.clone())
                .collect(),
            tells_each: tells_broken,
        };
        let others = others.iter().map(trial_statement).collect();
        let prepared = self.definitions.prepare_batch(schema, batch, others).await;
        let (define, effect) = prepared.map_err(|error| match error {
            PreparationError::Script { index, error } => {
                let index = pending.get(index).copied().unwrap_or(index);
                DefinitionsError::of(DefinitionPart::Migration(index), error)
            }
            PreparationError::Actions(error) => of_actions(error, &sent),
        })?;
        Ok((define, Some(effect)))
    }

    /// Lists the actions that a release leaves as they are.
    async fn untouched(
        &self,
        backend: BackendId,
        defined: &[String],
        removals: &[ActionRemoval],
    ) -> Result<Vec<StoredActionVersion>, control::Error> {
        let ended = removals.iter().map(|removal| removal.name.clone());
        let touched: HashSet<String> = defined.iter().cloned().chain(ended).collect();
        let read = move |c: &_| store::actions(c, &backend);
        let mut actions = self.backends.infra.control.read(read).await?;
        actions.retain(|action| !touched.contains(&action.name));
        Ok(actions)
    }

    /// Refuses definitions that would take too much room: migrations as they are recorded, and then with the actions.
    async fn check_size(
        &self,
        turn: &SchemaTurn,
        judged: &JudgedDefinitions,
    ) -> Result<(), BackendError> {
        let most = self.backends.infra.config.limits.definition_bytes;
        let (backend, changes) = (turn.backend, judged.changes.clone());
        let (scripts, is_recorded) = (judged.bytes_to_record(), judged.records_scripts());
        let look = move |c: &_| {
            let taken = store::definition_bytes(c, &backend)?.saturating_add(scripts);
            let known = store::actions(c, &backend)?;
            let mut after = taken;
            for ended in changes.ended(known.iter().map(|action| &*action.name)) {
                let freed = store::bytes_freed_by_end(c, &backend, ended)?;
                after = after.saturating_sub(freed);
            }
            let new = changes.define.iter().filter(|new| {
                let newest = known.iter().find(|known| known.name == new.name());
                ActionDefinitionEffect::compare(new, newest) == ActionDefinitionEffect::Version
            });
            let more: u64 = new.map(|new| store::action_bytes(&new.row)).sum();
            let is_too_much =
                is_recorded && taken > most || more > 0 && after.saturating_add(more) > most;
            Ok(is_too_much)
        };
        match self.backends.infra.control.read(look).await? {
            true => Err(BackendError::definitions_full(most)),
            false => Ok(()),
        }
    }

    /// Applies judged migrations in their order; the first one makes the backend of a project that has none. Each is durable on its own.
    ///
    /// # Errors
    /// [`DefinitionsError`]; the migrations before the part at fault are applied then.
    pub async fn migrate(
        &self,
        project: &Project,
        turn: &mut SchemaTurn,
        judged: &mut JudgedDefinitions,
    ) -> Result<Vec<RecordedMigration>, DefinitionsError> {
        let mut recorded = Vec::with_capacity(judged.migrations.len());
        for (index, migration) in judged.migrations.drain(..).enumerate() {
            let applied = self.apply_one(project, turn, migration).await;
            recorded.push(
                applied.map_err(|error| {
                    DefinitionsError::of(DefinitionPart::Migration(index), error)
                })?,
            );
            fault::point("project_release.migrated");
        }
        Ok(recorded)
    }

    async fn apply_one(
        &self,
        project: &Project,
        turn: &mut SchemaTurn,
        migration: JudgedMigration,
    ) -> Result<RecordedMigration, BackendError> {
        let JudgedMigration { script, note, .. } = migration;
        if !turn.is_new {
            let applying = self
                .migrations
                .apply_judged(project.id, turn.backend, script, note);
            return applying.await;
        }
        let checksum = script.checksum.clone();
        let first = (turn.backend, script, note);
        self.backends
            .create_judged(project, first, false, AnswerRecorder::none())
            .await?;
        turn.is_new = false;
        Ok(RecordedMigration {
            status: MigrationStatus::Applied,
            version: 1,
            checksum,
            warnings: Vec::new(),
        })
    }

    /// Returns the changes of actions for the transaction of a release; `None` where there are none.
    pub fn action_release(
        &self,
        project: &Project,
        turn: &SchemaTurn,
        judged: JudgedDefinitions,
    ) -> Option<ActionRelease> {
        let JudgedDefinitions { changes, .. } = judged;
        let changes_some = !changes.define.is_empty() || !changes.remove.is_empty();
        changes_some.then(|| ActionRelease {
            target: self.definitions.change_target(project.id, turn.backend),
            changes,
        })
    }
}

impl JudgedDefinitions {
    /// Migrations that would be recorded, with their outcomes on the copy.
    fn to_record(&self) -> impl Iterator<Item = &JudgedMigration> {
        let outcome = |index: usize| self.effect.as_ref()?.migrated.get(index);
        self.migrations.iter().filter(move |migration| {
            // A script that is in the file already is always recorded.
            let outcome = migration.pending.and_then(outcome);
            matches!(outcome, Some(MigrationOutcome::Applied(..)))
        })
    }

    fn records_scripts(&self) -> bool {
        self.to_record().next().is_some()
    }

    /// Returns the bytes that the migrations add to the definitions.
    fn bytes_to_record(&self) -> u64 {
        let bytes = self.to_record().map(|migration| {
            let note = migration.note.as_deref().map_or(0, str::len);
            u64::try_from(migration.script.sql.len() + note).unwrap_or(u64::MAX)
        });
        bytes.fold(0, u64::saturating_add)
    }
}

impl ActionRelease {
    /// Lists the actions that have other versions than expected.
    ///
    /// # Errors
    /// The database's.
    pub fn conflicts(&self, tx: &Tx<'_>) -> Result<Vec<ActionConflict>, control::Error> {
        let backend = Some(&self.target.backend);
        Ok(store::version_conflicts(
            tx,
            backend,
            self.changes.expectations(),
        )?)
    }

    /// Changes the actions, in the transaction of the release.
    ///
    /// # Errors
    /// `ActionConflict` with every conflict, or another [`BackendError`]; the transaction must not be committed then.
    pub fn apply(&self, tx: &Tx<'_>) -> Result<ReleasedActions, BackendError> {
        let changed: ChangedActions = apply(tx, &self.target, &self.changes)?;
        let defined = changed.defined.into_iter();
        Ok(ReleasedActions {
            defined: defined
                .map(|action| (action.name, action.version))
                .collect(),
            ended: changed.ended,
        })
    }
}

/// Refuses changes of actions in a project that has no backend, and would have none.
fn check_nothing_to_change(new: &NewDefinitions) -> Result<(), DefinitionsError> {
    let part = match (new.actions.is_empty(), new.removals.is_empty()) {
        (false, _) => DefinitionPart::Action(0),
        (true, false) => DefinitionPart::Removal(0),
        (true, true) => return Ok(()),
    };
    Err(DefinitionsError::of(part, BackendError::NotFound))
}

/// Names the first action that a batch refuses.
fn of_actions(error: BackendError, names: &[String]) -> DefinitionsError {
    let refused = match &error {
        BackendError::Batch(refused) => refused.first().map(|entry| &entry.name),
        _ => None,
    };
    let index = refused.and_then(|refused| names.iter().position(|name| name == refused));
    DefinitionsError {
        part: index.map(DefinitionPart::Action),
        error,
    }
}
