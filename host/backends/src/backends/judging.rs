//! Judges new actions: with the gate, and then by preparing them in SQLite, against the present schema or against the one that
//! migrations lead to.

use std::collections::HashSet;

use super::action_files::ActionFiles;
use super::actions::{ActionDefinitions, statement_error};
use super::defaults::ActionDefaults;
use super::migrations::script_error;
use super::model::{
    BackendError, MAX_BATCH, MAX_NOTE_CHARS, NewAction, RefusedActionDefinition,
    StoredActionVersion, is_writing_statement,
};
use crate::content::Digest;
use svc_base::ids::BackendId;
use svc_base::names::is_action_name;
use svc_database::{
    BrokenStatement, DryRunInput, DryRunOutcome, DryRunStatement, MigrationScript,
    StatementRunError,
};
use svc_sandbox::{MAX_STATEMENT_BYTES, SharedBudget};

/// Action that may be defined: the gate allows it, and SQLite takes it.
#[derive(Clone, Debug)]
pub struct JudgedAction {
    /// The version to store; its number is given when it is stored.
    pub(super) row: StoredActionVersion,
    /// Version that the action must have; 0 for one that must not exist.
    pub(super) expected_version: Option<u64>,
}

impl JudgedAction {
    /// Name of the action.
    pub fn name(&self) -> &str {
        &self.row.name
    }

    /// Returns the statement, to prepare it.
    pub(super) fn statement(&self) -> DryRunStatement {
        trial_statement(&self.row)
    }
}

/// Schema that new actions must work with: the one of a backend after migrations that are not applied yet.
#[derive(Clone, Debug)]
pub struct PendingSchema {
    pub backend: BackendId,
    /// Whether the backend does not exist yet: the first script makes its database.
    pub is_new: bool,
    /// The migrations, judged by the gate.
    pub scripts: Vec<MigrationScript>,
    /// Whether the schema after each of them is told, too.
    pub tells_each: bool,
}

/// Error of preparing actions against a pending schema.
#[derive(Debug, thiserror::Error)]
pub enum PreparationError {
    /// A script fails.
    #[error("script {index}: {error}")]
    Script {
        /// Index of the script.
        index: usize,
        /// Cause of the failure.
        error: BackendError,
    },
    /// Actions are refused, or the attempt failed.
    #[error(transparent)]
    Actions(#[from] BackendError),
}

/// Batch of actions that the gate has judged, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct GatedBatch {
    entries: Vec<Result<JudgedAction, RefusedActionDefinition>>,
}

impl GatedBatch {
    /// Returns the actions that the gate allows, with their indexes.
    fn allowed(&self) -> impl Iterator<Item = (usize, &JudgedAction)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, entry)| Some((index, entry.as_ref().ok()?)))
    }

    /// Refuses an entry that SQLite does not take.
    fn refuse(&mut self, index: usize, reason: String, offset: Option<usize>) {
        if let Some(entry) = self.entries.get_mut(index)
            && let Ok(JudgedAction { row, .. }) = entry
        {
            let error = StatementRunError::Refused { reason, offset };
            *entry = Err(RefusedActionDefinition {
                name: row.name.clone(),
                error: statement_error(&row.sql, &row.verdict, error),
            });
        }
    }

    /// Returns the actions, if none is refused.
    fn finish(self) -> Result<Vec<JudgedAction>, BackendError> {
        let (mut actions, mut refused) = (Vec::with_capacity(self.entries.len()), Vec::new());
        for entry in self.entries {
            match entry {
                Ok(action) => actions.push(action),
                Err(entry) => refused.push(entry),
            }
        }
        match refused.is_empty() {
            true => Ok(actions),
            false => Err(BackendError::Batch(refused)),
        }
    }
}

impl ActionDefinitions {
    /// Judges every entry with the gate, all within one budget, and prepares it against the present schema of a backend.
    ///
    /// # Errors
    /// [`BackendError::Batch`] names every entry that is refused.
    pub async fn judge_batch(
        &self,
        id: BackendId,
        batch: Vec<NewAction>,
    ) -> Result<Vec<JudgedAction>, BackendError> {
        let mut batch = self.gate_batch(batch).await?;
        let statements = batch.allowed().map(|(index, one)| (index, one.statement()));
        let statements: Vec<_> = statements.collect();
        let database = self.backends.databases.load(id).await?;
        for (index, statement) in statements {
            match database.prepare(statement.sql, statement.writes).await {
                Ok(()) => {}
                Err(StatementRunError::Refused { reason, offset }) => {
                    batch.refuse(index, reason, offset);
                }
                Err(error) => return Err(error.into()),
            }
        }
        batch.finish()
    }

