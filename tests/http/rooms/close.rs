//! How sockets are closed for what their clients do: the codes, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use svc_tests::{Socket, TestServer, wait_until};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{join, start_fixture, start_fixture_with};

/// A message's frame that is not its last.
fn continuation_frame(opcode: Data, bytes: usize, last: bool) -> Message {
    Message::Frame(Frame::message(
        vec![b'x'; bytes],
        OpCode::Data(opcode),
        last,
    ))
}

#[tokio::test]
async fn binary_is_refused() {
    let fixture = start_fixture().await;
    let (mut socket, _) = join(&fixture, "a").await;
    socket.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(socket.wait_for_close().await, Some(1003));
}

#[tokio::test]
async fn a_frame_has_its_most_as_a_whole() {
    let fixture = start_fixture().await;
    // Just as large as it may be: it is read, and is no JSON.
    let (mut socket, _) = join(&fixture, "a").await;
    socket.send("x".repeat(16_384)).await;
    assert_eq!(
        socket.wait_for_envelope("svc:error").await["data"]["code"],
        "invalid_json"
    );
    socket.send("x".repeat(16_385)).await;
    assert_eq!(socket.wait_for_close().await, Some(1009));
    let (mut socket, _) = join(&fixture, "a").await;
    for (opcode, bytes, last) in [
        (Data::Text, 8_000, false),
        (Data::Continue, 8_000, false),
        (Data::Continue, 384, true),
    ] {
        socket
            .0
            .send(continuation_frame(opcode, bytes, last))
            .await
            .unwrap();
    }
    assert_eq!(
        socket.wait_for_envelope("svc:error").await["data"]["code"],
        "invalid_json"
    );
    socket
        .0
        .send(continuation_frame(Data::Text, 16_000, false))
        .await
        .unwrap();
    socket
        .0
        .send(continuation_frame(Data::Continue, 385, false))
        .await
        .unwrap();
    assert_eq!(socket.wait_for_close().await, Some(1009));
    // Much more than that, of which the client gets to know in the middle of it.
    let (mut socket, _) = join(&fixture, "a").await;
    let _ = socket.0.send(Message::text("x".repeat(4_000_000))).await;
    assert_eq!(socket.wait_for_close().await, Some(1009));
}

#[tokio::test]
async fn who_sends_too_much_is_warned_then_closed() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, _) = join(&fixture, "a").await;
    for n in 0..20 {
        ada.send_envelope("n", json!(n)).await;
    }
    for n in 0..20 {
        assert_eq!(bob.wait_for_envelope("n").await["data"], n);
    }
    // The burst is spent, and the clock stands still.
    let one_more = json!({ "v": 1, "type": "n", "client_message_id": "m21" });
    ada.send(one_more.to_string()).await;
    let error = ada.wait_for_envelope("svc:error").await;
    assert_eq!(error["data"]["code"], "rate_limited", "{error}");
    assert_eq!(error["data"]["client_message_id"], "m21");
    // A second later there are ten more; one of them is spent already.
    fixture.server.advance(1);
    for n in 0..9 {
        ada.send_envelope("later", json!(n)).await;
        assert_eq!(bob.wait_for_envelope("later").await["data"], n);
    }
    for _ in 0..21 {
        // The socket may be closed before the last frame.
        let _ = ada.0.send(Message::text("refused ones count")).await;
    }
    assert_eq!(ada.wait_for_close().await, Some(1008));
    bob.wait_for_envelope("svc:leave").await;
    assert_eq!(
        bob.wait_for_envelope("svc:presence").await["data"]["members"],
        1
    );
}

#[tokio::test]
async fn ten_a_second_may_go_on_for_ever() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, _) = join(&fixture, "a").await;
    for second in 0..30 {
        for n in 0..10 {
            ada.send_envelope("n", json!([second, n])).await;
        }
        for n in 0..10 {
            assert_eq!(bob.wait_for_envelope("n").await["data"], json!([second, n]));
        }
        fixture.server.advance(1);
    }
}

#[tokio::test]
async fn pings_are_answered_and_a_flood_of_them_is_one() {
    let fixture = start_fixture().await;
    let (mut socket, _) = join(&fixture, "a").await;
    socket
        .0
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();
    loop {
        if let Message::Pong(payload) = socket.0.next().await.unwrap().unwrap() {
            assert_eq!(&payload[..], b"are you there");
            break;
        }
    }
    for _ in 0..60 {
        let _ = socket.0.send(Message::Ping("x".into())).await;
    }
    assert_eq!(socket.wait_for_close().await, Some(1008));
}

