//! Calls of actions, and owners' queries.

mod audit_entries;
mod call_log;
mod files;
pub mod requests;
pub mod routes;
pub mod tokens;
pub mod views;
mod watch;

pub use audit_entries::{AuditAhead, AuditAheadAnswer};
pub use files::UploadedFile;
pub use watch::{WatchableAction, WatchedActionAnswer};

use std::sync::Arc;

use super::actions::{ActionDefinitions, statement_error};
use super::model::{
    BackendError, CallableAction, QueryAccess, USER_EMAIL_BIND, USER_ID_BIND, USER_NAME_BIND,
    is_writing_statement, param_names, requires_identity, takes_file,
};
use super::service::Backends;
use requests::BatchedCall;
use svc_database::values::{Params, Value};
use svc_database::{BatchStep, BatchStepParam, ResultJson, StatementCall, StatementTiming};

use crate::control::audit::AuditAction;
use crate::visitors::ActionCallerIdentity;
use svc_base::ids::BackendId;
use svc_sandbox::AllowedStatement;

/// Calls of actions by visitors, queries of owners, and evaluations for live queries.
#[derive(Debug)]
pub struct ActionCalls {
    backends: Arc<Backends>,
    definitions: Arc<ActionDefinitions>,
}

impl ActionCalls {
    /// Makes the service of calls to these backends.
    pub fn new(backends: &Arc<Backends>, definitions: Arc<ActionDefinitions>) -> Self {
        Self {
            backends: Arc::clone(backends),
            definitions,
        }
    }

