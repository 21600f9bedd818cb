//! The log: each request once, newest first, in pages, by what is looked for.

use http::Method;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;

use super::{entries, start_fixture};

#[tokio::test]
async fn each_request_is_one_entry() {
    let fixture = start_fixture().await;
    let called = fixture.call_action("all", &json!({})).await.expect(200);
    fixture.server.advance(1);
    let ops = json!({ "ops": [{ "action": "all" }, { "action": "all" }] });
    fixture.call("room", &ops).await.expect(200);
    let add = json!({ "name": "Ann", "email": "a@x" });
    fixture.call_ok("add", &add).await;
    fixture.call_action("add", &add).await.expect(409);
    fixture
        .query("SELECT 1 AS one", &json!({}))
        .await
        .expect(200);
    fixture
        .server
        .json("/room/api/query", &json!({ "sql": "SELECT 1" }))
        .answer()
        .await
        .expect(401);
    let log = fixture.seen("log").await;
    assert_eq!(log["next_before"], Value::Null);
    let none = || json!(null);
    assert_eq!(
        entries(&log, &["kind", "status", "action", "code"]),
        [
            [json!("call"), json!(200), json!("all"), none()],
            [json!("call"), json!(200), none(), none()],
            [json!("call"), json!(200), json!("add"), none()],
            [
                json!("call"),
                json!(409),
                json!("add"),
                json!("constraint_violation")
            ],
            [json!("query"), json!(200), none(), none()],
            [json!("query"), json!(401), none(), json!("unauthorized")],
        ]
    );
    let all = log["entries"].as_array().unwrap();
    let first = all.last().unwrap();
    assert_eq!(first["request_id"], called.header("x-request-id").unwrap());
    assert_eq!(first["at"], "2026-11-20T12:00:00.000Z");
    assert_eq!(first["slug"], "room");
    assert!(
        first["ms"].is_number() && first["id"].is_string(),
        "{first}"
    );
    assert!(
        first.get("detail").is_none() && first.get("user_id").is_none(),
        "{first}"
    );
    assert_eq!(all[2]["detail"], "UNIQUE constraint failed: guests.email");
    assert!(
        all.iter().all(|entry| entry["client"] == first["client"]),
        "{log}"
    );
    fixture.server.advance(86_400);
    fixture.call_ok("all", &json!({})).await;
    let next = fixture.seen("log").await;
    // Yesterday's are gone, and the client has another name.
    assert_eq!(next["entries"].as_array().unwrap().len(), 6, "{next}");
    assert_ne!(next["entries"][0]["client"], first["client"]);
}

#[tokio::test]
async fn pages_and_filters_find_every_entry_once() {
    let fixture = start_fixture().await;
    for n in 0..25 {
        let action = ["all", "none", "mine"][n % 3];
        fixture.call_action(action, &json!({})).await;
    }
    let mut seen = Vec::new();
    let mut below = "log?limit=7".to_owned();
    loop {
        let page = fixture.seen(&below).await;
        seen.extend(
            page["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["id"].clone()),
        );
        match page["next_before"].as_str() {
            Some(before) => below = format!("log?limit=7&before={before}"),
            None => break,
        }
    }
    let mut once = seen.clone();
    once.sort_by_key(ToString::to_string);
    once.dedup();
    assert_eq!((seen.len(), once.len()), (25, 25));
    for (query, count) in [
        ("action=all", 9),
        ("action=none", 8),
        ("status=401", 8),
        ("status=404&action=none", 8),
        ("status=404&action=all", 0),
        ("kind=call&limit=500", 25),
        ("kind=room", 0),
    ] {
        let found = fixture.seen(&format!("log?{query}")).await;
        assert_eq!(found["entries"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn a_restart_forgets_the_log_and_a_neighbour_sees_nothing() {
    let mut fixture = start_fixture().await;
    fixture.call_ok("all", &json!({})).await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let answer = super::ask(&fixture.server, &fixture.owner, &other, "log").await;
    assert_eq!(
        answer.expect(200).json(),
        json!({ "entries": [], "next_before": null })
    );
    fixture.server = fixture.server.restart().await;
    let log = fixture.seen("log").await;
    assert_eq!(log["entries"], json!([]));
}

#[tokio::test]
async fn tools_of_an_app_are_entries() {
    let fixture = start_fixture().await;
    fixture
        .send(Method::PATCH, "", &json!({ "agents": true }))
        .await
        .expect(200);
    for (tool, arguments) in [("all", json!({})), ("named", json!({}))] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        fixture
            .server
            .json("/room/mcp", &body)
            .answer()
            .await
            .expect(200);
    }
    let log = fixture.seen("log").await;
    assert_eq!(
        entries(&log, &["kind", "status", "action"]),
        [
            [json!("tool"), json!(200), json!("all")],
            [json!("tool"), json!(400), json!("named")]
        ]
    );
    assert_eq!(
        fixture.sums().await,
        super::sums(&[("calls", 2), ("errors", 1)])
    );
}
