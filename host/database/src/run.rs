//! Runs one statement of a tenant, and writes its result as JSON.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, ErrorCode, Row, Rows, Statement, StatementStatus};

use super::authorizer::AuthorizerRole;
use super::columns::EncodedColumnNames;
use super::connection::{TenantConnection, UnclassifiedStatementFailure};
use super::cost::StatementCost;
use super::error::{StatementRunError, internal_error};
use super::limits::ResultLimits;
use super::meter::{LimitCheckFrequency, StatementDeadline};
use super::values::{self, Params, Value};

/// The largest statement that a connection keeps prepared, in bytes.
const MAX_CACHED_STATEMENT_BYTES: i32 = 128 << 10;

/// A statement to run, as the gate allowed it.
#[derive(Clone, Debug)]
pub struct StatementCall {
    /// One statement, without anything after it.
    pub sql: Arc<str>,
    /// Whether the statement changes rows.
    pub writes: bool,
    /// Values of the binds.
    pub params: Params,
}

/// A result in its JSON form: `{"rows", "columns", "rows_affected", "truncated"}`, or that of a batch.
#[derive(Clone, Debug, Default)]
pub struct ResultJson {
    /// The document.
    pub json: Vec<u8>,
    /// Number of rows in it: one number for each statement, so one if this is no batch's.
    pub rows: RowCounts,
}

/// Numbers of rows that statements have answered. That of a single statement takes no memory of its own.
#[derive(Clone, Debug)]
pub enum RowCounts {
    /// Rows of the one statement.
    One(u64),
    /// Rows of each statement of a batch, in order.
    Each(Vec<u64>),
}

impl Default for RowCounts {
    fn default() -> Self {
        Self::One(0)
    }
}

impl ResultJson {
    /// Builds the result of one statement.
    fn of_one(json: Vec<u8>, rows: u64) -> Self {
        let rows = RowCounts::One(rows);
        Self { json, rows }
    }
}

impl RowCounts {
    /// Returns the rows of a statement, from 0.
    pub fn of(&self, statement: usize) -> u64 {
        match self {
            Self::One(rows) => *rows,
            Self::Each(rows) => rows.get(statement).copied().unwrap_or(0),
        }
    }
}

/// Begin of a result, up to the first row.
const ROWS_START: &[u8] = b"{\"rows\":[";

/// Whether a result has a row.
pub(super) fn has_rows(result: &[u8]) -> bool {
    result.get(ROWS_START.len()) == Some(&b'{')
}

/// The first row of a result, by column; empty if there was none.
pub(super) type FirstRow = Params;

/// Runs a statement in a lane, within `budget`.
pub(super) fn run(
    handle: &TenantConnection,
    call: &StatementCall,
    limits: &ResultLimits,
    budget: Duration,
) -> Result<ResultJson, StatementRunError> {
    run_call(handle, call, limits, (budget, None), None)
}

/// Runs a statement in a lane, and copies its first row into `kept_row`.
pub(super) fn run_with_first_row(
    handle: &TenantConnection,
    call: &StatementCall,
    limits: &ResultLimits,
    budget: Duration,
    kept_row: Option<&mut FirstRow>,
) -> Result<ResultJson, StatementRunError> {
    run_call(handle, call, limits, (budget, None), kept_row)
}

/// Runs a statement of known cost on the thread of a request, within `budget`. Fails with `NeedsLane` if it is too costly.
pub(super) fn run_inline(
    handle: &TenantConnection,
    call: &StatementCall,
    cost: StatementCost,
    limits: &ResultLimits,
    budget: Duration,
) -> Result<ResultJson, StatementRunError> {
    run_call(handle, call, limits, (budget, Some(cost)), None)
}

fn run_call(
    handle: &TenantConnection,
    call: &StatementCall,
    limits: &ResultLimits,
    (budget, inline): (Duration, Option<StatementCost>),
    kept_row: Option<&mut FirstRow>,
) -> Result<ResultJson, StatementRunError> {
    let role = if call.writes {
        AuthorizerRole::Write
    } else {
        AuthorizerRole::Read
    };
    let watch = match inline {
        Some(_) => LimitCheckFrequency::Closely,
        None => LimitCheckFrequency::InLane,
    };
    let result = handle.run_metered(role, budget, watch, |connection| {
        let longest = match inline {
            Some(cost) => cost
                .inline_value_limit
                .ok_or(StatementRunError::NeedsLane)?,
            None => handle.cost(&call.sql)?.lane_value_limit,
        };
        if call.writes {
            handle.note_changed_tables(&call.sql);
        }
        // The limit is set after preparing, because it also holds for SQLite's reading of the schema.
        let mut statement = connection.prepare_cached(&call.sql)?;
        handle.limit_value_length(longest)?;
        bind(&mut statement, &call.params).map_err(UnclassifiedStatementFailure::Running)?;
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(ROWS_START);
        let written = write_rows(
            &mut out,
            &call.sql,
            &mut statement.raw_query(),
            limits,
            &handle.deadline(),
            kept_row,
        );
        let written =
            written.map_err(|failure| classify_run_failure(connection, &call.sql, failure))?;
        // Read after the run: a statement that was prepared before a migration learns its new columns when it runs.
        let columns = written.columns;
        let columns = columns.map_or_else(|| EncodedColumnNames::of(&call.sql, &statement), Ok)?;
        out.extend_from_slice(b"],\"columns\":");
        columns.write(&mut out);
        if is_large(&statement) {
            statement.discard();
        }
        write_result_end(&mut out, connection, call.writes, written.truncated);
        if out.len() > limits.bytes {
            return Err(StatementRunError::ResultTooLarge.into());
        }
        Ok(ResultJson::of_one(out, written.rows))
    });
    result.map_err(|error| error.with_offset(&call.sql))
}

