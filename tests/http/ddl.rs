//! Rules of a backend's DDL: everything that only adds, and nothing else, in creation and in migrations.

use http::Method;
use serde_json::{Value, json};
use svc_tests::TestServer;

use crate::owner::text;
use crate::project_fixture::{ProjectFixture, assert_sql_refused, names};

/// Statements that no script may have. Each is tried after the table `extra`.
const FORBIDDEN: [&str; 45] = [
    "DROP TABLE extra",
    "DROP TABLE IF EXISTS nothing",
    "DROP INDEX extra_a",
    "DROP VIEW seen",
    "DELETE FROM extra",
    "dElEtE FROM extra WHERE a = 1",
    "UPDATE extra SET a = 1",
    "WITH c AS (SELECT 1) DELETE FROM extra",
    "WITH c AS (SELECT 1) UPDATE extra SET a = 1",
    "ALTER TABLE extra RENAME TO other",
    "ALTER TABLE extra RENAME COLUMN a TO b",
    "ALTER TABLE extra RENAME a TO b",
    "ALTER TABLE extra DROP COLUMN b",
    "ALTER TABLE extra DROP b",
    "PRAGMA user_version",
    "PRAGMA user_version = 7",
    "PRAGMA writable_schema(1)",
    "ATTACH 'other.db' AS other",
    "ATTACH DATABASE ':memory:' AS other",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "EXPLAIN CREATE TABLE more (a)",
    "EXPLAIN QUERY PLAN INSERT INTO extra VALUES (1, 2)",
    "BEGIN",
    "BEGIN IMMEDIATE TRANSACTION",
    "COMMIT",
    "END TRANSACTION",
    "ROLLBACK",
    "SAVEPOINT here",
    "RELEASE here",
    "ROLLBACK TO here",
    "SELECT 1",
    "VALUES (1)",
    "WITH c AS (SELECT 1) SELECT * FROM c",
    "ANALYZE",
    "REINDEX",
    "CREATE TRIGGER t AFTER INSERT ON extra BEGIN DELETE FROM extra; END",
    "CREATE VIRTUAL TABLE found USING fts5(a)",
    "CREATE TABLE copy AS SELECT * FROM extra",
    "CREATE TABLE copy(a) AS SELECT 1",
    "CREATE TABLE broken (",
    "nonsense",
    "INSERT INTO svc_payments (session_id) VALUES ('x')",
    "/* ; */ -- ;\n DROP TABLE extra",
];

/// Names of the platform's, in every quoting and case, as tables, indexes and views.
const RESERVED: [&str; 19] = [
    "CREATE TABLE svc_x (a)",
    "CREATE TABLE SVC_X (a)",
    "create table Svc_x (a)",
    "CREATE TABLE \"svc_x\" (a)",
    "CREATE TABLE [svc_x] (a)",
    "CREATE TABLE `svc_x` (a)",
    "CREATE TABLE 'svc_x' (a)",
    "CREATE TABLE \"SVC_x\" (a)",
    "CREATE TABLE main.svc_x (a)",
    "CREATE TABLE \"main\".[sVc_x] (a)",
    "CREATE TABLE svc_ (a)",
    "CREATE TABLE IF NOT EXISTS svc_payments (a)",
    "CREATE INDEX svc_i ON extra (a)",
    "CREATE UNIQUE INDEX IF NOT EXISTS \"SVC_i\" ON extra (a)",
    "CREATE INDEX main.[svc_i] ON extra (a)",
    "CREATE VIEW svc_v AS SELECT a FROM extra",
    "CREATE VIEW `SVC_v` (b) AS SELECT a FROM extra",
    "CREATE VIEW IF NOT EXISTS 'svc_v' AS SELECT a FROM extra",
    "CREATE VIEW main.Svc_v AS SELECT a FROM extra",
];

const CREATE_EXTRA: &str = "CREATE TABLE extra (a, b);\n";

