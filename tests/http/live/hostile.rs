//! The worst that pages do with live queries: they flood, they do not read, they ask for too much.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tokio_tungstenite::tungstenite::Message;

use super::{
    assert_still_served, next_rows, open, start_fixture, start_fixture_with, subscribe,
    subscribe_and_read_first,
};
use crate::project_fixture::ProjectFixture;

/// A gauge or counter of live queries.
pub(super) async fn read_metric(fixture: &ProjectFixture, name: &str) -> u64 {
    let metrics = fixture.server.server().app().metrics.encode().unwrap();
    let line = metrics
        .lines()
        .find(|line| line.starts_with(&format!("svc_live_{name} ")));
    let line = line.unwrap_or_else(|| panic!("no {name}: {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_flood_of_subscribes_ends_its_socket_and_leaves_nothing() {
    let fixture = start_fixture().await;
    let mut ada = open(&fixture).await;
    subscribe_and_read_first(&mut ada, "a", "total", &json!({})).await;
    for _ in 0..5 {
        let mut flood = open(&fixture).await;
        for n in 0..200 {
            // The socket may be closed before the last frame.
            let frame = subscribe(&format!("s{n}"), "counts", &json!({ "poll": n }));
            if flood.0.send(Message::text(frame)).await.is_err() {
                break;
            }
        }
        assert_eq!(flood.wait_for_close().await, Some(1008));
    }
    let only = async || {
        let counts = (
            read_metric(&fixture, "queries").await,
            read_metric(&fixture, "subscriptions").await,
        );
        (counts == (1, 1) && read_metric(&fixture, "connections").await == 1).then_some(())
    };
    wait_until("the flood to be gone", only).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    next_rows(&mut ada, "a", 2).await;
}

#[tokio::test]
async fn a_slow_reader_costs_one_result_and_is_closed() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.op_body_bytes = 300_000))
            .await;
    fixture.call_ok("set", &json!({ "k": "a", "v": 0 })).await;
    let mut slow = open(&fixture).await;
    for id in ["a", "b", "c"] {
        slow.send(subscribe(id, "large", &json!({}))).await;
    }
    let mut fast = open(&fixture).await;
    fast.send(subscribe("f", "large", &json!({}))).await;
    fast.envelope().await;
    for v in 1..=60 {
        fixture.call_ok("set", &json!({ "k": "a", "v": v })).await;
        if v % 10 == 0 {
            // A client that reads still gets results.
            while fast.envelope().await["result"]["rows"][0]["v"] != v {}
            let bytes = read_metric(&fixture, "bytes").await;
            assert!(bytes < 1_500_000, "{bytes} bytes are held");
        }
    }
    // The client's kernel takes no more bytes: the connection is dropped at the deadline.
    fixture.server.advance(61);
    let closed = async {
        loop {
            match slow.0.next().await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| u16::from(frame.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    };
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(closed.await, Some(1013));
}

#[tokio::test]
async fn heavy_queries_of_one_page_delay_its_calls_little_and_others_not_at_all() {
    const QUERIES: u64 = 20;
    let fixture = start_fixture_with(
        TestServer::builder().limits(|limits| limits.messages_per_second = 1000),
    )
    .await;
    fixture
        .define(&[(
            "heavy",
            "WITH RECURSIVE c (x) AS (SELECT :n UNION ALL SELECT x + 1 FROM c LIMIT 100000) SELECT count(*) AS n, (SELECT count(*) FROM votes) AS votes FROM c",
        )])
        .await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let backend = json!({ "ddl": "CREATE TABLE t (a); INSERT INTO t VALUES (1)" });
    fixture
        .owner
        .post(&fixture.server, &format!("/{other}/backend"), &backend)
        .await
        .expect(201);
    fixture
        .owner
        .frontend(&fixture.server, &other, "other")
        .await;
    let batch = json!({ "actions": [{ "name": "read", "sql": "SELECT a FROM t" }] });
    fixture
        .owner
        .send(
            &fixture.server,
            http::Method::PUT,
            &format!("/{other}/backend/actions"),
            &batch,
        )
        .await
        .expect(200);
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut socket = open(&fixture).await;
        for n in 0..QUERIES {
            socket
                .send(subscribe(&format!("h{n}"), "heavy", &json!({ "n": n })))
                .await;
        }
        sockets.push(socket);
    }
    // Counted, and not timed: a call that waited for the queries would see all of them evaluated meanwhile.
    let evaluations = async || read_metric(&fixture, "evaluations_total").await;
    let (mut most, mut before) = (0, evaluations().await);
    let all = before + QUERIES;
    while before < all {
        fixture
            .server
            .json("/other/api/op", &json!({ "action": "read" }))
            .answer()
            .await
            .expect(200);
        let after = evaluations().await;
        most = most.max(after - before);
        fixture.call_ok("total", &json!({})).await;
        // The queries read its table, and are evaluated again.
        fixture
            .call_ok("vote", &json!({ "poll": 1, "choice": "x" }))
            .await;
        before = evaluations().await;
        most = most.max(before - after);
    }
    assert!(
        most < QUERIES / 2,
        "{most} queries were evaluated while a call waited"
    );
    for socket in &mut sockets {
        let frame = socket.envelope().await;
        assert_eq!(frame["type"], "result", "{frame}");
    }
}

#[tokio::test]
async fn params_at_their_limits_are_one_query_each() {
    let fixture = start_fixture().await;
    fixture.define(&[("echo", "SELECT :a AS a")]).await;
    let mut socket = open(&fixture).await;
    for (n, value) in [
        json!("x".repeat(16_000)),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(1),
        json!(1.0),
        json!("1"),
        json!({ "base64": "MQ==" }),
        json!(null),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("p{n}");
        let frame =
            subscribe_and_read_first(&mut socket, &id, "echo", &json!({ "a": value })).await;
        let called = fixture.call_ok("echo", &json!({ "a": value })).await;
        assert_eq!(frame["result"], called);
    }
    let counted = async || (read_metric(&fixture, "queries").await == 8).then_some(());
    wait_until("eight queries", counted).await;
    assert_still_served(&mut socket).await;
}
