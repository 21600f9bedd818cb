//! Frames of pages: what is taken, what is refused, and how that is told.

use std::collections::BTreeSet;

use futures_util::SinkExt;
use serde_json::{Value, json};
use svc_tests::{RawWebSocket, ReadAnswer, TestServer, masked_frame};
use tokio_tungstenite::tungstenite::Message;

use super::{
    assert_still_served, next_error, next_rows, open, start_fixture, start_fixture_with, subscribe,
    subscribe_and_read_first, unsubscribe,
};

#[tokio::test]
async fn the_first_result_is_what_a_call_answers() {
    let fixture = start_fixture().await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    let mut socket = open(&fixture).await;
    let params = json!({ "poll": 1 });
    let frame = subscribe_and_read_first(&mut socket, "a", "counts", &params).await;
    let called = fixture.call_ok("counts", &params).await;
    assert_eq!(
        frame,
        json!({ "v": 1, "type": "result", "id": "a", "seq": 1, "result": called })
    );
    // Byte for byte, and once.
    let text = fixture
        .call_action("counts", &params)
        .await
        .text()
        .to_owned();
    let mut raw = open(&fixture).await;
    raw.send(subscribe("~.-_Z9", "counts", &params)).await;
    let Some(Ok(Message::Text(frame))) = futures_util::StreamExt::next(&mut raw.0).await else {
        panic!("no frame came");
    };
    assert_eq!(
        frame.as_str(),
        format!(r#"{{"v":1,"type":"result","id":"~.-_Z9","seq":1,"result":{text}}}"#)
    );
    assert_still_served(&mut raw).await;
}

#[tokio::test]
async fn what_breaks_a_rule_is_told_and_the_socket_stays() {
    let fixture = start_fixture().await;
    for (frame, id, code) in [
        ("x".to_owned(), None, "invalid_json"),
        ("[]".to_owned(), None, "invalid_request"),
        ("{}".to_owned(), None, "invalid_request"),
        (
            json!({ "v": 2, "type": "subscribe", "id": "a", "action": "total" }).to_string(),
            Some("a"),
            "invalid_request",
        ),
        (
            json!({ "v": 1, "type": "listen", "id": "a" }).to_string(),
            Some("a"),
            "invalid_request",
        ),
        (
            json!({ "v": 1, "type": "subscribe", "id": "a b", "action": "total" }).to_string(),
            None,
            "invalid_request",
        ),
        (
            json!({ "v": 1, "type": "subscribe", "id": "a" }).to_string(),
            Some("a"),
            "invalid_request",
        ),
        (
            json!({ "v": 1, "type": "subscribe", "id": "a", "action": "total", "extra": 1 })
                .to_string(),
            Some("a"),
            "invalid_request",
        ),
        (
            json!({ "v": 1, "type": "unsubscribe" }).to_string(),
            None,
            "invalid_request",
        ),
        (
            subscribe("a", "nothing", &json!({})),
            Some("a"),
            "not_found",
        ),
        (
            subscribe("a", "vote", &json!({ "poll": 1, "choice": "x" })),
            Some("a"),
            "invalid_request",
        ),
        (
            subscribe("a", "counts", &json!({})),
            Some("a"),
            "params_mismatch",
        ),
        (
            subscribe("a", "counts", &json!({ "poll": 1, "more": 1 })),
            Some("a"),
            "params_mismatch",
        ),
        (
            subscribe("a", "counts", &json!({ "svc_user_id": "usr_1" })),
            Some("a"),
            "reserved_param",
        ),
        (
            subscribe("a", "counts", &json!({ "poll": [] })),
            Some("a"),
            "invalid_request",
        ),
        (
            subscribe("a", "mine", &json!({})),
            Some("a"),
            "identity_required",
        ),
        (
            subscribe("a", "endless", &json!({})),
            Some("a"),
            "query_timeout",
        ),
        (
            subscribe("a", "huge", &json!({})),
            Some("a"),
            "payload_too_large",
        ),
    ] {
        let mut socket = open(&fixture).await;
        subscribe_and_read_first(&mut socket, "other", "total", &json!({})).await;
        socket.send(&frame).await;
        let told = next_error(&mut socket, id, code).await;
        if code == "params_mismatch" {
            assert!(told["problem"]["missing"].is_array() && told["problem"]["extra"].is_array());
        }
        // The id is free again, and the others go on.
        subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
        assert_still_served(&mut socket).await;
    }
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    subscribe_and_read_first(&mut socket, "b", "all_keys", &json!({})).await;
    socket.send(subscribe("a", "all_keys", &json!({}))).await;
    next_error(&mut socket, Some("a"), "invalid_request").await;
    // Both have ended by that; the other has not.
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    fixture.call_ok("set", &json!({ "k": "x", "v": 1 })).await;
    assert_eq!(
        next_rows(&mut socket, "b", 2).await,
        json!([{ "k": "x", "v": 1 }])
    );
    assert_still_served(&mut socket).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    socket.send(unsubscribe("a")).await;
    socket.send(unsubscribe("a")).await;
    socket.send(unsubscribe("nobody")).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    assert_still_served(&mut socket).await;
    let again = subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    assert_eq!(again["result"]["rows"], json!([{ "n": 2 }]));
}

#[tokio::test]
async fn a_socket_has_so_many_subscriptions() {
    let builder = TestServer::builder().limits(|limits| {
        limits.live_per_socket = 20;
        limits.messages_per_second = 1_000;
    });
    let fixture = start_fixture_with(builder).await;
    let mut socket = open(&fixture).await;
    for n in 0..20 {
        subscribe_and_read_first(&mut socket, &format!("s{n}"), "total", &json!({})).await;
    }
    socket.send(subscribe("more", "total", &json!({}))).await;
    let told = next_error(&mut socket, Some("more"), "rate_limited").await;
    assert_eq!(told["problem"]["status"], 429);
    assert_eq!(told["problem"]["live_per_socket"], 20);
    socket.send(unsubscribe("s7")).await;
    subscribe_and_read_first(&mut socket, "more", "total", &json!({})).await;
}

#[tokio::test]
async fn frames_have_the_bounds_of_rooms() {
    let fixture = start_fixture().await;
    let mut socket = open(&fixture).await;
    socket.0.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(socket.wait_for_close().await, Some(1003));
    let mut socket = open(&fixture).await;
    socket.send("x".repeat(16_385)).await;
    assert_eq!(socket.wait_for_close().await, Some(1009));
    let mut socket = open(&fixture).await;
    for _ in 0..20 {
        socket.send(unsubscribe("x")).await;
    }
    socket.send(subscribe("x", "total", &json!({}))).await;
    next_error(&mut socket, Some("x"), "rate_limited").await;
    for _ in 0..21 {
        let _ = socket.0.send(Message::text("refused ones count")).await;
    }
    assert_eq!(socket.wait_for_close().await, Some(1008));
}

#[tokio::test]
async fn upgrades_have_the_rules_of_rooms() {
    let fixture = start_fixture().await;
    let path = "/room/api/live";
    let port = fixture.server.address().port();
    let own = format!("http://127.0.0.1:{port}");
    fixture
        .server
        .socket(path, &[("origin", &own)])
        .await
        .unwrap();
    for (path, headers, status) in [
        (path, &[("origin", "null")][..], 403),
        (path, &[("origin", "https://evil.example")], 403),
        (path, &[("sec-websocket-version", "12")], 400),
        ("/room/api/live?action=total", &[], 400),
        ("/nowhere/api/live", &[], 404),
    ] {
        let refused = fixture.server.socket(path, headers).await;
        assert_eq!(refused.unwrap_err(), status, "{path} {headers:?}");
    }
    let slug = fixture
        .server
        .publish_slug(&json!({ "content": "<p>share" }))
        .await;
    let refused = fixture
        .server
        .socket(&format!("/{slug}/api/live"), &[])
        .await;
    assert_eq!(refused.unwrap_err(), 404);
    fixture
        .server
        .get(path)
        .answer()
        .await
        .problem(400, "invalid_request");
    let post = fixture.server.post(path).answer().await;
    assert_eq!(post.problem(405, "method_not_allowed")["status"], 405);
    assert_eq!(post.header("allow"), Some("GET,HEAD"));
}

/// More frames than may wait, all of them in one segment with the handshake, so that none is done before the last is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_wait_are_bounded_and_each_is_answered() {
    const FRAMES: usize = 300;
    let builder = TestServer::builder().limits(|limits| limits.messages_per_second = 100_000);
    let fixture = start_fixture_with(builder).await;
    let address = fixture.server.address();
    let answers = tokio::task::spawn_blocking(move || {
        let frame = |n| subscribe(&format!("s{n}"), "nothing", &json!({}));
        let frames: Vec<_> = (0..FRAMES)
            .map(|n| masked_frame(0x81, frame(n).as_bytes()))
            .collect();
        let mut raw = RawWebSocket::open(address, "/room/api/live", &frames.concat());
        let answers = (0..FRAMES).map(|_| serde_json::from_str(&raw.next_text()).unwrap());
        answers.collect::<Vec<Value>>()
    });
    let answers = answers.await.unwrap();
    let of = |code: &str| {
        let answers = answers.iter();
        answers
            .filter(|answer| answer["problem"]["code"] == code)
            .count()
    };
    let (done, refused) = (of("not_found"), of("rate_limited"));
    assert_eq!(done + refused, FRAMES);
    assert!(done >= 64 && refused > 0, "{done} done, {refused} refused");
    for answer in &answers {
        if answer["problem"]["code"] == "rate_limited" {
            // The limit that was reached is the backlog, not the rate.
            let detail = answer["problem"]["detail"].as_str().unwrap();
            assert!(
                detail.starts_with("64 frames of this socket wait") && !detail.contains("100000"),
                "{detail}"
            );
        }
    }
    let ids: BTreeSet<_> = answers
        .iter()
        .map(|answer| answer["id"].to_string())
        .collect();
    assert_eq!(ids.len(), FRAMES, "each is answered once");
    assert_still_served(&mut open(&fixture).await).await;
}

