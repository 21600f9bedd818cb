//! Support for live queries: evaluates an action repeatedly, and finds the tables that its answer depends on.

use std::sync::Arc;

use bytes::Bytes;

use super::{ActionCalls, bind, check_names, check_reserved};
use crate::backends::actions::statement_error;
use crate::backends::model::{
    BackendError, CallableAction, is_writing_statement, requires_identity, takes_file,
};
use crate::content::Digest;
use crate::visitors::ActionCallerIdentity;
use svc_base::ids::BackendId;
use svc_database::values::Params;
use svc_database::{ChangedTables, ResultJson, StatementCall, StatementTables};

/// Reading action that a live query may use.
#[derive(Clone, Debug)]
pub struct WatchableAction {
    action: Arc<CallableAction>,
}

impl WatchableAction {
    /// Whether the answer depends on the signed-in visitor.
    pub fn requires_identity(&self) -> bool {
        requires_identity(&self.action.row.verdict)
    }
}

/// Answer of an action, for a live query.
#[derive(Clone, Debug)]
pub struct WatchedActionAnswer {
    /// Result as JSON.
    pub json: Bytes,
    pub digest: Digest,
    /// Number of rows in the result.
    pub rows: u64,
    /// Tables that the answer depends on; `None` means any table.
    pub tables: Option<Arc<StatementTables>>,
}

impl ActionCalls {
    /// Calls `follow` with the tables that a commit may have changed: once it is durable, and before its callers are answered. New
    /// versions of actions are such a change, too.
    pub fn on_commit(&self, follow: impl Fn(BackendId, ChangedTables) + Send + Sync + 'static) {
        self.backends.databases.set_commit_listener(follow);
    }

    /// Takes the database of a backend that no other node has, so that its commits are told here.
    ///
    /// # Errors
    /// As for [`Backends::claim`].
    ///
    /// [`Backends::claim`]: crate::backends::Backends::claim
    pub async fn claim(&self, id: BackendId) -> Result<(), BackendError> {
        self.backends.claim(id).await
    }

    /// Finds an action for a live query, and checks its params and the visitor.
    ///
    /// # Errors
    /// [`BackendError`], as for a call; `Invalid` for an action that writes.
    pub async fn find_watchable(
        &self,
        id: BackendId,
        action: &str,
        given: &Params,
        is_signed_in: bool,
    ) -> Result<WatchableAction, BackendError> {
        let action = self.definitions.action(id, action).await?;
        check_reserved(given)?;
        if takes_file(&action.row.verdict) {
            return Err(BackendError::FileAction(action.row.name.clone()));
        }
        if is_writing_statement(&action.row.verdict) {
            return Err(BackendError::Invalid(format!(
                "`{}` writes, and only what reads can be watched: call it instead.",
                action.row.name
            )));
        }
        if requires_identity(&action.row.verdict) && !is_signed_in {
            return Err(BackendError::IdentityRequired);
        }
        check_names(&action.row.verdict, given, &action.defaults)?;
        Ok(WatchableAction { action })
    }

    /// Evaluates an action for a visitor, in a lane.
    ///
    /// # Errors
    /// [`BackendError`].
    pub async fn evaluate(
        &self,
        id: BackendId,
        watchable: &WatchableAction,
        given: &Params,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<WatchedActionAnswer, BackendError> {
        let action = &watchable.action;
        let mut params = given.clone();
        bind(action, by, &mut params, |value| value);
        let call = StatementCall {
            sql: Arc::clone(&action.statement),
            writes: false,
            params,
        };
        let seal = |result: ResultJson| {
            let rows = result.rows.of(0);
            (Digest::of(&result.json), Bytes::from(result.json), rows)
        };
        let seen = self
            .backends
            .databases
            .load(id)
            .await?
            .read_with_tables(call, &action.timing, seal)
            .await;
        let ((digest, json, rows), tables) =
            seen.map_err(|error| statement_error(&action.row.sql, &action.row.verdict, error))?;
        Ok(WatchedActionAnswer {
            json,
            digest,
            rows,
            tables,
        })
    }
}
