//! SQL judged by the gate guest, with checks of the verdict's form.

use std::sync::Arc;

use super::SharedSandboxState;
use super::bindings::gate::GatePre;
use super::bindings::gate::exports::svc::gate::judge as wit;
use super::bindings::gate::svc::gate::types;
use super::engine::{self, CallFailure, GuestFunction};
use super::lane::{JobCancellation, LaneBusy};
use super::limits::SharedBudget;
use super::renderer::truncate_message;
use super::slot::{GuestNotReady, LoadedGuest};
use super::trial::{AttemptOutcome, GuestAttempt, resolve_attempt};
use super::values::{
    AllowedStatement, BudgetKind, GateFailure, NamedTable, SqlPosition, SqlPurpose, SqlRefusal,
    StatementKind, Verdict,
};
use super::wasi::CallStoreState;

/// Size limit of the SQL of an action or a query, in bytes.
pub const MAX_STATEMENT_BYTES: usize = 64 << 10;

/// Size limit of a script that creates or migrates a schema, in bytes.
pub const MAX_SCRIPT_BYTES: usize = 256 << 10;

impl From<LaneBusy> for GateFailure {
    fn from(_: LaneBusy) -> Self {
        Self::Busy
    }
}

impl From<CallFailure> for GateFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Budget(budget) => Self::Budget(budget),
            CallFailure::Abandoned => Self::Busy,
            CallFailure::Broken(error) => Self::Broken(error),
        }
    }
}

impl From<GuestNotReady> for GateFailure {
    fn from(unready: GuestNotReady) -> Self {
        match unready {
            GuestNotReady::Loading => Self::Preparing,
            GuestNotReady::Failed(error) => Self::Broken(error),
        }
    }
}

/// Judges SQL with the serving guest, or with the previous one if the serving one fails. The calls share what is left of `budget`.
pub(super) async fn judge_sql(
    inner: &SharedSandboxState,
    sql: String,
    purpose: SqlPurpose,
    budget: &SharedBudget,
) -> Result<Verdict, GateFailure> {
    let longest = match purpose {
        SqlPurpose::Action | SqlPurpose::Query => MAX_STATEMENT_BYTES,
        SqlPurpose::Schema | SqlPurpose::Migration => MAX_SCRIPT_BYTES,
    };
    if sql.len() > longest {
        return Err(GateFailure::Budget(BudgetKind::SourceBytes));
    }
    if let Some(exhausted) = budget.exhausted() {
        return Err(GateFailure::Budget(exhausted));
    }
    let serving = inner.registry.gate.serving().await?;
    let sql: Arc<str> = sql.into();
    let asked = (Arc::clone(&sql), purpose);
    let first = judge_with_guest(inner, Arc::clone(&serving.guest), asked, budget).await;
    let again = |guest| judge_with_guest(inner, guest, (sql, purpose), budget);
    resolve_attempt(inner, &serving, first, again).await
}

/// Judges SQL with one guest.
async fn judge_with_guest(
    inner: &SharedSandboxState,
    guest: Arc<LoadedGuest<GatePre<CallStoreState>>>,
    (sql, purpose): (Arc<str>, SqlPurpose),
    budget: &SharedBudget,
) -> GuestAttempt<Result<Verdict, GateFailure>> {
    let function = GuestFunction::Check;
    let allowance = budget.allowance(*inner.engine.limits(function.world()));
    let span = engine::call_span(function, guest.digest);
    let (asked, judge) = (Arc::clone(&sql), Arc::clone(&guest));
    let job = move |stop: &JobCancellation| {
        let (purpose, code) = (purpose_to_wit(purpose), judge.code());
        span.in_scope(|| {
            let engine = &code.engine;
            engine.call((function, &judge.tally), allowance, stop, |store| {
                let world = code.world.instantiate(&mut *store)?;
                world.svc_gate_judge().call_check(store, &asked, purpose)
            })
        })
    };
    let called = match inner.checks.run(job).await {
        Ok(called) => called,
        Err(busy) => return GuestAttempt::busy(busy),
    };
    budget.charge(&called.used);
    let mut end = called
        .outcome
        .as_ref()
        .err()
        .map_or(AttemptOutcome::Answered, AttemptOutcome::from);
    let outcome = match called.outcome {
        Ok(Ok(statements)) => checked_statements(&sql, purpose, statements),
        Ok(Err(refusal)) => Err(GateFailure::Refused(refusal_from_wit(refusal))),
        Err(failure) => Err(failure.into()),
    };
    if end == AttemptOutcome::Answered && matches!(outcome, Err(GateFailure::Broken(_))) {
        guest.tally.count_rejected();
        end = AttemptOutcome::Broken;
    }
    GuestAttempt {
        outcome: outcome.map(|statements| Verdict {
            statements,
            gate: guest.digest,
        }),
        end,
        used: called.used,
    }
}

