//! The language of live queries: a page's text in, a verdict or an envelope out, without any I/O.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::backends::calls::requests::read_params;
use crate::http::extract::invalid;
use crate::http::problem::{Code, Problem};
use crate::http::websocket::frame;
use crate::realtime::frames::{self, FrameMembers, FrameSchema, non_null};
use crate::realtime::{MAX_NAME_CHARS, is_message_type};
use svc_database::values::Params;

/// Frame of a page.
#[derive(Debug, PartialEq)]
pub enum Frame {
    /// To be told what an action answers, from now on.
    Subscribe {
        /// The name of the subscription, which its results have.
        id: Arc<str>,
        /// The action's name.
        action: String,
        /// A value for each of its params.
        params: Params,
    },
    /// To be told no more.
    Unsubscribe {
        /// The name of the subscription.
        id: Arc<str>,
    },
}

/// A frame that breaks a rule.
#[derive(Debug)]
pub struct Refusal {
    /// The id that it names, if that is one.
    pub id: Option<Arc<str>>,
    /// The problem, for its sender.
    pub problem: Problem,
}

/// Form of a page's frame.
const FRAME_SCHEMA: FrameSchema<3> = FrameSchema {
    names: ["id", "action", "params"],
    ignored: &[],
    hint: "a frame has `v`, `type`, `id`, and to subscribe `action` and `params`.",
};

/// Reads a frame.
///
/// # Errors
/// A refusal, for its sender.
pub fn parse_frame(frame: &str) -> Result<Frame, Refusal> {
    let members = FRAME_SCHEMA.read(frame).map_err(|(code, detail)| Refusal {
        id: None,
        problem: Problem::new(code, detail),
    })?;
    let [id, _, _] = members.others;
    let id = id.and_then(|id| frames::parse_string(id.get()).ok());
    let id: Option<Arc<str>> = id.filter(|id| is_message_type(id)).map(Into::into);
    parse_members(&members, id.clone()).map_err(|problem| Refusal { id, problem })
}

fn parse_members(members: &FrameMembers<'_, 3>, id: Option<Arc<str>>) -> Result<Frame, Problem> {
    members.check().map_err(invalid)?;
    let subscribes = match members.kind().as_deref() {
        Some("subscribe") => true,
        Some("unsubscribe") => false,
        _ => return Err(invalid("`type` must be `subscribe` or `unsubscribe`.")),
    };
    let id = id.ok_or_else(|| {
        invalid(format!(
            "`id` must be 1 to {MAX_NAME_CHARS} characters of A-Z, a-z, 0-9 and `._~-`."
        ))
    })?;
    let [_, action, params] = members.others.map(non_null);
    if !subscribes {
        if action.is_some() || params.is_some() {
            return Err(invalid(
                "`unsubscribe` has an `id` and neither `action` nor `params`: leave them out.",
            ));
        }
        return Ok(Frame::Unsubscribe { id });
    }
    let action = action.and_then(|action| frames::parse_string(action.get()).ok());
    let action = action
        .filter(|action| !action.is_empty())
        .ok_or_else(|| invalid("`action` must be the name of an action."))?
        .into_owned();
    let params = read_params(params.map(RawValue::get))?;
    Ok(Frame::Subscribe { id, action, params })
}

/// The problem of a frame that is one too many.
pub(super) fn rate_limit_problem(per_second: u64) -> Problem {
    Problem::new(Code::RateLimited, frames::rate_limit_detail(per_second))
}

/// The frame of a result, in parts: the longest is everybody's. Ids stand in JSON as they are.
pub(super) fn result(id: &str, seq: u64, json: &Bytes) -> [Bytes; 3] {
    let head = format!(r#"{{"v":1,"type":"result","id":"{id}","seq":{seq},"result":"#);
    frame::text_parts(&head, json, "}")
}

/// The frame of an error; `problem` is a document. `id` is that of the subscription which has ended by it.
pub(super) fn error(id: Option<&str>, problem: &str) -> Bytes {
    let id = id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    frame::text_frame(&format!(
        r#"{{"v":1,"type":"error","id":{id},"problem":{problem}}}"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_database::values::Value;

    #[test]
    fn frames_are_read() {
        let subscribe = |action: &str, params: Params| Frame::Subscribe {
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
                Frame::Unsubscribe { id: "a.1".into() },
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
            ("", None, Code::InvalidJson),
            ("{", None, Code::InvalidJson),
            ("[]", None, Code::InvalidRequest),
            ("{}", None, Code::InvalidRequest),
            (
                r#"{"v":2,"type":"subscribe","id":"a","action":"x"}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribed","id":"a","action":"x"}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a"}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":""}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":7}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":[]}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":{"n":[]}}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","params":{"n":1,"n":2}}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a","action":"x","more":1}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"v":1,"type":"subscribe","id":"a","action":"x"}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"unsubscribe","id":"a","action":"x"}"#,
                Some("a"),
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"unsubscribe"}"#,
                None,
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"a b","action":"x"}"#,
                None,
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":"","action":"x"}"#,
                None,
                Code::InvalidRequest,
            ),
            (
                r#"{"v":1,"type":"subscribe","id":7,"action":"x"}"#,
                None,
                Code::InvalidRequest,
            ),
            (long.as_str(), None, Code::InvalidRequest),
        ] {
            let refusal = parse_frame(frame).unwrap_err();
            assert_eq!(
                (refusal.id.as_deref(), refusal.problem.code),
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
                result("a", 3, &json).concat(),
                frame::text_frame(&text),
                "{length}"
            );
        }
    }
}
