//! The second wall alone: no gate has looked at the statements here, and each attack fails all the same. And writes
//! that share a commit with what breaks one.

mod acknowledgements;
mod limits;
mod replicas;
mod shipping;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::values::Value;
use super::*;
use svc_base::Stopwatch;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::random::Random;

/// Databases in a temporary directory, and the id of one.
struct Fixture {
    databases: Arc<Databases>,
    id: BackendId,
    _data: tempfile::TempDir,
}

const SCHEMA: &str =
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE, n INTEGER DEFAULT 0);
    CREATE VIEW loud AS SELECT upper(text) AS text FROM notes;
    INSERT INTO notes (text) VALUES ('one');";

/// A script whose statements end with semicolons at the ends of lines.
fn script(sql: &str) -> MigrationScript {
    let mut statements = Vec::new();
    let mut start = 0;
    for (end, _) in sql.match_indices(";") {
        statements.push(start..end);
        start = end + 1;
    }
    if !sql[start..].trim().is_empty() {
        statements.push(start..sql.len());
    }
    MigrationScript {
        sql: sql.to_owned(),
        statements,
        checksum: sql.to_owned(),
    }
}

/// Limits that an installation has by default.
impl Default for DatabaseLimits {
    fn default() -> Self {
        Self {
            query_rows: 500,
            result_bytes: 4 << 20,
            statement_ms: 2000,
            database_bytes: 5 << 20,
            history_bytes: 64 << 20,
            open_databases: 256,
            free_disk_bytes: 100 << 20,
        }
    }
}

impl Fixture {
    async fn new() -> Self {
        Self::with(SCHEMA, |_| {}).await
    }

    async fn with(schema: &str, set: impl FnOnce(&mut DatabaseLimits)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut limits = DatabaseLimits::default();
        set(&mut limits);
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let databases = Databases::open(data.path(), &limits, clock.clone()).unwrap();
        let databases = Arc::new(databases);
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        databases.create(id, script(schema)).await.unwrap();
        Self {
            databases,
            id,
            _data: data,
        }
    }

    async fn run(&self, sql: &str, writes: bool) -> Result<String, StatementRunError> {
        self.call(sql, writes, Vec::new()).await
    }

    async fn call(
        &self,
        sql: &str,
        writes: bool,
        params: Vec<(String, Value)>,
    ) -> Result<String, StatementRunError> {
        let call = StatementCall {
            sql: sql.into(),
            writes,
            params,
        };
        let database = self.databases.get(self.id)?;
        let result = database.call(call, &Arc::default()).await?;
        Ok(String::from_utf8(result.json).unwrap())
    }

    async fn migrate(&self, sql: &str) -> Result<MigrationOutcome, MigrationScriptError> {
        self.databases.migrate(self.id, script(sql)).await
    }

    /// Makes further databases.
    async fn create_more(&self, count: usize) -> Vec<BackendId> {
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let mut ids = Vec::new();
        for _ in 0..count {
            let id = BackendId::new(&clock, &Random::system()).unwrap();
            self.databases.create(id, script(SCHEMA)).await.unwrap();
            ids.push(id);
        }
        ids
    }

    /// Reads a number, as the platform.
    async fn number(&self, sql: &'static str) -> i64 {
        let database = self.databases.get(self.id).unwrap();
        database
            .inspect(move |c| c.query_row(sql, [], |row| row.get(0)))
            .await
            .unwrap()
    }
}

