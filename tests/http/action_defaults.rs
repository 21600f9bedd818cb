//! Binds with defaults: what may be left out of a call, and what an action says of it.

use http::Method;
use serde_json::{Value, json};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture, named};

/// An action `it` with its defaults.
fn with_defaults(sql: &str, defaults: Value) -> Value {
    let mut action = json!({ "name": "it", "sql": sql });
    action["defaults"] = defaults;
    json!([action])
}

/// The row that a call of `it` answers.
async fn row(fixture: &ProjectFixture, params: Value) -> Value {
    fixture.call_ok("it", &params).await["rows"][0].take()
}

#[tokio::test]
async fn what_is_left_out_has_its_default() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let sql = "SELECT :a AS a, :b AS b, typeof(:b) AS kind";
    let defined = fixture
        .put(&with_defaults(sql, json!({ "b": 5 })))
        .await
        .expect(200)
        .json();
    let it = named(&defined["actions"], "it");
    assert_eq!(it["defaults"], json!({ "b": 5 }));
    assert_eq!(it["params"], json!(["a", "b"]), "a call may name it");
    assert_eq!(named(&fixture.detail().await["actions"], "it"), it);
    for (params, b, kind) in [
        (json!({ "a": 1 }), json!(5), "integer"),
        (json!({ "a": 1, "b": 6 }), json!(6), "integer"),
        (json!({ "a": 1, "b": null }), Value::Null, "null"),
        (json!({ "a": 1, "b": "5" }), json!("5"), "text"),
    ] {
        assert_eq!(
            row(&fixture, params).await,
            json!({ "a": 1, "b": b, "kind": kind })
        );
    }
    for (params, missing, extra) in [
        (json!({}), json!(["a"]), json!([])),
        (json!({ "b": 1 }), json!(["a"]), json!([])),
        (json!({ "a": 1, "c": 1 }), json!([]), json!(["c"])),
    ] {
        let refused = fixture.call_action("it", &params).await;
        let problem = refused.problem(400, "params_mismatch");
        assert_eq!((&problem["missing"], &problem["extra"]), (&missing, &extra));
    }
    let alone = json!({ "action": "it" });
    fixture
        .put(&with_defaults(sql, json!({ "a": 1, "b": 2 })))
        .await
        .expect(200);
    let answer = fixture.call("room", &alone).await.expect(200).json();
    assert_eq!(
        answer["rows"],
        json!([{ "a": 1, "b": 2, "kind": "integer" }])
    );
}

