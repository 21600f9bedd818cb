//! Protocols of rooms and live queries: a verdict for every text, and nothing in it that could leave its place in JSON.

use serde::de::IgnoredAny;
use serde_json::Value;
use svc::http::problem::Problem;
use svc::realtime::{is_message_type, live, protocol};

/// Judges a text as a frame of both.
pub(crate) fn judge(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match protocol::parse_frame(&text) {
        Ok(message) => {
            assert!(is_message_type(&message.kind), "{:?}", message.kind);
            // A number may be larger than any that is known here.
            serde_json::from_str::<IgnoredAny>(message.data).expect("data is JSON");
        }
        Err(refusal) => {
            let told: Value = serde_json::from_str(&refusal.envelope()).expect("an envelope");
            assert_eq!(told["type"], "svc:error");
            assert!(["invalid_json", "invalid_request"].contains(&refusal.code));
        }
    }
    match live::protocol::parse_frame(&text) {
        Ok(live::protocol::LiveFrame::Subscribe { id, action, .. }) => {
            assert!(is_message_type(&id) && !action.is_empty());
        }
        Ok(live::protocol::LiveFrame::Unsubscribe { id }) => assert!(is_message_type(&id)),
        Err(refusal) => {
            let problem = Problem::from(&refusal.error);
            assert!(problem.code.status().is_client_error());
            assert!(refusal.id.is_none_or(|id| is_message_type(&id)));
        }
    }
}
