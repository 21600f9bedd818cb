//! Several calls as one: all of them or none, each with the first rows of earlier ones at hand.

use serde_json::{Value, json};
use svc_tests::{Answer, TestServer};
use tokio::task::JoinSet;

use crate::owner::text;
use crate::project_fixture::ProjectFixture;

const SHOP: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, tag BLOB, weight REAL);
    CREATE TABLE lines (of INTEGER NOT NULL REFERENCES orders (id), item TEXT NOT NULL, tag BLOB, weight REAL);";

const ACTIONS: [(&str, &str); 8] = [
    (
        "order",
        "INSERT INTO orders (name, tag, weight) VALUES (:name, x'00ff', 1.5) RETURNING id, tag, weight, NULL AS absent",
    ),
    (
        "line",
        "INSERT INTO lines (of, item) VALUES (:of, :item) RETURNING of, item",
    ),
    (
        "whole_line",
        "INSERT INTO lines (of, item, tag, weight) VALUES (:of, :item, :tag, :weight)",
    ),
    (
        "lines",
        "SELECT of, item FROM lines WHERE of = :of ORDER BY item",
    ),
    ("all_lines", "SELECT of, item FROM lines ORDER BY of, item"),
    (
        "rename",
        "UPDATE orders SET name = :name WHERE id = :id RETURNING id",
    ),
    ("mine", "SELECT :svc_user_id AS me"),
    (
        "endless",
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c",
    ),
];

async fn start_shop() -> ProjectFixture {
    let fixture = ProjectFixture::new(SHOP).await;
    fixture.define(&ACTIONS).await;
    fixture
}

async fn send_batch(fixture: &ProjectFixture, ops: &Value) -> Answer {
    fixture.call("room", &json!({ "ops": ops })).await
}

fn operation(action: &str, params: &Value) -> Value {
    json!({ "action": action, "params": params })
}

/// Asserts that nothing was written.
async fn assert_nothing_written(fixture: &ProjectFixture, why: &Value) {
    assert_eq!(fixture.count("orders").await, 0, "{why}");
    assert_eq!(fixture.count("lines").await, 0, "{why}");
}

#[tokio::test]
async fn a_batch_answers_what_each_op_would_in_order() {
    let fixture = start_shop().await;
    let ops = json!([
        operation("order", &json!({ "name": "one" })),
        operation(
            "line",
            &json!({ "of": { "from": [0, "id"] }, "item": "tea" })
        ),
        operation(
            "line",
            &json!({ "of": { "from": [1, "of"] }, "item": "rye" })
        ),
        operation("lines", &json!({ "of": { "from": [0, "id"] } })),
        operation(
            "whole_line",
            &json!({
                "of": { "from": [0, "id"] }, "item": { "from": [3, "item"] },
                "tag": { "from": [0, "tag"] }, "weight": { "from": [0, "weight"] },
            })
        ),
    ]);
    let answer = send_batch(&fixture, &ops).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = answer.json();
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 5);
    let id = &results[0]["rows"][0]["id"];
    assert_eq!(
        results[1],
        json!({
            "rows": [{ "of": id, "item": "tea" }], "columns": ["of", "item"],
            "rows_affected": 1, "truncated": false,
        })
    );
    assert_eq!(
        results[3]["rows"],
        json!([{ "of": id, "item": "rye" }, { "of": id, "item": "tea" }])
    );
    assert_eq!(results[3]["rows_affected"], 0);
    assert_eq!(results[4]["columns"], json!([]));
    // Values come over as they are in the database.
    let kept = fixture
        .rows("SELECT item, typeof(tag) AS tag, hex(tag) AS hex, weight FROM lines WHERE tag IS NOT NULL")
        .await;
    assert_eq!(
        kept,
        json!([{ "item": "rye", "tag": "blob", "hex": "00FF", "weight": 1.5 }])
    );
}

