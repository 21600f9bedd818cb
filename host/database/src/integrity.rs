//! Checks a tenant's database for damage, while the server uses it.
//!
//! Damage means that the file is not as SQLite wrote it. A tenant's own `CHECK`s and foreign keys are not checked: SQLite does
//! that on each write, a tenant may declare what no row can satisfy, and one tenant's schema must not block the backup of all.

use std::time::Duration;

use rusqlite::limits::Limit;

use super::authorizer::AuthorizerRole;
use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::error::{StatementRunError, disk_error, internal_error};
use super::files::DatabasesDirectory;
use super::history;
use super::schema::{self, MigrationMarker};
use svc_base::ids::BackendId;

/// Time limit of a check, which evaluates a tenant's generated columns and indexed expressions.
const CHECK_BUDGET: Duration = Duration::from_secs(60);
/// The most instructions of a statement: several for every column of the schema, with 24 bytes each.
const MAX_INSTRUCTIONS: i32 = 5_000_000;

/// Report of a check.
#[derive(Debug)]
pub struct IntegrityReport {
    /// Damage, a line each.
    pub damage: Vec<String>,
    /// Reason why the check ended early, if the tenant's schema made it; this is no damage.
    pub cut_short: Option<String>,
    /// Notes that are no damage.
    pub notes: Vec<String>,
    /// The migrations that the file has.
    pub markers: Vec<MigrationMarker>,
}

/// Checks a database and its history. Blocks.
///
/// # Errors
/// When it cannot be opened or read.
pub fn check_integrity(
    files: &DatabasesDirectory,
    id: &BackendId,
) -> Result<IntegrityReport, StatementRunError> {
    let history = files.directory(id).and_then(|dir| history::verify(&dir));
    let history = history.map_err(|error| disk_error(&error))?;
    let handle = TenantConnection::reader(&DatabaseOpenSettings::standalone(files.path(id), 0))?;
    let mut found = check_connection(&handle, CHECK_BUDGET)?;
    found.damage.extend(history.faults);
    found.notes = history.notes;
    Ok(found)
}

fn check_connection(
    handle: &TenantConnection,
    budget: Duration,
) -> Result<IntegrityReport, StatementRunError> {
    let connection = &handle.connection;
    connection
        .pragma_update(None, "ignore_check_constraints", 1)
        .and_then(|()| connection.set_limit(Limit::SQLITE_LIMIT_VDBE_OP, MAX_INSTRUCTIONS))
        .map_err(internal_error)?;
    let mut damage: Vec<String> = Vec::new();
    // SQLite checks the trees first and evaluates expressions after them, so an early end loses no damage of the trees.
    let looked = handle.run_as_tenant(AuthorizerRole::Platform, budget, |connection| {
        let mut check = connection.prepare("PRAGMA integrity_check")?;
        let mut lines = check.query([])?;
        while let Some(line) = lines.next()? {
            damage.push(line.get(0)?);
        }
        Ok(())
    });
    damage.retain(|line| line != "ok");
    let cut_short = match looked {
        Ok(()) => None,
        Err(
            error @ (StatementRunError::Timeout
            | StatementRunError::TooMuchSpace
            | StatementRunError::Refused { .. }
            | StatementRunError::Failed(_)
            | StatementRunError::Constraint(_)),
        ) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(IntegrityReport {
        damage,
        cut_short,
        notes: Vec::new(),
        markers: schema::read_markers(connection).map_err(internal_error)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database made of `sql`.
    fn database(sql: &str) -> TenantConnection {
        let settings = DatabaseOpenSettings::standalone(std::path::PathBuf::new(), 64 << 20);
        let handle = TenantConnection::in_memory(&settings, |_| Ok(())).unwrap();
        handle
            .execute_as_platform("CREATE TABLE svc_migrations (version, checksum)")
            .unwrap();
        // A script of all of them would be longer than a statement may be.
        for statement in sql.split_inclusive(';') {
            handle.execute_as_platform(statement).unwrap();
        }
        handle
    }

    #[test]
    fn what_a_tenant_declares_is_no_damage() {
        let wide = |number: u32| {
            let columns: Vec<String> = (0..500).map(|column| format!("c{column} INT")).collect();
            format!("CREATE TABLE wide{number} ({});", columns.join(","))
        };
        for (sql, cut_short) in [
            (
                "CREATE TABLE p (a); CREATE TABLE c (b REFERENCES p (a)); INSERT INTO p VALUES (1)".to_owned(),
                false,
            ),
            (
                "CREATE TABLE t (a CHECK (random() % 2)); INSERT OR IGNORE INTO t SELECT value FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]')".to_owned(),
                false,
            ),
            // Definitions that older versions accepted.
            (
                "CREATE TABLE c (a REFERENCES nowhere (b)); CREATE VIEW v AS SELECT x FROM nowhere; CREATE TABLE d (a CHECK (a < date('now')))"
                    .to_owned(),
                false,
            ),
            (
                "CREATE TABLE t (a); INSERT INTO t VALUES ('{'); ALTER TABLE t ADD b INT AS (json_extract(a, '$.x')); CREATE TABLE u (a)"
                    .to_owned(),
                true,
            ),
            ((0..100).map(wide).collect(), false),
            (
                "CREATE TABLE t (a); INSERT INTO t VALUES (-9223372036854775808); ALTER TABLE t ADD b INT AS (abs(a))"
                    .to_owned(),
                true,
            ),
        ] {
            let found = check_connection(&database(&sql), CHECK_BUDGET).unwrap();
            assert_eq!(found.damage, Vec::<String>::new(), "{sql}");
            assert_eq!(found.cut_short.is_some(), cut_short, "{found:?}");
        }
    }

    #[test]
    fn a_look_that_takes_too_long_ends() {
        let rows = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 2000)";
        let sql = format!("CREATE TABLE t (a NOT NULL); {rows} INSERT INTO t SELECT i FROM n");
        let found = check_connection(&database(&sql), Duration::ZERO).unwrap();
        assert!(
            found.damage.is_empty() && found.cut_short.is_some(),
            "{found:?}"
        );
    }

    #[test]
    fn damage_is_told() {
        let handle =
            database("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)");
        // The index is given the root of an empty one's, so that it lacks the row.
        handle
            .connection
            .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
            .unwrap();
        handle
            .execute_as_platform(
                "CREATE TABLE e (a); CREATE INDEX j ON e (a); PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'j') WHERE name = 'i';
                PRAGMA writable_schema = RESET",
            )
            .unwrap();
        let found = check_connection(&handle, CHECK_BUDGET).unwrap();
        assert!(!found.damage.is_empty(), "{found:?}");
    }
}
