//! Messages between members of a room: envelopes, numbers, and who gets them.

use serde_json::json;

use super::{join, join_page, start_fixture};
use crate::owner::text;

#[tokio::test]
async fn a_message_goes_to_every_other_member_in_the_servers_envelope() {
    let fixture = start_fixture().await;
    let (mut ada, ada_id) = join(&fixture, "lobby").await;
    let (mut bob, bob_id) = join(&fixture, "lobby").await;
    let (mut eve, _) = join(&fixture, "lobby").await;
    assert_ne!(ada_id, bob_id);
    ada.send(r#"{"v":1,"type":"move","data":{"x": 1.50},"client_message_id":"m1","sender":"owner","room":"other","ts":"never","seq":99}"#).await;
    for socket in [&mut bob, &mut eve] {
        assert_eq!(
            socket.wait_for_envelope("move").await,
            json!({
                "v": 1, "type": "move", "data": { "x": 1.5 }, "sender": ada_id, "room": "lobby",
                "ts": "2026-11-20T12:00:00.000Z", "seq": 1,
            })
        );
    }
    // Not to itself.
    let own = ada.drain_envelopes().await;
    assert!(
        own.iter().all(|envelope| envelope["type"] != "move"),
        "{own:?}"
    );
}

#[tokio::test]
async fn who_joins_is_welcomed_first_and_the_others_are_told() {
    let fixture = start_fixture().await;
    let mut ada = fixture
        .server
        .socket("/room/ws?room=lobby", &[])
        .await
        .unwrap();
    let ts = "2026-11-20T12:00:00.000Z";
    let welcome = ada.envelope().await;
    let ada_id = text(&welcome["data"]["client_id"]);
    assert_eq!(
        welcome,
        json!({
            "v": 1, "type": "svc:welcome", "room": "lobby", "ts": ts,
            "data": {
                "client_id": ada_id, "room": "lobby", "members": 1, "seq": 0, "list": [{ "client_id": ada_id }],
            },
        })
    );
    let mut bob = fixture
        .server
        .socket("/room/ws?room=lobby", &[])
        .await
        .unwrap();
    let welcome = bob.envelope().await;
    let bob_id = text(&welcome["data"]["client_id"]);
    assert_eq!(welcome["data"]["members"], 2);
    // In the order of joining.
    let list = json!([{ "client_id": ada_id }, { "client_id": bob_id }]);
    assert_eq!(welcome["data"]["list"], list);
    assert_eq!(
        ada.wait_for_envelope("svc:join").await,
        json!({ "v": 1, "type": "svc:join", "room": "lobby", "ts": ts, "data": { "client_id": bob_id } })
    );
    let presence = json!({ "v": 1, "type": "svc:presence", "room": "lobby", "ts": ts, "data": { "members": 2 } });
    assert_eq!(ada.wait_for_envelope("svc:presence").await, presence);
    assert_eq!(bob.wait_for_envelope("svc:presence").await, presence);
    bob.close().await;
    assert_eq!(
        ada.wait_for_envelope("svc:leave").await,
        json!({ "v": 1, "type": "svc:leave", "room": "lobby", "ts": ts, "data": { "client_id": bob_id } })
    );
    assert_eq!(
        ada.wait_for_envelope("svc:presence").await["data"]["members"],
        1
    );
}

#[tokio::test]
async fn messages_are_numbered_by_room_and_own_ones_count() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "lobby").await;
    let (mut bob, _) = join(&fixture, "lobby").await;
    let (mut eve, _) = join(&fixture, "garden").await;
    ada.send_envelope("a", json!(1)).await;
    assert_eq!(bob.wait_for_envelope("a").await["seq"], 1);
    bob.send_envelope("b", json!(2)).await;
    assert_eq!(ada.wait_for_envelope("b").await["seq"], 2);
    ada.send_envelope("c", json!(3)).await;
    assert_eq!(bob.wait_for_envelope("c").await["seq"], 3);
    // A frame that is refused takes no number.
    ada.send_envelope("svc:join", json!({ "client_id": "x" }))
        .await;
    ada.wait_for_envelope("svc:error").await;
    let mut late = fixture
        .server
        .socket("/room/ws?room=lobby", &[])
        .await
        .unwrap();
    assert_eq!(late.envelope().await["data"]["seq"], 3);
    // Another room has numbers of its own, and hears nothing of this one.
    let (mut dan, _) = join(&fixture, "garden").await;
    dan.send_envelope("d", json!(4)).await;
    assert_eq!(eve.wait_for_envelope("d").await["seq"], 1);
    let heard = eve.drain_envelopes().await;
    assert!(heard.is_empty(), "{heard:?}");
}