/// Whether a call has no answer yet.
async fn waits<F: Future>(call: &mut Pin<&mut F>) -> bool {
    for _ in 0..50 {
        let look = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending()));
        if !look.await {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

#[tokio::test]
async fn statements_run() {
    let fixture = Fixture::new().await;
    assert_eq!(
        fixture
            .run("SELECT id, text FROM notes", false)
            .await
            .unwrap(),
        r#"{"rows":[{"id":1,"text":"one"}],"columns":["id","text"],"rows_affected":0,"truncated":false}"#
    );
    let insert = "INSERT INTO notes (text) VALUES (:text) RETURNING id";
    let text = vec![("text".to_owned(), Value::Text("two".into()))];
    assert_eq!(
        fixture.call(insert, true, text).await.unwrap(),
        r#"{"rows":[{"id":2}],"columns":["id"],"rows_affected":1,"truncated":false}"#
    );
    for read in [
        "SELECT text FROM loud ORDER BY 1",
        "SELECT count(*) FROM svc_payments",
        "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT sum(n) FROM c",
        "SELECT value FROM json_each('[1,2]')",
        "SELECT e.key, count(*) FROM json_tree('{\"a\":1}') AS e GROUP BY 1",
        "VALUES (1), (2)",
        "SELECT x.text FROM (SELECT text FROM notes) AS x",
        "SELECT row_number() OVER (ORDER BY id) AS n FROM notes",
        "SELECT m.text FROM main.notes AS m",
    ] {
        fixture
            .run(read, false)
            .await
            .unwrap_or_else(|e| panic!("{read}: {e}"));
    }
    for write in [
        "UPDATE notes SET text = trim(text) WHERE id IN (SELECT id FROM notes)",
        "INSERT INTO notes (id, text) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET n = n + 1",
        "REPLACE INTO notes (id, text) VALUES (9, 'nine')",
        "DELETE FROM notes WHERE id = 9",
    ] {
        fixture
            .run(write, true)
            .await
            .unwrap_or_else(|e| panic!("{write}: {e}"));
    }
}

#[tokio::test]
async fn what_the_gate_would_refuse_fails_behind_it() {
    let fixture = Fixture::new().await;
    let before = fixture.number("SELECT sum(n) + count(*) FROM notes").await;
    for attack in [
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "PRAGMA max_page_count = 100000",
        "PRAGMA query_only = 0",
        "ATTACH DATABASE '/tmp/x.db' AS x",
        "ATTACH DATABASE ':memory:' AS x",
        "DETACH DATABASE main",
        "VACUUM",
        "VACUUM INTO '/tmp/x.db'",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT x",
        "RELEASE caller",
        "ROLLBACK TO caller",
        "ANALYZE",
        "REINDEX",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE TRIGGER x AFTER INSERT ON notes BEGIN SELECT 1; END",
        "CREATE TEMP TRIGGER x AFTER INSERT ON notes BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "CREATE INDEX x ON notes (n)",
        "DROP TABLE notes",
        "DROP VIEW loud",
        "ALTER TABLE notes RENAME TO x",
        "ALTER TABLE notes ADD COLUMN x",
        "SELECT name FROM sqlite_master",
        "SELECT name FROM sqlite_schema",
        "SELECT name FROM sqlite_temp_schema",
        "SELECT * FROM SVC_migrations",
        "SELECT count(*) FROM svc_migrations",
        "SELECT (SELECT checksum FROM svc_migrations) AS x",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('svc_migrations')",
        "SELECT * FROM dbstat",
        "SELECT count(*) FROM dbstat",
        "SELECT * FROM sqlite_dbpage",
        "SELECT * FROM bytecode('SELECT 1')",
        "SELECT * FROM fts3tokenize('simple')",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT last_insert_rowid()",
        "SELECT changes()",
        "SELECT total_changes()",
        "SELECT sqlite_version()",
        "SELECT sqlite_compileoption_get(1)",
        "INSERT INTO svc_payments SELECT 1,1,1,1,1,1,1,1,1",
        "UPDATE svc_payments SET status = 'paid'",
        "DELETE FROM svc_payments",
        "DELETE FROM svc_migrations",
        "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0, 'CREATE TABLE x (a)')",
        "UPDATE sqlite_master SET sql = NULL",
        "SELECT 1; DELETE FROM notes",
    ] {
        for writes in [false, true] {
            let refused = fixture.run(attack, writes).await;
            assert!(
                matches!(
                    refused,
                    Err(StatementRunError::Refused { .. }
                        | StatementRunError::Failed(_)
                        | StatementRunError::Internal(_))
                ),
                "{attack}: {refused:?}"
            );
        }
    }
    // A write fails if it is run as a read.
    for write in [
        "INSERT INTO notes (n) VALUES (7)",
        "UPDATE notes SET n = 7",
        "DELETE FROM notes",
        "REPLACE INTO notes (id, n) VALUES (1, 7)",
    ] {
        assert!(fixture.run(write, false).await.is_err(), "{write}");
    }
    let after = fixture.number("SELECT sum(n) + count(*) FROM notes").await;
    assert_eq!(after, before);
}

/// The program has this table for replicas.
#[tokio::test]
async fn the_pages_of_a_file_are_out_of_reach() {
    let fixture = Fixture::new().await;
    let count = "SELECT count(*) FROM sqlite_dbpage";
    let before = fixture.number(count).await;
    assert!(before > 2);
    // Nobody can have made these, and they are refused all the same.
    fixture.databases.close_all();
    fixture.databases.await_closed();
    let file = fixture.databases.files().path(&fixture.id);
    let planted = rusqlite::Connection::open(file).unwrap().execute_batch(
        "CREATE VIEW pages AS SELECT pgno, data FROM sqlite_dbpage;
        CREATE TRIGGER cut AFTER INSERT ON notes BEGIN
            INSERT INTO sqlite_dbpage (pgno, data) VALUES (2, NULL);
        END;",
    );
    planted.unwrap();
    for attack in [
        "SELECT data FROM sqlite_dbpage",
        "SELECT * FROM SQLITE_DBPAGE('main')",
        "SELECT text FROM notes JOIN \"sqlite_dbpage\"",
        "SELECT 1 IN (SELECT pgno FROM main.sqlite_dbpage)",
        "WITH p AS (SELECT * FROM sqlite_dbpage) SELECT count(*) FROM p",
        "SELECT * FROM pages",
        "SELECT count(*) FROM pages",
        "INSERT INTO sqlite_dbpage (pgno, data) VALUES (2, NULL)",
        "UPDATE main.sqlite_dbpage SET data = zeroblob(4096)",
        "UPDATE notes SET text = hex(data) FROM sqlite_dbpage",
        "DELETE FROM sqlite_dbpage",
        "INSERT INTO pages VALUES (2, NULL)",
        "ATTACH ':memory:' AS x; INSERT INTO sqlite_dbpage VALUES (2, NULL, 'x')",
    ] {
        for writes in [false, true] {
            let refused = fixture.run(attack, writes).await;
            assert!(refused.is_err(), "{attack}: {refused:?}");
        }
    }
    for script in [
        "CREATE TABLE sqlite_dbpage (a)",
        "CREATE VIRTUAL TABLE x USING sqlite_dbpage",
        "CREATE TABLE x (a); INSERT INTO x SELECT data FROM sqlite_dbpage",
        "CREATE TABLE x (a); INSERT INTO sqlite_dbpage (pgno, data) VALUES (2, NULL)",
    ] {
        let refused = fixture.migrate(script).await;
        assert!(refused.is_err(), "{script}: {refused:?}");
    }
    // Triggers do not run.
    let insert = "INSERT INTO notes (text) VALUES ('two')";
    fixture.run(insert, true).await.unwrap();
    assert!(fixture.number(count).await >= before);
    assert_eq!(fixture.number("SELECT count(*) FROM notes").await, 2);
}

#[tokio::test]
async fn a_migration_only_adds() {
    let fixture = Fixture::new().await;
    for good in [
        "CREATE TABLE more (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT UNIQUE CHECK (length(a) < 9)); INSERT INTO more (a) SELECT text FROM notes",
        "CREATE INDEX by_n ON notes (n) WHERE n > 0; CREATE UNIQUE INDEX by_lower ON notes (lower(text))",
        "ALTER TABLE notes ADD COLUMN extra TEXT NOT NULL DEFAULT 'x' CHECK (extra <> '')",
        "ALTER TABLE notes ADD COLUMN twice INTEGER GENERATED ALWAYS AS (n * 2) VIRTUAL",
        "CREATE TABLE child (of INTEGER REFERENCES notes (id) ON DELETE CASCADE) STRICT",
        "CREATE VIEW both AS SELECT * FROM notes JOIN more USING (id)",
        "CREATE TABLE IF NOT EXISTS notes (x)",
    ] {
        let done = fixture.migrate(good).await;
        assert!(
            matches!(done, Ok(MigrationOutcome::Applied(..))),
            "{good}: {done:?}"
        );
    }
    let before = fixture.number("SELECT count(*) FROM sqlite_schema").await;
    for bad in [
        "DROP TABLE notes",
        "DROP INDEX by_n",
        "DELETE FROM notes",
        "UPDATE notes SET n = 1",
        "ALTER TABLE notes RENAME TO x",
        "ALTER TABLE notes RENAME COLUMN n TO m",
        "ALTER TABLE notes DROP COLUMN n",
        "ALTER TABLE svc_payments ADD COLUMN x",
        "CREATE TABLE svc_x (a)",
        "CREATE TABLE \"SvC_x\" (a)",
        "CREATE INDEX x ON svc_payments (status)",
        "CREATE TEMP TABLE x (a)",
        "CREATE TRIGGER x AFTER INSERT ON notes BEGIN SELECT 1",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "CREATE TABLE x AS SELECT * FROM svc_migrations",
        "CREATE TABLE x (a); INSERT INTO x SELECT checksum FROM svc_migrations",
        "CREATE TABLE x (a); PRAGMA user_version = 7",
        "CREATE TABLE x (a); COMMIT",
        "CREATE TABLE x (a REFERENCES svc_payments (session_id))",
        "ALTER TABLE notes ADD COLUMN paid REFERENCES \"SVC_Payments\" (session_id)",
        "CREATE TABLE x (a); INSERT INTO sqlite_master VALUES ('table', 'y', 'y', 0, 'z')",
        "INSERT INTO svc_migrations VALUES (9, 'x')",
        "ATTACH DATABASE '/tmp/x.db' AS x",
    ] {
        let done = fixture.migrate(bad).await;
        assert!(done.is_err(), "{bad}: {done:?}");
    }
    assert_eq!(
        fixture.number("SELECT count(*) FROM sqlite_schema").await,
        before
    );
    assert_eq!(
        fixture.number("SELECT count(*) FROM svc_migrations").await,
        8
    );
}

#[tokio::test]
async fn a_script_is_applied_once() {
    let fixture = Fixture::new().await;
    let sql = "CREATE TABLE more (a)";
    let Ok(MigrationOutcome::Applied(marker, _)) = fixture.migrate(sql).await else {
        panic!("not applied");
    };
    assert_eq!(marker.version, 2);
    assert_eq!(
        fixture.migrate(sql).await.unwrap(),
        MigrationOutcome::AlreadyApplied(marker)
    );
}

#[test]
fn the_functions_are_the_gates() {
    assert_eq!(
        authorizer::FUNCTIONS,
        guest_gate::functions::ALLOWED_FUNCTIONS
    );
    assert_eq!(
        authorizer::OPERATORS,
        guest_gate::functions::IMPLICIT_FUNCTIONS
    );
    assert_eq!(
        authorizer::TABLE_FUNCTIONS,
        guest_gate::functions::TABLE_VALUED_FUNCTIONS
    );
}
