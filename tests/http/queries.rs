//! Queries of an owner through a page: one statement at a time, and the schema as it stands.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture, assert_sql_refused, named, names, padded};

/// Sends a query as an owner, or without a credential.
async fn send_request(fixture: &ProjectFixture, owner: Option<&Owner>, body: &Value) -> Answer {
    let request = fixture.server.json("/room/api/query", body);
    match owner {
        Some(owner) => request.bearer_auth(&owner.credential).answer().await,
        None => request.answer().await,
    }
}

async fn schema(fixture: &ProjectFixture, owner: Option<&Owner>) -> Answer {
    let request = fixture.server.get("/room/api/schema");
    match owner {
        Some(owner) => request.bearer_auth(&owner.credential).answer().await,
        None => request.answer().await,
    }
}

#[tokio::test]
async fn only_the_owner_may_query() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let stranger = Owner::new(&fixture.server, "other").await;
    let body = json!({ "sql": "SELECT 1 AS one" });
    for owner in [None, Some(&stranger)] {
        for answer in [
            send_request(&fixture, owner, &body).await,
            schema(&fixture, owner).await,
        ] {
            let problem = answer.problem(401, "unauthorized");
            assert!(text(&problem["detail"]).contains("/op"), "{problem}");
            assert!(answer.header("www-authenticate").is_some());
        }
        // A caller without permission is not told about other errors.
        send_request(&fixture, owner, &json!({}))
            .await
            .problem(401, "unauthorized");
    }
    // A caller without permission is not told whether the backend exists.
    let bare = fixture.owner.project(&fixture.server, "Bare").await;
    fixture.owner.frontend(&fixture.server, &bare, "bare").await;
    let query = fixture.server.json("/bare/api/query", &body);
    let query = query.bearer_auth(&stranger.credential).answer().await;
    query.problem(401, "unauthorized");
    let query = fixture.server.json("/bare/api/query", &body);
    let query = query.bearer_auth(&fixture.owner.credential).answer().await;
    query.problem(404, "not_found");
    let mut wrong = fixture.owner.clone();
    wrong.credential = "nonsense".to_owned();
    send_request(&fixture, Some(&wrong), &body)
        .await
        .problem(401, "unauthorized");
    schema(&fixture, Some(&wrong))
        .await
        .problem(401, "unauthorized");
    // Who asks comes before how much is sent.
    let large = json!({ "sql": "x".repeat(1_200_000) });
    send_request(&fixture, None, &large)
        .await
        .problem(401, "unauthorized");
    let in_body = json!({ "sql": "SELECT 1 AS one", "credential": fixture.owner.credential });
    send_request(&fixture, None, &in_body)
        .await
        .problem(401, "unauthorized");
    send_request(&fixture, Some(&fixture.owner), &body)
        .await
        .expect(200);
    schema(&fixture, Some(&fixture.owner)).await.expect(200);
}

#[tokio::test]
async fn rows_are_read_and_written() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} CREATE VIEW named AS SELECT name FROM guests"
    ))
    .await;
    let none = json!([]);
    for (sql, params, columns, rows, affected) in [
        (
            "INSERT INTO guests (name) VALUES (:name)",
            json!({ "name": "Ada" }),
            json!([]),
            none.clone(),
            1,
        ),
        (
            "INSERT INTO guests (name) VALUES ('Grace'), ('Alan') RETURNING id",
            json!({}),
            json!(["id"]),
            json!([{ "id": 2 }, { "id": 3 }]),
            2,
        ),
        (
            "UPDATE guests SET email = name WHERE id > :id;",
            json!({ "id": 1 }),
            json!([]),
            none.clone(),
            2,
        ),
        (
            "REPLACE INTO guests (id, name) VALUES (3, 'Edsger')",
            json!({}),
            json!([]),
            none.clone(),
            1,
        ),
        (
            "SELECT name FROM main.guests WHERE id = :id",
            json!({ "id": 3 }),
            json!(["name"]),
            json!([{ "name": "Edsger" }]),
            0,
        ),
        (
            "-- Names.\nSELECT count(*) AS n FROM named",
            json!({}),
            json!(["n"]),
            json!([{ "n": 3 }]),
            0,
        ),
        (
            "WITH c (x) AS (VALUES (1), (2)) SELECT sum(x) AS s FROM c",
            json!({}),
            json!(["s"]),
            json!([{ "s": 3 }]),
            0,
        ),
        (
            "VALUES (7)",
            json!({}),
            json!(["column1"]),
            json!([{ "column1": 7 }]),
            0,
        ),
        (
            "SELECT session_id FROM svc_payments",
            json!({}),
            json!(["session_id"]),
            none.clone(),
            0,
        ),
        (
            "WITH c AS (SELECT 2 AS x) DELETE FROM guests WHERE id IN (SELECT x FROM c)",
            json!({}),
            json!([]),
            none.clone(),
            1,
        ),
    ] {
        let answer = fixture.query(sql, &params).await.expect(200).json();
        let expected = json!({
            "columns": columns, "rows": rows, "rows_affected": affected, "truncated": false,
        });
        assert_eq!(answer, expected, "{sql}");
    }
    assert_eq!(fixture.count("guests").await, 2);
    let email = json!({ "name": "x", "email": "a" });
    let sql = "INSERT INTO guests (name, email) VALUES (:name, :email)";
    fixture.query(sql, &email).await.expect(200);
    let problem = fixture
        .query(sql, &email)
        .await
        .problem(409, "constraint_violation");
    let says = "UNIQUE constraint failed: guests.email";
    assert!(text(&problem["detail"]).contains(says), "{problem}");
}