#[tokio::test]
async fn who_does_not_answer_pings_is_gone_at_the_deadline() {
    let limits = |limits: &mut svc::config::Limits| {
        limits.ping_seconds = 25;
        limits.pong_seconds = 60;
    };
    let fixture = start_fixture_with(TestServer::builder().limits(limits)).await;
    let (mut ada, _) = join(&fixture, "a").await;
    // Reads nothing, so that it answers nothing.
    let (mut silent, silent_id) = join(&fixture, "a").await;
    ada.wait_for_envelope("svc:join").await;
    assert_eq!(
        ada.wait_for_envelope("svc:presence").await["data"]["members"],
        2
    );
    for _ in 0..2 {
        fixture.server.advance(25);
        // Ada answers hers while she listens.
        let heard = ada.drain_envelopes().await;
        assert!(heard.iter().all(|e| e["type"] != "svc:leave"), "{heard:?}");
    }
    fixture.server.advance(11);
    let left = ada.wait_for_envelope("svc:leave").await;
    assert_eq!(left["data"]["client_id"], *silent_id);
    assert_eq!(
        ada.wait_for_envelope("svc:presence").await["data"]["members"],
        1
    );
    assert_eq!(silent.wait_for_close().await, Some(1001));
    // Ada goes on.
    ada.send_envelope("still", json!(1)).await;
    ada.send_envelope("svc:here", json!(1)).await;
    ada.wait_for_envelope("svc:error").await;
}

#[tokio::test]
async fn who_closes_gets_the_code_back_and_is_gone_at_once() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, bob_id) = join(&fixture, "a").await;
    ada.wait_for_envelope("svc:join").await;
    let close = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 4_001.into(),
        reason: "enough".into(),
    };
    bob.0.close(Some(close)).await.unwrap();
    assert_eq!(bob.wait_for_close().await, Some(4001));
    assert_eq!(
        ada.wait_for_envelope("svc:leave").await["data"]["client_id"],
        *bob_id
    );
}

#[tokio::test]
async fn who_vanishes_is_gone_at_once() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (bob, bob_id) = join(&fixture, "a").await;
    drop(bob);
    assert_eq!(
        ada.wait_for_envelope("svc:leave").await["data"]["client_id"],
        *bob_id
    );
    assert_eq!(
        ada.wait_for_envelope("svc:presence").await["data"]["members"],
        1
    );
}

/// How many messages the fast readers of a room get.
const MESSAGES: usize = 300;

/// Reads all messages in order and counts them, then reads that a client has left.
async fn read_all_messages(mut socket: Socket, heard: Arc<AtomicUsize>) {
    let mut next = 0;
    let mut left = false;
    while next < MESSAGES || !left {
        let text = match socket.0.next().await.unwrap().unwrap() {
            Message::Text(text) => text,
            Message::Ping(_) => continue,
            other => panic!("a fast reader got {other:?}"),
        };
        if text.contains(r#""type":"n""#) {
            assert!(
                text.contains(&format!(r#""data":"{next}:x"#)),
                "{text:.100}"
            );
            next += 1;
            heard.fetch_add(1, Ordering::Relaxed);
        }
        left |= text.contains("svc:leave");
    }
}

#[tokio::test]
async fn a_slow_reader_delays_nobody_and_is_closed() {
    let many = |limits: &mut svc::config::Limits| {
        limits.messages_per_second = 100_000;
        // A slow client does not answer pings, either.
        limits.pong_seconds = 10_000;
    };
    let fixture = start_fixture_with(TestServer::builder().limits(many)).await;
    let (mut slow, slow_id) = join(&fixture, "a").await;
    let mut fast = Vec::new();
    for _ in 0..98 {
        // A large room tells of who comes once in a while.
        fixture.server.advance(1);
        fast.push(join(&fixture, "a").await.0);
    }
    fixture.server.advance(1);
    let (mut ada, _) = join(&fixture, "a").await;
    let heard = Arc::<AtomicUsize>::default();
    let fast = fast.into_iter();
    let fast = fast.map(|socket| tokio::spawn(read_all_messages(socket, Arc::clone(&heard))));
    let listening: Vec<_> = fast.collect();
    // More than its queue and the kernel's buffers on both sides hold.
    let filling = "x".repeat(15_000);
    for n in 0..MESSAGES {
        ada.send_envelope("n", json!(format!("{n}:{filling}")))
            .await;
        // All others have it before the next is said, so nobody but the slow one is ever behind.
        let all = (n + 1) * listening.len();
        let by_all = async || (heard.load(Ordering::Relaxed) == all).then_some(());
        wait_until("all fast readers to have it", by_all).await;
    }
    fixture.server.advance(1);
    for listener in listening {
        listener.await.unwrap();
    }
    assert_eq!(
        ada.wait_for_envelope("svc:leave").await["data"]["client_id"],
        *slow_id
    );
    assert_eq!(slow.wait_for_close().await, Some(1013));
    let detail = async || {
        let sockets = fixture.detail().await["realtime"]["sockets"]
            .as_u64()
            .unwrap();
        (sockets <= 99).then_some(())
    };
    wait_until("the slow reader to be counted as gone", detail).await;
}
