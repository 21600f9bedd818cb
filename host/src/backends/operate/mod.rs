//! Calling actions, and owners' queries.

pub mod routes;

use std::sync::Arc;

use super::actions::refused;
use super::database::values::{Params, Value};
use super::database::{Call, Pace, ResultJson};
use super::model::{BackendError, params, requires_identity, writes};
use super::service::Backends;
use crate::ids::BackendId;
use crate::sandbox::Statement;

impl Backends {
    /// Calls an action for a visitor who is not signed in. A write is durable when it is answered.
    ///
    /// # Errors
    /// [`BackendError`]; nothing is changed then.
    pub async fn op(
        &self,
        id: BackendId,
        action: &str,
        given: Params,
    ) -> Result<ResultJson, BackendError> {
        let action = self.action(id, action).await?;
        let verdict = &action.row.verdict;
        check_reserved(&given)?;
        if requires_identity(verdict) {
            return Err(BackendError::IdentityRequired);
        }
        check_names(verdict, &given)?;
        self.run(
            id,
            &action.row.sql,
            &action.statement,
            verdict,
            &action.pace,
            given,
        )
        .await
    }

    /// Runs an owner's query.
    ///
    /// # Errors
    /// [`BackendError`]; nothing is changed then.
    pub async fn query(
        &self,
        id: BackendId,
        sql: String,
        given: Params,
    ) -> Result<ResultJson, BackendError> {
        let text = sql.clone();
        let query = self.verdicts.query(sql).await?;
        check_reserved(&given)?;
        check_names(&query.verdict, &given)?;
        self.run(
            id,
            &text,
            &query.statement,
            &query.verdict,
            &query.pace,
            given,
        )
        .await
    }

    async fn run(
        &self,
        id: BackendId,
        sql: &str,
        statement: &Arc<str>,
        verdict: &Statement,
        pace: &Arc<Pace>,
        params: Params,
    ) -> Result<ResultJson, BackendError> {
        let call = Call {
            sql: Arc::clone(statement),
            writes: writes(verdict),
            params,
        };
        let result = self.databases.get(id)?.call(call, pace).await;
        result.map_err(|error| refused(sql, verdict, error))
    }
}

/// No caller gives what only the platform knows.
fn check_reserved(given: &[(String, Value)]) -> Result<(), BackendError> {
    let reserved = given.iter().map(|(name, _)| name).find(|name| {
        name.get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case("svc_"))
    });
    match reserved {
        Some(name) => Err(BackendError::Reserved(name.clone())),
        None => Ok(()),
    }
}

/// A call names exactly what the statement names.
fn check_names(verdict: &Statement, given: &[(String, Value)]) -> Result<(), BackendError> {
    let named = |name: &str| given.iter().any(|(given, _)| given == name);
    let missing: Vec<String> = params(verdict).filter(|p| !named(p)).cloned().collect();
    let extra: Vec<String> = given
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !verdict.binds.contains(name))
        .cloned()
        .collect();
    if missing.is_empty() && extra.is_empty() {
        Ok(())
    } else {
        Err(BackendError::Mismatch { missing, extra })
    }
}
