//! Databases that cannot be spoilt: what could never be used is refused before it is kept, what is probably not meant is
//! named, and what a visitor sends is told apart from what an author wrote.

mod failures;

use serde_json::{Value, json};
use svc_tests::TestServer;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, assert_sql_refused};

/// Scripts of which a part could never be used: what is said, and which statement is named.
const UNUSABLE_SCRIPTS: &[(&str, &str, u64)] = &[
    (
        "CREATE TABLE c (p INTEGER REFERENCES p (id))",
        "no table `p`",
        1,
    ),
    (
        "CREATE TABLE x (a); CREATE TABLE c (p REFERENCES p)",
        "no table `p`",
        2,
    ),
    (
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (other))",
        "no column `other`",
        2,
    ),
    (
        "CREATE TABLE p (id); CREATE TABLE c (p REFERENCES p (id)); CREATE TABLE d (a)",
        "PRIMARY KEY",
        2,
    ),
    (
        "CREATE TABLE c (p REFERENCES p (id)); CREATE TABLE p (id)",
        "PRIMARY KEY",
        1,
    ),
    (
        "CREATE TABLE p (a); CREATE TABLE c (p REFERENCES p)",
        "PRIMARY KEY",
        2,
    ),
    (
        "CREATE TABLE p (a, b, PRIMARY KEY (a, b)); CREATE TABLE c (p REFERENCES p)",
        "as many",
        2,
    ),
    (
        "CREATE TABLE p (a, b, UNIQUE (a, b)); CREATE TABLE c (p REFERENCES p (a))",
        "PRIMARY KEY",
        2,
    ),
    (
        "CREATE TABLE p (a UNIQUE, b); CREATE TABLE c (x, y, FOREIGN KEY (x, y) REFERENCES p (a, b))",
        "PRIMARY KEY",
        2,
    ),
    (
        "CREATE TABLE p (a); CREATE UNIQUE INDEX i ON p (a) WHERE a > 0; CREATE TABLE c (p REFERENCES p (a))",
        "PRIMARY KEY",
        3,
    ),
    (
        "CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t; CREATE TABLE c (x REFERENCES v (a))",
        "is a view",
        3,
    ),
    ("CREATE TABLE t (a, b REFERENCES t (a))", "PRIMARY KEY", 1),
    (
        "CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM nowhere",
        "no such table",
        2,
    ),
    (
        "CREATE TABLE t (a); CREATE VIEW v AS SELECT b FROM t",
        "no such column",
        2,
    ),
    (
        "CREATE TABLE t (a); CREATE VIEW v (x, y) AS SELECT a FROM t",
        "columns",
        2,
    ),
    (
        "CREATE TABLE t (a); CREATE VIEW v AS SELECT lower(a, a, a) AS x FROM t",
        "wrong number of arguments",
        2,
    ),
    ("CREATE TABLE t (a, b AS (c), c AS (b))", "loop", 1),
    (
        "CREATE TABLE t (a DEFAULT (lower('a', 'b', 'c')))",
        "lower()",
        1,
    ),
    ("CREATE TABLE t (a CHECK (a <= date('now')))", "clock", 1),
    (
        "CREATE TABLE t (a, b AS (strftime('%Y', 'now')))",
        "clock",
        1,
    ),
    (
        "CREATE TABLE t (a); CREATE INDEX i ON t (datetime(a, 'localtime'))",
        "clock",
        2,
    ),
    (
        "CREATE TABLE t (a); CREATE INDEX i ON t (random())",
        "non-deterministic",
        2,
    ),
    (
        "CREATE TABLE t (a, b AS (random()))",
        "non-deterministic",
        1,
    ),
];

