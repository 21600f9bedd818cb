//! Judges SQL with the gate, and caches the verdicts on owners' queries.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::model::BackendError;
use svc_database::StatementTiming;
use svc_sandbox::{GuestDigest, Purpose, Refusal, Sandbox, SqlPosition, Statement};

/// Approximate number of cached queries.
const MAX_CACHED_QUERIES: usize = 512;
/// Maximum memory of the cache, in bytes.
const MAX_CACHE_BYTES: u64 = 8 << 20;

/// Query that the gate allows.
#[derive(Debug)]
pub(super) struct JudgedQuery {
    pub(super) verdict: Statement,
    /// The statement alone.
    pub(super) statement: Arc<str>,
    /// Measured duration of the statement.
    pub(super) timing: Arc<StatementTiming>,
}

type QueryKey = (Option<GuestDigest>, String);

/// Weighs a query by its text, of which the statement is a copy.
#[derive(Clone, Debug)]
struct TextWeighter;

impl Weighter<QueryKey, Arc<JudgedQuery>> for TextWeighter {
    fn weight(&self, (_, sql): &QueryKey, _: &Arc<JudgedQuery>) -> u64 {
        estimate_memory(sql)
    }
}

/// Returns the approximate memory of SQL with its verdict, in bytes: the text, the statement in it, and the names of its binds.
pub(super) fn estimate_memory(sql: &str) -> u64 {
    512 + 3 * u64::try_from(sql.len()).unwrap_or(u64::MAX / 4)
}

/// Judges SQL; verdicts on queries are cached by the text and the gate.
#[derive(Debug)]
pub(super) struct SqlJudge {
    sandbox: Sandbox,
    queries: Cache<QueryKey, Arc<JudgedQuery>, TextWeighter>,
}

impl SqlJudge {
    /// Creates an empty cache.
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            queries: Cache::with_weighter(MAX_CACHED_QUERIES, MAX_CACHE_BYTES, TextWeighter),
        }
    }

    /// Returns the digest of the current gate.
    pub(super) fn gate(&self) -> Option<GuestDigest> {
        self.sandbox.gate_digest()
    }

    /// Judges an owner's query.
    ///
    /// # Errors
    /// Mostly [`BackendError::Refused`].
    pub(super) async fn query(&self, sql: String) -> Result<Arc<JudgedQuery>, BackendError> {
        let key = (self.gate(), sql);
        if let Some(known) = self.queries.get(&key) {
            return Ok(known);
        }
        let (verdict, gate) = self.statement(&key.1, Purpose::Query).await?;
        let key = (Some(gate), key.1);
        let range = verdict.start..verdict.end;
        let statement = key.1.get(range).unwrap_or_default();
        let query = Arc::new(JudgedQuery {
            statement: statement.into(),
            verdict,
            timing: Arc::default(),
        });
        self.queries.insert(key, Arc::clone(&query));
        Ok(query)
    }

    /// Judges one statement; also returns the digest of the gate.
    ///
    /// # Errors
    /// Mostly [`BackendError::Refused`].
    pub(super) async fn statement(
        &self,
        sql: &str,
        purpose: Purpose,
    ) -> Result<(Statement, GuestDigest), BackendError> {
        let mut judged = self.sandbox.judge(sql, purpose).await?;
        let statement = judged.statements.pop();
        statement
            .map(|statement| (statement, judged.gate))
            .ok_or_else(|| anyhow::anyhow!("the gate allowed no statement").into())
    }

    /// Judges a script.
    ///
    /// # Errors
    /// Mostly [`BackendError::ScriptRefused`].
    pub(super) async fn script(
        &self,
        sql: &str,
        purpose: Purpose,
    ) -> Result<Vec<Statement>, BackendError> {
        self.sandbox
            .check_sql(sql, purpose)
            .await
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
) -> Refusal {
    Refusal {
        reason,
        statement: u32::try_from(number + 1).unwrap_or(u32::MAX),
        position: offset.map(|offset| position(sql, offset)),
    }
}

/// Returns the line and column of a byte in SQL.
fn position(sql: &str, offset: usize) -> SqlPosition {
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
            let place = position(sql, offset);
            assert_eq!((place.line, place.column), (line, column), "{sql}");
        }
    }
}
