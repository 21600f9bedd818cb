//! Migrations: applied once, in a queue, recorded verbatim, and all or nothing.

use http::Method;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, named, names, padded};

const MORE: &str = "CREATE TABLE more (a);\nINSERT INTO more VALUES (1), (2);";

#[tokio::test]
async fn a_migration_is_applied_once_and_recorded_verbatim() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture.server.advance(1);
    let body = json!({ "ddl": MORE, "note": "Two more — \"quoted\"" });
    let applied = fixture
        .send(Method::PATCH, "", &body)
        .await
        .expect(200)
        .json();
    let checksum = text(&applied["checksum"]);
    assert_eq!(
        applied,
        json!({ "status": "applied", "version": 2, "checksum": checksum })
    );
    fixture.server.advance(1);
    for again in [
        &body,
        &json!({ "ddl": MORE }),
        &json!({ "ddl": MORE, "note": "other" }),
    ] {
        let again = fixture
            .send(Method::PATCH, "", again)
            .await
            .expect(200)
            .json();
        let expected = json!({ "status": "already_applied", "version": 2, "checksum": checksum });
        assert_eq!(again, expected);
    }
    let detail = fixture.detail().await;
    assert_eq!(
        detail["migrations"][1],
        json!({
            "version": 2, "checksum": checksum, "sql": MORE, "note": "Two more — \"quoted\"",
            "applied_at": "2026-11-20T12:00:01.000Z",
        })
    );
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
    assert_eq!(detail["warnings"], json!([]));
    assert_eq!(named(&detail["inventory"]["tables"], "more")["rows"], 2);
    let next = fixture.migrate("ALTER TABLE more ADD COLUMN b").await;
    let next = next.expect(200).json();
    assert_eq!(
        (&next["status"], &next["version"]),
        (&json!("applied"), &json!(3))
    );
    assert_ne!(text(&next["checksum"]), checksum);
    let detail = fixture.detail().await;
    assert_eq!(detail["migrations"][2]["note"], Value::Null);
    let more = named(&detail["schema"]["tables"], "more");
    assert_eq!(names(&more["columns"]), ["a", "b"]);
}

#[tokio::test]
async fn the_ledger_survives_a_restart() {
    let mut fixture = ProjectFixture::new(GUESTS).await;
    fixture.migrate(MORE).await.expect(200);
    let before = fixture.detail().await;
    fixture.server = fixture.server.restart().await;
    let after = fixture.detail().await;
    for part in ["id", "schema", "migrations", "actions", "warnings"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    let again = fixture.migrate(MORE).await.expect(200).json();
    assert_eq!(again["status"], "already_applied");
    assert_eq!(fixture.count("more").await, 2);
}

#[tokio::test]
async fn a_change_is_of_one_kind() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let long = "n".repeat(1001);
    let script = padded(MORE, 262_145);
    for (body, says) in [
        (json!({}), "ddl"),
        (json!({ "ddl": null, "realtime": null }), "ddl"),
        (json!({ "note": "alone" }), "ddl"),
        (json!({ "ddl": MORE, "realtime": true }), "realtime"),
        (json!({ "realtime": true, "note": "why" }), "note"),
        (json!({ "realtime": "on" }), "realtime"),
        (json!({ "ddl": 7 }), "ddl"),
        (json!({ "ddl": MORE, "note": 7 }), "note"),
        (json!({ "ddl": MORE, "note": long }), "note"),
        (json!({ "ddl": MORE, "version": 2 }), "version"),
        (json!({ "ddl": script }), "ddl"),
        (json!({ "actions": [] }), "actions"),
    ] {
        let answer = fixture.send(Method::PATCH, "", &body).await.expect(400);
        let problem = answer.json();
        let code = text(&problem["code"]);
        assert!(
            matches!(&*code, "invalid_request" | "nothing_to_update"),
            "{problem}"
        );
        assert!(text(&problem["detail"]).contains(says), "{says}: {problem}");
    }
    let detail = fixture.detail().await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 1);
    assert_eq!(detail["realtime"]["enabled"], false);
    let longest = json!({ "ddl": MORE, "note": "ü".repeat(1000) });
    fixture.send(Method::PATCH, "", &longest).await.expect(200);
}

#[tokio::test]
async fn a_migration_that_breaks_a_constraint_leaves_nothing() {
    let fixture = ProjectFixture::new(
        "CREATE TABLE t (a, b UNIQUE); INSERT INTO t VALUES (1, 'kept-words'), (1, 'others')",
    )
    .await;
    let before = fixture.detail().await;
    for (ddl, says) in [
        (
            "CREATE TABLE more (x); CREATE UNIQUE INDEX one_a ON t (a)",
            "UNIQUE constraint failed",
        ),
        (
            "CREATE TABLE more (x); INSERT INTO t VALUES (2, 'kept-words')",
            "UNIQUE constraint failed: t.b",
        ),
        (
            "CREATE TABLE more (x UNIQUE REFERENCES t (b)); INSERT INTO more VALUES ('nobody')",
            "FOREIGN KEY constraint failed",
        ),
    ] {
        let problem = fixture
            .migrate(ddl)
            .await
            .problem(409, "constraint_violation");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
        assert!(!problem.to_string().contains("kept-words"), "{problem}");
        let after = fixture.detail().await;
        for part in ["schema", "migrations", "warnings"] {
            assert_eq!(after[part], before[part], "{ddl}: {part}");
        }
        assert_eq!(fixture.count("t").await, 2);
    }
}