/// Subscribes that wait fill the backlog, and each is followed by its unsubscribe, all of them in one segment with the handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsubscribe_that_finds_no_room_is_done_all_the_same() {
    const QUERIES: usize = 100;
    let builder = TestServer::builder().limits(|limits| {
        limits.messages_per_second = 100_000;
        limits.live_per_socket = 20;
        limits.op_burst = 1_000;
        limits.op_deployment_burst = 1_000;
    });
    let fixture = start_fixture_with(builder).await;
    let address = fixture.server.address();
    let subscribes = (0..QUERIES).map(|n| subscribe(&format!("s{n}"), "total", &json!({})));
    let unsubscribes = (0..QUERIES).map(|n| unsubscribe(&format!("s{n}")));
    // The last word is refused, so that the answer to it comes behind all others.
    let frames = subscribes.chain(unsubscribes);
    let frames: Vec<_> = frames
        .map(|frame| masked_frame(0x81, frame.as_bytes()))
        .collect();
    let raw = tokio::task::spawn_blocking(move || {
        let mut raw = RawWebSocket::open(address, "/room/api/live", &frames.concat());
        // A last subscription, which is handled after all waiting frames; it is sent again while the backlog is full.
        let last = masked_frame(0x81, subscribe("last", "all_keys", &json!({})).as_bytes());
        raw.write(&last);
        let mut answers = Vec::new();
        loop {
            let answer: Value = serde_json::from_str(&raw.next_text()).unwrap();
            let is_last = answer["id"] == "last";
            let is_refused = answer["type"] == "error";
            answers.push(answer);
            match (is_last, is_refused) {
                (true, true) => raw.write(&last),
                (true, false) => return (raw, answers),
                (false, _) => {}
            }
        }
    });
    let (mut raw, answers) = raw.await.unwrap();
    let refused = answers.iter().filter(|answer| answer["type"] == "error");
    assert!(refused.count() > 0, "the backlog has overflowed");
    assert_eq!(answers.last().unwrap()["type"], "result");
    // Only the last connection still subscribes: the others get no change.
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    fixture.call_ok("set", &json!({ "k": "x", "v": 1 })).await;
    let next = tokio::task::spawn_blocking(move || raw.next_text());
    let next: Value = serde_json::from_str(&next.await.unwrap()).unwrap();
    assert_eq!((&next["id"], &next["seq"]), (&json!("last"), &json!(2)));
}