/// Texts that are no query. Nothing of it is done.
const REFUSED: [&str; 34] = [
    "",
    " \n",
    "-- nothing",
    "CREATE TABLE more (a)",
    "CREATE TEMP TABLE more (a)",
    "CREATE INDEX i ON guests (name)",
    "CREATE VIEW v AS SELECT 1 AS one",
    "CREATE TRIGGER t AFTER INSERT ON guests BEGIN DELETE FROM guests; END",
    "DROP TABLE guests",
    "ALTER TABLE guests RENAME TO others",
    "ALTER TABLE guests ADD COLUMN a",
    "PRAGMA user_version",
    "PRAGMA foreign_keys = OFF",
    "pragma table_info(guests)",
    "ATTACH 'other.db' AS other",
    "DETACH main",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT here",
    "RELEASE here",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "EXPLAIN SELECT 1 AS one",
    "EXPLAIN QUERY PLAN DELETE FROM guests",
    "SELECT 1 AS a; SELECT 2 AS b",
    "SELECT 1 AS a;\n\nDELETE FROM guests",
    "DELETE FROM guests; COMMIT",
    "nonsense",
    "SELECT ? AS a",
    "DELETE FROM svc_payments",
    "SELECT load_extension('x') AS a",
];

#[tokio::test]
async fn what_is_no_query_is_refused_with_its_place() {
    let fixture = ProjectFixture::new(&format!(
        "{GUESTS} INSERT INTO guests (name) VALUES ('Ada')"
    ))
    .await;
    for sql in REFUSED {
        let answer = fixture.query(sql, &json!({})).await;
        assert_sql_refused(&answer, "statement_refused", sql);
    }
    for (sql, says) in [
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT shoe_size FROM guests", "no such column: shoe_size"),
    ] {
        let problem = assert_sql_refused(
            &fixture.query(sql, &json!({})).await,
            "statement_refused",
            sql,
        );
        assert!(text(&problem["reason"]).contains(says), "{problem}");
    }
    assert_eq!(fixture.count("guests").await, 1);
    let detail = fixture.detail().await;
    assert_eq!(
        names(&detail["schema"]["tables"]),
        ["guests", "svc_files", "svc_payments"]
    );
}

#[tokio::test]
async fn params_are_the_statements_exactly() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let sql = "SELECT :b AS b, :a AS a, :b AS c";
    let body = json!({ "sql": sql, "params": { "a": 1, "c": 2 } });
    let problem = send_request(&fixture, Some(&fixture.owner), &body)
        .await
        .problem(400, "params_mismatch");
    assert_eq!(
        (&problem["missing"], &problem["extra"]),
        (&json!(["b"]), &json!(["c"]))
    );
    let answer = fixture
        .query(sql, &json!({ "a": 1, "b": 2 }))
        .await
        .expect(200);
    assert_eq!(answer.json()["rows"], json!([{ "b": 2, "a": 1, "c": 2 }]));
    let body = json!({ "sql": "SELECT 1 AS one" });
    send_request(&fixture, Some(&fixture.owner), &body)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_query_that_is_none_is_named() {
    // A body may be larger here, so that a statement can be too long by itself.
    let limits = TestServer::builder().limits(|limits| limits.op_body_bytes = 200_000);
    let fixture = ProjectFixture::on_server(limits.start().await, GUESTS).await;
    for (body, says) in [
        (json!({}), "sql"),
        (json!({ "sql": null }), "sql"),
        (json!({ "sql": 7 }), "sql"),
        (json!({ "sql": "SELECT 1 AS one", "params": [1] }), "params"),
        (
            json!({ "sql": "SELECT 1 AS one", "action": "one" }),
            "action",
        ),
        (json!({ "sql": padded("SELECT 1 AS one", 65_537) }), "sql"),
    ] {
        let answer = send_request(&fixture, Some(&fixture.owner), &body).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{says}: {problem}");
    }
    let longest = padded("SELECT 1 AS one", 65_536);
    fixture.query(&longest, &json!({})).await.expect(200);
    let request = fixture
        .owner
        .request(&fixture.server, Method::POST, "/room/api/query");
    request
        .body("{")
        .answer()
        .await
        .problem(400, "invalid_json");
}