#[tokio::test]
async fn a_migration_that_does_not_fit_leaves_nothing() {
    let server = svc_tests::TestServer::builder().limits(|limits| limits.database_bytes = 262_144);
    let fixture = ProjectFixture::on_server(server.start().await, GUESTS).await;
    let rows = format!("SELECT '{}' FROM c", "x".repeat(1000));
    let numbers = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000)";
    let large = format!("CREATE TABLE large (a); INSERT INTO large {numbers} {rows}");
    fixture.migrate(&large).await.problem(413, "database_full");
    let detail = fixture.detail().await;
    assert_eq!(
        names(&detail["schema"]["tables"]),
        ["guests", "svc_files", "svc_payments"]
    );
    assert_eq!(detail["warnings"], json!([]));
    fixture.migrate(MORE).await.expect(200);
}

/// Each of many authors sends a migration of their own; one that was applied and not recorded is sent again.
#[tokio::test]
async fn migrations_that_race_run_one_at_a_time() {
    const AUTHORS: usize = 8;
    let fixture = ProjectFixture::new(GUESTS).await;
    let path = format!("/api/v1/projects/{}/backend", fixture.project);
    let mut racing = tokio::task::JoinSet::new();
    for author in 0..AUTHORS {
        let request = fixture.owner.request(&fixture.server, Method::PATCH, &path);
        let ddl = format!("CREATE TABLE of_{author} (a); INSERT INTO of_{author} VALUES (1)");
        let request = request.json(&json!({ "ddl": ddl }));
        racing.spawn(async move {
            loop {
                let answer = request.try_clone().unwrap().answer().await;
                if answer.status == 200 {
                    return answer.json()["version"].as_u64().unwrap();
                }
                answer.problem(409, "migration_not_recorded");
            }
        });
    }
    let mut versions = racing.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4, 5, 6, 7, 8, 9]);
    let detail = fixture.detail().await;
    let recorded: Vec<_> = detail["migrations"].as_array().unwrap().iter().collect();
    let versions: Vec<_> = recorded
        .iter()
        .map(|m| m["version"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6, 7, 8, 9], "in order");
    for author in 0..AUTHORS {
        let table = format!("of_{author}");
        assert_eq!(named(&detail["inventory"]["tables"], &table)["rows"], 1);
    }
    assert_eq!(detail["warnings"], json!([]));
}

#[tokio::test]
async fn one_migration_that_is_sent_many_times_at_once_is_applied_once() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let path = format!("/api/v1/projects/{}/backend", fixture.project);
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let request = fixture.owner.request(&fixture.server, Method::PATCH, &path);
        racing.spawn(request.json(&json!({ "ddl": MORE })).answer());
    }
    let answers = racing.join_all().await;
    let answers: Vec<_> = answers.into_iter().map(|a| a.expect(200).json()).collect();
    let applied = answers.iter().filter(|a| a["status"] == "applied").count();
    assert_eq!(applied, 1, "{answers:?}");
    assert!(answers.iter().all(|a| a["version"] == 2), "{answers:?}");
    assert_eq!(fixture.count("more").await, 2, "its seeds, once");
}

#[tokio::test]
async fn visitors_are_served_before_and_after_a_migration() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let add = "INSERT INTO guests (name) VALUES (:name)";
    fixture
        .define(&[("add", add), ("all", "SELECT * FROM guests")])
        .await;
    fixture.call_ok("add", &json!({ "name": "Ada" })).await;
    fixture
        .migrate("ALTER TABLE guests ADD COLUMN nights INTEGER NOT NULL DEFAULT 1")
        .await
        .expect(200);
    fixture.call_ok("add", &json!({ "name": "Grace" })).await;
    let all = fixture.call_ok("all", &json!({})).await;
    assert_eq!(all["columns"], json!(["id", "name", "email", "nights"]));
    assert_eq!(all["rows"][0]["nights"], 1);
    let actions = &fixture.detail().await["actions"];
    assert_eq!(
        named(actions, "all")["version"],
        1,
        "actions are as they were"
    );
}

#[tokio::test]
async fn what_no_migration_has_made_is_told_and_can_be_recorded() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .migrate(
            "CREATE VIEW named AS SELECT name FROM guests; ALTER TABLE guests ADD COLUMN nights",
        )
        .await
        .expect(200);
    assert_eq!(fixture.detail().await["warnings"], json!([]));
    let id = text(&fixture.detail().await["id"]);
    let directory = fixture.server.data().join("backends").join(id);
    let file = rusqlite::Connection::open(directory.join("default.db")).unwrap();
    let beside = "CREATE TABLE beside (a); CREATE INDEX by_name ON guests (name);
        ALTER TABLE guests ADD COLUMN room; CREATE VIEW more AS SELECT a FROM beside";
    file.execute_batch(beside).unwrap();
    drop(file);
    let detail = fixture.detail().await;
    let warnings = detail["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{detail}");
    assert_eq!(warnings[0]["code"], "schema_ahead_of_ledger");
    let told = text(&warnings[0]["detail"]);
    for part in [
        "table `beside`",
        "index `by_name` on `guests`",
        "column `room` of `guests`",
        "view `more`",
    ] {
        assert!(told.contains(part), "{told}");
    }
    for unsaid in ["nights", "named", "`a`", "svc_payments"] {
        assert!(!told.contains(unsaid), "{told}");
    }
    fixture
        .migrate("CREATE TABLE IF NOT EXISTS beside (a); CREATE VIEW IF NOT EXISTS more AS SELECT a FROM beside; CREATE INDEX IF NOT EXISTS by_name ON guests (name)")
        .await
        .expect(200);
    let told = text(&fixture.detail().await["warnings"][0]["detail"]);
    assert!(
        told.contains("`room`") && !told.contains("beside"),
        "{told}"
    );
}