#[tokio::test]
async fn a_batch_of_reads_is_a_batch_too() {
    let fixture = start_shop().await;
    let ops = json!([operation("all_lines", &json!({})), { "action": "all_lines" }]);
    let answer = send_batch(&fixture, &ops).await.expect(200).json();
    assert_eq!(answer["results"][1]["rows"], json!([]));
}

#[tokio::test]
async fn one_op_that_fails_leaves_nothing_of_any_and_is_named() {
    let fixture = start_shop().await;
    let order = operation("order", &json!({ "name": "one" }));
    let line = |of: Value| operation("line", &json!({ "of": of, "item": "tea" }));
    for (index, status, code, failing) in [
        (2, 409, "constraint_violation", order.clone()),
        (2, 409, "constraint_violation", line(json!(77))),
        (2, 404, "not_found", operation("nothing", &json!({}))),
        (
            2,
            400,
            "params_mismatch",
            operation("line", &json!({ "of": 1 })),
        ),
        (
            2,
            400,
            "reserved_param",
            operation("line", &json!({ "of": 1, "item": "x", "svc_user_id": "y" })),
        ),
        (2, 401, "identity_required", operation("mine", &json!({}))),
        (2, 400, "query_timeout", operation("endless", &json!({}))),
        (
            2,
            400,
            "statement_refused",
            line(json!({ "from": [0, "missing"] })),
        ),
        (
            2,
            409,
            "constraint_violation",
            line(json!({ "from": [0, "absent"] })),
        ),
    ] {
        let ops = json!([order, line(json!({ "from": [0, "id"] })), failing]);
        let problem = send_batch(&fixture, &ops).await.problem(status, code);
        assert_eq!(problem["index"], index, "{problem}");
        assert!(text(&problem["detail"]).starts_with("Op 2: "), "{problem}");
        assert_nothing_written(&fixture, &problem).await;
    }
    // An op that takes a value from a missing row.
    let renamed = operation("rename", &json!({ "id": 9, "name": "x" }));
    let ops = json!([order, renamed, line(json!({ "from": [1, "id"] }))]);
    let problem = send_batch(&fixture, &ops)
        .await
        .problem(409, "constraint_violation");
    assert_eq!(problem["index"], 2);
    assert_nothing_written(&fixture, &problem).await;
}

#[tokio::test]
async fn what_is_no_batch_is_refused() {
    let fixture = start_shop().await;
    let order = operation("order", &json!({ "name": "one" }));
    let from = |step: &Value| operation("line", &json!({ "of": { "from": step }, "item": "x" }));
    for (body, names) in [
        (json!({ "ops": [] }), "`ops`"),
        (json!({ "ops": vec![order.clone(); 21] }), "21"),
        (json!({ "ops": [order], "action": "order" }), "`ops`"),
        (json!({ "ops": [order], "params": {} }), "`ops`"),
        (json!({}), "`action`"),
        (json!({ "params": {} }), "`action`"),
        (json!({ "ops": {} }), "ops"),
        (json!({ "ops": [{ "params": {} }] }), "action"),
        (json!({ "ops": [{ "action": "order", "more": 1 }] }), "more"),
        (json!({ "ops": [order, from(&json!([1, "id"]))] }), "op 1"),
        (json!({ "ops": [order, from(&json!([7, "id"]))] }), "op 7"),
        (json!({ "ops": [order, from(&json!([-1, "id"]))] }), "from"),
        (json!({ "ops": [order, from(&json!([0]))] }), "from"),
        (json!({ "ops": [order, from(&json!("id"))] }), "from"),
        // A call that is alone has no earlier one.
        (
            json!({ "action": "lines", "params": { "of": { "from": [0, "id"] } } }),
            "base64",
        ),
    ] {
        let problem = fixture
            .call("room", &body)
            .await
            .problem(400, "invalid_request");
        let detail = text(&problem["detail"]);
        assert!(detail.contains(names), "{body}: {detail}");
        assert_nothing_written(&fixture, &body).await;
    }
}

