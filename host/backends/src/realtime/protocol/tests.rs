//! Table of frames, valid and not.

use serde_json::{Value, json};

use super::*;
use crate::visitors::model::VisitorProfile;
use crate::visitors::{VisitorId, VisitorSession};
use svc_base::random::Random;

#[test]
fn frames_that_are_relayed() {
    let kind = "t".repeat(64);
    let longest = format!(r#"{{"v":1,"type":"{kind}"}}"#);
    for (frame, kind, data) in [
        (r#"{"v":1,"type":"a","data":{"x":1}}"#, "a", r#"{"x":1}"#),
        (r#"{"v":1,"type":"a"}"#, "a", "null"),
        (r#"{"v":1,"type":"a","data":null}"#, "a", "null"),
        (
            r#"{"type":"A.b_c~d-9","v":1,"data":1e999}"#,
            "A.b_c~d-9",
            "1e999",
        ),
        (
            r#"{"v":1,"type":"\u0061","data":"\ud83d\ude00"}"#,
            "a",
            r#""\ud83d\ude00""#,
        ),
        (
            " {\"v\":1,\n\"type\":\"a\",\"data\": [1, 2] } ",
            "a",
            "[1, 2]",
        ),
        (
            r#"{"v":1,"type":"a","data":1,"sender":"owner","room":"x","ts":1,"seq":9}"#,
            "a",
            "1",
        ),
        (longest.as_str(), kind.as_str(), "null"),
    ] {
        let message = parse_frame(frame).unwrap_or_else(|refusal| panic!("{frame}: {refusal:?}"));
        assert_eq!(
            (message.kind.as_ref(), message.data),
            (kind, data),
            "{frame}"
        );
    }
}

#[test]
fn frames_that_break_a_rule() {
    let long = format!(r#"{{"v":1,"type":"{}"}}"#, "t".repeat(65));
    for (frame, code, says) in [
        ("", "invalid_json", "EOF"),
        ("hello", "invalid_json", "JSON"),
        (r#"{"v":1,"type":"a"} x"#, "invalid_json", "trailing"),
        (r#"{"v":1,"type":"a","data":}"#, "invalid_json", "JSON"),
        (
            r#"{"v":1,"type":"a","data":"\x"}"#,
            "invalid_json",
            "escape",
        ),
        ("[]", "invalid_request", "object"),
        ("7", "invalid_request", "object"),
        ("null", "invalid_request", "object"),
        ("{}", "invalid_request", "`v`"),
        (r#"{"type":"a"}"#, "invalid_request", "`v`"),
        (r#"{"v":2,"type":"a"}"#, "invalid_request", "`v`"),
        (r#"{"v":"1","type":"a"}"#, "invalid_request", "`v`"),
        (r#"{"v":1}"#, "invalid_request", "`type`"),
        (r#"{"v":1,"type":null}"#, "invalid_request", "`type`"),
        (r#"{"v":1,"type":7}"#, "invalid_request", "`type`"),
        (r#"{"v":1,"type":""}"#, "invalid_request", "`type`"),
        (r#"{"v":1,"type":"a b"}"#, "invalid_request", "`type`"),
        (r#"{"v":1,"type":"a\"b"}"#, "invalid_request", "`type`"),
        (
            r#"{"v":1,"type":"svc:join"}"#,
            "invalid_request",
            "platform",
        ),
        (
            r#"{"v":1,"type":"svc:anything"}"#,
            "invalid_request",
            "platform",
        ),
        (long.as_str(), "invalid_request", "64"),
        (
            r#"{"v":1,"type":"a","tpye":1}"#,
            "invalid_request",
            "`tpye`",
        ),
        (
            r#"{"v":1,"type":"a","type":"b"}"#,
            "invalid_request",
            "twice",
        ),
        (
            r#"{"v":1,"type":"a","data":1,"data":2}"#,
            "invalid_request",
            "twice",
        ),
        (
            r#"{"v":1,"type":"a","client_message_id":7}"#,
            "invalid_request",
            "client_message_id",
        ),
    ] {
        let refusal = parse_frame(frame).expect_err(frame);
        assert_eq!(refusal.code, code, "{frame}: {}", refusal.detail);
        assert!(refusal.detail.contains(says), "{frame}: {}", refusal.detail);
    }
}

#[test]
fn a_refusal_names_the_message_that_it_is_of() {
    for (frame, id) in [
        (
            r#"{"v":1,"type":"a b","client_message_id":"m1"}"#,
            json!("m1"),
        ),
        (r#"{"client_message_id":"\"<"}"#, json!("\"<")),
        (r#"{"v":1,"client_message_id":null}"#, Value::Null),
        (r#"{"v":1,"client_message_id":{}}"#, Value::Null),
    ] {
        let envelope = parse_frame(frame).expect_err(frame).envelope();
        let envelope: Value = serde_json::from_str(&envelope).unwrap();
        assert_eq!(envelope["type"], "svc:error");
        assert_eq!(envelope["v"], 1);
        assert_eq!(envelope["data"]["client_message_id"], id, "{frame}");
        let has = envelope["data"].get("client_message_id").is_some();
        assert_eq!(has, !id.is_null(), "{frame}");
    }
}

#[test]
fn envelopes_are_json_of_these_members() {
    let ts = Timestamp(1_795_176_000_000);
    let (at, room) = ("2026-11-20T12:00:00.000Z", "r");
    let read = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let c1 = RoomClient::anonymous("c1");
    assert_eq!(
        read(message_event(("say", "1"), None, room, ts, 7))["sender"],
        "owner"
    );
    assert_eq!(
        read(message_event(
            ("say", r#"{"a": [1]}"#),
            Some(&c1),
            room,
            ts,
            7
        )),
        json!({ "v": 1, "type": "say", "data": { "a": [1] }, "sender": "c1", "room": "r", "ts": at, "seq": 7 })
    );
    let c2 = RoomClient::anonymous("c2");
    let list = member_list([&c2, &c1].into_iter());
    let rest = welcome_rest((2, &list), room, 7, ts);
    assert_eq!(
        read(welcome_start(&c1) + &rest + WELCOME_END),
        json!({
            "v": 1, "type": "svc:welcome", "room": "r", "ts": at,
            "data": { "client_id": "c1", "room": "r", "members": 2, "seq": 7, "list": [{ "client_id": "c2" }, { "client_id": "c1" }] },
        })
    );
    for (text, kind, data) in [
        (
            join_event(&c1, room, ts),
            "svc:join",
            json!({ "client_id": "c1" }),
        ),
        (
            leave_event(&c1, room, ts),
            "svc:leave",
            json!({ "client_id": "c1" }),
        ),
        (
            presence_event(3, room, ts),
            "svc:presence",
            json!({ "members": 3 }),
        ),
    ] {
        assert_eq!(
            read(text),
            json!({ "v": 1, "type": kind, "data": data, "room": "r", "ts": at })
        );
    }
}

#[test]
fn a_long_list_of_members_leaves_out_pictures_and_then_names() {
    let profile = |name: usize, picture: usize| VisitorProfile {
        name: Some("n".repeat(name)),
        picture: Some(format!("https://a.example/{}", "p".repeat(picture))),
        ..VisitorProfile::default()
    };
    let client = |profile: VisitorProfile| {
        let session = VisitorSession {
            key: [0; 32],
            visitor: VisitorId::new(&Random::system()).unwrap(),
            deployment: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
            host: None,
            project: "00000000-0000-7000-8000-000000000002".parse().unwrap(),
            profile,
            provider: "dev".to_owned(),
            expires_at: Timestamp(0),
            seen_at: Timestamp(0),
        };
        RoomClient::anonymous("c1").with_visitor(Some(&session))
    };
    for (members, name, picture, shown) in [
        (100, 20, 100, &["id", "name", "picture"][..]),
        (1_000, 20, 100, &["id", "name", "picture"]),
        (1_000, 20, 300, &["id", "name"]),
        (1_000, 800, 2_000, &["id"]),
        // Ids are never left out.
        (10_000, 800, 2_000, &["id"]),
    ] {
        let one = client(profile(name, picture));
        let list = member_list(std::iter::repeat_n(&one, members));
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.len(), members);
        let user = list[members - 1]["user"].as_object().unwrap();
        let names: Vec<&String> = user.keys().collect();
        assert_eq!(names, shown, "{members} with {name} and {picture}");
    }
    assert_eq!(member_list(std::iter::empty::<&RoomClient>()), "[]");
}
