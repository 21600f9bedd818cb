//! Judges SQL with the gate, and caches the verdicts on owners' queries, and the refusals of what may be asked again and again.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::model::BackendError;
use svc_database::StatementTiming;
use svc_sandbox::{
    AllowedStatement, BudgetKind, GateFailure, GuestDigest, Sandbox, SharedBudget, SqlPosition,
    SqlPurpose, SqlRefusal,
};

/// Approximate number of cached outcomes.
const MAX_CACHED_OUTCOMES: usize = 512;
/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 8 << 20;

/// Query that the gate allows.
#[derive(Debug)]
pub(super) struct JudgedQuery {
    pub(super) verdict: AllowedStatement,
    /// The statement alone.
    pub(super) statement: Arc<str>,
    /// Measured duration of the statement.
    pub(super) timing: Arc<StatementTiming>,
}

/// Outcome that the same SQL has again with the same gate.
#[derive(Clone, Debug)]
enum KeptOutcome {
    Allowed(Arc<JudgedQuery>),
    Refused(Arc<SqlRefusal>),
    /// Judging it runs out of fuel. Other budgets depend on the machine, too.
    OutOfFuel,
}

impl KeptOutcome {
    fn of_failure(failure: &GateFailure) -> Option<Self> {
        match failure {
            GateFailure::Refused(refusal) => Some(Self::Refused(Arc::new(refusal.clone()))),
            GateFailure::Budget(BudgetKind::Fuel) => Some(Self::OutOfFuel),
            _ => None,
        }
    }

    fn into_result(self) -> Result<Arc<JudgedQuery>, GateFailure> {
        match self {
            Self::Allowed(query) => Ok(query),
            Self::Refused(refusal) => Err(GateFailure::Refused(SqlRefusal::clone(&refusal))),
            Self::OutOfFuel => Err(GateFailure::Budget(BudgetKind::Fuel)),
        }
    }
}

/// SQL with its purpose, and the gate that judges it.
type SqlKey = (Option<GuestDigest>, SqlPurpose, String);

/// Weighs an outcome by its texts; the statement of a query is a copy of the SQL.
#[derive(Clone, Debug)]
struct QueryTextWeigher;

impl Weighter<SqlKey, KeptOutcome> for QueryTextWeigher {
    fn weight(&self, (_, _, sql): &SqlKey, outcome: &KeptOutcome) -> u64 {
        let reason = match outcome {
            KeptOutcome::Refused(refusal) => refusal.reason.len(),
            KeptOutcome::Allowed(_) | KeptOutcome::OutOfFuel => 0,
        };
        estimate_memory(sql) + u64::try_from(reason).unwrap_or(u64::MAX / 4)
    }
}

/// Returns the approximate memory of SQL with its verdict, in bytes: the text, the statement in it, and the names of its binds.
pub(super) fn estimate_memory(sql: &str) -> u64 {
    512 + 3 * u64::try_from(sql.len()).unwrap_or(u64::MAX / 4)
}

/// Judges SQL; what it says about queries and stored actions is cached by the text and the gate.
#[derive(Debug)]
pub(super) struct SqlJudge {
    sandbox: Sandbox,
    kept: Cache<SqlKey, KeptOutcome, QueryTextWeigher>,
}