#[tokio::test]
async fn an_op_that_is_none_is_named_by_its_number() {
    let fixture = start_shop().await;
    let order = operation("order", &json!({ "name": "one" }));
    for bad in [
        json!({ "params": {} }),
        json!({ "action": "" }),
        json!({ "action": "order", "params": { "name": [1] } }),
        json!("order"),
        operation("line", &json!({ "of": { "from": [4, "id"] }, "item": "x" })),
    ] {
        let answer = send_batch(&fixture, &json!([order, bad])).await;
        let problem = answer.problem(400, "invalid_request");
        assert_eq!(problem["index"], 1, "{problem}");
        assert_nothing_written(&fixture, &problem).await;
    }
}

#[tokio::test]
async fn text_that_is_none_is_mended_as_it_is_alone() {
    let fixture = start_shop().await;
    let broken = "INSERT INTO orders (name) VALUES (CAST(x'ff61' AS TEXT)) RETURNING id, name";
    let line = "INSERT INTO lines (of, item) VALUES (:of, :item) RETURNING item";
    fixture.define(&[("broken", broken), ("line", line)]).await;
    let ops = json!([
        operation("broken", &json!({})),
        operation(
            "line",
            &json!({ "of": { "from": [0, "id"] }, "item": { "from": [0, "name"] } })
        ),
    ]);
    let results = send_batch(&fixture, &ops).await.expect(200).json();
    assert_eq!(results["results"][0]["rows"][0]["name"], "\u{fffd}a");
    assert_eq!(results["results"][1]["rows"][0]["item"], "\u{fffd}a");
}

#[tokio::test]
async fn each_op_takes_a_token_of_both_buckets() {
    let builder = TestServer::builder().limits(|limits| {
        limits.op_burst = 10;
        limits.op_deployment_burst = 6;
    });
    let fixture = ProjectFixture::on_server(builder.start().await, SHOP).await;
    fixture.define(&ACTIONS).await;
    let read = |ops: usize| json!(vec![json!({ "action": "all_lines" }); ops]);
    let answer = send_batch(&fixture, &read(4)).await.expect(200);
    let states = answer.headers.get_all("ratelimit");
    let states: Vec<&str> = states.iter().map(|state| state.to_str().unwrap()).collect();
    assert!(states[0].contains(";r=6"), "{states:?}");
    assert!(states[1].contains(";r=2"), "{states:?}");
    // The page has two left: a batch of three is refused, and what it asked for is not done.
    let ops = json!([
        operation("order", &json!({ "name": "one" })),
        { "action": "all_lines" },
        { "action": "all_lines" },
    ]);
    let refused = send_batch(&fixture, &ops).await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    fixture.server.advance(60);
    assert_nothing_written(&fixture, &ops).await;
    fixture.server.advance(60);
    send_batch(&fixture, &read(6)).await.expect(200);
}

/// Batches share commits with other writes, and none of them is ever half done.
#[tokio::test]
async fn batches_and_calls_that_race_stay_whole() {
    let fixture = start_shop().await;
    let mut calls = JoinSet::new();
    for number in 0..60 {
        // Every third fails in its last op.
        let item = if number % 3 == 0 {
            json!(null)
        } else {
            json!("tea")
        };
        let body = json!({ "ops": [
            operation("order", &json!({ "name": format!("batch {number}") })),
            operation("line", &json!({ "of": { "from": [0, "id"] }, "item": item })),
        ] });
        calls.spawn(fixture.server.json("/room/api/op", &body).send());
        let single = operation("order", &json!({ "name": format!("single {number}") }));
        calls.spawn(fixture.server.json("/room/api/op", &single).send());
    }
    let statuses: Vec<u16> = calls
        .join_all()
        .await
        .into_iter()
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 20);
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        100
    );
    assert_eq!(fixture.count("orders").await, 100);
    assert_eq!(fixture.count("lines").await, 40);
    let torn = fixture
        .rows(
            "SELECT name FROM orders WHERE name LIKE 'batch%' AND id NOT IN (SELECT of FROM lines)",
        )
        .await;
    assert_eq!(torn, json!([]));
}
