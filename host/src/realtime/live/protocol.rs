//! Protocol between pages and the server about live queries: text in, a verdict or an envelope out, without any I/O.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::backends::calls::requests::read_params;
use crate::http::extract::invalid;
use crate::http::problem::{Code, Problem};
use crate::http::websocket::frame;
use crate::realtime::is_message_type;
use svc_database::values::Params;

/// The longest name that an error repeats, in characters.
const NAME: usize = 64;

/// Frame of a page.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// To be told what an action answers, from now on.
    Subscribe {
        id: Arc<str>,
        action: String,
        params: Params,
    },
    /// To be told no more.
    Unsubscribe { id: Arc<str> },
}

/// A frame that breaks a rule.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The id that it names, if that is one.
    pub(super) id: Option<Arc<str>>,
    pub(super) problem: Problem,
}

/// The members of a frame, each as it was written.
#[derive(Debug, Default)]
struct Fields<'a> {
    v: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    /// Fault in the members' names, if there is one.
    odd: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let field = match name.as_ref() {
                "v" => &mut fields.v,
                "type" => &mut fields.kind,
                "id" => &mut fields.id,
                "action" => &mut fields.action,
                "params" => &mut fields.params,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    let name: String = name.chars().take(NAME).collect();
                    let odd = format!(
                        "`{name}` is not known: a frame has `v`, `type`, `id`, and to subscribe `action` and `params`."
                    );
                    fields.odd.get_or_insert(odd);
                    continue;
                }
            };
            if field.replace(map.next_value()?).is_some() {
                let odd = format!("`{name}` is there twice.");
                fields.odd.get_or_insert(odd);
            }
        }
        Ok(fields)
    }
}

/// Reads a frame.
pub(super) fn judge(frame: &str) -> Result<Frame, Refusal> {
    let fields: Fields<'_> = serde_json::from_str(frame).map_err(|error| Refusal {
        id: None,
        problem: unreadable(&error),
    })?;
    let id = fields.id.and_then(|id| text(id.get()).ok());
    let id: Option<Arc<str>> = id.filter(|id| is_message_type(id)).map(Into::into);
    wanted(fields, id.clone()).map_err(|problem| Refusal { id, problem })
}

fn wanted(fields: Fields<'_>, id: Option<Arc<str>>) -> Result<Frame, Problem> {
    if let Some(odd) = fields.odd {
        return Err(invalid(odd));
    }
    if fields.v.is_none_or(|v| v.get() != "1") {
        return Err(invalid("`v` must be 1, the version of the envelope."));
    }
    let kind = fields.kind.and_then(|kind| text(kind.get()).ok());
    let subscribes = match kind.as_deref() {
        Some("subscribe") => true,
        Some("unsubscribe") => false,
        _ => return Err(invalid("`type` must be `subscribe` or `unsubscribe`.")),
    };
    let id = id.ok_or_else(|| {
        invalid(format!(
            "`id` must be 1 to {NAME} characters of A-Z, a-z, 0-9 and `._~-`."
        ))
    })?;
    let given = |field: Option<&RawValue>| field.is_some_and(|field| field.get() != "null");
    if !subscribes {
        if given(fields.action) || given(fields.params) {
            return Err(invalid(
                "Whoever unsubscribes names an `id`, and no `action` and `params`.",
            ));
        }
        return Ok(Frame::Unsubscribe { id });
    }
    let action = fields.action.map(|action| text(action.get()));
    let action = match action {
        Some(Ok(action)) if !action.is_empty() => action.into_owned(),
        _ => return Err(invalid("`action` must be the name of an action.")),
    };
    let params = fields.params.filter(|params| params.get() != "null");
    let params = read_params(params.map(RawValue::get))?;
    Ok(Frame::Subscribe { id, action, params })
}

/// A string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text(json: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    Ok(serde_json::from_str::<Text<'_>>(json)?.0)
}

fn unreadable(error: &serde_json::Error) -> Problem {
    if error.is_data() {
        invalid("A frame must be a JSON object.")
    } else {
        Problem::new(
            Code::InvalidJson,
            format!("The frame is not valid JSON: {error}."),
        )
    }
}

/// The problem of a frame that is one too many.
pub(super) fn too_many_frames(per_second: u64) -> Problem {
    Problem::new(
        Code::RateLimited,
        format!(
            "A socket may send {per_second} messages a second: this one was dropped. Send more slowly, or the socket is closed."
        ),
    )
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
            assert_eq!(judge(frame).unwrap(), expected, "{frame}");
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
            let refusal = judge(frame).unwrap_err();
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
