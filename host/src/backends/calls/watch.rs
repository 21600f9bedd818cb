//! Support for live queries: an action's answer, again and again, and the tables that it depends on.

use std::sync::Arc;

use bytes::Bytes;

use super::{ActionCalls, bind, check_names, check_reserved};
use crate::backends::actions::statement_error;
use crate::backends::model::{Action, BackendError, requires_identity, writes};
use crate::content::Digest;
use crate::visitors::Identity;
use svc_base::ids::BackendId;
use svc_database::values::Params;
use svc_database::{ChangedTables, StatementCall, StatementTables};

/// A reading action that may be watched.
#[derive(Clone, Debug)]
pub struct WatchableAction {
    action: Arc<Action>,
}

impl WatchableAction {
    /// Whether its answer is a signed-in visitor's own.
    pub fn requires_identity(&self) -> bool {
        requires_identity(&self.action.row.verdict)
    }
}

/// Answer of an action, as a live query sees it.
#[derive(Clone, Debug)]
pub struct WatchedAnswer {
    /// The result as JSON.
    pub json: Bytes,
    /// Digest of the answer.
    pub digest: Digest,
    /// The tables that it is made of; `None` if it may be any.
    pub tables: Option<Arc<StatementTables>>,
}

impl ActionCalls {
    /// Has `follow` told what commits may have changed: once they are durable, and before their callers are answered. New
    /// versions of actions are such a change, too.
    pub fn on_commit(&self, follow: impl Fn(BackendId, ChangedTables) + Send + Sync + 'static) {
        self.databases.set_commit_listener(follow);
    }

    /// The action that somebody wants to watch, if its params are these, and they are who it is for.
    ///
    /// # Errors
    /// [`BackendError`], as a call's; `Invalid` for an action that writes.
    pub async fn find_watchable(
        &self,
        id: BackendId,
        action: &str,
        given: &Params,
        is_signed_in: bool,
    ) -> Result<WatchableAction, BackendError> {
        let action = self.definitions.action(id, action).await?;
        check_reserved(given)?;
        if writes(&action.row.verdict) {
            return Err(BackendError::Invalid(format!(
                "`{}` writes, and only what reads can be watched: call it instead.",
                action.row.name
            )));
        }
        if requires_identity(&action.row.verdict) && !is_signed_in {
            return Err(BackendError::IdentityRequired);
        }
        check_names(&action.row.verdict, given)?;
        Ok(WatchableAction { action })
    }

    /// Evaluates a watchable action for a visitor, in a lane.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn evaluate(
        &self,
        id: BackendId,
        watchable: &WatchableAction,
        given: &Params,
        by: Option<&Identity>,
    ) -> Result<WatchedAnswer, BackendError> {
        let action = &watchable.action;
        let mut params = given.clone();
        bind(&action.row.verdict, by, &mut params, |value| value);
        let call = StatementCall {
            sql: Arc::clone(&action.statement),
            writes: false,
            params,
        };
        let seal = |json: Vec<u8>| (Digest::of(&json), Bytes::from(json));
        let seen = self
            .databases
            .get(id)?
            .read_with_tables(call, &action.timing, seal)
            .await;
        let ((digest, json), tables) =
            seen.map_err(|error| statement_error(&action.row.sql, &action.row.verdict, error))?;
        Ok(WatchedAnswer {
            json,
            digest,
            tables,
        })
    }
}
