//! Schema that a ledger's scripts lead to, for comparison with the schema of the file.

use std::time::Duration;

use rusqlite::Batch;
use rusqlite::fallible_iterator::FallibleIterator as _;

use super::authorizer::AuthorizerRole;
use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{StatementRunError, internal_error};
use super::migrate::create_platform_tables;
use super::schema::{self, Schema};
use super::sql_tokens;
use super::timing::StatementLane;
use svc_base::ids::BackendId;

impl Databases {
    /// Builds the schema of `scripts`, in their order, in an empty database in memory. It is long work.
    ///
    /// # Errors
    /// [`StatementRunError`], if SQLite no longer accepts a script, or they take too long.
    pub async fn schema_of_scripts(
        &self,
        id: BackendId,
        scripts: Vec<String>,
    ) -> Result<Schema, StatementRunError> {
        let (settings, budget) = (self.settings(&id), self.limits.time);
        let make = move |_: &TenantConnection| schema_of_scripts(&settings, &scripts, budget);
        self.load(id)
            .await?
            .with_reader(StatementLane::Long, make)
            .await
    }
}

fn schema_of_scripts(
    settings: &DatabaseOpenSettings,
    scripts: &[String],
    budget: Duration,
) -> Result<Schema, StatementRunError> {
    let empty =
        TenantConnection::in_memory(settings, |connection| create_platform_tables(connection))?;
    empty.run_as_tenant(AuthorizerRole::Migrate, budget, |connection| {
        for script in scripts {
            let mut statements = Batch::new(connection, script);
            while let Some(mut statement) = statements.next()? {
                // Statements that only insert rows are skipped.
                let sql = statement.expanded_sql().unwrap_or_default();
                if sql_tokens::changes_schema(&sql) {
                    statement.raw_execute()?;
                }
            }
        }
        Ok(())
    })?;
    schema::read_schema(&empty.connection).map_err(internal_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn made(scripts: &[&str]) -> Result<Schema, StatementRunError> {
        let settings = DatabaseOpenSettings::standalone(PathBuf::new(), 5 << 20);
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
        assert_eq!((made.tables.len(), columns), (3, vec!["a", "b", "c"]));
        assert_eq!(made.indexes[0].name, "i");
        assert_eq!(made.views[0].name, "v");
    }

    #[test]
    fn what_is_not_taken_any_more_is_an_error() {
        assert!(made(&["CREATE TABLE t (a)", "CREATE TABLE t (a)"]).is_err());
        assert!(made(&["ATTACH 'x' AS y"]).is_err());
    }
}