    /// Calls an action for a visitor, signed in or not. A write is durable when it is answered.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed.
    pub async fn call_action(
        &self,
        id: BackendId,
        action: &str,
        given: Params,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<ResultJson, BackendError> {
        let action = self.action(id, action).await?;
        self.call_found(id, &action, given, by).await
    }

    /// Calls an action that was found, as [`ActionCalls::call_action`] does.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed.
    pub async fn call_found(
        &self,
        id: BackendId,
        action: &CallableAction,
        mut given: Params,
        by: Option<&ActionCallerIdentity>,
    ) -> Result<ResultJson, BackendError> {
        check_call(action, &given, by)?;
        bind(action, by, &mut given, |value| value);
        let row = &action.row;
        let run = || {
            let (sql, timing) = (&row.sql, &action.timing);
            self.run(id, sql, &action.statement, &row.verdict, timing, given)
        };
        self.with_audit_entry(
            id,
            AuditAction::BackendCall,
            is_writing_statement(&row.verdict),
            run,
        )
        .await
    }

    /// Calls actions for a visitor, signed in or not, in one transaction: all of them, or none. Those that are found come into `actions`.
    ///
    /// # Errors
    /// [`BackendError::Op`] names the failed call, if one failed; then nothing is changed.
    pub async fn batch(
        &self,
        id: BackendId,
        calls: Vec<BatchedCall>,
        by: Option<&ActionCallerIdentity>,
        actions: &mut Vec<Arc<CallableAction>>,
    ) -> Result<ResultJson, BackendError> {
        let mut steps = Vec::with_capacity(calls.len());
        for (number, BatchedCall { action, mut params }) in calls.into_iter().enumerate() {
            let in_call = |error| BackendError::in_batch_call(number, error);
            let action = self.action(id, &action).await;
            let action = action.map_err(in_call)?;
            actions.push(Arc::clone(&action));
            check_call(&action, &params.0, by).map_err(in_call)?;
            bind(&action, by, &mut params.0, BatchStepParam::Value);
            steps.push(BatchStep {
                sql: Arc::clone(&action.statement),
                writes: is_writing_statement(&action.row.verdict),
                params: params.0,
                timing: Arc::clone(&action.timing),
            });
        }
        let actions = &*actions;
        let written = steps.iter().any(|step| step.writes);
        let database = self.backends.databases.load(id).await?;
        let changes = &self.backends.file_changes;
        let run = move || async move {
            let mut rows = actions.iter().map(|action| &action.row);
            let _noted = rows.find_map(|row| changes.note_after(id, (&row.sql, &row.verdict)));
            let done = database.batch(steps).await;
            done.map_err(|failure| match failure.step {
                Some(number) => {
                    let row = &actions[number].row;
                    BackendError::in_batch_call(
                        number,
                        statement_error(&row.sql, &row.verdict, failure.error),
                    )
                }
                None => failure.error.into(),
            })
        };
        self.with_audit_entry(id, AuditAction::BackendCall, written, run)
            .await
    }

    /// Finds an action, for its calls.
    ///
    /// # Errors
    /// `NoAction`, or the refusal of a newer gate.
    pub async fn action(
        &self,
        id: BackendId,
        name: &str,
    ) -> Result<Arc<CallableAction>, BackendError> {
        self.definitions.action(id, name).await
    }

    /// Returns an action that is in memory.
    pub fn known_action(&self, id: BackendId, name: &str) -> Option<Arc<CallableAction>> {
        self.definitions.known_action(id, name)
    }

    /// Runs an owner's query.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing is changed.
    pub async fn query(
        &self,
        id: BackendId,
        sql: String,
        given: Params,
        access: QueryAccess,
    ) -> Result<ResultJson, BackendError> {
        let text = sql.clone();
        let query = self.backends.verdicts.query(sql).await?;
        if let QueryAccess::Read(why) = access
            && is_writing_statement(&query.verdict)
        {
            return Err(BackendError::OnlyReads(why));
        }
        check_reserved(&given)?;
        check_names(&query.verdict, &given, &[])?;
        let verdict = &query.verdict;
        let run = || self.run(id, &text, &query.statement, verdict, &query.timing, given);
        self.with_audit_entry(
            id,
            AuditAction::BackendQuery,
            is_writing_statement(verdict),
            run,
        )
        .await
    }

    async fn run(
        &self,
        id: BackendId,
        sql: &str,
        statement: &Arc<str>,
        verdict: &AllowedStatement,
        timing: &Arc<StatementTiming>,
        params: Params,
    ) -> Result<ResultJson, BackendError> {
        let call = StatementCall {
            sql: Arc::clone(statement),
            writes: is_writing_statement(verdict),
            params,
        };
        let database = self.backends.databases.load(id).await;
        let changes = &self.backends.file_changes;
        let _noted = changes.note_after(id, (sql, verdict));
        let result = database?.call(call, timing).await;
        result.map_err(|error| statement_error(sql, verdict, error))
    }
}

/// Checks the params and the identity of a call.
fn check_call<V>(
    action: &CallableAction,
    given: &[(String, V)],
    by: Option<&ActionCallerIdentity>,
) -> Result<(), BackendError> {
    if takes_file(&action.row.verdict) {
        return Err(BackendError::FileAction(action.row.name.clone()));
    }
    check_reserved(given)?;
    if by.is_none() && requires_identity(&action.row.verdict) {
        return Err(BackendError::IdentityRequired);
    }
    check_names(&action.row.verdict, given, &action.defaults)
}

/// Sets the binds that a call leaves out to their defaults, and the reserved ones to the caller's identity.
fn bind<V>(
    action: &CallableAction,
    by: Option<&ActionCallerIdentity>,
    given: &mut Vec<(String, V)>,
    value: impl Fn(Value) -> V,
) {
    for (name, default) in &action.defaults {
        if !given.iter().any(|(given, _)| given == name) {
            given.push((name.clone(), value(default.clone())));
        }
    }
    let Some(by) = by else { return };
    let bound = action.row.verdict.binds.iter().map(String::as_str);
    for name in bound {
        let known = match name {
            USER_ID_BIND => Value::Text(by.user_id.clone()),
            USER_EMAIL_BIND => by.email.clone().map_or(Value::Null, Value::Text),
            USER_NAME_BIND => by.name.clone().map_or(Value::Null, Value::Text),
            _ => continue,
        };
        given.push((name.to_owned(), value(known)));
    }
}

/// Refuses params that only the platform may set.
fn check_reserved<V>(given: &[(String, V)]) -> Result<(), BackendError> {
    let mut names = given.iter().map(|(name, _)| name);
    match names.find(|name| is_reserved(name)) {
        Some(name) => Err(BackendError::ReservedParam(name.clone())),
        None => Ok(()),
    }
}

/// Whether only the platform may set a param.
pub(super) fn is_reserved(name: &str) -> bool {
    name.get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("svc_"))
}

/// Checks that the params are exactly those of the statement, except for some that have a default.
fn check_names<V>(
    verdict: &AllowedStatement,
    given: &[(String, V)],
    defaults: &[(String, Value)],
) -> Result<(), BackendError> {
    let named = |name: &str| {
        given.iter().any(|(given, _)| given == name) || defaults.iter().any(|(has, _)| has == name)
    };
    let missing: Vec<String> = param_names(verdict)
        .filter(|p| !named(p))
        .cloned()
        .collect();
    let extra: Vec<String> = given
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !verdict.binds.contains(name))
        .cloned()
        .collect();
    if missing.is_empty() && extra.is_empty() {
        Ok(())
    } else {
        Err(BackendError::ParamsMismatch { missing, extra })
    }
}