#[tokio::test]
async fn what_does_not_only_add_is_refused_with_its_place() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let refusals = FORBIDDEN.iter().chain(&RESERVED);
    let scripts: Vec<_> = refusals
        .map(|sql| format!("{CREATE_EXTRA}{sql};\n"))
        .collect();
    for script in &scripts {
        assert_second_statement(&assert_sql_refused(
            &fixture.create(script).await,
            "ddl_refused",
            script,
        ));
        fixture.get().await.problem(404, "not_found");
    }
    fixture.create("CREATE TABLE first (a)").await.expect(201);
    for script in &scripts {
        let answer = fixture.migrate(script).await;
        assert_second_statement(&assert_sql_refused(&answer, "ddl_refused", script));
    }
    let detail = fixture.detail().await;
    assert_eq!(
        names(&detail["schema"]["tables"]),
        ["first", "svc_files", "svc_payments"]
    );
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 1);
}

/// Asserts that the problem names the second statement of a script that begins with `CREATE_EXTRA`.
#[track_caller]
fn assert_second_statement(problem: &Value) {
    assert_eq!(problem["statement"], 2, "{problem}");
    let offset = problem["position"]["offset"].as_u64();
    assert!(
        offset >= Some(CREATE_EXTRA.trim_end().len() as u64),
        "{problem}"
    );
}

#[tokio::test]
async fn a_backend_begins_with_a_table() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    for ddl in [
        "",
        " \n\t",
        ";",
        "-- CREATE TABLE t (a)",
        "/* CREATE TABLE t (a) */",
        "CREATE VIEW v AS SELECT 1 AS one",
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE INDEX i ON t (a)",
        "INSERT INTO t VALUES ('CREATE TABLE t (a)')",
        "DROP TABLE t",
        "CREATE TRIGGER t AFTER INSERT ON u BEGIN SELECT 1; END",
    ] {
        assert_sql_refused(&fixture.create(ddl).await, "ddl_refused", ddl);
        fixture.get().await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_migration_says_something() {
    let fixture = ProjectFixture::new("CREATE TABLE first (a)").await;
    for ddl in ["", " \n", "-- nothing", ";"] {
        assert_sql_refused(&fixture.migrate(ddl).await, "ddl_refused", ddl);
    }
}

/// Statements that the gate cannot know to be wrong and SQLite refuses, with SQLite's message.
const UNPREPARED: [(&str, u64, &str); 7] = [
    (
        "CREATE TABLE a (x);\nINSERT INTO nowhere VALUES (1)",
        2,
        "no such table",
    ),
    (
        "CREATE TABLE a (x);\n\nCREATE INDEX i ON nowhere (x);",
        2,
        "no such table",
    ),
    ("CREATE TABLE a (x); CREATE INDEX i ON a (y)", 2, "column"),
    (
        "CREATE TABLE a (x); INSERT INTO a (y) VALUES (1)",
        2,
        "has no column named y",
    ),
    (
        "CREATE TABLE a (x); INSERT INTO a VALUES (1); INSERT INTO a VALUES (1, 2)",
        3,
        "has 1 column",
    ),
    (
        "CREATE TABLE a (x); CREATE TABLE a (y)",
        2,
        "already exists",
    ),
    ("CREATE TABLE a (x, x)", 1, "duplicate column name: x"),
];

#[tokio::test]
async fn what_sqlite_refuses_is_said_in_its_words_and_keeps_nothing() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let check = |problem: &Value, statement: u64, says: &str| {
        assert_eq!(problem["statement"], statement, "{problem}");
        assert!(text(&problem["reason"]).contains(says), "{problem}");
    };
    for (ddl, statement, says) in UNPREPARED {
        let problem = assert_sql_refused(&fixture.create(ddl).await, "ddl_refused", ddl);
        check(&problem, statement, says);
        fixture.get().await.problem(404, "not_found");
    }
    fixture.create("CREATE TABLE first (a)").await.expect(201);
    let added = ["UNIQUE", "PRIMARY KEY"].map(|constraint| {
        let ddl = format!("ALTER TABLE first ADD COLUMN b {constraint}");
        (ddl, 1, format!("Cannot add a {constraint} column"))
    });
    let added = added
        .each_ref()
        .map(|(ddl, at, says)| (ddl.as_str(), *at, says.as_str()));
    for (ddl, statement, says) in UNPREPARED.into_iter().chain(added) {
        let problem = assert_sql_refused(&fixture.migrate(ddl).await, "ddl_refused", ddl);
        check(&problem, statement, says);
    }
    let detail = fixture.detail().await;
    assert_eq!(
        names(&detail["schema"]["tables"]),
        ["first", "svc_files", "svc_payments"]
    );
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 1);
}

