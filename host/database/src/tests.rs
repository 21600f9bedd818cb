//! The second wall alone: no gate has looked at the statements here, and each attack fails all the same. And writes
//! that share a commit with what breaks one.

use std::sync::Arc;
use std::time::Duration;

use super::values::Value;
use super::*;
use svc_base::clock::{Clock, Timestamp};
use svc_base::random::Random;

/// Databases in a directory of their own, and one of them.
struct House {
    databases: Arc<Databases>,
    id: BackendId,
    _data: tempfile::TempDir,
}

const SCHEMA: &str =
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE, n INTEGER DEFAULT 0);
    CREATE VIEW loud AS SELECT upper(text) AS text FROM notes;
    INSERT INTO notes (text) VALUES ('one');";

/// A script whose statements end with semicolons at the ends of lines.
fn script(sql: &str) -> Script {
    let mut statements = Vec::new();
    let mut start = 0;
    for (end, _) in sql.match_indices(";") {
        statements.push(start..end);
        start = end + 1;
    }
    if !sql[start..].trim().is_empty() {
        statements.push(start..sql.len());
    }
    Script {
        sql: sql.to_owned(),
        statements,
        checksum: sql.to_owned(),
    }
}

/// Limits that an installation has by default.
impl Default for Limits {
    fn default() -> Self {
        Self {
            query_rows: 500,
            result_bytes: 4 << 20,
            statement_ms: 2000,
            database_bytes: 5 << 20,
            history_bytes: 64 << 20,
            free_disk_bytes: 100 << 20,
        }
    }
}

impl House {
    async fn new() -> Self {
        Self::with(SCHEMA, |_| {}).await
    }