impl SqlJudge {
    /// Creates an empty cache.
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            kept: Cache::with_weighter(MAX_CACHED_OUTCOMES, MAX_CACHE_BYTES, QueryTextWeigher),
        }
    }

    /// Returns the digest of the current gate.
    pub(super) fn gate(&self) -> Option<GuestDigest> {
        self.sandbox.gate_digest()
    }

    /// Returns a budget for all SQL of one request.
    pub(super) fn budget(&self) -> SharedBudget {
        self.sandbox.judging_budget()
    }

    /// Judges an owner's query.
    ///
    /// # Errors
    /// Mostly [`BackendError::Refused`].
    pub(super) async fn query(&self, sql: String) -> Result<Arc<JudgedQuery>, BackendError> {
        let key = (self.gate(), SqlPurpose::Query, sql);
        if let Some(known) = self.kept.get(&key) {
            return Ok(known.into_result()?);
        }
        let (verdict, gate) = self.judge_and_keep_failure(&key).await?;
        let (_, purpose, sql) = key;
        let statement = sql.get(verdict.start..verdict.end).unwrap_or_default();
        let query = Arc::new(JudgedQuery {
            statement: statement.into(),
            verdict,
            timing: Arc::default(),
        });
        let kept = KeptOutcome::Allowed(Arc::clone(&query));
        self.kept.insert((Some(gate), purpose, sql), kept);
        Ok(query)
    }

    /// Judges the statement of a stored action, which visitors may call again and again if the gate refuses it; also returns the
    /// digest of the gate.
    ///
    /// # Errors
    /// Mostly [`BackendError::Refused`].
    pub(super) async fn stored_action(
        &self,
        sql: &str,
    ) -> Result<(AllowedStatement, GuestDigest), BackendError> {
        let key = (self.gate(), SqlPurpose::Action, sql.to_owned());
        if let Some(Err(failure)) = self.kept.get(&key).map(KeptOutcome::into_result) {
            return Err(failure.into());
        }
        Ok(self.judge_and_keep_failure(&key).await?)
    }

    /// Judges SQL that is all of its request. A failure that comes again is kept, if the gate of the key serves still.
    async fn judge_and_keep_failure(
        &self,
        key: &SqlKey,
    ) -> Result<(AllowedStatement, GuestDigest), GateFailure> {
        let (gate, purpose, sql) = key;
        let judged = self.judge(sql, *purpose, &self.budget()).await;
        if let Err(failure) = &judged
            && gate.is_some()
            && self.gate() == *gate
            && let Some(kept) = KeptOutcome::of_failure(failure)
        {
            self.kept.insert(key.clone(), kept);
        }
        judged
    }

    /// Judges the statement of a new action within the rest of its request's budget; also returns the digest of the gate.
    ///
    /// # Errors
    /// Mostly [`BackendError::Refused`].
    pub(super) async fn new_action(
        &self,
        sql: &str,
        budget: &SharedBudget,
    ) -> Result<(AllowedStatement, GuestDigest), BackendError> {
        Ok(self.judge(sql, SqlPurpose::Action, budget).await?)
    }

    async fn judge(
        &self,
        sql: &str,
        purpose: SqlPurpose,
        budget: &SharedBudget,
    ) -> Result<(AllowedStatement, GuestDigest), GateFailure> {
        let mut judged = self.sandbox.judge(sql, purpose, budget).await?;
        let statement = judged.statements.pop();
        let none = || GateFailure::Broken(anyhow::anyhow!("the gate allowed no statement"));
        let statement = statement.ok_or_else(none)?;
        Ok((statement, judged.gate))
    }

    /// Judges a script within the rest of its request's budget.
    ///
    /// # Errors
    /// Mostly [`BackendError::ScriptRefused`].
    pub(super) async fn script(
        &self,
        sql: &str,
        purpose: SqlPurpose,
        budget: &SharedBudget,
    ) -> Result<Vec<AllowedStatement>, BackendError> {
        let judged = self.sandbox.judge(sql, purpose, budget).await;
        judged
            .map(|verdict| verdict.statements)
            .map_err(|failure| match failure.into() {
                BackendError::Refused(refusal) => BackendError::ScriptRefused(refusal),
                other => other,
            })
    }
}

/// Converts an error of SQLite into a refusal like the gate's.
pub(super) fn to_refusal(
    sql: &str,
    number: usize,
    offset: Option<usize>,
    reason: String,
) -> SqlRefusal {
    SqlRefusal {
        reason,
        statement: u32::try_from(number + 1).unwrap_or(u32::MAX),
        position: offset.map(|offset| sql_position_at(sql, offset)),
    }
}

/// Returns the line and column of a byte in SQL.
fn sql_position_at(sql: &str, offset: usize) -> SqlPosition {
    let before = sql.get(..offset).unwrap_or(sql);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    SqlPosition {
        line: number(before.matches('\n').count() + 1),
        column: number(before[line_start..].chars().count() + 1),
        offset: number(before.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_a_line_and_a_column() {
        for (sql, offset, line, column) in [
            ("SELECT x", 7, 1, 8),
            ("SELECT\n é, x", 12, 2, 5),
            ("a", 9, 1, 2),
            ("", 0, 1, 1),
        ] {
            let place = sql_position_at(sql, offset);
            assert_eq!((place.line, place.column), (line, column), "{sql}");
        }
    }
}
