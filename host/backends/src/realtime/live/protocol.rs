//! The protocol of live queries: parses frames and formats envelopes, without any I/O.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::backends::calls::requests::read_params;
use crate::http::websocket::frame;
use crate::realtime::frames::{self, ClientFrameError, FrameSchema, ParsedFrameFields, non_null};
use crate::realtime::{MAX_NAME_CHARS, is_message_type};
use svc_database::values::Params;

#[derive(Debug, PartialEq)]
pub enum LiveFrame {
    /// Subscribes to the answer of an action.
    Subscribe {
        /// Id of the subscription, which its results carry.
        id: Arc<str>,
        action: String,
        /// Value of each of the action's params.
        params: Params,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// Id of the subscription.
        id: Arc<str>,
    },
}

/// Refusal of a frame.
#[derive(Debug)]
pub struct LiveFrameRefusal {
    /// Id of the frame, if it is valid.
    pub id: Option<Arc<str>>,
    /// Error of the frame, for its sender.
    pub error: ClientFrameError,
}

/// Members of a frame.
const FRAME_SCHEMA: FrameSchema<3> = FrameSchema {
    names: ["id", "action", "params"],
    ignored: &[],
    hint: "a frame has `v`, `type`, `id`, and to subscribe `action` and `params`.",
};

/// Parses a frame.
///
/// # Errors
/// A refusal, for its sender.
pub fn parse_frame(frame: &str) -> Result<LiveFrame, LiveFrameRefusal> {
    let members = FRAME_SCHEMA
        .read(frame)
        .map_err(|error| LiveFrameRefusal { id: None, error })?;
    let [id, _, _] = members.others;
    let id = id.and_then(|id| frames::parse_string(id.get()).ok());
    let id: Option<Arc<str>> = id.filter(|id| is_message_type(id)).map(Into::into);
    parse_members(&members, id.clone()).map_err(|error| LiveFrameRefusal { id, error })
}

fn invalid_frame(detail: impl Into<String>) -> ClientFrameError {
    ClientFrameError::Invalid(detail.into())
}

fn parse_members(
    members: &ParsedFrameFields<'_, 3>,
    id: Option<Arc<str>>,
) -> Result<LiveFrame, ClientFrameError> {
    members.check().map_err(invalid_frame)?;
    let subscribes = match members.kind().as_deref() {
        Some("subscribe") => true,
        Some("unsubscribe") => false,
        _ => {
            return Err(invalid_frame(
                "`type` must be `subscribe` or `unsubscribe`.",
            ));
        }
    };
    let id = id.ok_or_else(|| {
        invalid_frame(format!(
            "`id` must be 1 to {MAX_NAME_CHARS} characters of A-Z, a-z, 0-9 and `._~-`."
        ))
    })?;
    let [_, action, params] = members.others.map(non_null);
    if !subscribes {
        if action.is_some() || params.is_some() {
            return Err(invalid_frame(
                "`unsubscribe` has an `id` and neither `action` nor `params`: leave them out.",
            ));
        }
        return Ok(LiveFrame::Unsubscribe { id });
    }
    let action = action.and_then(|action| frames::parse_string(action.get()).ok());
    let action = action
        .filter(|action| !action.is_empty())
        .ok_or_else(|| invalid_frame("`action` must be the name of an action."))?
        .into_owned();
    let params = read_params(params.map(RawValue::get))?;
    Ok(LiveFrame::Subscribe { id, action, params })
}

/// Returns the frame of a result in parts; all subscribers share the longest. Ids need no escaping in JSON.
pub(super) fn result_frame_parts(id: &str, seq: u64, json: &Bytes) -> [Bytes; 3] {
    let head = format!(r#"{{"v":1,"type":"result","id":"{id}","seq":{seq},"result":"#);
    frame::text_frame_parts(&head, json, "}")
}

/// Returns the frame of an error; `problem` is a document, and `id` is the subscription that it ends.
pub(super) fn error_frame(id: Option<&str>, problem: &str) -> Bytes {
    let id = id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    frame::text_frame(&format!(
        r#"{{"v":1,"type":"error","id":{id},"problem":{problem}}}"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::ProblemCode;
    use crate::realtime::problems::code_of;
    use svc_database::values::Value;

    #[test]
    fn frames_are_read() {
        let subscribe = |action: &str, params: Params| LiveFrame::Subscribe {
            id: "a.1".into(),
            action: action.to_owned(),
            params,
        };
        let one = vec![("n".to_owned(), Value::Integer(1))];
        for (frame, expected) in [
            (
                r#"{"v":1,"type":"subscribe","id":"a.1","action":"x"}"#,
                subscribe("x", vec![]),
            ),
            (
                r#"{"params":null,"action":"x","id":"a.1","type":"subscribe","v":1}"#,
                subscribe("x", vec![]),
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a.1","action":"x","params":{"n":1}}"#,
                subscribe("x", one),
            ),
            (
                r#"{"v":1,"type":"unsubscribe","id":"a.1"}"#,
                LiveFrame::Unsubscribe { id: "a.1".into() },
            ),
        ] {
            assert_eq!(parse_frame(frame).unwrap(), expected, "{frame}");
        }
    }

    #[test]
    fn what_breaks_a_rule_is_told_with_its_id() {
        let long = format!(
            r#"{{"v":1,"type":"subscribe","id":"{}","action":"x"}}"#,
            "x".repeat(65)
        );
        for (frame, id, code) in [
            ("", None, ProblemCode::InvalidJson),
            ("{", None, ProblemCode::InvalidJson),
            ("[]", None, ProblemCode::InvalidRequest),
            ("{}", None, ProblemCode::InvalidRequest),
            (
                r#"{"v":2,"type":"subscribe","id":"a","action":"x"}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribed","id":"a","action":"x"}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a"}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":""}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":7}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":[]}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":{"n":[]}}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":{"n":1,"n":2}}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","more":1}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"v":1,"type":"subscribe","id":"a","action":"x"}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"unsubscribe","id":"a","action":"x"}"#,
                Some("a"),
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"unsubscribe"}"#,
                None,
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a b","action":"x"}"#,
                None,
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"","action":"x"}"#,
                None,
                ProblemCode::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":7,"action":"x"}"#,
                None,
                ProblemCode::InvalidRequest,
            ),
            (long.as_str(), None, ProblemCode::InvalidRequest),
        ] {
            let refusal = parse_frame(frame).unwrap_err();
            assert_eq!(
                (refusal.id.as_deref(), code_of(&refusal.error)),
                (id, code),
                "{frame}"
            );
        }
    }

    #[test]
    fn a_result_is_one_frame_however_long_it_is() {
        for length in [0, 10, 100, 200, 70_000] {
            let json = Bytes::from(vec![b'7'; length]);
            let text = format!(
                r#"{{"v":1,"type":"result","id":"a","seq":3,"result":{}}}"#,
                "7".repeat(length)
            );
            assert_eq!(
                result_frame_parts("a", 3, &json).concat(),
                frame::text_frame(&text),
                "{length}"
            );
        }
    }
}