    async fn with(schema: &str, set: impl FnOnce(&mut Limits)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut limits = Limits::default();
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

    async fn run(&self, sql: &str, writes: bool) -> Result<String, RunError> {
        self.call(sql, writes, Vec::new()).await
    }

    async fn call(
        &self,
        sql: &str,
        writes: bool,
        params: Vec<(String, Value)>,
    ) -> Result<String, RunError> {
        let call = Call {
            sql: sql.into(),
            writes,
            params,
        };
        let database = self.databases.get(self.id)?;
        let json = database.call(call, &Arc::default()).await?;
        Ok(String::from_utf8(json).unwrap())
    }

    async fn migrate(&self, sql: &str) -> Result<Migrated, ScriptError> {
        self.databases.migrate(self.id, script(sql)).await
    }

    /// One value of the platform's own choosing.
    async fn number(&self, sql: &'static str) -> i64 {
        let database = self.databases.get(self.id).unwrap();
        database
            .inspect(move |c| c.query_row(sql, [], |row| row.get(0)))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn statements_run() {
    let house = House::new().await;
    assert_eq!(
        house
            .run("SELECT id, text FROM notes", false)
            .await
            .unwrap(),
        r#"{"rows":[{"id":1,"text":"one"}],"columns":["id","text"],"rows_affected":0,"truncated":false}"#
    );
    let insert = "INSERT INTO notes (text) VALUES (:text) RETURNING id";
    let text = vec![("text".to_owned(), Value::Text("two".into()))];
    assert_eq!(
        house.call(insert, true, text).await.unwrap(),
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
        house
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
        house
            .run(write, true)
            .await
            .unwrap_or_else(|e| panic!("{write}: {e}"));
    }
}

#[tokio::test]
async fn what_the_gate_would_refuse_fails_behind_it() {
    let house = House::new().await;
    let before = house.number("SELECT sum(n) + count(*) FROM notes").await;
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
            let refused = house.run(attack, writes).await;
            assert!(
                matches!(
                    refused,
                    Err(RunError::Refused { .. } | RunError::Failed(_) | RunError::Internal(_))
                ),
                "{attack}: {refused:?}"
            );
        }
    }
    // What changes rows does not while it is taken for a read.
    for write in [
        "INSERT INTO notes (n) VALUES (7)",
        "UPDATE notes SET n = 7",
        "DELETE FROM notes",
        "REPLACE INTO notes (id, n) VALUES (1, 7)",
    ] {
        assert!(house.run(write, false).await.is_err(), "{write}");
    }
    let after = house.number("SELECT sum(n) + count(*) FROM notes").await;
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_migration_only_adds() {
    let house = House::new().await;
    for good in [
        "CREATE TABLE more (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT UNIQUE CHECK (length(a) < 9)); INSERT INTO more (a) SELECT text FROM notes",
        "CREATE INDEX by_n ON notes (n) WHERE n > 0; CREATE UNIQUE INDEX by_lower ON notes (lower(text))",
        "ALTER TABLE notes ADD COLUMN extra TEXT NOT NULL DEFAULT 'x' CHECK (extra <> '')",
        "ALTER TABLE notes ADD COLUMN twice INTEGER GENERATED ALWAYS AS (n * 2) VIRTUAL",
        "CREATE TABLE child (of INTEGER REFERENCES notes (id) ON DELETE CASCADE) STRICT",
        "CREATE VIEW both AS SELECT * FROM notes JOIN more USING (id)",
        "CREATE TABLE IF NOT EXISTS notes (x)",
    ] {
        let done = house.migrate(good).await;
        assert!(
            matches!(done, Ok(Migrated::Applied(..))),
            "{good}: {done:?}"
        );
    }
    let before = house.number("SELECT count(*) FROM sqlite_schema").await;
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
        let done = house.migrate(bad).await;
        assert!(done.is_err(), "{bad}: {done:?}");
    }
    assert_eq!(
        house.number("SELECT count(*) FROM sqlite_schema").await,
        before
    );
    assert_eq!(house.number("SELECT count(*) FROM svc_migrations").await, 8);
}

#[tokio::test]
async fn a_script_is_applied_once() {
    let house = House::new().await;
    let sql = "CREATE TABLE more (a)";
    let Ok(Migrated::Applied(marker, _)) = house.migrate(sql).await else {
        panic!("not applied");
    };
    assert_eq!(marker.version, 2);
    assert_eq!(house.migrate(sql).await.unwrap(), Migrated::Found(marker));
}

const ENDLESS: &str =
    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";

#[tokio::test]
async fn endless_statements_end() {
    let house = House::with(SCHEMA, |limits| limits.statement_ms = 200).await;
    let read = house.run(ENDLESS, false).await;
    assert!(matches!(read, Err(RunError::Timeout)), "{read:?}");
    let write = "INSERT INTO notes (n) WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";
    let written = house.run(write, true).await;
    assert!(
        matches!(written, Err(RunError::Timeout | RunError::DatabaseFull)),
        "{written:?}"
    );
    assert_eq!(house.number("SELECT count(*) FROM notes").await, 1);
}

#[tokio::test]
async fn rows_that_take_long_end_with_the_deadline() {
    let house = House::with(SCHEMA, |limits| limits.statement_ms = 300).await;
    let text = "replace(hex(zeroblob(65000)), '00', 'ab')";
    let rows = format!(
        "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 400)
         SELECT count(*) FROM c WHERE {text} || n GLOB
         '*' || replace(hex(zeroblob(190)), '00', '[a-b]') || 'c'"
    );
    let watch = Stopwatch::start();
    let read = house.run(&rows, false).await;
    assert!(matches!(read, Err(RunError::Timeout)), "{read:?}");
    // All of them take minutes.
    assert!(watch.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn temporary_space_has_a_bound() {
    let house = House::with(SCHEMA, |limits| limits.statement_ms = 30_000).await;
    let sorted = "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c)
        SELECT n FROM c ORDER BY hex(randomblob(50)) || n";
    let read = house.run(sorted, false).await;
    assert!(matches!(read, Err(RunError::TooMuchSpace)), "{read:?}");
}

/// Innocent writers beside one that takes their transaction with it: each is kept, the offender alone learns of it.
async fn innocents_beside(house: &House, offender: &str, expected: fn(&RunError) -> bool) {
    let innocent = |n: i64| {
        let params = vec![("n".to_owned(), Value::Integer(n))];
        house.call("INSERT INTO notes (n) VALUES (:n)", true, params)
    };
    let before = house.number("SELECT count(*) FROM notes").await;
    let innocents = futures_util::future::join_all((0..20).map(innocent));
    let (kept, offence) = tokio::join!(innocents, house.run(offender, true));
    assert!(
        offence.as_ref().is_err_and(expected),
        "{offender}: {offence:?}"
    );
    for result in kept {
        result.unwrap_or_else(|e| panic!("beside {offender}: {e}"));
    }
    let after = house.number("SELECT count(*) FROM notes").await;
    assert_eq!(after, before + 20, "{offender}");
}

#[tokio::test]
async fn nobody_is_harmed_by_who_shares_a_commit() {
    let house = House::with(SCHEMA, |limits| limits.statement_ms = 300).await;
    let constraint = |error: &RunError| matches!(error, RunError::Constraint(_));
    // The platform's own statements are not to be had, however often it has run them.
    for own in [
        "COMMIT",
        "ROLLBACK",
        "BEGIN IMMEDIATE",
        "RELEASE caller",
        "ROLLBACK TO caller",
    ] {
        innocents_beside(
            &house,
            own,
            |e| matches!(e, RunError::Refused { reason, .. } if reason == "not authorized"),
        )
        .await;
    }
    for _ in 0..5 {
        let duplicate = "INSERT INTO notes (text) VALUES ('one')";
        innocents_beside(&house, duplicate, constraint).await;
        let rollback = "INSERT OR ROLLBACK INTO notes (text) VALUES ('one')";
        innocents_beside(&house, rollback, constraint).await;
        let endless = "UPDATE notes SET n = (WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c)";
        innocents_beside(&house, endless, |e| matches!(e, RunError::Timeout)).await;
        let huge = "INSERT INTO notes (text) SELECT hex(zeroblob(100000)) || a.value || b.value FROM json_each('[1,2,3,4,5,6]') a, json_each('[1,2,3,4,5,6]') b";
        innocents_beside(&house, huge, |e| matches!(e, RunError::DatabaseFull)).await;
    }
}

#[tokio::test]
async fn a_key_that_is_checked_at_the_commit_fails_its_own_alone() {
    let schema = "CREATE TABLE notes (id INTEGER PRIMARY KEY, n INTEGER,
        parent INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);";
    let house = House::with(schema, |_| {}).await;
    let constraint = |error: &RunError| matches!(error, RunError::Constraint(_));
    for _ in 0..5 {
        innocents_beside(&house, "INSERT INTO notes (parent) VALUES (-1)", constraint).await;
    }
}

#[tokio::test]
async fn every_function_ends_soon_with_its_largest_arguments() {
    let house = House::new().await;
    // As long as a value may be, but for what is put around it.
    let long = "CAST(zeroblob(260000) AS TEXT)";
    let text = "replace(hex(zeroblob(65000)), '00', 'ab')";
    for call in [
        format!("length(trim({text}, 'ba'))"),
        format!("length(rtrim({text}, {text}))"),
        format!("instr({text}, 'abababababababababababac')"),
        format!("length(replace({text}, 'aba', 'ab'))"),
        format!("{text} LIKE '%a%b%a%b%a%b%a%b%c'"),
        format!("{text} GLOB '*a*b*a*b*a*b*a*b*c'"),
        format!("length(hex({text}))"),
        format!("length(upper({long}))"),
        format!("json_valid({text})"),
        format!("length(quote({text}))"),
        "length(printf('%-200000s', 'x'))".to_owned(),
    ] {
        let watch = Stopwatch::start();
        let result = house.run(&format!("SELECT {call} AS x"), false).await;
        assert!(
            matches!(
                result,
                Ok(_) | Err(RunError::Refused { .. } | RunError::Timeout)
            ),
            "{call}: {result:?}"
        );
        // Far beyond what any takes on a busy machine, and far below what the unbounded ones took.
        assert!(watch.elapsed() < Duration::from_secs(20), "{call}");
    }
}

#[tokio::test]
async fn the_log_stays_short() {
    let house = House::with(SCHEMA, |_| {}).await;
    let log = house
        .databases
        .files()
        .path(&house.id)
        .with_extension("db-wal");
    let text = "x".repeat(20_000);
    let mut longest = 0;
    for _ in 0..1000 {
        let params = vec![("text".to_owned(), Value::Text(text.clone()))];
        let insert = "REPLACE INTO notes (id, text) VALUES (2, :text)";
        house.call(insert, true, params).await.unwrap();
        longest = longest.max(std::fs::metadata(&log).map_or(0, |file| file.len()));
    }
    // 20 MB were written; the log is begun anew from 4 MB on, and cut from 16.
    assert!(longest > 0 && longest < 20 << 20, "{longest}");
}

#[tokio::test]
async fn idle_databases_make_room() {
    let house = House::new().await;
    let clock = Clock::manual(Timestamp(1_795_262_400_000));
    for _ in 0..OPEN + 8 {
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        house.databases.create(id, script(SCHEMA)).await.unwrap();
        drop(house.databases.get(id).unwrap());
        assert!(house.databases.lock().entries.len() <= OPEN);
    }
    house.run("SELECT 1", false).await.unwrap();
}

#[test]
fn the_functions_are_the_gates() {
    assert_eq!(walls::FUNCTIONS, guest_gate::functions::ALLOWED);
    assert_eq!(walls::OPERATORS, guest_gate::functions::IMPLIED);
    assert_eq!(walls::TABLE_FUNCTIONS, guest_gate::functions::TABLE_VALUED);
}