#[tokio::test]
async fn what_could_never_be_used_is_refused_and_nothing_of_it_is_kept() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let check = |problem: &Value, says: &str, statement: u64| {
        assert!(text(&problem["reason"]).contains(says), "{says}: {problem}");
        assert_eq!(problem["statement"], statement, "{problem}");
    };
    for (ddl, says, statement) in UNUSABLE_SCRIPTS {
        let problem = assert_sql_refused(&fixture.create(ddl).await, "ddl_refused", ddl);
        check(&problem, says, *statement);
        fixture.get().await.problem(404, "not_found");
    }
    fixture.create("CREATE TABLE first (z)").await.expect(201);
    let before = fixture.detail().await["schema"].clone();
    for (ddl, says, statement) in UNUSABLE_SCRIPTS {
        let body = json!({ "ddl": ddl });
        let tried = fixture.send(http::Method::PATCH, "?dry_run=true", &body);
        for answer in [tried.await, fixture.migrate(ddl).await] {
            check(
                &assert_sql_refused(&answer, "ddl_refused", ddl),
                says,
                *statement,
            );
        }
    }
    assert_eq!(fixture.detail().await["schema"], before);
}

#[tokio::test]
async fn references_that_hold_are_taken_in_any_order() {
    let fixture = ProjectFixture::new(
        "CREATE TABLE c (p INTEGER REFERENCES P (ID), q REFERENCES q, FOREIGN KEY (p, q) REFERENCES q (x, y));
         CREATE TABLE p (id INTEGER PRIMARY KEY, boss REFERENCES p);
         CREATE TABLE q (a TEXT PRIMARY KEY, x, y, UNIQUE (y, x));
         CREATE VIEW w AS SELECT id FROM v; CREATE VIEW v AS SELECT id FROM p",
    )
    .await;
    fixture
        .migrate("ALTER TABLE p ADD COLUMN c REFERENCES q (a); CREATE TABLE d (a REFERENCES e); CREATE TABLE e (i INTEGER PRIMARY KEY)")
        .await
        .expect(200);
    fixture.query("DELETE FROM p", &json!({})).await.expect(200);
}

#[tokio::test]
async fn what_would_break_a_view_that_is_there_is_refused() {
    let fixture = ProjectFixture::new(
        "CREATE TABLE a (x); CREATE TABLE b (y); CREATE VIEW v AS SELECT x, y FROM a, b",
    )
    .await;
    let ddl = "CREATE TABLE more (z); ALTER TABLE b ADD COLUMN x";
    let problem = assert_sql_refused(&fixture.migrate(ddl).await, "ddl_refused", ddl);
    assert!(text(&problem["reason"]).contains("ambiguous"), "{problem}");
    assert_eq!(problem["statement"], 2, "{problem}");
}

/// Columns that do not count up, and CHECKs that change: the code, and what must be said.
const DOUBTFUL_COLUMNS: &[(&str, &str, &str)] = &[
    (
        "CREATE TABLE t (id SERIAL PRIMARY KEY, a)",
        "key_not_generated",
        "NULL",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, a)",
        "key_not_generated",
        "`id INTEGER PRIMARY KEY`",
    ),
    (
        "CREATE TABLE t (id BIGINT, a, PRIMARY KEY (id))",
        "key_not_generated",
        "`BIGINT`",
    ),
    (
        "CREATE TABLE t (id INTEGER AUTO_INCREMENT PRIMARY KEY, a)",
        "key_not_generated",
        "`INTEGER AUTO_INCREMENT`",
    ),
    (
        "CREATE TABLE t (id bigserial NOT NULL PRIMARY KEY, a)",
        "key_not_generated",
        "is refused",
    ),
    (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n SERIAL)",
        "key_not_generated",
        "`n`",
    ),
    (
        "CREATE TABLE t (a CHECK (a <> random()))",
        "check_not_deterministic",
        "`random`",
    ),
    (
        "CREATE TABLE t (a, CHECK (a <= CURRENT_TIMESTAMP))",
        "check_not_deterministic",
        "`current_timestamp`",
    ),
];