#[tokio::test]
async fn a_default_is_any_value_that_a_param_is_and_comes_back_exactly() {
    let fixture = ProjectFixture::new(GUESTS).await;
    for (default, kind, value) in [
        (json!(null), "null", json!(null)),
        (json!(true), "integer", json!(1)),
        (json!(false), "integer", json!(0)),
        (json!(i64::MAX), "integer", json!(i64::MAX)),
        (json!(i64::MIN), "integer", json!(i64::MIN)),
        (json!(1.5), "real", json!(1.5)),
        (json!("a\"\\\n\u{e9}"), "text", json!("a\"\\\n\u{e9}")),
        (json!(""), "text", json!("")),
        (
            json!({ "base64": "AAH/" }),
            "blob",
            json!({ "base64": "AAH/" }),
        ),
    ] {
        let batch = with_defaults(
            "SELECT :v AS v, typeof(:v) AS kind",
            json!({ "v": default }),
        );
        let defined = fixture.put(&batch).await.expect(200).json();
        let it = named(&defined["actions"], "it");
        assert_eq!(it["defaults"], json!({ "v": default }));
        let found = row(&fixture, json!({})).await;
        assert_eq!(found, json!({ "v": value, "kind": kind }), "{default}");
    }
    // The text of a number is kept.
    let body = r#"{"actions":[{"name":"it","sql":"SELECT :v AS v","defaults":{ "v" : 9007199254740993.0 }}]}"#;
    let path = format!("/api/v1/projects/{}/backend/actions", fixture.project);
    let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let answer = svc_tests::ReadAnswer::answer(request).await.expect(200);
    assert!(
        answer
            .text()
            .contains(r#""defaults":{"v":9007199254740993.0}"#),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn a_wrong_default_is_told_in_the_batch() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let sql = "SELECT :a AS a, :svc_user_id AS me";
    for (defaults, says) in [
        (json!({ "b": 1 }), "`:b`"),
        (json!({ "A": 1 }), "`:A`"),
        (json!({ ":a": 1 }), "`::a`"),
        (json!({ "": 1 }), "`:`"),
        (json!({ "svc_user_id": "usr" }), "svc_user_id"),
        (json!({ "SVC_x": 1 }), "SVC_x"),
        (json!({ "a": [1] }), "array"),
        (json!({ "a": { "b": 1 } }), "object"),
        (json!({ "a": { "from": [0, "id"] } }), "object"),
        (json!({ "a": { "base64": "?" } }), "base64"),
        (json!({ "a": 9_223_372_036_854_775_808_u64 }), "64 bits"),
        (json!({ "a": "x".repeat(70_000) }), "65536"),
    ] {
        let good = json!({ "name": "good", "sql": "SELECT 1 AS n" });
        let bad = with_defaults(sql, defaults)[0].take();
        let problem = fixture.put(&json!([good, bad])).await;
        let problem = problem.problem(400, "invalid_request");
        assert_eq!(
            problem["errors"].as_array().map(Vec::len),
            Some(1),
            "{problem}"
        );
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["name"], &error["code"]),
            (&json!("it"), &json!("invalid_request"))
        );
        assert!(text(&error["detail"]).contains(says), "{says}: {problem}");
    }
    let many: Value = (0..101)
        .map(|n| (format!("p{n}"), json!(n)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let binds: Vec<_> = (0..101).map(|n| format!(":p{n} AS p{n}")).collect();
    let batch = with_defaults(&format!("SELECT {}", binds.join(", ")), many);
    let problem = fixture.put(&batch).await.problem(400, "invalid_request");
    assert!(
        text(&problem["detail"]).contains("100 is the most"),
        "{problem}"
    );
    // One name twice is no JSON that says anything.
    let body = r#"{"actions":[{"name":"it","sql":"SELECT :a AS a","defaults":{"a":1,"a":2}}]}"#;
    let path = format!("/api/v1/projects/{}/backend/actions", fixture.project);
    let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
    let request = request
        .header("content-type", "application/json")
        .body(body);
    let answer = svc_tests::ReadAnswer::answer(request).await;
    assert!(
        answer
            .problem(400, "invalid_request")
            .to_string()
            .contains("twice")
    );
    assert_eq!(fixture.detail().await["actions"], json!([]));
}

#[tokio::test]
async fn a_changed_default_is_the_next_version() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let sql = "SELECT :a AS a, :b AS b";
    let mut checksum = Value::Null;
    for (defaults, version) in [
        (json!(null), 1),
        (json!({}), 1),
        (json!({ "a": 1 }), 2),
        (json!({ "a": 1, "b": 2 }), 3),
        (json!({ "b": 2, "a": 1 }), 3),
        (json!({ "a": 1.0, "b": 2 }), 4),
        (json!({ "a": true, "b": 2 }), 5),
        (json!({ "a": "1", "b": 2 }), 6),
        (json!({}), 7),
    ] {
        for query in ["?dry_run=true", ""] {
            let body = json!({ "actions": with_defaults(sql, defaults.clone()) });
            let below = format!("/actions{query}");
            fixture.send(Method::PUT, &below, &body).await.expect(200);
        }
        let detail = fixture.detail().await;
        let it = named(&detail["actions"], "it");
        assert_eq!(it["version"], version, "{defaults}");
        if !checksum.is_null() {
            assert_eq!(it["checksum"], checksum, "it is the one of the SQL");
        }
        checksum = it["checksum"].clone();
    }
    // An action grows, and pages that were made before go on.
    fixture
        .put(&with_defaults("SELECT :a AS a", json!({})))
        .await
        .expect(200);
    let before = json!({ "a": 1 });
    fixture.call_ok("it", &before).await;
    fixture
        .put(&with_defaults(sql, json!({ "b": 2 })))
        .await
        .expect(200);
    fixture.call_ok("it", &before).await;
}

#[tokio::test]
async fn defaults_hold_in_batches_and_for_owners() {
    let fixture = ProjectFixture::new(GUESTS).await;
    fixture
        .put(&json!([
            { "name": "add", "sql": "INSERT INTO guests (name, email) VALUES (:name, :email) RETURNING id",
                "defaults": { "name": "Ada", "email": null } },
            { "name": "find", "sql": "SELECT name, :svc_user_id AS me FROM guests WHERE id = :id", "defaults": { "id": -1 } },
        ]))
        .await
        .expect(200);
    let ops = json!([{ "action": "add" }, { "action": "add", "params": { "name": "Bob" } },
        { "action": "find", "params": { "id": { "from": [0, "id"] } } }, { "action": "find" }]);
    let by = json!({ "user_id": "usr_test" });
    let body = json!({ "ops": ops, "as": by });
    let path = format!("/{}/backend/batch", fixture.project);
    let batch = fixture
        .owner
        .send(&fixture.server, Method::POST, &path, &body)
        .await;
    let results = batch.expect(200).json()["results"].take();
    assert_eq!(
        results[2]["rows"],
        json!([{ "name": "Ada", "me": "usr_test" }])
    );
    assert_eq!(results[3]["rows"], json!([]));
    let ops = json!({ "ops": [{ "action": "add" }] });
    fixture.call("room", &ops).await.expect(200);
    assert_eq!(fixture.count("guests").await, 3);
    let body = json!({ "action": "find", "params": {}, "as": by });
    let request = fixture
        .owner
        .request(&fixture.server, Method::POST, "/room/api/op");
    let answer = svc_tests::ReadAnswer::answer(request.json(&body)).await;
    assert_eq!(answer.expect(200).json()["rows"], json!([]));
}
