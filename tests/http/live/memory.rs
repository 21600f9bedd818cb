//! The memory of a server whose live queries are as many and as large as they may be, and that nobody reads.

use std::time::Duration;

use serde_json::json;
use svc_tests::{RealtimeServer, Resources, Socket, TestServer, wait_until};

use super::subscribe;
use crate::svc;

/// As many sockets as a backend may have, and subscriptions as a socket may have.
const SOCKETS: usize = 100;
const EACH: usize = 20;
/// About as long as a frame may be.
const PARAM: usize = 15_000;
/// Kilobytes for the params of all subscriptions, as much again for all else that a subscription has, and the 32 MB that
/// `budget.rs` gives to answers.
const MOST_KILOBYTES: u64 = (SOCKETS * EACH * 2 * PARAM / 1024 + 32 * 1024) as u64;
/// Kilobytes that a debug build and its allocator take beside that.
const SLACK: u64 = 48 * 1024;

const LIMITS: &str = "messages_per_second = 1000\n";

/// Answers that every vote changes: a small one, and one of 400 KB, of which there are more than may be on their way.
const ACTIONS: [(&str, &str); 2] = [
    (
        "echo",
        "SELECT length(:a) AS a, (SELECT count(*) FROM votes) AS n",
    ),
    (
        "wide",
        "SELECT length(:a) AS a, (SELECT count(*) FROM votes) AS n, hex(zeroblob(100000)) AS b, hex(zeroblob(100000)) AS c",
    ),
];

/// Opens every socket that may be, subscribes to all that may be, and reads nothing.
async fn open_and_subscribe_to_all(server: &RealtimeServer) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for n in 0..SOCKETS {
        let opened = Socket::open(server.process.address(), "/room/api/live", &[]).await;
        let mut socket = opened.unwrap();
        for m in 0..EACH {
            let param = format!("{n}.{m}.{}", "x".repeat(PARAM));
            let action = if m == 0 { "wide" } else { "echo" };
            let frame = subscribe(&format!("s{m}"), action, &json!({ "a": param }));
            socket.send(frame).await;
        }
        sockets.push(socket);
    }
    let all = (SOCKETS * EACH) as u64;
    let there = async || (server.metric("svc_live_subscriptions").await == all).then_some(());
    wait_until("all subscriptions", there).await;
    sockets
}

#[tokio::test]
async fn as_much_as_pages_may_ask_for_takes_bounded_memory() {
    let _warm = TestServer::start().await.stop().await;
    let server = RealtimeServer::start(svc(), LIMITS, &ACTIONS).await;
    let before = Resources::of_process(&server.process).memory;
    let mut peaks = Vec::new();
    for _ in 0..2 {
        let sockets = open_and_subscribe_to_all(&server).await;
        for _ in 0..5 {
            server.cast_vote().await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let bytes = server.metric("svc_live_bytes").await;
        assert!(bytes <= 40 << 20, "{bytes} bytes of answers");
        let now = Resources::of_process(&server.process).memory;
        peaks.push(now.saturating_sub(before));
        // One more is refused, from any client.
        let more = Socket::open(server.process.address(), "/room/api/live", &[]).await;
        assert_eq!(more.unwrap_err(), 429);
        drop(sockets);
        server.wait_until_idle().await;
    }
    let [first, second] = peaks[..] else {
        unreachable!("two rounds")
    };
    assert!(
        first <= MOST_KILOBYTES + SLACK,
        "{first} KB more, where {MOST_KILOBYTES} are the most"
    );
    // Memory of the first round is reused.
    assert!(
        second <= first + SLACK / 2,
        "{second} KB in the second round, after {first}"
    );
    server.process.kill().await;
}