#[tokio::test]
async fn what_is_probably_not_meant_is_named_in_every_answer() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    for (ddl, code, says) in DOUBTFUL_COLUMNS {
        let check = |answer: &Value| {
            let warnings = answer["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 1, "{ddl}: {answer}");
            assert_eq!(warnings[0]["code"], *code, "{ddl}");
            assert!(
                text(&warnings[0]["detail"]).contains(says),
                "{ddl}: {warnings:?}"
            );
        };
        check(&fixture.create(ddl).await.expect(201).json());
        check(&fixture.detail().await);
        fixture.delete().await.expect(204);
        fixture.create("CREATE TABLE first (z)").await.expect(201);
        let body = json!({ "ddl": ddl });
        let tried = fixture.send(http::Method::PATCH, "?dry_run=true", &body);
        check(&tried.await.expect(200).json());
        check(&fixture.migrate(ddl).await.expect(200).json());
        // What was said once is said in the detail alone.
        let next = fixture
            .migrate("CREATE TABLE next (a)")
            .await
            .expect(200)
            .json();
        assert_eq!(next.get("warnings"), None, "{next}");
        check(&fixture.detail().await);
        fixture.delete().await.expect(204);
    }
}

#[tokio::test]
async fn what_is_meant_is_not_warned_of() {
    let fixture = ProjectFixture::new(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, n INT, at TEXT DEFAULT CURRENT_TIMESTAMP, CHECK (n > 0));
         CREATE TABLE b (id TEXT PRIMARY KEY DEFAULT (hex(randomblob(8))), serial_number TEXT);
         CREATE TABLE c (id INT PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE d (a INT, b INT, PRIMARY KEY (a, b));
         CREATE TABLE e (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE f (id INT PRIMARY KEY DEFAULT (random()))",
    )
    .await;
    assert_eq!(fixture.detail().await["warnings"], json!([]));
}

#[tokio::test]
async fn what_no_column_can_be_added_with_says_how_to_go_on() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} INSERT INTO guests (name) VALUES ('Ada')"
    ))
    .await;
    for (column, says) in [
        ("at TEXT DEFAULT CURRENT_TIMESTAMP", "leave the DEFAULT out"),
        ("at TEXT DEFAULT (datetime('now'))", "leave the DEFAULT out"),
        ("code TEXT UNIQUE", "CREATE UNIQUE INDEX"),
        ("code TEXT PRIMARY KEY", "make a new table"),
        ("age INTEGER NOT NULL", "NOT NULL DEFAULT"),
        ("big TEXT AS (upper(name)) STORED", "VIRTUAL"),
        (
            "of INTEGER DEFAULT 1 REFERENCES guests",
            "leave the DEFAULT out",
        ),
    ] {
        let ddl = format!("ALTER TABLE guests ADD COLUMN {column}");
        let problem = assert_sql_refused(&fixture.migrate(&ddl).await, "ddl_refused", &ddl);
        assert!(
            text(&problem["reason"]).contains(says),
            "{column}: {problem}"
        );
    }
}

#[tokio::test]
async fn a_history_that_is_too_small_for_a_restore_says_so() {
    let server = TestServer::builder().limits(|limits| limits.history_bytes = 100_000);
    let server = server.start().await;
    let fixture = ProjectFixture::on_server(server, "CREATE TABLE t (a)").await;
    let first = fixture
        .owner
        .get(
            &fixture.server,
            &format!("/{}/backend/history", fixture.project),
        )
        .await;
    let moments = first.expect(200).json()["moments"].take();
    let at = moments[moments.as_array().unwrap().len() - 1]["at"].clone();
    fixture
        .query(
            "INSERT INTO t SELECT hex(randomblob(20000)) FROM json_each('[1,2,3]')",
            &json!({}),
        )
        .await
        .expect(200);
    let answer = fixture
        .send(http::Method::POST, "/restore", &json!({ "at": at }))
        .await;
    let problem = answer.problem(503, "capacity_reached");
    assert!(
        text(&problem["detail"]).contains("history_bytes"),
        "{problem}"
    );
}
