//! Migrations: a script and its marker, in one transaction of the tenant's file.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::advice::with_advice;
use super::authorizer::AuthorizerRole;
use super::connection::{TenantConnection, UnclassifiedStatementFailure};
use super::cost::StatementCost;
use super::error::{StatementRunError, internal_error};
use super::files_tables::FILES_TABLES_SQL;
use super::limits::VALUE_BYTES;
use super::schema::{MigrationMarker, read_markers};
use super::schema_faults::{self, SchemaFault};
use super::sql_tokens::created_name;
use super::transaction::{begin, commit, roll_back};
use super::warnings::{SchemaWarning, find_warnings};
use svc_base::fault;

/// Tables that every database has from the start, beside those of [`FILES_TABLES_SQL`]: the mirror of payments, and the markers of
/// migrations.
const FIRST_TABLES_SQL: &str = "
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

/// Creates the tables that every database has from the start, in one that is empty.
pub(super) fn create_platform_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(FIRST_TABLES_SQL)?;
    connection.execute_batch(FILES_TABLES_SQL)
}

/// The most columns of a table.
const MAX_COLUMNS: u32 = 500;

/// A script, as the gate allowed it.
#[derive(Clone, Debug)]
pub struct MigrationScript {
    /// The whole text.
    pub sql: String,
    /// Byte ranges of the statements.
    pub statements: Vec<std::ops::Range<usize>>,
    /// SHA-256 of the text, in hexadecimal.
    pub checksum: String,
}

/// Error of a script, which has changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct MigrationScriptError {
    /// Index of the statement at fault, from 0; `None` if it is no single one.
    pub statement: Option<usize>,
    /// Error of the statement.
    pub error: StatementRunError,
}

impl From<StatementRunError> for MigrationScriptError {
    fn from(error: StatementRunError) -> Self {
        Self {
            statement: None,
            error,
        }
    }
}

/// Effect of a migration on the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationOutcome {
    /// The script was applied now; new warnings are listed.
    Applied(MigrationMarker, Vec<SchemaWarning>),
    /// The script had been applied before.
    AlreadyApplied(MigrationMarker),
}

/// Creates the platform's tables in a new database, and applies the first script.
pub(super) fn create_database(
    handle: &TenantConnection,
    script: &MigrationScript,
    budget: Duration,
) -> Result<(), MigrationScriptError> {
    begin(handle)?;
    create_platform_tables(&handle.connection).map_err(internal_error)?;
    apply_script(handle, script, budget)?;
    check_new_faults(handle, script, &[], budget)?;
    insert_marker(handle, 1, &script.checksum)?;
    Ok(commit(handle)?)
}

/// Applies a script, unless it has been applied already.
pub(super) fn migrate(
    handle: &TenantConnection,
    script: &MigrationScript,
    budget: Duration,
) -> Result<MigrationOutcome, MigrationScriptError> {
    let before = read_markers(&handle.connection).map_err(internal_error)?;
    if let Some(marker) = before.iter().find(|m| m.checksum == script.checksum) {
        return Ok(MigrationOutcome::AlreadyApplied(marker.clone()));
    }
    let version = before.last().map_or(1, |marker| marker.version + 1);
    let known = schema_faults::find_faults(handle, budget)?;
    let said = find_warnings(&handle.connection).map_err(internal_error)?;
    begin(handle)?;
    let done = apply_script(handle, script, budget)
        .and_then(|()| check_new_faults(handle, script, &known, budget))
        .and_then(|()| insert_marker(handle, version, &script.checksum))
        .and_then(|()| {
            let mut new = find_warnings(&handle.connection).map_err(internal_error)?;
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

/// Refuses a script that makes a table or view unusable. Faults in `known` existed before.
fn check_new_faults(
    handle: &TenantConnection,
    script: &MigrationScript,
    known: &[SchemaFault],
    budget: Duration,
) -> Result<(), MigrationScriptError> {
    let found = schema_faults::find_faults(handle, budget)?;
    let Some(fault) = found.into_iter().find(|fault| !known.contains(fault)) else {
        return Ok(());
    };
    let mut statements = script.statements.iter();
    let blamed = statements.rposition(|range| {
        let sql = script.sql.get(range.clone()).unwrap_or_default();
        created_name(sql).is_some_and(|name| name == fault.name)
    });
    // A fault of an older view or table is blamed on the last statement.
    let statement = Some(blamed.unwrap_or(script.statements.len().saturating_sub(1)));
    let offset = None;
    let reason = fault.reason;
    Err(MigrationScriptError {
        statement,
        error: StatementRunError::Refused { reason, offset },
    })
}

/// Inserts the marker of a migration.
pub(super) fn insert_marker(
    handle: &TenantConnection,
    version: u32,
    checksum: &str,
) -> Result<(), MigrationScriptError> {
    handle
        .connection
        .execute(
            "INSERT INTO svc_migrations (version, checksum) VALUES (?1, ?2)",
            params![version, checksum],
        )
        .map_err(internal_error)?;
    Ok(())
}

/// Runs a script's statements one by one, within one budget for all.
pub(super) fn apply_script(
    handle: &TenantConnection,
    script: &MigrationScript,
    budget: Duration,
) -> Result<(), MigrationScriptError> {
    let (mut running, mut sql) = (0, "");
    let result = handle.run_as_tenant(AuthorizerRole::Migrate, budget, |connection| {
        for (number, range) in script.statements.iter().enumerate() {
            running = number;
            sql = script.sql.get(range.clone()).unwrap_or_default();
            let mut statement = connection.prepare(sql)?;
            handle.limit_value_length(value_limit(connection, sql)?)?;
            // A seed may return rows, which are read to the end and dropped.
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            // The limit also holds for SQLite's reading of the schema.
            handle.limit_value_length(VALUE_BYTES)?;
        }
        Ok::<_, UnclassifiedStatementFailure>(())
    });
    result
        .map_err(|error| add_advice(error.with_offset(sql)))
        .and_then(|()| check_schema(handle))
        .map_err(|error| MigrationScriptError {
            statement: Some(running),
            error,
        })
}

/// Adds advice to a refusal.
fn add_advice(error: StatementRunError) -> StatementRunError {
    match error {
        StatementRunError::Refused { reason, offset } => StatementRunError::Refused {
            reason: with_advice(reason),
            offset,
        },
        other => other,
    }
}

/// The longest values for a statement of a script. A statement that reads or writes rows is limited like a call.
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

/// Refuses faults of the schema as a whole. A foreign key to the platform's tables would block the platform's writes, and SQLite
/// does not ask the authorizer about it. A very wide table would make every `*` expensive.
fn check_schema(handle: &TenantConnection) -> Result<(), StatementRunError> {
    let refers =
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
        WHERE t.type = 'table' AND k.\"table\" LIKE 'svc\\_%' ESCAPE '\\' AND k.\"table\" <> 'svc_files' COLLATE NOCASE)";
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
        if found.map_err(internal_error)? {
            let offset = None;
            return Err(StatementRunError::Refused { reason, offset });
        }
    }
    Ok(())
}
