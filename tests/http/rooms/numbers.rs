//! Numbers of rooms for operators.

use serde_json::json;
use svc_tests::{RealtimeServer, Socket, TestServer, wait_until};

use crate::svc;

#[tokio::test]
async fn what_happens_in_rooms_is_counted() {
    let _warm = TestServer::start().await.stop().await;
    let server = RealtimeServer::start(
        svc(),
        "outbound_queue = 8\nmessages_per_second = 100000\n",
        &[],
    )
    .await;
    let join = async || {
        let address = server.process.address();
        let mut socket = Socket::open(address, "/room/ws?room=a", &[]).await.unwrap();
        socket.wait_for_envelope("svc:welcome").await;
        socket
    };
    let (mut ada, mut bob, slow) = (join().await, join().await, join().await);
    for n in 0..5 {
        ada.send_envelope("n", json!(n)).await;
        bob.wait_for_envelope("n").await;
    }
    ada.send_envelope("svc:forged", json!(1)).await;
    ada.wait_for_envelope("svc:error").await;
    let counted = async |name: &str| server.metric(name).await;
    let settled = async || (counted("svc_room_sockets").await == 3).then_some(());
    wait_until("the sockets to be counted", settled).await;
    for (name, number) in [
        ("svc_rooms", 1),
        ("svc_room_joins_total", 3),
        ("svc_room_messages_total", 5),
        ("svc_room_deliveries_total", 10),
        ("svc_room_refused_total", 1),
        ("svc_room_drops_total", 0),
    ] {
        assert_eq!(counted(name).await, number, "{name}");
    }
    // A client that reads nothing fills its queue, and what waits there is thrown away.
    let filling = "x".repeat(15_000);
    let listening = tokio::spawn(async move {
        bob.wait_for_envelope("svc:leave").await;
        bob
    });
    let dropped = async || {
        ada.send_envelope("n", json!(filling)).await;
        (counted("svc_room_drops_total").await > 0).then_some(())
    };
    wait_until("the queue to be full", dropped).await;
    // A message that is partly written is not dropped.
    assert!((8..=9).contains(&counted("svc_room_drops_total").await));
    assert_eq!(counted("svc_room_queue_longest").await, 8);
    let _bob = listening.await.unwrap();
    drop(slow);
    let left = async || (counted("svc_room_sockets").await == 2).then_some(());
    wait_until("the slow one to be gone", left).await;
}
