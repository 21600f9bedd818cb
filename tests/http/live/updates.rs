//! When results come: after which commits, in which order, how often.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Socket, TestServer};

use super::hostile::read_metric;
use super::{
    assert_still_served, next_error, next_rows, open, start_fixture, start_fixture_with, subscribe,
    subscribe_and_read_first, unsubscribe,
};
use crate::project_fixture::ProjectFixture;

/// A batch of calls, as a visitor of `room`.
async fn send_batch(fixture: &ProjectFixture, ops: Value) {
    fixture
        .call("room", &json!({ "ops": ops }))
        .await
        .expect(200);
}

#[tokio::test]
async fn every_way_to_change_a_table_is_noticed() {
    let fixture = start_fixture().await;
    fixture
        .define(&[("raw", "SELECT count(*) AS n FROM votes")])
        .await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "counts", "counts", &json!({ "poll": 1 })).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    assert_eq!(
        next_rows(&mut socket, "counts", 2).await,
        json!([{ "choice": "tea", "n": 1 }])
    );
    // By a key that cascades.
    fixture.call_ok("close", &json!({ "poll": 1 })).await;
    assert_eq!(next_rows(&mut socket, "counts", 3).await, json!([]));
    // Without rowid, by REPLACE, and by a truncating delete.
    subscribe_and_read_first(&mut socket, "keys", "all_keys", &json!({})).await;
    for (seq, v) in [(2, 1), (3, 2)] {
        fixture.call_ok("set", &json!({ "k": "a", "v": v })).await;
        assert_eq!(
            next_rows(&mut socket, "keys", seq).await,
            json!([{ "k": "a", "v": v }])
        );
    }
    fixture.call_ok("clear", &json!({})).await;
    assert_eq!(next_rows(&mut socket, "keys", 4).await, json!([]));
    // By the owner, by a batch, by a migration's seeds.
    fixture
        .query("INSERT INTO keys VALUES ('b', 1)", &json!({}))
        .await
        .expect(200);
    assert_eq!(
        next_rows(&mut socket, "keys", 5).await,
        json!([{ "k": "b", "v": 1 }])
    );
    send_batch(
        &fixture,
        json!([
            { "action": "total" },
            { "action": "set", "params": { "k": "b", "v": 2 } },
            { "action": "set", "params": { "k": "b", "v": 3 } },
        ]),
    )
    .await;
    assert_eq!(
        next_rows(&mut socket, "keys", 6).await,
        json!([{ "k": "b", "v": 3 }])
    );
    fixture
        .migrate("CREATE TABLE more (a); INSERT INTO keys VALUES ('c', 1)")
        .await
        .expect(200);
    assert_eq!(
        next_rows(&mut socket, "keys", 7)
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn a_restore_is_followed() {
    let fixture = start_fixture_with(TestServer::builder().system_clock()).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 1 })).await;
    let at = fixture.get_history().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "keys", "all_keys", &json!({})).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 2 })).await;
    assert_eq!(
        next_rows(&mut socket, "keys", 2).await,
        json!([{ "k": "a", "v": 2 }])
    );
    fixture
        .send(Method::POST, "/restore", &json!({ "at": at }))
        .await
        .expect(200);
    assert_eq!(
        next_rows(&mut socket, "keys", 3).await,
        json!([{ "k": "a", "v": 1 }])
    );
}

impl ProjectFixture {
    /// The newest moment that can be restored.
    async fn get_history(&self) -> Value {
        let path = format!("/{}/backend/history", self.project);
        let history = self.owner.get(&self.server, &path).await;
        history.expect(200).json()["newest"].take()
    }
}

#[tokio::test]
async fn equal_answers_and_failed_writes_are_not_told() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "keys", "all_keys", &json!({})).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 1 })).await;
    next_rows(&mut socket, "keys", 2).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 1 })).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    fixture
        .call_action("vote", &json!({ "poll": 9, "choice": "tea" }))
        .await
        .problem(409, "constraint_violation");
    assert_still_served(&mut socket).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 2 })).await;
    assert_eq!(
        next_rows(&mut socket, "keys", 3).await,
        json!([{ "k": "a", "v": 2 }])
    );
}

#[tokio::test]
async fn everybody_is_told_with_a_number_of_their_own() {
    let fixture = start_fixture().await;
    let (mut ada, mut bob) = (open(&fixture).await, open(&fixture).await);
    subscribe_and_read_first(&mut ada, "a", "total", &json!({})).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    next_rows(&mut ada, "a", 2).await;
    subscribe_and_read_first(&mut bob, "b", "total", &json!({})).await;
    subscribe_and_read_first(&mut bob, "c", "total", &json!({})).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    assert_eq!(next_rows(&mut ada, "a", 3).await, json!([{ "n": 2 }]));
    let mut both = [bob.envelope().await, bob.envelope().await];
    both.sort_by_key(|frame| frame["id"].to_string());
    for (frame, id) in both.iter().zip(["b", "c"]) {
        assert_eq!((&frame["id"], &frame["seq"]), (&json!(id), &json!(2)));
        assert_eq!(frame["result"]["rows"], json!([{ "n": 2 }]));
    }
}

