//! Actions: defined in batches, all or nothing, and judged again when another gate is installed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};

use super::model::{
    BackendError, CallableAction, MAX_BATCH, MAX_NOTE_CHARS, NewAction, RefusedActionDefinition,
    StoredActionVersion,
};
use super::service::Backends;
use super::{store, verdicts};
use crate::access::run_while_client_waits;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{self, ControlChange, ControlDatabase, ErrandWork, Tx};
use crate::projects;
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};
use svc_base::memory_cache;
use svc_base::names::is_action_name;
use svc_database::StatementRunError;
use svc_sandbox::{AllowedStatement, MAX_STATEMENT_BYTES, SharedBudget};

/// Approximate number of backends whose actions are cached.
const MAX_CACHED_BACKENDS: usize = 1024;
/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Number of shards of the cache.
const CACHE_SHARDS: usize = 2;

/// Actions of a backend, by name.
pub(super) type ActionsByName = HashMap<String, Arc<CallableAction>>;

/// Weighs cached actions by the length of their statements.
#[derive(Clone, Debug)]
pub(super) struct ActionTextWeigher;

impl Weighter<BackendId, Arc<ActionsByName>> for ActionTextWeigher {
    fn weight(&self, _: &BackendId, actions: &Arc<ActionsByName>) -> u64 {
        let weights = actions
            .values()
            .map(|action| verdicts::estimate_memory(&action.row.sql));
        512 + weights.sum::<u64>()
    }
}

/// Actions of the backends that are called, in memory.
#[derive(Debug)]
pub(super) struct ActionCache(Cache<BackendId, Arc<ActionsByName>, ActionTextWeigher>);

impl ActionCache {
    /// Makes a cache, which follows the changes of `control` from now on. Each shard has room for all actions that one backend may
    /// define.
    pub(super) fn following(control: &ControlDatabase) -> Arc<Self> {
        let cache = Arc::new(Self(memory_cache::weighted_cache(
            MAX_CACHED_BACKENDS,
            MAX_CACHE_BYTES,
            CACHE_SHARDS,
            ActionTextWeigher,
        )));
        let held = Arc::clone(&cache);
        control.on_change(move |change| held.follow(change));
        cache
    }

    /// Removes the actions of the backend that a change is about; a load of them that is under way is not kept either.
    fn follow(&self, change: &ControlChange) {
        match change {
            ControlChange::ActionsDefined(id)
            | ControlChange::ActionJudged(id)
            | ControlChange::BackendEnded(id) => {
                self.0.remove(id);
            }
            ControlChange::Slug(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::RealtimeOff(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::DomainServed { .. }
            | ControlChange::DomainEnded(_) => {}
        }
    }

    fn get(&self, id: &BackendId) -> Option<Arc<ActionsByName>> {
        self.0.get(id)
    }

    /// Returns the actions of a backend, loaded if need be; loads for one backend wait for each other.
    async fn get_or_load<E>(
        &self,
        id: &BackendId,
        load: impl Future<Output = Result<Arc<ActionsByName>, E>>,
    ) -> Result<Arc<ActionsByName>, E> {
        self.0.get_or_insert_async(id, load).await
    }
}

/// Errand: another gate has judged a version of an action. The verdict can be had again, so it may be lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActionVerdict {
    pub backend: BackendId,
    pub name: String,
    pub version: u32,
    pub verdict: AllowedStatement,
    /// Digest of the gate.
    pub gate: [u8; 32],
}

impl ErrandWork for ActionVerdict {
    const KIND: &'static str = "action_verdict";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), control::Error> {
        store::set_verdict(tx, &self)
    }
}

/// Definitions of actions.
#[derive(Debug)]
pub struct ActionDefinitions {
    actions: Arc<ActionCache>,
    pub(super) backends: Arc<Backends>,
}

impl ActionDefinitions {
    /// Makes the service of the actions of these backends.
    pub fn new(backends: &Arc<Backends>) -> Self {
        Self {
            actions: Arc::clone(&backends.actions),
            backends: Arc::clone(backends),
        }
    }