/// Classifies a failure while a statement ran. SQLite prepares a statement again after a migration: if that fails, the statement
/// is at fault and not its values.
fn classify_run_failure(
    connection: &Connection,
    sql: &str,
    failure: UnclassifiedStatementFailure,
) -> UnclassifiedStatementFailure {
    match failure {
        UnclassifiedStatementFailure::Sqlite(error)
            if error.sqlite_error_code() == Some(ErrorCode::Unknown) =>
        {
            match connection.prepare(sql) {
                Ok(_) => UnclassifiedStatementFailure::Running(error),
                Err(refused) => UnclassifiedStatementFailure::Sqlite(refused),
            }
        }
        UnclassifiedStatementFailure::Sqlite(error) => UnclassifiedStatementFailure::Running(error),
        told => told,
    }
}

/// Whether a statement that has run once is too large to stay in the cache.
fn is_large(statement: &Statement<'_>) -> bool {
    statement.get_status(StatementStatus::Run) <= 1
        && statement.get_status(StatementStatus::MemUsed) > MAX_CACHED_STATEMENT_BYTES
}

/// Prepares a statement within `budget`, without running it, to check it against the present schema.
pub(super) fn prepare(
    handle: &TenantConnection,
    sql: &str,
    writes: bool,
    budget: Duration,
) -> Result<(), StatementRunError> {
    let role = if writes {
        AuthorizerRole::Write
    } else {
        AuthorizerRole::Read
    };
    // SQLite prepares by the schema that the connection has loaded, which may be out of date.
    handle.refresh_schema().map_err(internal_error)?;
    let prepared = handle.run_as_tenant(role, budget, |connection| {
        let statement = connection.prepare(sql)?;
        EncodedColumnNames::of(sql, &statement)?;
        Ok(())
    });
    prepared.map_err(|error| error.with_offset(sql))
}

fn bind(statement: &mut CachedStatement<'_>, params: &[(String, Value)]) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let value = statement
            .parameter_name(index)
            .and_then(|name| name.strip_prefix(':'))
            .and_then(|name| params.iter().find(|(param, _)| param == name))
            .map_or(&Value::Null, |(_, value)| value);
        // The caller has checked the names; a missing value is bound as NULL.
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Outcome of writing rows as JSON.
struct RowSerializationOutcome {
    /// Columns of the rows; `None` if there was no row.
    columns: Option<EncodedColumnNames>,
    /// Number of rows that were written.
    rows: u64,
    /// Whether the limit left rows out.
    truncated: bool,
}

/// Writes rows up to the limit. A write stops there, but its changes are complete.
fn write_rows(
    out: &mut Vec<u8>,
    sql: &str,
    rows: &mut Rows<'_>,
    limits: &ResultLimits,
    deadline: &StatementDeadline,
    mut kept_row: Option<&mut FirstRow>,
) -> Result<RowSerializationOutcome, UnclassifiedStatementFailure> {
    let mut work = deadline.begin_work()?;
    let mut written = 0;
    let (mut columns, mut truncated) = (None, false);
    while let Some(row) = rows.next()? {
        let columns = match &mut columns {
            Some(columns) => columns,
            none => none.insert(EncodedColumnNames::of(sql, row.as_ref())?),
        };
        if written == limits.rows {
            truncated = true;
            break;
        }
        if written > 0 {
            out.push(b',');
        }
        let before = out.len();
        for (index, key) in columns.keys().enumerate() {
            out.extend_from_slice(key);
            values::write_value(out, row.get_ref(index)?);
            if out.len() > limits.bytes {
                return Err(StatementRunError::ResultTooLarge.into());
            }
        }
        out.push(b'}');
        // Checked once a row, whose bytes are limited: a check for each value would cost more than most values.
        work.spend(out.len() - before)?;
        // Copied only now, when the row is known to be within the limits.
        if let Some(kept_row) = kept_row.take() {
            *kept_row = read_first_row(row)?;
        }
        written += 1;
    }
    Ok(RowSerializationOutcome {
        columns,
        rows: written,
        truncated,
    })
}

fn read_first_row(row: &Row<'_>) -> rusqlite::Result<FirstRow> {
    let names = row.as_ref().column_names().map(str::to_owned);
    names
        .enumerate()
        .map(|(index, name)| Ok((name, values::to_value(row.get_ref(index)?))))
        .collect()
}

fn write_result_end(out: &mut Vec<u8>, connection: &Connection, writes: bool, truncated: bool) {
    out.extend_from_slice(b",\"rows_affected\":");
    values::write_json(out, &if writes { connection.changes() } else { 0 });
    out.extend_from_slice(b",\"truncated\":");
    out.extend_from_slice(if truncated { b"true}" } else { b"false}" });
}

impl StatementCall {
    /// Bytes of SQL and parameters.
    pub(super) fn bytes(&self) -> usize {
        self.sql.len()
            + self
                .params
                .iter()
                .map(|(_, v)| value_bytes(v))
                .sum::<usize>()
    }
}

/// Size of a value, in bytes.
pub(super) fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 8,
    }
}
