//! Rooms over HTTP: an owner sees who is there, and speaks.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{join, set_realtime, start_fixture};
use crate::owner::Owner;
use crate::project_fixture::{GUESTS, ProjectFixture};

async fn list_rooms(fixture: &ProjectFixture) -> Value {
    let path = format!("/{}/backend/rooms", fixture.project);
    fixture
        .owner
        .get(&fixture.server, &path)
        .await
        .expect(200)
        .json()
}

async fn send(fixture: &ProjectFixture, room: &str, body: &Value) -> svc_tests::Answer {
    fixture
        .send(Method::POST, &format!("/rooms/{room}/messages"), body)
        .await
}

#[tokio::test]
async fn an_owner_lists_rooms_and_speaks_in_them() {
    let fixture = start_fixture().await;
    assert_eq!(list_rooms(&fixture).await, json!({ "rooms": [] }));
    let (mut ada, _) = join(&fixture, "lobby").await;
    let (mut bob, _) = join(&fixture, "lobby").await;
    let (_eve, _) = join(&fixture, "garden").await;
    ada.send_envelope("hi", json!(1)).await;
    bob.wait_for_envelope("hi").await;
    let sent = send(
        &fixture,
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
    let without = send(&fixture, "lobby", &json!({ "type": "empty" })).await;
    assert_eq!(without.expect(202).json(), json!({ "seq": 3 }));
    assert_eq!(bob.wait_for_envelope("empty").await["data"], Value::Null);
    assert_eq!(
        list_rooms(&fixture).await,
        json!({ "rooms": [
            { "id": "garden", "members": 1, "seq": 0 },
            { "id": "lobby", "members": 2, "seq": 3 },
        ] })
    );
}

#[tokio::test]
async fn nothing_is_made_for_a_room_that_nobody_is_in() {
    let fixture = start_fixture().await;
    let sent = send(&fixture, "empty", &json!({ "type": "a" })).await;
    assert_eq!(sent.expect(202).json(), json!({ "seq": 0 }));
    assert_eq!(list_rooms(&fixture).await, json!({ "rooms": [] }));
    let mut late = fixture
        .server
        .socket("/room/ws?room=empty", &[])
        .await
        .unwrap();
    assert_eq!(late.envelope().await["data"]["seq"], 0);
}

#[tokio::test]
async fn a_message_is_checked() {
    let fixture = start_fixture().await;
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
        send(&fixture, room, &body).await.problem(400, code);
    }
    let fits = "x".repeat(16_384 - r#"{"type":"a","data":""}"#.len());
    send(&fixture, "a", &json!({ "type": "a", "data": fits }))
        .await
        .expect(202);
    let large = json!({ "type": "a", "data": format!("{fits}x") });
    send(&fixture, "a", &large)
        .await
        .problem(413, "payload_too_large");
}

#[tokio::test]
async fn only_the_owner_may_and_only_where_there_are_rooms() {
    let server = TestServer::start().await;
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    let stranger = Owner::new(&fixture.server, "zeta").await;
    let list = format!("/{}/backend/rooms", fixture.project);
    let path = format!("/{}/backend/rooms/a/messages", fixture.project);
    let body = json!({ "type": "a" });
    fixture
        .owner
        .get(&fixture.server, &list)
        .await
        .problem(404, "not_found");
    send(&fixture, ".", &json!({}))
        .await
        .problem(404, "not_found");
    set_realtime(&fixture, true).await;
    let public = format!("/api/v1/projects{path}");
    fixture
        .server
        .json(&public, &body)
        .answer()
        .await
        .problem(401, "unauthorized");
    stranger
        .get(&fixture.server, &list)
        .await
        .problem(403, "forbidden");
    stranger
        .post(&fixture.server, &path, &body)
        .await
        .problem(403, "forbidden");
    fixture.delete().await.expect(204);
    fixture
        .owner
        .get(&fixture.server, &list)
        .await
        .problem(404, "not_found");
    send(&fixture, "a", &body).await.problem(404, "not_found");
    // Before anything is looked up, what is too large is.
    let large = json!({ "type": "a", "data": "x".repeat(20_000) });
    let nobody = "/01a1fc20-6ee3-7da4-ae81-ade539ecfe63/backend/rooms/a/messages";
    fixture
        .owner
        .post(&fixture.server, nobody, &large)
        .await
        .problem(413, "payload_too_large");
}
