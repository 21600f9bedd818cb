//! Trials of migrations and of actions: they answer what would become of them, and keep nothing.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, TestServer};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, assert_sql_refused, names};

/// The backend as it is, but for what writing and reading change by themselves.
async fn state(fixture: &ProjectFixture) -> Value {
    let mut detail = fixture.detail().await;
    detail["inventory"]["bytes_on_disk"] = json!(null);
    detail
}

async fn try_ddl(fixture: &ProjectFixture, ddl: &str) -> Answer {
    let body = json!({ "ddl": ddl });
    fixture.send(Method::PATCH, "?dry_run=true", &body).await
}

async fn try_actions(fixture: &ProjectFixture, actions: &Value) -> Answer {
    let body = json!({ "actions": actions });
    fixture
        .send(Method::PUT, "/actions?dry_run=true", &body)
        .await
}

async fn start_fixture() -> ProjectFixture {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .define(&[
            ("all", "SELECT * FROM guests"),
            ("add", "INSERT INTO guests (name) VALUES (:name)"),
        ])
        .await;
    fixture.call_ok("add", &json!({ "name": "Ada" })).await;
    fixture
}

#[tokio::test]
async fn a_migration_that_is_tried_answers_both_schemas_and_keeps_nothing() {
    let fixture = start_fixture().await;
    let before = state(&fixture).await;
    let ddl =
        "CREATE TABLE rooms (n); ALTER TABLE guests ADD COLUMN age; INSERT INTO rooms VALUES (1)";
    let tried = try_ddl(&fixture, ddl).await.expect(200).json();
    assert_eq!(tried["status"], "applied");
    assert_eq!(tried["schema"]["before"], before["schema"]);
    assert_eq!(
        names(&tried["schema"]["after"]["tables"]),
        ["guests", "rooms", "svc_files", "svc_payments"]
    );
    assert_eq!(tried["broken_actions"], json!([]));
    assert_eq!(tried.as_object().unwrap().len(), 4, "{tried}");
    let changed: Vec<_> = tried["changes"]["tables"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let changed: Vec<_> = changed
        .iter()
        .map(|one| [&one["name"], &one["new"], &one["columns"][0]["name"]])
        .collect();
    assert_eq!(
        json!(changed),
        json!([["guests", false, "age"], ["rooms", true, "n"]])
    );
    assert_eq!(state(&fixture).await, before);

    // It answers what becomes of it once it is meant.
    assert_eq!(
        fixture.migrate(ddl).await.expect(200).json()["status"],
        "applied"
    );
    let after = fixture.detail().await;
    assert_eq!(tried["schema"]["after"], after["schema"]);
    let again = try_ddl(&fixture, ddl).await.expect(200).json();
    assert_eq!(again["status"], "already_applied");
    assert_eq!(again["schema"]["before"], again["schema"]["after"]);
    assert_eq!(
        again["changes"],
        json!({ "tables": [], "indexes": [], "views": [] })
    );
}

#[tokio::test]
async fn a_trial_fails_as_the_change_would() {
    let fixture = start_fixture().await;
    let before = state(&fixture).await;
    for ddl in ["DROP TABLE guests", "CREATE TABLE guests (a)", ""] {
        assert_sql_refused(&try_ddl(&fixture, ddl).await, "ddl_refused", ddl);
    }
    try_ddl(
        &fixture,
        "INSERT INTO guests (id, name) VALUES (1, 'twice')",
    )
    .await
    .problem(409, "constraint_violation");
    let bad = json!([{ "name": "Bad", "sql": "SELECT 1" }, { "name": "gone", "sql": "DROP TABLE guests" }]);
    let problem = try_actions(&fixture, &bad)
        .await
        .problem(400, "invalid_request");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2);
    try_actions(&fixture, &json!([]))
        .await
        .problem(400, "invalid_request");
    assert_eq!(state(&fixture).await, before);

    for (query, body, code) in [
        (
            "?dry_run=perhaps",
            json!({ "ddl": "CREATE TABLE a (b)" }),
            "invalid_request",
        ),
        (
            "?dry=true",
            json!({ "ddl": "CREATE TABLE a (b)" }),
            "invalid_request",
        ),
        (
            "?dry_run=true",
            json!({ "realtime": true }),
            "invalid_request",
        ),
        ("?dry_run=true", json!({}), "nothing_to_update"),
    ] {
        let answer = fixture.send(Method::PATCH, query, &body).await;
        answer.problem(400, code);
    }
    assert_eq!(state(&fixture).await, before);
    let really = json!({ "ddl": "CREATE TABLE a (b)" });
    let meant = fixture.send(Method::PATCH, "?dry_run=false", &really).await;
    assert_eq!(meant.expect(200).json()["status"], "applied");
}

