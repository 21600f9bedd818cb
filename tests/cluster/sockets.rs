//! Rooms, live queries and event streams through nodes that do not have the database, and after it has moved to another one.

use futures_util::SinkExt;
use http::{Method, header};
use reqwest::Response;
use serde_json::json;
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::{ReadAnswer, Socket, wait_until};
use tokio_tungstenite::tungstenite::Message;

use crate::several::{databases, start_two};

/// Somebody in the room `hall`, and somebody who watches all entries, both at one node.
struct Visitors {
    room: Socket,
    live: Socket,
}

impl Visitors {
    /// Opens both sockets, as soon as they are accepted. Nobody has said anything in the room yet.
    async fn open(node: &ClusterNode) -> Self {
        let mut room = open(node, "/room/ws?room=hall").await;
        let welcome = room.wait_for_envelope("svc:welcome").await;
        assert_eq!(welcome["data"]["seq"], 0, "{welcome}");
        let mut live = open(node, "/room/api/live").await;
        watch_entries(&mut live).await;
        Self { room, live }
    }

    /// Waits for the result that has so many entries, and sees that the results before are counted without gaps from `seq` on. Returns
    /// the number of the last one.
    async fn wait_for_entries(&mut self, count: usize, mut seq: u64) -> u64 {
        loop {
            let result = self.live.wait_for_envelope("result").await;
            seq += 1;
            assert_eq!(result["seq"], seq, "{result}");
            if result["result"]["rows"].as_array().unwrap().len() == count {
                return seq;
            }
        }
    }

    /// Waits until both sockets are closed; returns the codes.
    async fn wait_for_close(mut self) -> [Option<u16>; 2] {
        let room = self.room.wait_for_close().await;
        [room, self.live.wait_for_close().await]
    }
}

/// Subscribes to all entries, unless the socket is closed already.
pub(crate) async fn watch_entries(live: &mut Socket) {
    let (id, params) = ("all", json!({ "after": 0 }));
    let subscribe =
        json!({ "v": 1, "type": "subscribe", "id": id, "action": "page", "params": params });
    // What is next to be read says that it is closed.
    let _ = live.0.send(Message::text(subscribe.to_string())).await;
}

/// Opens a socket as soon as the node accepts it.
async fn open(node: &ClusterNode, path: &str) -> Socket {
    let address = node.process.address();
    wait_until("a socket to be accepted", async || {
        Socket::open(address, path, &[]).await.ok()
    })
    .await
}

/// Switches the rooms of the page on.
async fn switch_rooms_on(cluster: &Cluster, node: &ClusterNode) {
    let switch = json!({ "realtime": true });
    let switched = cluster.ask(node, Method::PATCH, "/backend", &switch).await;
    switched.expect(200);
}

/// Number of all entries, once one more was acknowledged.
async fn add_entry(cluster: &Cluster, node: &ClusterNode, writer: u64) -> usize {
    wait_until("an entry to be acknowledged", async || {
        (node.add((writer, 1)).await.status == 200).then_some(())
    })
    .await;
    cluster.entries(node).await.values().sum()
}