/// Scripts that only add, all of which one backend can take in turn.
const ADDITIVE: [&str; 16] = [
    "CREATE TABLE plain (a)",
    "CREATE TABLE typed (id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE, b REAL CHECK (b > 0) DEFAULT 1.5) ; ",
    "-- One.\nCREATE TABLE noted (a); /* Two. */ -- Three.",
    "CREATE TABLE \"quoted; --name\" (\"a;b\" TEXT DEFAULT ';')",
    "CREATE TABLE strict_one (a INTEGER PRIMARY KEY, b TEXT) STRICT",
    "CREATE TABLE without_one (a PRIMARY KEY, b) WITHOUT ROWID",
    "CREATE TABLE parts (a REFERENCES strict_one (a), b GENERATED ALWAYS AS (a + 1))",
    "CREATE TABLE IF NOT EXISTS main.spelled (a)",
    "CREATE UNIQUE INDEX plain_a ON plain (a DESC) WHERE a > 0",
    "CREATE INDEX IF NOT EXISTS lower_a ON typed (lower(a))",
    "CREATE VIEW seen (x) AS WITH c AS (SELECT a FROM plain) SELECT a FROM c UNION SELECT 2",
    "ALTER TABLE plain ADD COLUMN b TEXT NOT NULL DEFAULT 'drop table'",
    "ALTER TABLE plain ADD c",
    "INSERT INTO plain (a) VALUES (1), (2)",
    "INSERT INTO noted SELECT a FROM plain; WITH c (x) AS (SELECT a FROM plain) INSERT INTO noted SELECT x FROM c",
    // The prefix is reserved for tables, indexes and views alone.
    "CREATE TABLE columns (svc_a, SVC_B); CREATE VIEW aliased AS SELECT svc_t.svc_a AS svc_c FROM columns AS svc_t",
];

#[tokio::test]
async fn what_only_adds_is_taken() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.create("CREATE TABLE first (a);").await.expect(201);
    for (version, ddl) in (2..).zip(ADDITIVE) {
        let answer = fixture.migrate(ddl).await.expect(200).json();
        assert_eq!(answer["status"], "applied", "{ddl}");
        assert_eq!(answer["version"], version, "{ddl}");
    }
    let detail = fixture.detail().await;
    assert_eq!(names(&detail["schema"]["views"]), ["aliased", "seen"]);
    fixture.delete().await.expect(204);
    // All in one: a script may hold as much as it likes.
    let script: String = ADDITIVE
        .iter()
        .filter(|ddl| !ddl.starts_with("ALTER"))
        .map(|ddl| format!("{};\n", ddl.trim_end_matches([' ', ';'])))
        .collect();
    let body = json!({ "ddl": script });
    let made = fixture
        .send(Method::POST, "", &body)
        .await
        .expect(201)
        .json();
    assert_eq!(made["migrations"][0]["sql"], script);
    let [first, second] = [&made, &detail].map(|detail| {
        let mut tables = names(&detail["schema"]["tables"]);
        tables.retain(|name| name != "first");
        tables
    });
    assert_eq!(first, second);
}
