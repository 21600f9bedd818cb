//! The schema that the scripts of a ledger make, to be compared with the schema that a file has.

use std::time::Duration;

use rusqlite::Batch;
use rusqlite::fallible_iterator::FallibleIterator as _;

use super::authorizer::StatementRole;
use super::connection::{OpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{RunError, internal};
use super::migrate::PLATFORM_TABLES_SQL;
use super::schema::{self, Schema};
use super::sql_tokens;
use super::timing::Lane;
use svc_base::ids::BackendId;

impl Databases {
    /// Makes the schema of scripts, in their order, on an empty database in memory. It is long work.
    ///
    /// # Errors
    /// [`RunError`]: a script that SQLite does not take any more, or too many of them.
    pub async fn schema_of_scripts(
        &self,
        id: BackendId,
        scripts: Vec<String>,
    ) -> Result<Schema, RunError> {
        let (settings, budget) = (self.settings(&id), self.limits.time);
        let make = move |_: &TenantConnection| schema_of_scripts(&settings, &scripts, budget);
        self.get(id)?.with_reader(Lane::Long, make).await
    }
}

fn schema_of_scripts(
    settings: &OpenSettings,
    scripts: &[String],
    budget: Duration,
) -> Result<Schema, RunError> {
    let empty = TenantConnection::in_memory(settings, |connection| {
        connection.execute_batch(PLATFORM_TABLES_SQL)
    })?;
    empty.run_as_tenant(StatementRole::Migrate, budget, |connection| {
        for script in scripts {
            let mut statements = Batch::new(connection, script);
            while let Some(mut statement) = statements.next()? {
                // Seeds make rows alone.
                let sql = statement.expanded_sql().unwrap_or_default();
                if sql_tokens::changes_schema(&sql) {
                    statement.raw_execute()?;
                }
            }
        }
        Ok(())
    })?;
    schema::read_schema(&empty.connection).map_err(internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn made(scripts: &[&str]) -> Result<Schema, RunError> {
        let settings = OpenSettings::standalone(PathBuf::new(), 5 << 20);
        let scripts: Vec<String> = scripts.iter().map(|sql| (*sql).to_owned()).collect();
        schema_of_scripts(&settings, &scripts, Duration::from_secs(60))
    }

    #[test]
    fn scripts_make_their_schema_and_no_rows() {
        let seed = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            INSERT INTO t SELECT i, 'x' FROM n";
        let made = made(&[
            "-- A table\nCREATE TABLE t (a, b TEXT CHECK (length(b) < 10)); /* and */ CREATE INDEX i ON t (lower(b));",
            seed,
            "ALTER TABLE t ADD COLUMN c; CREATE VIEW v AS SELECT a, c FROM t",
        ])
        .unwrap();
        let columns: Vec<_> = made.tables[0].columns.iter().map(|c| &*c.name).collect();
        assert_eq!((made.tables.len(), columns), (2, vec!["a", "b", "c"]));
        assert_eq!(made.indexes[0].name, "i");
        assert_eq!(made.views[0].name, "v");
    }

    #[test]
    fn what_is_not_taken_any_more_is_an_error() {
        assert!(made(&["CREATE TABLE t (a)", "CREATE TABLE t (a)"]).is_err());
        assert!(made(&["ATTACH 'x' AS y"]).is_err());
    }
}
