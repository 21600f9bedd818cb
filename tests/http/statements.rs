//! Statements that no action may be, and how they are refused.

use serde_json::{Value, json};
use svc_tests::disk;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, assert_sql_refused};

/// A batch of one action `it`.
fn single_action(sql: &str) -> Value {
    json!([{ "name": "it", "sql": sql }])
}

/// Statements that no action may be. Some the gate refuses, some SQLite; all are refused as statements.
const REFUSED: [&str; 56] = [
    "-- nothing",
    "SELECT 1 AS a; SELECT 2 AS b",
    "INSERT INTO guests (name) VALUES ('a'); DROP TABLE guests",
    "CREATE TABLE more (a)",
    "DROP TABLE guests",
    "ALTER TABLE guests ADD COLUMN a",
    "CREATE TEMP TABLE more (a)",
    "PRAGMA user_version",
    "PRAGMA journal_mode = DELETE",
    "ATTACH 'other.db' AS other",
    "DETACH main",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT here",
    "EXPLAIN SELECT 1 AS a",
    "EXPLAIN QUERY PLAN SELECT 1 AS a",
    "nonsense",
    "SELECT FROM WHERE",
    "SELECT ? AS a",
    "SELECT ?1 AS a",
    "SELECT @a AS a",
    "SELECT $a AS a",
    "SELECT :a AS a, ? AS b",
    "SELECT :svc_other AS a",
    "SELECT :svc_user AS a",
    "SELECT :svc_user_id2 AS a",
    "INSERT INTO svc_payments (session_id) VALUES ('a')",
    "UPDATE svc_payments SET status = 'paid'",
    "UPDATE main.\"SVC_payments\" SET status = 'paid'",
    "DELETE FROM [svc_payments]",
    "REPLACE INTO svc_payments (session_id) VALUES ('a')",
    "INSERT INTO svc_files (id) VALUES ('a')",
    "UPDATE svc_files SET name = 'a'",
    "REPLACE INTO svc_files (id) VALUES ('a')",
    "SELECT * FROM svc_anything",
    "SELECT name FROM sqlite_schema",
    "SELECT name FROM main.sqlite_master",
    "SELECT name FROM \"SQLITE_MASTER\"",
    "SELECT (SELECT count(*) FROM sqlite_schema) AS n FROM guests",
    "SELECT name FROM pragma_table_info('guests')",
    "SELECT load_extension('x') AS a",
    "SELECT \"LOAD_EXTENSION\"('x', 'y') AS a",
    "SELECT last_insert_rowid() AS a",
    "SELECT changes() AS a",
    "SELECT name FROM guests WHERE id > Total_Changes()",
    "SELECT readfile('/etc/passwd') AS a",
    "INSERT INTO guests (name) VALUES (last_insert_rowid())",
    "SELECT no_such_function(1) AS a",
    "SELECT no_such_column FROM guests",
    "SELECT 1 AS a, 2 AS a",
    "SELECT * FROM guests AS one JOIN guests AS other",
    "INSERT INTO guests (name) VALUES ('a') RETURNING id, name AS id",
];

#[tokio::test]
async fn what_no_action_may_be_is_refused() {
    let fixture = ProjectFixture::new(GUESTS).await;
    for sql in REFUSED {
        let problem = assert_sql_refused(
            &fixture.put(&single_action(sql)).await,
            "statement_refused",
            sql,
        );
        assert_eq!(problem["errors"][0]["name"], "it", "{sql}");
        assert_eq!(problem["errors"][0]["code"], "statement_refused", "{sql}");
    }
    assert_eq!(fixture.detail().await["actions"], json!([]));
}

#[tokio::test]
async fn what_sqlite_refuses_is_said_in_its_words() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} CREATE VIEW named AS SELECT name FROM guests"
    ))
    .await;
    for (sql, says) in [
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT shoe_size FROM guests", "no such column: shoe_size"),
        ("INSERT INTO guests (shoe_size) VALUES (1)", "shoe_size"),
        (
            "INSERT INTO guests (name) VALUES (1, 2)",
            "2 values for 1 columns",
        ),
        ("INSERT INTO named (name) VALUES ('x')", "view"),
    ] {
        let problem = assert_sql_refused(
            &fixture.put(&single_action(sql)).await,
            "statement_refused",
            sql,
        );
        assert!(text(&problem["reason"]).contains(says), "{sql}: {problem}");
    }
}

/// Tables of the platform's that lie in the file itself, whatever they are called.
#[tokio::test]
async fn internal_tables_are_not_to_be_read() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let mut internal = vec!["svc_migrations".to_owned()];
    for name in disk::names(fixture.server.data()) {
        if name.ends_with("default.db") {
            let file = rusqlite::Connection::open(fixture.server.data().join(&name)).unwrap();
            let sql = "SELECT name FROM sqlite_schema WHERE name LIKE 'svc!_%' ESCAPE '!' AND type = 'table'";
            let mut rows = file.prepare(sql).unwrap();
            let names = rows.query_map([], |row| row.get(0)).unwrap();
            internal.extend(
                names.map(Result::unwrap).filter(|name: &String| {
                    !["svc_files", "svc_payments"].contains(&name.as_str())
                }),
            );
        }
    }
    for table in &internal {
        for sql in [
            format!("SELECT * FROM {table}"),
            format!("SELECT 1 AS one FROM main.\"{}\"", table.to_uppercase()),
            format!("WITH c AS (SELECT * FROM [{table}]) SELECT count(*) AS n FROM c"),
            format!("INSERT INTO guests (name) SELECT rowid FROM {table}"),
            format!("DELETE FROM {table}"),
        ] {
            assert_sql_refused(
                &fixture.put(&single_action(&sql)).await,
                "statement_refused",
                &sql,
            );
            let answer = fixture.query(&sql, &json!({})).await;
            assert_sql_refused(&answer, "statement_refused", &sql);
        }
    }
}
