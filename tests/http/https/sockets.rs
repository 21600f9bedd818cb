//! Rooms and live queries over TLS: what their own tests show over TCP holds here, too.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use svc_tests::TestServer;
use tokio_tungstenite::tungstenite::Message;

use super::local;
use crate::{live, rooms};

/// Messages as large and as many as one likes.
fn lift_message_limits(limits: &mut svc::config::Limits) {
    limits.frame_bytes = 65_536;
    limits.messages_per_second = 100_000;
}

#[tokio::test]
async fn members_of_a_room_hear_each_other() {
    let pair = local();
    let builder = TestServer::builder().https(&pair);
    let fixture = rooms::start_fixture_with(builder.limits(lift_message_limits)).await;
    let (mut ada, ada_id) = rooms::join(&fixture, "lobby").await;
    let (mut bob, _) = rooms::join(&fixture, "lobby").await;
    // As large as the decoder's buffer on the stack, larger, and larger than a record of TLS.
    for length in [1, 8_000, 9_000, 20_000, 60_000] {
        let text = "x".repeat(length);
        ada.send_envelope("move", json!(text)).await;
        let heard = bob.wait_for_envelope("move").await;
        assert_eq!(heard["sender"], json!(ada_id));
        assert_eq!(heard["data"].as_str().map(str::len), Some(length));
        bob.send_envelope("back", json!(length)).await;
        assert_eq!(ada.wait_for_envelope("back").await["data"], json!(length));
    }
    bob.0.send(Message::Ping("hello".into())).await.unwrap();
    let pong = loop {
        match bob.0.next().await.unwrap().unwrap() {
            Message::Pong(payload) => break payload,
            _ => continue,
        }
    };
    assert_eq!(&pong[..], b"hello");
    bob.0.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(bob.wait_for_close().await, Some(1003));
    ada.wait_for_envelope("svc:leave").await;
    ada.close().await;
}

#[tokio::test]
async fn what_comes_in_one_piece_is_read_to_its_end() {
    let pair = local();
    let fixture = rooms::start_fixture_with(TestServer::builder().https(&pair)).await;
    let (mut ada, _) = rooms::join(&fixture, "lobby").await;
    let (mut bob, _) = rooms::join(&fixture, "lobby").await;
    // Several frames in one record of TLS, of which the kernel tells once.
    for number in 0..9 {
        let text = json!({ "v": 1, "type": "move", "data": [number, "x".repeat(3_000)] });
        ada.0.feed(Message::text(text.to_string())).await.unwrap();
    }
    ada.0.flush().await.unwrap();
    for number in 0..9 {
        assert_eq!(
            bob.wait_for_envelope("move").await["data"][0],
            json!(number)
        );
    }
}

#[tokio::test]
async fn a_member_who_does_not_read_is_closed_and_the_others_go_on() {
    let pair = local();
    let builder = TestServer::builder().https(&pair);
    let fixture = rooms::start_fixture_with(builder.limits(lift_message_limits)).await;
    let (mut ada, _) = rooms::join(&fixture, "lobby").await;
    let (mut slow, _) = rooms::join(&fixture, "lobby").await;
    let (mut bob, _) = rooms::join(&fixture, "lobby").await;
    let text = "x".repeat(60_000);
    // What the kernels on both sides and the session hold is less than this.
    let mut heard = 0;
    for _ in 0..400 {
        ada.send_envelope("move", json!(text)).await;
        bob.wait_for_envelope("move").await;
        heard += 1;
    }
    assert_eq!(heard, 400);
    assert_eq!(slow.wait_for_close().await, Some(1013));
}

#[tokio::test]
async fn a_live_query_tells_of_a_commit() {
    let pair = local();
    let fixture = live::start_fixture_with(TestServer::builder().https(&pair)).await;
    let mut socket = live::open(&fixture).await;
    live::first(&mut socket, "counts", "counts", &json!({ "poll": 1 })).await;
    fixture
        .call_ok("vote", &json!({ "poll": 1, "choice": "tea" }))
        .await;
    let rows: Value = live::rows(&mut socket, "counts", 2).await;
    assert_eq!(rows, json!([{ "choice": "tea", "n": 1 }]));
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let pair = local();
    let fixture = rooms::start_fixture_with(TestServer::builder().https(&pair)).await;
    let (mut ada, _) = rooms::join(&fixture, "lobby").await;
    let stopping = fixture.server.stop();
    let (code, _) = tokio::join!(ada.wait_for_close(), stopping);
    assert_eq!(code, Some(1001));
}
