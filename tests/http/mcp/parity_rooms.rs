//! More steps of the parity test: rooms.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::{PROJECTS, Steps};

impl Steps {
    /// Rooms of a backend, before they are open and after.
    pub(super) fn rooms(&mut self) {
        for (realtime, status) in [(false, 404), (true, 200)] {
            let switch = json!({ "realtime": realtime });
            self.backend("update", Method::PATCH, "", switch, 200);
            self.backend("rooms", Method::GET, "/rooms", json!({}), status);
            let sent = if realtime { 202 } else { 404 };
            self.said(
                "lobby",
                json!({ "type": "notice", "data": [1, null] }),
                sent,
            );
        }
        for (room, body, status) in [
            ("lobby", json!({ "type": "notice" }), 202),
            ("lobby", json!({ "type": "notice", "data": null }), 202),
            ("lobby", json!({ "type": "svc:join" }), 400),
            ("lobby", json!({ "type": "a b" }), 400),
            ("lobby", json!({ "data": 1 }), 400),
            ("lobby", json!({ "type": "a", "dta": 1 }), 400),
            (".lobby", json!({ "type": "a" }), 400),
            (
                "lobby",
                json!({ "type": "a", "data": "x".repeat(16 << 10) }),
                413,
            ),
        ] {
            self.said(room, body, status);
        }
    }

    /// Says something in a room.
    fn said(&mut self, room: &str, body: Value, status: u16) {
        let path = format!("{PROJECTS}/$project/backend/rooms/{room}/messages");
        let mut arguments = body.clone();
        arguments["action"] = "send".into();
        arguments["project_id"] = "$project".into();
        arguments["room"] = room.into();
        self.add(
            "manage_backend",
            arguments,
            Method::POST,
            path,
            body,
            status,
        );
    }
}