#[tokio::test]
async fn the_schema_is_the_details_and_follows_migrations() {
    let fixture = ProjectFixture::new(GUESTS).await;
    for ddl in [
        "CREATE TABLE more (a TEXT NOT NULL DEFAULT 'x')",
        "CREATE INDEX more_a ON more (a)",
        "ALTER TABLE more ADD COLUMN b",
        "CREATE VIEW all_more AS SELECT a, b FROM more",
    ] {
        fixture.migrate(ddl).await.expect(200);
        let answer = schema(&fixture, Some(&fixture.owner))
            .await
            .expect(200)
            .json();
        assert_eq!(answer, fixture.detail().await["schema"], "{ddl}");
    }
    let answer = schema(&fixture, Some(&fixture.owner)).await.json();
    let more = named(&answer["tables"], "more");
    assert_eq!(names(&more["columns"]), ["a", "b"]);
    assert_eq!(names(&answer["views"]), ["all_more"]);
    let index = named(&answer["indexes"], "more_a");
    assert_eq!(index["unique"], false);
}

#[tokio::test]
async fn without_a_live_backend_there_is_nothing_to_query() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.publish("room").await;
    let owner = Some(&fixture.owner);
    let body = json!({ "sql": "SELECT 1 AS one" });
    send_request(&fixture, owner, &body)
        .await
        .problem(404, "not_found");
    send_request(&fixture, owner, &json!({}))
        .await
        .problem(404, "not_found");
    schema(&fixture, owner).await.problem(404, "not_found");
    fixture.create(GUESTS).await.expect(201);
    send_request(&fixture, owner, &body).await.expect(200);
    schema(&fixture, owner).await.expect(200);
    fixture.delete().await.expect(204);
    send_request(&fixture, owner, &body)
        .await
        .problem(404, "not_found");
    schema(&fixture, owner).await.problem(404, "not_found");
}