#[tokio::test]
async fn actions_that_would_break_are_named() {
    let fixture = start_fixture().await;
    // A view that is made later can take the place of nothing; but a name can become ambiguous.
    fixture
        .migrate("CREATE TABLE notes (text)")
        .await
        .expect(200);
    fixture
        .define(&[("both", "SELECT name, text FROM guests, notes")])
        .await;
    let ddl = "ALTER TABLE notes ADD COLUMN name";
    let tried = try_ddl(&fixture, ddl).await.expect(200).json();
    let broken = tried["broken_actions"].as_array().unwrap();
    assert_eq!(broken.len(), 1, "{tried}");
    assert_eq!(broken[0]["name"], "both");
    assert!(text(&broken[0]["detail"]).contains("ambiguous"), "{tried}");
    fixture.call_ok("both", &json!({})).await;
}

#[tokio::test]
async fn actions_that_are_tried_are_not_defined() {
    let fixture = start_fixture().await;
    let before = state(&fixture).await;
    let same = json!([{ "name": "all", "sql": "SELECT * FROM guests" }]);
    let tried = try_actions(&fixture, &same).await.expect(200).json();
    assert_eq!(tried["status"], "already_applied");
    for actions in [
        json!([{ "name": "all", "sql": "SELECT name FROM guests" }]),
        json!([{ "name": "other", "sql": "SELECT 1 AS one" }]),
    ] {
        let tried = try_actions(&fixture, &actions).await.expect(200).json();
        assert_eq!(tried["status"], "applied");
        assert_eq!(tried["schema"]["before"], before["schema"]);
        assert_eq!(tried["schema"]["after"], before["schema"]);
        assert_eq!(tried["broken_actions"], json!([]));
    }
    assert_eq!(state(&fixture).await, before);
    fixture
        .call_action("other", &json!({}))
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_trial_is_the_owners_and_has_the_bound_of_the_database() {
    let builder = TestServer::builder().limits(|limits| limits.database_bytes = 262_144);
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let path = format!("/api/v1/projects/{}/backend?dry_run=true", fixture.project);
    let body = json!({ "ddl": "CREATE TABLE a (b)" });
    let request = fixture.server.request(Method::PATCH, &path).json(&body);
    svc_tests::ReadAnswer::answer(request)
        .await
        .problem(401, "unauthorized");
    let ddl = "CREATE TABLE big (b); WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 400)
        INSERT INTO big SELECT zeroblob(1000) FROM c";
    try_ddl(&fixture, ddl).await.problem(413, "database_full");
    fixture.migrate(ddl).await.problem(413, "database_full");
}

#[tokio::test]
async fn two_columns_of_one_name_are_refused_after_a_migration_too() {
    let fixture = ProjectFixture::new("CREATE TABLE t (a); CREATE TABLE u (b)").await;
    let both = "SELECT t.*, u.* FROM t, u";
    // The connection that prepares has read the schema by now.
    fixture.define(&[("both", both)]).await;
    fixture.call_ok("both", &json!({})).await;
    let ddl = "ALTER TABLE u ADD COLUMN a";
    let body = json!({ "ddl": ddl });
    let tried = fixture.send(Method::PATCH, "?dry_run=true", &body).await;
    let broken = tried.expect(200).json()["broken_actions"].clone();
    assert_eq!(broken.as_array().map(Vec::len), Some(1), "{broken}");
    assert_eq!(broken[0]["name"], "both");
    let detail = broken[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("two columns of the result are named a"),
        "{detail}"
    );
    fixture.migrate(ddl).await.expect(200);
    let called = fixture.call_action("both", &json!({})).await;
    called.problem(400, "statement_refused");
    // Another migration in between, so that each connection is behind once.
    fixture.migrate("CREATE TABLE v (a)").await.expect(200);
    for name in ["both", "again"] {
        let batch = json!([{ "name": name, "sql": both }]);
        let refused = fixture.put(&batch).await.problem(400, "statement_refused");
        let reason = refused["errors"][0]["detail"].as_str().unwrap_or_default();
        assert!(reason.contains("named a"), "{name}: {refused}");
    }
    fixture
        .define(&[("both", "SELECT t.*, u.b FROM t, u")])
        .await;
}
