//! Actions that are called: cached, and judged again when another gate is installed.

use std::collections::HashMap;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};

use super::model::{BackendError, CallableAction, StoredActionVersion};
use super::service::Backends;
use super::{store, verdicts};
use crate::control::{self, ControlChange, ControlDatabase, ErrandWork, Tx};
use svc_base::ids::{BackendId, ProjectId};
use svc_base::memory_cache;
use svc_database::{DescribedStatement, ResultColumn, StatementRunError};
use svc_sandbox::AllowedStatement;

/// Approximate number of backends whose actions are cached.
const MAX_CACHED_BACKENDS: usize = 1024;
/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Number of shards of the cache.
const CACHE_SHARDS: usize = 2;

/// Actions of a backend, by name.
pub(super) type ActionsByName = HashMap<String, Arc<CallableAction>>;

/// Weighs cached actions by the length of their statements and of their defaults, which are held as JSON and as values.
#[derive(Clone, Debug)]
pub(super) struct ActionTextWeigher;

impl Weighter<BackendId, Arc<ActionsByName>> for ActionTextWeigher {
    fn weight(&self, _: &BackendId, actions: &Arc<ActionsByName>) -> u64 {
        let weights = actions.values().map(|action| {
            let files = action.row.files.types.iter().map(|one| 64 + one.len());
            let defaults =
                action.row.defaults.len() + 64 * action.defaults.len() + files.sum::<usize>();
            verdicts::estimate_memory(&action.row.sql)
                + 2 * u64::try_from(defaults).unwrap_or(u64::MAX / 4)
        });
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
            | ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::RealtimeOff(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_)
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

    /// Lists the newest version of every action, with the columns of its rows. `None` for one that does not work by now.
    ///
    /// # Errors
    /// `NotFound` if the project has no backend.
    pub async fn describe(
        &self,
        project: ProjectId,
    ) -> Result<Vec<(StoredActionVersion, Option<Vec<ResultColumn>>)>, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        let control = &self.backends.infra.control;
        let actions = control.read(move |c| store::actions(c, &id)).await?;
        let statements = actions.iter().map(|action| DescribedStatement {
            sql: action
                .sql
                .get(action.verdict.start..action.verdict.end)
                .unwrap_or_default()
                .into(),
            writes: super::model::is_writing_statement(&action.verdict),
        });
        let statements = statements.collect();
        let database = self.backends.databases.load(id).await?;
        let columns = database.describe(statements).await?;
        Ok(actions.into_iter().zip(columns).collect())
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

    /// Returns an action that is in memory.
    pub fn known_action(&self, id: BackendId, name: &str) -> Option<Arc<CallableAction>> {
        self.actions.get(&id)?.get(name).map(Arc::clone)
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