/// Has visitors at two nodes and the owner hear each other, and see each other's entries. The first node gets the database if nobody has it.
async fn meet(cluster: &Cluster, nodes: [&ClusterNode; 2]) -> [Visitors; 2] {
    let mut here = Visitors::open(nodes[0]).await;
    let mut there = Visitors::open(nodes[1]).await;
    here.room.send_envelope("say", json!("here")).await;
    let heard = there.room.wait_for_envelope("say").await;
    assert_eq!((&heard["data"], &heard["seq"]), (&json!("here"), &json!(1)));
    there.room.send_envelope("say", json!("there")).await;
    let heard = here.room.wait_for_envelope("say").await;
    assert_eq!(
        (&heard["data"], &heard["seq"]),
        (&json!("there"), &json!(2))
    );
    let (mut seen, mut said) = ([0, 0], 2);
    for node in nodes {
        let rooms =
            cluster.owner_request(node, Method::GET, &format!("{}/rooms", cluster.backend()));
        let rooms = rooms.answer().await.expect(200).json();
        assert_eq!(rooms["rooms"][0]["members"], 2, "{rooms}");
        let notice = json!({ "type": "notice", "data": said });
        let path = "/backend/rooms/hall/messages";
        cluster
            .ask(node, Method::POST, path, &notice)
            .await
            .expect(202);
        said += 1;
        let count = add_entry(cluster, node, said).await;
        for (visitors, seq) in [&mut here, &mut there].into_iter().zip(&mut seen) {
            let heard = visitors.room.wait_for_envelope("notice").await;
            assert_eq!(heard["seq"], said, "{heard}");
            *seq = visitors.wait_for_entries(count, *seq).await;
        }
    }
    [here, there]
}

/// Opens an event stream of all entries.
async fn open_stream(node: &ClusterNode) -> Response {
    let path = "/room/api/live?action=page&params=%7B%22after%22%3A0%7D";
    let request = node.process.client().get(node.process.url(path));
    let request = request.header(header::ACCEPT, "text/event-stream");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

/// Reads events until one has a text.
async fn wait_for_event(stream: &mut Response, text: &str) {
    let mut read = String::new();
    while !read.contains(text) {
        let part = stream.chunk().await.unwrap().expect("more events");
        read.push_str(std::str::from_utf8(&part).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_through_another_node_come_back_after_a_kill_and_miss_nothing() {
    let (cluster, owner, follower) = start_two().await;
    switch_rooms_on(&cluster, &owner).await;
    assert_eq!(databases(&cluster, &owner, "n2").await, 0);
    let [at_owner, at_follower] = meet(&cluster, [&owner, &follower]).await;
    let mut stream = open_stream(&follower).await;
    wait_for_event(&mut stream, "id: 1").await;
    follower.add((7, 7)).await.expect(200);
    wait_for_event(&mut stream, "id: 2").await;
    owner.lose().await;
    at_owner.wait_for_close().await;
    assert_eq!(at_follower.wait_for_close().await, [Some(1012); 2]);
    // It ends, and nothing is added to it.
    while let Ok(Some(part)) = stream.chunk().await {
        let part = String::from_utf8_lossy(&part);
        assert!(!part.contains("event: error"), "{part}");
    }
    // What nobody has seen is shown first.
    let count = add_entry(&cluster, &follower, 8).await;
    let mut back = Visitors::open(&follower).await;
    back.wait_for_entries(count, 0).await;
    let mut other = Visitors::open(&follower).await;
    back.room.send_envelope("say", json!("again")).await;
    let heard = other.room.wait_for_envelope("say").await;
    assert_eq!(heard["seq"], 1, "the room counts anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_come_back_after_a_promotion_and_at_a_node_that_only_has_the_database() {
    let (cluster, before, owner) = start_two().await;
    let follower = cluster.start("n3", false).await;
    follower.wait_until_ready().await;
    switch_rooms_on(&cluster, &before).await;
    let [at_before, at_owner] = meet(&cluster, [&before, &owner]).await;
    assert!(cluster.promote(&owner).await.success);
    before.process.wait_for_exit().await;
    at_before.wait_for_close().await;
    assert_eq!(at_owner.wait_for_close().await, [Some(1012); 2]);
    // Control is at one node, and the database at the other, whose visitors came back first.
    let [at_follower, at_owner] = meet(&cluster, [&follower, &owner]).await;
    assert_eq!(databases(&cluster, &owner, "n3").await, 1);
    follower.lose().await;
    at_follower.wait_for_close().await;
    assert_eq!(at_owner.wait_for_close().await, [Some(1012); 2]);
    let count = add_entry(&cluster, &owner, 9).await;
    let mut back = Visitors::open(&owner).await;
    back.wait_for_entries(count, 0).await;
}