    /// Judges every entry with the gate, all within one budget. It does not look at a database.
    ///
    /// # Errors
    /// `Invalid` for a batch that is empty; entries that are refused are in the batch.
    pub async fn gate_batch(&self, batch: Vec<NewAction>) -> Result<GatedBatch, BackendError> {
        if batch.is_empty() {
            return Err(BackendError::Invalid(format!(
                "`actions` has no entries; send 1 to {MAX_BATCH}."
            )));
        }
        let (mut seen, budget) = (HashSet::new(), self.backends.verdicts.budget());
        let mut entries = Vec::with_capacity(batch.len());
        for new in batch {
            let name = new.name.clone();
            let again = !seen.insert(name.clone());
            entries.push(match self.judge_entry(new, again, &budget).await {
                Ok(action) => Ok(action),
                Err(error) if is_author_error(&error) => {
                    Err(RefusedActionDefinition { name, error })
                }
                Err(error) => return Err(error),
            });
        }
        Ok(GatedBatch { entries })
    }

    /// Prepares a batch against a schema that is not there yet, on a copy in memory, and tells the effect of its migrations. Other
    /// statements may be tried with it: they are those whose index is not below the length of the batch.
    ///
    /// # Errors
    /// [`PreparationError`]; a batch that is refused is [`BackendError::Batch`].
    pub async fn prepare_batch(
        &self,
        schema: PendingSchema,
        mut batch: GatedBatch,
        others: Vec<DryRunStatement>,
    ) -> Result<(Vec<JudgedAction>, DryRunOutcome), PreparationError> {
        let (indexes, mut statements): (Vec<_>, Vec<_>) = batch
            .allowed()
            .map(|(index, one)| (index, one.statement()))
            .unzip();
        statements.extend(others);
        let trial = DryRunInput {
            is_new: schema.is_new,
            scripts: schema.scripts.clone(),
            statements,
            tells_each: schema.tells_each,
        };
        let tried = self.backends.databases.dry_run(schema.backend, trial).await;
        let mut outcome = tried.map_err(|error| {
            let script = error
                .script
                .and_then(|at| Some((at, schema.scripts.get(at)?)));
            match script {
                Some((index, script)) => PreparationError::Script {
                    index,
                    error: script_error(script, error.failure),
                },
                None => PreparationError::Actions(error.failure.error.into()),
            }
        })?;
        let broken = std::mem::take(&mut outcome.broken_statements);
        for BrokenStatement {
            index,
            name,
            reason,
            offset,
        } in broken
        {
            match indexes.get(index) {
                Some(index) => batch.refuse(*index, reason, offset),
                None => outcome.broken_statements.push(BrokenStatement {
                    index: index - indexes.len(),
                    name,
                    reason,
                    offset,
                }),
            }
        }
        Ok((batch.finish()?, outcome))
    }

    /// Judges one action with the gate.
    pub(super) async fn judge_entry(
        &self,
        new: NewAction,
        again: bool,
        budget: &SharedBudget,
    ) -> Result<JudgedAction, BackendError> {
        let invalid = |detail: String| Err(BackendError::Invalid(detail));
        if !is_action_name(&new.name) {
            return invalid(
                "The name of an action is a lower-case letter, then up to 63 of a-z, 0-9 and _."
                    .to_owned(),
            );
        }
        if again {
            return invalid("The batch has an action of this name already.".to_owned());
        }
        if new.sql.len() > MAX_STATEMENT_BYTES {
            return invalid(format!(
                "`sql` has {} bytes; {MAX_STATEMENT_BYTES} is the most.",
                new.sql.len()
            ));
        }
        let note = new.note.as_deref().map_or(0, |note| note.chars().count());
        if note > MAX_NOTE_CHARS {
            return invalid(format!(
                "`note` has {note} characters; {MAX_NOTE_CHARS} is the most."
            ));
        }
        let (verdict, gate) = self.backends.verdicts.new_action(&new.sql, budget).await?;
        let defaults =
            ActionDefaults::new(&new.defaults, &verdict).map_err(BackendError::Invalid)?;
        let files = ActionFiles::new(new.files, &verdict).map_err(BackendError::Invalid)?;
        Ok(JudgedAction {
            row: StoredActionVersion {
                checksum: Digest::of(new.sql.as_bytes()).to_string(),
                name: new.name,
                version: 1,
                sql: new.sql,
                defaults,
                files,
                note: new.note,
                created_at: self.backends.infra.clock.now(),
                verdict,
                gate: *gate.as_bytes(),
            },
            expected_version: new.expected_version,
        })
    }
}

/// Returns the statement of an action, to try it.
pub(super) fn trial_statement(action: &StoredActionVersion) -> DryRunStatement {
    let range = action.verdict.start..action.verdict.end;
    DryRunStatement {
        name: action.name.clone(),
        sql: action.sql.get(range).unwrap_or_default().into(),
        writes: is_writing_statement(&action.verdict),
    }
}

/// Whether the author of an entry can correct it; any other error fails the batch at once.
fn is_author_error(error: &BackendError) -> bool {
    matches!(
        error,
        BackendError::Invalid(_) | BackendError::Refused(_) | BackendError::TooMuchToJudge(_)
    )
}
