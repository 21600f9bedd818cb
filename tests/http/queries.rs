//! Queries of an owner through a page: one statement at a time, and the schema as it stands.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::account::{Owner, text};
use crate::house::{GUESTS, House, named, names, padded, refused};

/// Sends a query as somebody, or as nobody.
async fn ask(house: &House, owner: Option<&Owner>, body: &Value) -> Answer {
    let request = house.server.json("/room/api/query", body);
    match owner {
        Some(owner) => request.bearer_auth(&owner.credential).answer().await,
        None => request.answer().await,
    }
}

async fn schema(house: &House, owner: Option<&Owner>) -> Answer {
    let request = house.server.get("/room/api/schema");
    match owner {
        Some(owner) => request.bearer_auth(&owner.credential).answer().await,
        None => request.answer().await,
    }
}

#[tokio::test]
async fn only_the_owner_may_query() {
    let house = House::new(GUESTS).await;
    let stranger = Owner::new(&house.server, "other").await;
    let body = json!({ "sql": "SELECT 1 AS one" });
    for owner in [None, Some(&stranger)] {
        for answer in [ask(&house, owner, &body).await, schema(&house, owner).await] {
            let problem = answer.problem(401, "unauthorized");
            assert!(text(&problem["detail"]).contains("/op"), "{problem}");
            assert!(answer.header("www-authenticate").is_some());
        }
        // Whoever may not ask is not told what would be wrong.
        ask(&house, owner, &json!({}))
            .await
            .problem(401, "unauthorized");
    }
    // Neither is whoever may not ask told whether there is anything to ask.
    let bare = house.owner.project(&house.server, "Bare").await;
    house.owner.frontend(&house.server, &bare, "bare").await;
    let query = house.server.json("/bare/api/query", &body);
    let query = query.bearer_auth(&stranger.credential).answer().await;
    query.problem(401, "unauthorized");
    let query = house.server.json("/bare/api/query", &body);
    let query = query.bearer_auth(&house.owner.credential).answer().await;
    query.problem(404, "not_found");
    let mut wrong = house.owner.clone();
    wrong.credential = "nonsense".to_owned();
    ask(&house, Some(&wrong), &body)
        .await
        .problem(401, "unauthorized");
    schema(&house, Some(&wrong))
        .await
        .problem(401, "unauthorized");
    let in_body = json!({ "sql": "SELECT 1 AS one", "credential": house.owner.credential });
    ask(&house, None, &in_body)
        .await
        .problem(401, "unauthorized");
    ask(&house, Some(&house.owner), &body).await.expect(200);
    schema(&house, Some(&house.owner)).await.expect(200);
}

#[tokio::test]
async fn rows_are_read_and_written() {
    let house = House::new(&format!(
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
        let answer = house.query(sql, &params).await.expect(200).json();
        let expected = json!({
            "columns": columns, "rows": rows, "rows_affected": affected, "truncated": false,
        });
        assert_eq!(answer, expected, "{sql}");
    }
    assert_eq!(house.count("guests").await, 2);
    let email = json!({ "name": "x", "email": "a" });
    let sql = "INSERT INTO guests (name, email) VALUES (:name, :email)";
    house.query(sql, &email).await.expect(200);
    let problem = house
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
    let house = House::new(&format!(
        "{GUESTS} INSERT INTO guests (name) VALUES ('Ada')"
    ))
    .await;
    for sql in REFUSED {
        let answer = house.query(sql, &json!({})).await;
        refused(&answer, "statement_refused", sql);
    }
    for (sql, says) in [
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT shoe_size FROM guests", "no such column: shoe_size"),
    ] {
        let problem = refused(
            &house.query(sql, &json!({})).await,
            "statement_refused",
            sql,
        );
        assert!(text(&problem["reason"]).contains(says), "{problem}");
    }
    assert_eq!(house.count("guests").await, 1);
    let detail = house.detail().await;
    assert_eq!(
        names(&detail["schema"]["tables"]),
        ["guests", "svc_payments"]
    );
}

#[tokio::test]
async fn params_are_the_statements_exactly() {
    let house = House::new(GUESTS).await;
    let sql = "SELECT :b AS b, :a AS a, :b AS c";
    let body = json!({ "sql": sql, "params": { "a": 1, "c": 2 } });
    let problem = ask(&house, Some(&house.owner), &body)
        .await
        .problem(400, "params_mismatch");
    assert_eq!(
        (&problem["missing"], &problem["extra"]),
        (&json!(["b"]), &json!(["c"]))
    );
    let answer = house
        .query(sql, &json!({ "a": 1, "b": 2 }))
        .await
        .expect(200);
    assert_eq!(answer.json()["rows"], json!([{ "b": 2, "a": 1, "c": 2 }]));
    let body = json!({ "sql": "SELECT 1 AS one" });
    ask(&house, Some(&house.owner), &body).await.expect(200);
}

#[tokio::test]
async fn a_query_that_is_none_is_named() {
    // A body may be larger here, so that a statement can be too long by itself.
    let limits = TestServer::builder().limits(|limits| limits.op_body_bytes = 200_000);
    let house = House::on(limits.start().await, GUESTS).await;
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
        let answer = ask(&house, Some(&house.owner), &body).await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{says}: {problem}");
    }
    let longest = padded("SELECT 1 AS one", 65_536);
    house.query(&longest, &json!({})).await.expect(200);
    let request = house
        .owner
        .request(&house.server, Method::POST, "/room/api/query");
    request
        .body("{")
        .answer()
        .await
        .problem(400, "invalid_json");
}

