//! Changing a schema: a script and its marker in one transaction of the tenant's file.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::advice::with_advice;
use super::authorizer::StatementRole;
use super::connection::{StatementFailure, TenantConnection};
use super::cost::StatementCost;
use super::error::{RunError, internal};
use super::limits::VALUE_BYTES;
use super::schema::{MigrationMarker, read_markers};
use super::schema_faults::{self, SchemaFault};
use super::sql_tokens::created_name;
use super::transaction::{begin, commit, roll_back};
use super::warnings::{SchemaWarning, find_warnings};
use svc_base::fault;

/// Tables that every database has from its beginning: the mirror of payments, which the platform derives, and the
/// markers of migrations.
pub(super) const PLATFORM_TABLES_SQL: &str = "
CREATE TABLE svc_payments (
    session_id TEXT NOT NULL UNIQUE,
    price_id TEXT NOT NULL,
    price_label TEXT NOT NULL,
    amount INTEGER NOT NULL,
    currency TEXT NOT NULL,
    user_id TEXT,
    email TEXT,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE svc_migrations (
    version INTEGER PRIMARY KEY,
    checksum TEXT NOT NULL UNIQUE
) STRICT;";

/// The most columns of a table.
const MAX_COLUMNS: u32 = 500;

/// A script, as the gate allowed it.
#[derive(Clone, Debug)]
pub struct Script {
    /// All of it.
    pub sql: String,
    /// Where its statements are, in bytes.
    pub statements: Vec<std::ops::Range<usize>>,
    /// SHA-256 of it, in hexadecimal.
    pub checksum: String,
}

/// Why a script changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct ScriptError {
    /// Which statement, from 0, if one of them is to blame.
    pub statement: Option<usize>,
    /// Error of the statement.
    pub error: RunError,
}

impl From<RunError> for ScriptError {
    fn from(error: RunError) -> Self {
        Self {
            statement: None,
            error,
        }
    }
}

/// Effect of a migration on the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationOutcome {
    /// It was applied now, and brought something that somebody should look at.
    Applied(MigrationMarker, Vec<SchemaWarning>),
    /// It had been applied before.
    AlreadyApplied(MigrationMarker),
}

/// Makes a new database of what every one has and of its first script.
pub(super) fn create_database(
    handle: &TenantConnection,
    script: &Script,
    budget: Duration,
) -> Result<(), ScriptError> {
    begin(handle)?;
    handle
        .connection
        .execute_batch(PLATFORM_TABLES_SQL)
        .map_err(internal)?;
    apply_script(handle, script, budget)?;
    check_new_faults(handle, script, &[], budget)?;
    insert_marker(handle, 1, &script.checksum)?;
    Ok(commit(handle)?)
}

/// Applies a script, unless it has been applied already.
pub(super) fn migrate(
    handle: &TenantConnection,
    script: &Script,
    budget: Duration,
) -> Result<MigrationOutcome, ScriptError> {
    let before = read_markers(&handle.connection).map_err(internal)?;
    if let Some(marker) = before.iter().find(|m| m.checksum == script.checksum) {
        return Ok(MigrationOutcome::AlreadyApplied(marker.clone()));
    }
    let version = before.last().map_or(1, |marker| marker.version + 1);
    let known = schema_faults::find_faults(handle, budget)?;
    let said = find_warnings(&handle.connection).map_err(internal)?;
    begin(handle)?;
    let done = apply_script(handle, script, budget)
        .and_then(|()| check_new_faults(handle, script, &known, budget))
        .and_then(|()| insert_marker(handle, version, &script.checksum))
        .and_then(|()| {
            let mut new = find_warnings(&handle.connection).map_err(internal)?;
            new.retain(|warning| !said.contains(warning));
            fault::point("migrate.applied");
            commit(handle)?;
            Ok(new)
        });
    match done {
        Ok(new) => {
            fault::point("migrate.committed");
            let checksum = script.checksum.clone();
            Ok(MigrationOutcome::Applied(
                MigrationMarker { version, checksum },
                new,
            ))
        }
        Err(error) => {
            roll_back(handle);
            Err(error)
        }
    }
}

