//! Rooms over HTTP: an owner sees who is there, and speaks.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{house, join, switch};
use crate::account::Owner;
use crate::house::{GUESTS, House};

async fn rooms(house: &House) -> Value {
    let path = format!("/{}/backend/rooms", house.project);
    house
        .owner
        .get(&house.server, &path)
        .await
        .expect(200)
        .json()
}

async fn send(house: &House, room: &str, body: &Value) -> svc_tests::Answer {
    house
        .send(Method::POST, &format!("/rooms/{room}/messages"), body)
        .await
}

#[tokio::test]
async fn an_owner_lists_rooms_and_speaks_in_them() {
    let house = house().await;
    assert_eq!(rooms(&house).await, json!({ "rooms": [] }));
    let (mut ada, _) = join(&house, "lobby").await;
    let (mut bob, _) = join(&house, "lobby").await;
    let (_eve, _) = join(&house, "garden").await;
    ada.send_envelope("hi", json!(1)).await;
    bob.wait_for_envelope("hi").await;
    let sent = send(
        &house,
        "lobby",
        &json!({ "type": "notice", "data": { "text": "hello" } }),
    )
    .await;
    assert_eq!(sent.expect(202).json(), json!({ "seq": 2 }));
    for socket in [&mut ada, &mut bob] {
        let notice = socket.wait_for_envelope("notice").await;
        assert_eq!(
            notice,
            json!({
                "v": 1, "type": "notice", "data": { "text": "hello" }, "sender": "owner", "room": "lobby",
                "ts": "2026-11-20T12:00:00.000Z", "seq": 2,
            })
        );
    }
    let without = send(&house, "lobby", &json!({ "type": "empty" })).await;
    assert_eq!(without.expect(202).json(), json!({ "seq": 3 }));
    assert_eq!(bob.wait_for_envelope("empty").await["data"], Value::Null);
    assert_eq!(
        rooms(&house).await,
        json!({ "rooms": [
            { "id": "garden", "members": 1, "seq": 0 },
            { "id": "lobby", "members": 2, "seq": 3 },
        ] })
    );
}

#[tokio::test]
async fn nothing_is_made_for_a_room_that_nobody_is_in() {
    let house = house().await;
    let sent = send(&house, "empty", &json!({ "type": "a" })).await;
    assert_eq!(sent.expect(202).json(), json!({ "seq": 0 }));
    assert_eq!(rooms(&house).await, json!({ "rooms": [] }));
    let mut late = house
        .server
        .socket("/room/ws?room=empty", &[])
        .await
        .unwrap();
    assert_eq!(late.envelope().await["data"]["seq"], 0);
}

#[tokio::test]
async fn a_message_is_checked() {
    let house = house().await;
    for (room, body, code) in [
        (".a", json!({ "type": "a" }), "invalid_room"),
        ("a%20b", json!({ "type": "a" }), "invalid_room"),
        ("a", json!({ "type": "svc:join" }), "invalid_request"),
        ("a", json!({ "type": "" }), "invalid_request"),
        ("a", json!({ "type": "a b" }), "invalid_request"),
        ("a", json!({}), "invalid_request"),
        (
            "a",
            json!({ "type": "a", "sender": "x" }),
            "invalid_request",
        ),
    ] {
        send(&house, room, &body).await.problem(400, code);
    }
    let fits = "x".repeat(16_384 - r#"{"type":"a","data":""}"#.len());
    send(&house, "a", &json!({ "type": "a", "data": fits }))
        .await
        .expect(202);
    let large = json!({ "type": "a", "data": format!("{fits}x") });
    send(&house, "a", &large)
        .await
        .problem(413, "payload_too_large");
}

#[tokio::test]
async fn only_the_owner_may_and_only_where_there_are_rooms() {
    let server = TestServer::start().await;
    let house = House::on(server, GUESTS).await;
    let stranger = Owner::new(&house.server, "zeta").await;
    let list = format!("/{}/backend/rooms", house.project);
    let path = format!("/{}/backend/rooms/a/messages", house.project);
    let body = json!({ "type": "a" });
    house
        .owner
        .get(&house.server, &list)
        .await
        .problem(404, "not_found");
    send(&house, ".", &json!({}))
        .await
        .problem(404, "not_found");
    switch(&house, true).await;
    let public = format!("/api/v1/projects{path}");
    house
        .server
        .json(&public, &body)
        .answer()
        .await
        .problem(401, "unauthorized");
    stranger
        .get(&house.server, &list)
        .await
        .problem(403, "forbidden");
    stranger
        .post(&house.server, &path, &body)
        .await
        .problem(403, "forbidden");
    house.delete().await.expect(204);
    house
        .owner
        .get(&house.server, &list)
        .await
        .problem(404, "not_found");
    send(&house, "a", &body).await.problem(404, "not_found");
    // Before anything is looked up, what is too large is.
    let large = json!({ "type": "a", "data": "x".repeat(20_000) });
    let nobody = "/01a1fc20-6ee3-7da4-ae81-ade539ecfe63/backend/rooms/a/messages";
    house
        .owner
        .post(&house.server, nobody, &large)
        .await
        .problem(413, "payload_too_large");
}