    /// Defines actions: all of them, or none. Answers the newest version of every action that the backend has.
    ///
    /// # Errors
    /// [`BackendError::Batch`] names every entry that is refused.
    pub async fn define(
        &self,
        project: ProjectId,
        batch: Vec<NewAction>,
    ) -> Result<Vec<StoredActionVersion>, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        self.backends.bring(id).await?;
        let rows = run_while_client_waits(self.judge_batch(id, batch)).await??;
        self.backends.check_disk()?;
        let (now, most) = (
            self.backends.infra.clock.now(),
            self.backends.infra.config.limits.definition_bytes,
        );
        let actions = self
            .backends
            .infra
            .control
            .write(move |tx| {
                if !store::exists(tx, &id).map_err(control::Error::from)? {
                    return Err(BackendError::NotFound);
                }
                let known = store::actions(tx, &id).map_err(control::Error::from)?;
                let mut changed = false;
                for mut row in rows {
                    let newest = known.iter().find(|action| action.name == row.name);
                    if let ActionDefinitionEffect::Version(version) =
                        ActionDefinitionEffect::compare(&row, newest)
                    {
                        row.version = version;
                        row.created_at = now;
                        store::insert_action(tx, &id, &row)?;
                        changed = true;
                    }
                }
                if changed && store::definition_bytes(tx, &id).map_err(control::Error::from)? > most
                {
                    return Err(BackendError::definitions_full(most));
                }
                if changed {
                    projects::record_audit(tx, &project, AuditAction::BackendDefine, &id, now)?;
                }
                Ok(store::actions(tx, &id).map_err(control::Error::from)?)
            })
            .await?;
        fault::point("define.committed");
        Ok(actions)
    }

    /// Judges every entry with the gate, all within one budget, and prepares it in SQLite.
    pub(super) async fn judge_batch(
        &self,
        id: BackendId,
        batch: Vec<NewAction>,
    ) -> Result<Vec<StoredActionVersion>, BackendError> {
        if batch.is_empty() || batch.len() > MAX_BATCH {
            return Err(BackendError::Invalid(format!(
                "`actions` has {} entries; send 1 to {MAX_BATCH}.",
                batch.len()
            )));
        }
        let (mut seen, budget) = (HashSet::new(), self.backends.verdicts.budget());
        let (mut rows, mut bad) = (Vec::with_capacity(batch.len()), Vec::new());
        for new in batch {
            let name = new.name.clone();
            let again = !seen.insert(name.clone());
            match self.judge_action(id, new, again, &budget).await {
                Ok(row) => rows.push(row),
                Err(error) if is_author_error(&error) => {
                    bad.push(RefusedActionDefinition { name, error });
                }
                Err(error) => return Err(error),
            }
        }
        if bad.is_empty() {
            Ok(rows)
        } else {
            Err(BackendError::Batch(bad))
        }
    }

    async fn judge_action(
        &self,
        id: BackendId,
        new: NewAction,
        again: bool,
        budget: &SharedBudget,
    ) -> Result<StoredActionVersion, BackendError> {
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
        self.prepare(id, &new.sql, &verdict).await?;
        Ok(StoredActionVersion {
            checksum: Digest::of(new.sql.as_bytes()).to_string(),
            name: new.name,
            version: 1,
            sql: new.sql,
            note: new.note,
            created_at: self.backends.infra.clock.now(),
            verdict,
            gate: *gate.as_bytes(),
        })
    }

    /// Prepares a statement against the current schema, to find errors.
    async fn prepare(
        &self,
        id: BackendId,
        sql: &str,
        verdict: &AllowedStatement,
    ) -> Result<(), BackendError> {
        let statement: Arc<str> = sql
            .get(verdict.start..verdict.end)
            .unwrap_or_default()
            .into();
        let writes = super::model::is_writing_statement(verdict);
        let prepared = self
            .backends
            .databases
            .load(id)
            .await?
            .prepare(statement, writes)
            .await;
        prepared.map_err(|error| statement_error(sql, verdict, error))
    }

    /// Returns the newest version of an action; judges it again if another gate judged it before.
    ///
    /// # Errors
    /// `NoAction`, or the refusal of a newer gate.
    pub(super) async fn action(
        &self,
        id: BackendId,
        name: &str,
    ) -> Result<Arc<CallableAction>, BackendError> {
        let actions = self.actions_of(id).await?;
        let action = actions
            .get(name)
            .ok_or_else(|| BackendError::NoAction(name.to_owned()))?;
        match self.backends.verdicts.gate() {
            Some(gate) if *gate.as_bytes() != action.row.gate => {
                self.rejudge(id, action.row.clone()).await
            }
            _ => Ok(Arc::clone(action)),
        }
    }

    /// Returns the actions of a backend, cached or loaded.
    pub(super) async fn actions_of(
        &self,
        id: BackendId,
    ) -> Result<Arc<ActionsByName>, BackendError> {
        match self.actions.get(&id) {
            Some(actions) => Ok(actions),
            None => self.load_actions(id).await,
        }
    }

    async fn load_actions(&self, id: BackendId) -> Result<Arc<ActionsByName>, BackendError> {
        // Boxed, so that a call whose action is cached does not carry the state of a load.
        Box::pin(self.actions.get_or_load(&id, async {
            let rows = self
                .backends
                .infra
                .control
                .read(move |c| store::actions(c, &id))
                .await?;
            let by_name = rows
                .into_iter()
                .map(|row| (row.name.clone(), Arc::new(CallableAction::from(row))));
            Ok(Arc::new(by_name.collect()))
        }))
        .await
    }

    async fn rejudge(
        &self,
        id: BackendId,
        mut row: StoredActionVersion,
    ) -> Result<Arc<CallableAction>, BackendError> {
        let (verdict, gate) = self.backends.verdicts.stored_action(&row.sql).await?;
        row.verdict = verdict;
        row.gate = *gate.as_bytes();
        let judged = ActionVerdict {
            backend: id,
            name: row.name.clone(),
            version: row.version,
            verdict: row.verdict.clone(),
            gate: row.gate,
        };
        self.backends.infra.control.run_errand(judged).await?;
        Ok(Arc::new(CallableAction::from(row)))
    }
}

/// Effect of a definition on an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionDefinitionEffect {
    /// The newest version has the same SQL.
    Nothing,
    /// A new version with this number.
    Version(u32),
}

impl ActionDefinitionEffect {
    /// Compares `row` with the newest version of its action.
    pub(super) fn compare(row: &StoredActionVersion, newest: Option<&StoredActionVersion>) -> Self {
        match newest {
            Some(same) if same.checksum == row.checksum => Self::Nothing,
            newest => Self::Version(newest.map_or(1, |action| action.version + 1)),
        }
    }
}

/// Maps an error of SQLite to one for the author of a statement.
pub(super) fn statement_error(
    sql: &str,
    verdict: &AllowedStatement,
    error: StatementRunError,
) -> BackendError {
    match error {
        StatementRunError::Refused { reason, offset } => {
            let offset = offset.map(|offset| verdict.start + offset);
            BackendError::Refused(verdicts::to_refusal(sql, 0, offset, reason))
        }
        other => other.into(),
    }
}

/// Whether the author of an entry can correct it; any other error fails the batch at once.
fn is_author_error(error: &BackendError) -> bool {
    matches!(
        error,
        BackendError::Invalid(_) | BackendError::Refused(_) | BackendError::TooMuchToJudge(_)
    )
}