/// Refuses a script that brings what cannot be worked with; `known` was so before.
fn check_new_faults(
    handle: &TenantConnection,
    script: &Script,
    known: &[SchemaFault],
    budget: Duration,
) -> Result<(), ScriptError> {
    let found = schema_faults::find_faults(handle, budget)?;
    let Some(fault) = found.into_iter().find(|fault| !known.contains(fault)) else {
        return Ok(());
    };
    let mut statements = script.statements.iter();
    let blamed = statements.rposition(|range| {
        let sql = script.sql.get(range.clone()).unwrap_or_default();
        created_name(sql).is_some_and(|name| name == fault.name)
    });
    // What an older view or table comes to is the doing of the script as a whole.
    let statement = Some(blamed.unwrap_or(script.statements.len().saturating_sub(1)));
    let offset = None;
    let reason = fault.reason;
    Err(ScriptError {
        statement,
        error: RunError::Refused { reason, offset },
    })
}

/// Leaves the marker of a migration in the file.
pub(super) fn insert_marker(
    handle: &TenantConnection,
    version: u32,
    checksum: &str,
) -> Result<(), ScriptError> {
    handle
        .connection
        .execute(
            "INSERT INTO svc_migrations (version, checksum) VALUES (?1, ?2)",
            params![version, checksum],
        )
        .map_err(internal)?;
    Ok(())
}

/// Runs a script's statements one by one; the whole has one budget.
pub(super) fn apply_script(
    handle: &TenantConnection,
    script: &Script,
    budget: Duration,
) -> Result<(), ScriptError> {
    let (mut running, mut sql) = (0, "");
    let result = handle.run_as_tenant(StatementRole::Migrate, budget, |connection| {
        for (number, range) in script.statements.iter().enumerate() {
            running = number;
            sql = script.sql.get(range.clone()).unwrap_or_default();
            let mut statement = connection.prepare(sql)?;
            handle.limit_value_length(value_limit(connection, sql)?)?;
            // A seed may answer rows; running it to its end is all that matters.
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            // SQLite reads its schema by the bound, too.
            handle.limit_value_length(VALUE_BYTES)?;
        }
        Ok::<_, StatementFailure>(())
    });
    result
        .map_err(|error| add_advice(error.with_offset(sql)))
        .and_then(|()| check_schema(handle))
        .map_err(|error| ScriptError {
            statement: Some(running),
            error,
        })
}

/// Adds advice on how to go on.
fn add_advice(error: RunError) -> RunError {
    match error {
        RunError::Refused { reason, offset } => RunError::Refused {
            reason: with_advice(reason),
            offset,
        },
        other => other,
    }
}

/// How long values may be for a statement of a script: what goes through rows is bounded as a call is.
fn value_limit(connection: &Connection, sql: &str) -> rusqlite::Result<i32> {
    let mut words = sql.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let goes_through_rows = !first.eq_ignore_ascii_case("ALTER")
        && (!first.eq_ignore_ascii_case("CREATE")
            || words.take(2).any(|word| word.eq_ignore_ascii_case("INDEX")));
    if goes_through_rows {
        Ok(StatementCost::of(connection, sql)?.lane_value_limit)
    } else {
        Ok(VALUE_BYTES)
    }
}

/// Refuses what no statement is to blame for alone: references to the platform's tables, which SQLite's authorizer is not
/// asked about and which would stand against the platform's own writes; and tables so wide that every `*` is costly.
fn check_schema(handle: &TenantConnection) -> Result<(), RunError> {
    let refers =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
        WHERE t.type = 'table' AND k.\"table\" LIKE 'svc\\_%' ESCAPE '\\')";
    let wide = format!(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema AS t WHERE t.type = 'table'
            AND (SELECT count(*) FROM pragma_table_xinfo(t.name)) > {MAX_COLUMNS})"
    );
    for (sql, reason) in [
        (
            refers,
            "a foreign key refers to a table of the platform".to_owned(),
        ),
        (
            wide.as_str(),
            format!("a table has more than {MAX_COLUMNS} columns, which is the most"),
        ),
    ] {
        let found = handle.connection.query_row(sql, [], |row| row.get(0));
        if found.map_err(internal)? {
            let offset = None;
            return Err(RunError::Refused { reason, offset });
        }
    }
    Ok(())
}