#[tokio::test]
async fn checks_of_queries_run_in_their_order() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let owner = format!("Authorization: Bearer {}\r\n", fixture.owner.credential);
    let send_request = async |method: &str, path: &str, credential: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{credential}Content-Length: 99999\r\n\r\n",
            fixture.server.address()
        );
        fixture.server.raw(request).await
    };
    // The method before the credential, the credential before the length, the length before what is there.
    let path = "/room/api/query";
    send_request("PUT", path, "")
        .await
        .problem(405, "method_not_allowed");
    send_request("POST", path, "")
        .await
        .problem(401, "unauthorized");
    send_request("POST", path, &owner)
        .await
        .problem(413, "payload_too_large");
    let nothing = "/nothing/api/query";
    send_request("POST", nothing, &owner)
        .await
        .problem(413, "payload_too_large");
    send_request("POST", "/nothing/api/op", "")
        .await
        .problem(413, "payload_too_large");
    let request = fixture
        .owner
        .request(&fixture.server, Method::POST, nothing);
    request.body("{").answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn an_owner_queries_without_a_page() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let select = json!({ "sql": "SELECT name FROM guests WHERE id = :id", "params": { "id": 1 } });
    fixture
        .send(Method::POST, "/query", &select)
        .await
        .problem(404, "not_found");
    fixture.create(GUESTS).await.expect(201);
    let insert = json!({ "sql": "INSERT INTO guests (name) VALUES ('Ada')" });
    let mut reads = insert.clone();
    reads["read_only"] = true.into();
    fixture
        .send(Method::POST, "/query", &reads)
        .await
        .problem(403, "forbidden");
    let mut writes = insert.clone();
    writes["read_only"] = false.into();
    let inserted = fixture.send(Method::POST, "/query", &writes).await;
    assert_eq!(inserted.expect(200).json()["rows_affected"], 1);
    let mut read = select.clone();
    read["read_only"] = true.into();
    for body in [&select, &read] {
        let answer = fixture.send(Method::POST, "/query", body).await;
        let expected = json!({ "columns": ["name"], "rows": [{ "name": "Ada" }], "rows_affected": 0, "truncated": false });
        assert_eq!(answer.expect(200).json(), expected);
    }
    for (body, code) in [
        (json!({}), "invalid_request"),
        (
            json!({ "sql": "SELECT 1", "read_only": "yes" }),
            "invalid_request",
        ),
        (json!({ "sql": "SELECT 1", "as": {} }), "invalid_request"),
        (json!({ "sql": "DROP TABLE guests" }), "statement_refused"),
        (json!({ "sql": "SELECT :a" }), "params_mismatch"),
        (
            json!({ "sql": "SELECT :svc_user_id", "params": { "svc_user_id": "x" } }),
            "statement_refused",
        ),
        (
            json!({ "sql": "SELECT 1", "params": { "svc_user_id": "x" } }),
            "reserved_param",
        ),
    ] {
        fixture
            .send(Method::POST, "/query", &body)
            .await
            .problem(400, code);
    }
    let long = json!({ "sql": format!("SELECT '{}'", "x".repeat(65_536)) });
    fixture
        .send(Method::POST, "/query", &long)
        .await
        .problem(413, "payload_too_large");
    let stranger = Owner::new(&fixture.server, "other").await;
    for below in ["query", "batch"] {
        let path = format!("/{}/backend/{below}", fixture.project);
        stranger
            .post(&fixture.server, &path, &json!({}))
            .await
            .problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_batch_without_a_page_is_all_or_nothing() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    fixture.create(GUESTS).await.expect(201);
    let actions = json!({ "actions": [
        { "name": "add", "sql": "INSERT INTO guests (name, email) VALUES (:name, :svc_user_email)" },
        { "name": "all", "sql": "SELECT name, email FROM guests ORDER BY id" },
    ] });
    fixture
        .send(Method::PUT, "/actions", &actions)
        .await
        .expect(200);
    let add = |name: Value| json!({ "action": "add", "params": { "name": name } });
    let by = json!({ "user_id": "usr_test", "email": "ada@example.com" });
    let batch = json!({ "ops": [add("Ada".into()), { "action": "all" }], "as": by });
    let answer = fixture.send(Method::POST, "/batch", &batch).await;
    let results = answer.expect(200).json()["results"].take();
    let row = json!({ "name": "Ada", "email": "ada@example.com" });
    assert_eq!(results[1]["rows"], json!([row]));
    let another = json!({ "user_id": "usr_other" });
    let failing = json!({ "ops": [add("Bob".into()), add(Value::Null)], "as": another });
    let problem = fixture
        .send(Method::POST, "/batch", &failing)
        .await
        .problem(409, "constraint_violation");
    assert_eq!(problem["index"], 1);
    let nobody = json!({ "ops": [add("Bob".into())] });
    fixture
        .send(Method::POST, "/batch", &nobody)
        .await
        .problem(401, "identity_required");
    for body in [json!({ "ops": [] }), json!({ "action": "all" }), json!({})] {
        fixture
            .send(Method::POST, "/batch", &body)
            .await
            .problem(400, "invalid_request");
    }
    let all = json!({ "ops": [{ "action": "all" }] });
    let left = fixture.send(Method::POST, "/batch", &all).await;
    let rows = left.expect(200).json()["results"][0]["rows"].take();
    assert_eq!(rows, json!([row]));
}

#[tokio::test]
async fn queries_without_a_page_draw_from_the_owners_bucket_alone() {
    let builder = TestServer::builder().limits(|limits| {
        limits.op_burst = 1;
        limits.op_deployment_burst = 1;
    });
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let select = json!({ "sql": "SELECT 1 AS one" });
    for _ in 0..5 {
        fixture
            .send(Method::POST, "/query", &select)
            .await
            .expect(200);
    }
    send_request(&fixture, Some(&fixture.owner), &select)
        .await
        .expect(200);
    send_request(&fixture, Some(&fixture.owner), &select)
        .await
        .problem(429, "rate_limited");
}