#[tokio::test]
async fn a_room_and_its_numbers_end_with_its_last_member() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "lobby").await;
    ada.send_envelope("a", json!(1)).await;
    ada.send_envelope("a", json!(2)).await;
    let (bob, _) = join(&fixture, "lobby").await;
    bob.close().await;
    ada.close().await;
    let mut again = fixture
        .server
        .socket("/room/ws?room=lobby", &[])
        .await
        .unwrap();
    let welcome = again.envelope().await;
    assert_eq!(welcome["data"]["seq"], 0, "{welcome}");
    assert_eq!(welcome["data"]["members"], 1, "{welcome}");
}

#[tokio::test]
async fn sibling_frontends_share_the_rooms_of_their_backend() {
    let fixture = start_fixture().await;
    fixture.publish("annex").await;
    let (mut ada, _) = join(&fixture, "lobby").await;
    let (mut bob, _) = join_page(&fixture, "annex", "lobby").await;
    ada.send_envelope("hi", json!(null)).await;
    assert_eq!(bob.wait_for_envelope("hi").await["data"], json!(null));
}

#[tokio::test]
async fn data_arrives_as_it_was_written() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "lobby").await;
    let (mut bob, _) = join(&fixture, "lobby").await;
    let long = "ä".repeat(8_000);
    for (n, data) in [
        json!(null),
        json!(true),
        json!("line\nbreak \u{2028} \"quote\" </script>"),
        json!([1, -2.5, 12_345_678_901_234_567_890_u64]),
        json!({ "a": { "b": [] } }),
        json!(long),
    ]
    .into_iter()
    .enumerate()
    {
        ada.send_envelope("data", data.clone()).await;
        let envelope = bob.wait_for_envelope("data").await;
        assert_eq!(
            (&envelope["data"], &envelope["seq"]),
            (&data, &json!(n + 1))
        );
    }
}

#[tokio::test]
async fn a_frame_that_breaks_a_rule_is_answered_and_dropped() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "lobby").await;
    let (mut bob, _) = join(&fixture, "lobby").await;
    for (frame, code, id) in [
        ("not json", "invalid_json", json!(null)),
        ("[1]", "invalid_request", json!(null)),
        (
            r#"{"v":1,"type":"svc:presence","data":{"members":99},"client_message_id":"m1"}"#,
            "invalid_request",
            json!("m1"),
        ),
        (
            r#"{"v":2,"type":"a","client_message_id":"m2"}"#,
            "invalid_request",
            json!("m2"),
        ),
        (
            r#"{"v":1,"type":"a","extra":1,"client_message_id":"m3"}"#,
            "invalid_request",
            json!("m3"),
        ),
    ] {
        ada.send(frame).await;
        let error = ada.wait_for_envelope("svc:error").await;
        assert_eq!(error["v"], 1);
        assert_eq!(error["data"]["code"], code, "{frame}: {error}");
        assert!(!text(&error["data"]["detail"]).is_empty());
        assert_eq!(error["data"]["client_message_id"], id, "{frame}");
    }
    // The socket goes on, and nobody has heard of any of it.
    ada.send_envelope("fine", json!(1)).await;
    let heard = bob.drain_envelopes().await;
    let kinds: Vec<_> = heard
        .iter()
        .map(|envelope| text(&envelope["type"]))
        .collect();
    assert_eq!(kinds, ["svc:presence", "fine"]);
}