/// Hears results until one has `n`; returns how many came.
async fn read_until_count(socket: &mut Socket, n: u64) -> u64 {
    let mut heard = 0;
    loop {
        let frame = socket.envelope().await;
        heard += 1;
        if frame["result"]["rows"][0]["n"] == n {
            return heard;
        }
    }
}

#[tokio::test]
async fn many_commits_are_few_results_and_the_last_always_comes() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.live_per_second = 4)).await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    let began = std::time::Instant::now();
    for _ in 0..100 {
        fixture
            .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
            .await;
    }
    let heard = read_until_count(&mut socket, 100).await;
    let most = 4.0 * began.elapsed().as_secs_f64() + 2.0;
    assert!(
        (heard as f64) < most,
        "{heard} results where {most} are the most"
    );
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn a_new_version_of_the_action_is_followed() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    fixture
        .define(&[("total", "SELECT count(*) AS n, 'two' AS version FROM keys")])
        .await;
    assert_eq!(
        next_rows(&mut socket, "a", 2).await,
        json!([{ "n": 0, "version": "two" }])
    );
    // What it reads now is what counts.
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 1 })).await;
    assert_eq!(
        next_rows(&mut socket, "a", 3).await,
        json!([{ "n": 1, "version": "two" }])
    );
    for (sql, code) in [
        ("SELECT :more AS n", "params_mismatch"),
        ("DELETE FROM keys", "invalid_request"),
        ("SELECT :svc_user_email AS n", "identity_required"),
    ] {
        fixture.define(&[("total", sql)]).await;
        next_error(&mut socket, Some("a"), code).await;
        fixture
            .define(&[("total", "SELECT count(*) AS n FROM votes")])
            .await;
        subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    }
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn a_query_that_fails_later_ends_with_its_problem() {
    let fixture = start_fixture().await;
    fixture
        .define(&[
            ("quotient", "SELECT json_extract(v, '$.a') AS a FROM keys"),
            ("endless_if", "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE EXISTS (SELECT 1 FROM keys)) SELECT count(*) AS n FROM c"),
        ])
        .await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "quotient", &json!({})).await;
    subscribe_and_read_first(&mut socket, "b", "endless_if", &json!({})).await;
    fixture
        .call_ok("set", &json!({ "k": "a", "v": "no json" }))
        .await;
    let mut ended = [socket.envelope().await, socket.envelope().await];
    ended.sort_by_key(|frame| frame["id"].to_string());
    for (frame, code) in ended.iter().zip(["statement_failed", "query_timeout"]) {
        assert_eq!(frame["problem"]["code"], code, "{frame}");
    }
    fixture.call_ok("clear", &json!({})).await;
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn large_results_come_whole_and_in_turn() {
    let fixture = start_fixture().await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 0 })).await;
    let mut socket = open(&fixture).await;
    for id in ["a", "b", "c"] {
        socket.send(subscribe(id, "large", &json!({}))).await;
    }
    let mut last = std::collections::HashMap::new();
    for v in 1..=20 {
        fixture.call_ok("set", &json!({ "k": "a", "v": v })).await;
    }
    while last.values().filter(|(_, v)| *v == 20).count() < 3 {
        let frame = socket.envelope().await;
        let row = &frame["result"]["rows"][0];
        assert_eq!(row["filling"].as_str().unwrap().len(), 200_000);
        let (seq, v) = (frame["seq"].as_u64().unwrap(), row["v"].as_u64().unwrap());
        let before = last.insert(frame["id"].to_string(), (seq, v));
        if let Some((seq_before, v_before)) = before {
            assert!(seq == seq_before + 1 && v > v_before, "{seq} {v}");
        } else {
            assert_eq!(seq, 1);
        }
    }
    socket.send(unsubscribe("a")).await;
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn one_evaluation_serves_everybody_who_asks_the_same() {
    let fixture = start_fixture().await;
    let mut crowd = Vec::new();
    for _ in 0..30 {
        let mut socket = open(&fixture).await;
        subscribe_and_read_first(&mut socket, "a", "counts", &json!({ "poll": 1 })).await;
        crowd.push(socket);
    }
    // The first of them had it evaluated; the others were told what was there.
    assert_eq!(read_metric(&fixture, "evaluations_total").await, 1);
    for round in 1..=3 {
        fixture
            .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
            .await;
        for socket in &mut crowd {
            let told = next_rows(socket, "a", round + 1).await;
            assert_eq!(told, json!([{ "choice": "tea", "n": round }]));
        }
        assert_eq!(read_metric(&fixture, "evaluations_total").await, round + 1);
    }
    // Other params, and another action, are another query each; a write to a table that nobody reads is none.
    let mut other = open(&fixture).await;
    subscribe_and_read_first(&mut other, "b", "counts", &json!({ "poll": 2 })).await;
    subscribe_and_read_first(&mut other, "c", "total", &json!({})).await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 1 })).await;
    assert_still_served(&mut other).await;
    assert_eq!(read_metric(&fixture, "evaluations_total").await, 6);
}
