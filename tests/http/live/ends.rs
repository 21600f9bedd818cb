//! Ends under a socket: what ends it, and what does not.

use http::Method;
use serde_json::json;
use svc_tests::TestServer;

use super::{
    assert_still_served, next_error, next_rows, open, start_fixture, start_fixture_with, subscribe,
    subscribe_and_read_first,
};
use crate::svc;

#[tokio::test]
async fn live_sockets_outlive_a_republish_and_the_realtime_switch() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    for realtime in [true, false] {
        fixture
            .send(Method::PATCH, "", &json!({ "realtime": realtime }))
            .await
            .expect(200);
    }
    let path = format!("/{}/frontends/room", fixture.project);
    let page = json!({ "content": "# Two" });
    fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &page)
        .await
        .expect(200);
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    assert_eq!(next_rows(&mut socket, "a", 2).await, json!([{ "n": 1 }]));
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn the_end_of_what_a_socket_belongs_to_closes_it() {
    for what in ["backend", "frontend", "project"] {
        let fixture = start_fixture().await;
        let mut socket = open(&fixture).await;
        subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
        // One without a subscription, too.
        let mut idle = open(&fixture).await;
        let path = match what {
            "backend" => format!("/{}/backend", fixture.project),
            "frontend" => format!("/{}/frontends/room", fixture.project),
            _ => format!("/{}", fixture.project),
        };
        fixture
            .owner
            .delete(&fixture.server, &path)
            .await
            .expect(204);
        assert_eq!(socket.wait_for_close().await, Some(1001), "{what}");
        assert_eq!(idle.wait_for_close().await, Some(1001), "{what}");
        assert_eq!(
            fixture
                .server
                .socket("/room/api/live", &[])
                .await
                .unwrap_err(),
            404
        );
    }
}

#[tokio::test]
async fn the_end_of_an_action_ends_its_queries_as_a_call_would() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    subscribe_and_read_first(&mut socket, "b", "all_keys", &json!({})).await;
    let path = format!("/{}/backend/actions/total", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let ended = next_error(&mut socket, Some("a"), "not_found").await;
    let called = fixture.call_action("total", &json!({})).await;
    let called = called.problem(404, "not_found");
    assert_eq!(ended["problem"]["detail"], called["detail"]);
    // A batch that replaces ends the others.
    let batch = json!([{ "name": "set", "sql": "INSERT INTO keys VALUES (:k, :v)" }]);
    let body = json!({ "actions": batch, "replace": true });
    fixture
        .send(Method::PUT, "/actions", &body)
        .await
        .expect(200);
    next_error(&mut socket, Some("b"), "not_found").await;
    assert_still_served(&mut socket).await;
    socket.send(subscribe("a", "total", &json!({}))).await;
    next_error(&mut socket, Some("a"), "not_found").await;
}

#[tokio::test]
async fn a_query_that_leaves_a_bind_out_follows_its_default() {
    let fixture = start_fixture().await;
    let define = async |n: u64| {
        let sql = "SELECT :n AS n, :m AS m FROM (SELECT count(*) FROM votes)";
        let action = json!({ "name": "it", "sql": sql, "defaults": { "n": n, "m": 0 } });
        fixture.put(&json!([action])).await.expect(200);
    };
    define(1).await;
    let mut socket = open(&fixture).await;
    for (id, params, n) in [
        ("out", json!({}), 1),
        ("same", json!({ "n": 1 }), 1),
        ("in", json!({ "n": 7 }), 7),
    ] {
        let first = subscribe_and_read_first(&mut socket, id, "it", &params).await;
        assert_eq!(first["result"]["rows"], json!([{ "n": n, "m": 0 }]), "{id}");
    }
    define(2).await;
    let rows = next_rows(&mut socket, "out", 2).await;
    assert_eq!(rows, json!([{ "n": 2, "m": 0 }]));
    assert_still_served(&mut socket).await;
    socket
        .send(subscribe("more", "it", &json!({ "x": 1 })))
        .await;
    let refused = next_error(&mut socket, Some("more"), "params_mismatch").await;
    assert_eq!(refused["problem"]["missing"], json!([]));
    // Without its default the bind is missing.
    let bare = json!({ "name": "it", "sql": "SELECT :n AS n", "defaults": {} });
    fixture.put(&json!([bare])).await.expect(200);
    let mut ended = Vec::new();
    for _ in 0..2 {
        let frame = socket.envelope().await;
        ended.push((frame["type"].clone(), frame["id"].clone()));
    }
    assert!(ended.contains(&(json!("error"), json!("out"))), "{ended:?}");
}

#[tokio::test]
async fn a_disabled_page_closes_its_sockets() {
    let fixture = start_fixture_with(TestServer::builder().system_clock()).await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    let disabled = fixture
        .server
        .command(&svc(), &["deployment", "disable", "room"])
        .await;
    assert!(disabled.success);
    assert_eq!(socket.wait_for_close().await, Some(1008));
    assert_eq!(
        fixture
            .server
            .socket("/room/api/live", &[])
            .await
            .unwrap_err(),
        403
    );
}

#[tokio::test]
async fn a_stop_closes_and_waits_for_nobody() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    let listening = tokio::spawn(async move { socket.wait_for_close().await });
    fixture.server.stop().await;
    assert_eq!(listening.await.unwrap(), Some(1001));
}

#[tokio::test]
async fn who_does_not_answer_pings_is_gone_at_the_deadline() {
    let fixture = start_fixture().await;
    let mut ada = open(&fixture).await;
    subscribe_and_read_first(&mut ada, "a", "total", &json!({})).await;
    // Reads nothing, so that it answers nothing.
    let mut silent = open(&fixture).await;
    for _ in 0..2 {
        fixture.server.advance(25);
        assert_eq!(ada.drain_envelopes().await.len(), 0);
    }
    fixture.server.advance(11);
    // It is told before it reads, and answers what it finds.
    assert_eq!(ada.drain_envelopes().await.len(), 0);
    assert_still_served(&mut ada).await;
    assert_eq!(silent.wait_for_close().await, Some(1001));
}
