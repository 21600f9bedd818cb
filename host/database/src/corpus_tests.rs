//! Everything that the corpus says an author may write passes the second wall too.

use std::path::Path;
use std::time::Duration;

use guest_gate::statement::{SqlPurpose, StatementKind, check};

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::error::internal_error;
use super::migrate::{create_database, migrate};
use super::run::prepare;
use super::*;

/// An entry of the corpus: its file, its purpose for the gate, and its SQL.
struct CorpusEntry {
    file: String,
    purpose: SqlPurpose,
    sql: String,
}

const BUDGET: Duration = Duration::from_secs(60);

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/sql")
}

/// The pieces as `tests/corpus/sql/README.md` describes them; those with escapes are odd spellings for the gate alone.
fn corpus_entries() -> Vec<CorpusEntry> {
    let mut corpus_entries = Vec::new();
    for entry in std::fs::read_dir(folder().join("accepted")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for piece in text.split("-- ----\n") {
            let mut purpose = SqlPurpose::Action;
            let mut sql = piece;
            if let Some((line, rest)) = piece.split_once('\n')
                && let Some(named) = line.strip_prefix("-- purpose: ")
            {
                sql = rest;
                purpose = match named {
                    "query" => SqlPurpose::Query,
                    "schema" => SqlPurpose::Schema,
                    "migration" => SqlPurpose::Migration,
                    _ => SqlPurpose::Action,
                };
            }
            if !sql.starts_with("-- escapes") {
                corpus_entries.push(CorpusEntry {
                    file: path.display().to_string(),
                    purpose,
                    sql: sql.strip_suffix('\n').unwrap_or(sql).to_owned(),
                });
            }
        }
    }
    corpus_entries
}

fn script(sql: &str, purpose: SqlPurpose) -> MigrationScript {
    let statements = check(sql, purpose).unwrap_or_else(|r| panic!("{sql}: {}", r.reason));
    MigrationScript {
        sql: sql.to_owned(),
        statements: statements
            .iter()
            .map(|s| s.start as usize..s.end as usize)
            .collect(),
        checksum: sql.to_owned(),
    }
}

/// Creates a database in `directory`, with the platform's tables and a script.
fn database(
    directory: &Path,
    name: &str,
    first: &MigrationScript,
) -> Result<TenantConnection, MigrationScriptError> {
    let path = directory.canonicalize().unwrap().join(name);
    let handle = TenantConnection::create(&DatabaseOpenSettings::standalone(
        path,
        DatabaseLimits::default().database_bytes,
    ))?;
    create_database(&handle, first, BUDGET)?;
    Ok(handle)
}

#[test]
fn what_an_author_may_write_passes_the_second_wall() {
    let directory = tempfile::tempdir().unwrap();
    let schema = std::fs::read_to_string(folder().join("schema.sql")).unwrap();
    let empty = script("CREATE TABLE base (a)", SqlPurpose::Schema);
    // The example's setup uses statements that an author may not write.
    let example = |name: &str| {
        let handle = database(directory.path(), name, &empty)?;
        let mirror = "DROP TABLE svc_payments; DROP TABLE svc_files";
        let made = handle.connection.execute_batch(mirror);
        made.and_then(|()| handle.connection.execute_batch(&schema))
            .map_err(internal_error)?;
        Ok::<_, MigrationScriptError>(handle)
    };
    let shared = example("shared.db").unwrap();
    let (mut faults, mut number) = (Vec::new(), 0);
    for piece in corpus_entries() {
        number += 1;
        let name = format!("{number}.db");
        let result = match piece.purpose {
            SqlPurpose::Action | SqlPurpose::Query => {
                let verdict = check(&piece.sql, piece.purpose).unwrap().remove(0);
                let sql = &piece.sql[verdict.start as usize..verdict.end as usize];
                let prepared = prepare(&shared, sql, verdict.kind != StatementKind::Read, BUDGET);
                match prepared {
                    // The gate does not know the schema, so the host refuses this.
                    Err(StatementRunError::Refused { reason, .. })
                        if reason.starts_with("two columns") =>
                    {
                        Ok(())
                    }
                    other => other.map_err(MigrationScriptError::from),
                }
            }
            SqlPurpose::Schema => {
                let first = script(&piece.sql, SqlPurpose::Schema);
                database(directory.path(), &name, &first).map(|_| ())
            }
            SqlPurpose::Migration => example(&name).and_then(|handle| {
                let next = script(&piece.sql, SqlPurpose::Migration);
                migrate(&handle, &next, BUDGET).map(|_| ())
            }),
        };
        if let Err(error) = result {
            faults.push(format!("{}: {error}: {}", piece.file, piece.sql));
        }
    }
    assert!(number >= 400, "{number} pieces");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