/// Converts a purpose for the guest.
pub(super) fn purpose_to_wit(purpose: SqlPurpose) -> types::Purpose {
    match purpose {
        SqlPurpose::Action => types::Purpose::Action,
        SqlPurpose::Query => types::Purpose::Query,
        SqlPurpose::Schema => types::Purpose::Schema,
        SqlPurpose::Migration => types::Purpose::Migration,
    }
}

/// Converts the statements, and checks that their spans lie in the SQL.
fn checked_statements(
    sql: &str,
    purpose: SqlPurpose,
    statements: Vec<wit::Statement>,
) -> Result<Vec<AllowedStatement>, GateFailure> {
    let broken = |what: &str| {
        GateFailure::Broken(anyhow::anyhow!(
            "the guest's verdict names {what} for {purpose:?} SQL of {} bytes",
            sql.len()
        ))
    };
    let takes_one = matches!(purpose, SqlPurpose::Action | SqlPurpose::Query);
    if takes_one && statements.len() != 1 {
        return Err(broken("another number of statements than one"));
    }
    let mut free_from = 0;
    let mut allowed = Vec::with_capacity(statements.len());
    for statement in statements {
        let place = usize::try_from(statement.start)
            .ok()
            .zip(usize::try_from(statement.end).ok())
            .filter(|(start, end)| *start >= free_from && sql.get(*start..*end).is_some());
        let Some((start, end)) = place else {
            return Err(broken("an impossible place"));
        };
        free_from = end;
        allowed.push(AllowedStatement {
            kind: match statement.kind {
                types::Kind::Read => StatementKind::Read,
                types::Kind::Write => StatementKind::Write,
                types::Kind::Migration => StatementKind::Migration,
            },
            binds: statement.binds,
            returns_rows: statement.returns_rows,
            tables: statement.tables.into_iter().map(table_from_wit).collect(),
            view: statement.view,
            parts: statement.parts,
            start,
            end,
        });
    }
    Ok(allowed)
}

fn table_from_wit(table: types::Table) -> NamedTable {
    NamedTable {
        name: table.name,
        times: table.times,
    }
}

fn refusal_from_wit(refusal: wit::Refusal) -> SqlRefusal {
    SqlRefusal {
        reason: truncate_message(refusal.reason),
        statement: refusal.statement,
        position: Some(SqlPosition {
            line: refusal.place.line,
            column: refusal.place.column,
            offset: refusal.place.offset,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(start: u32, end: u32) -> wit::Statement {
        wit::Statement {
            kind: types::Kind::Write,
            binds: Vec::new(),
            returns_rows: false,
            tables: Vec::new(),
            view: None,
            parts: 1,
            start,
            end,
        }
    }

    #[test]
    fn statements_stand_in_the_sql_one_after_another() {
        let two = vec![statement(0, 5), statement(6, 9)];
        let found = checked_statements("abcde;fgh", SqlPurpose::Migration, two).unwrap();
        assert_eq!((found[1].start, found[1].end), (6, 9));
        for impossible in [
            vec![statement(0, 5), statement(4, 9)],
            vec![statement(0, 10)],
            vec![statement(5, 4)],
        ] {
            let verdict = checked_statements("abcde;fgh", SqlPurpose::Migration, impossible);
            assert!(matches!(verdict, Err(GateFailure::Broken(_))));
        }
        let split = checked_statements("é", SqlPurpose::Action, vec![statement(0, 1)]);
        assert!(matches!(split, Err(GateFailure::Broken(_))));
    }

    #[test]
    fn an_action_or_a_query_is_one_statement() {
        for purpose in [SqlPurpose::Action, SqlPurpose::Query] {
            assert!(checked_statements("abc", purpose, vec![statement(0, 3)]).is_ok());
            assert!(checked_statements("abc", purpose, Vec::new()).is_err());
            let two = vec![statement(0, 1), statement(2, 3)];
            assert!(checked_statements("abc", purpose, two).is_err());
        }
    }
}