#[tokio::test]
async fn the_schema_is_the_details_and_follows_migrations() {
    let house = House::new(GUESTS).await;
    for ddl in [
        "CREATE TABLE more (a TEXT NOT NULL DEFAULT 'x')",
        "CREATE INDEX more_a ON more (a)",
        "ALTER TABLE more ADD COLUMN b",
        "CREATE VIEW all_more AS SELECT a, b FROM more",
    ] {
        house.migrate(ddl).await.expect(200);
        let answer = schema(&house, Some(&house.owner)).await.expect(200).json();
        assert_eq!(answer, house.detail().await["schema"], "{ddl}");
    }
    let answer = schema(&house, Some(&house.owner)).await.json();
    let more = named(&answer["tables"], "more");
    assert_eq!(names(&more["columns"]), ["a", "b"]);
    assert_eq!(names(&answer["views"]), ["all_more"]);
    let index = named(&answer["indexes"], "more_a");
    assert_eq!(index["unique"], false);
}

#[tokio::test]
async fn without_a_live_backend_there_is_nothing_to_query() {
    let house = House::empty(TestServer::start().await).await;
    house.publish("room").await;
    let owner = Some(&house.owner);
    let body = json!({ "sql": "SELECT 1 AS one" });
    ask(&house, owner, &body).await.problem(404, "not_found");
    ask(&house, owner, &json!({}))
        .await
        .problem(404, "not_found");
    schema(&house, owner).await.problem(404, "not_found");
    house.create(GUESTS).await.expect(201);
    ask(&house, owner, &body).await.expect(200);
    schema(&house, owner).await.expect(200);
    house.delete().await.expect(204);
    ask(&house, owner, &body).await.problem(404, "not_found");
    schema(&house, owner).await.problem(404, "not_found");
}

#[tokio::test]
async fn checks_of_queries_run_in_their_order() {
    let house = House::new(GUESTS).await;
    let owner = format!("Authorization: Bearer {}\r\n", house.owner.credential);
    let ask = async |method: &str, path: &str, credential: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{credential}Content-Length: 99999\r\n\r\n",
            house.server.address()
        );
        house.server.raw(request).await
    };
    // The method before the credential, the credential before the length, the length before what is there.
    let path = "/room/api/query";
    ask("PUT", path, "")
        .await
        .problem(405, "method_not_allowed");
    ask("POST", path, "").await.problem(401, "unauthorized");
    ask("POST", path, &owner)
        .await
        .problem(413, "payload_too_large");
    let nothing = "/nothing/api/query";
    ask("POST", nothing, &owner)
        .await
        .problem(413, "payload_too_large");
    ask("POST", "/nothing/api/op", "")
        .await
        .problem(413, "payload_too_large");
    let request = house.owner.request(&house.server, Method::POST, nothing);
    request.body("{").answer().await.problem(404, "not_found");
}
