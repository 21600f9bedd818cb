//! Protocol between clients and the server in a room: text in, a verdict or an envelope out, without any I/O.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::client::Client;
use super::{NAME, is_message_type};
use crate::http::problem::Code;
use svc_base::clock::Timestamp;

/// The sender of what a backend's owner says: no client's id, which begin otherwise.
pub(super) const OWNER: &str = "owner";
/// Value of absent data.
const NULL: &str = "null";

/// A message that a client may send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// Type of the message: a name, so that it stands in JSON as it is.
    pub(super) kind: Cow<'a, str>,
    /// Any JSON, as it was written.
    pub(super) data: &'a str,
    /// Identifier by which its sender knows the message.
    pub(super) client_message_id: Option<String>,
}

/// A frame that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) detail: String,
    /// Identifier by which its sender knows the message, if that much could be read.
    pub(super) client_message_id: Option<String>,
}

/// The members of a frame, each as it was written.
#[derive(Debug, Default)]
struct Fields<'a> {
    v: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    client_message_id: Option<&'a RawValue>,
    /// The first member that no frame has, or that is there twice.
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
                "data" => &mut fields.data,
                "client_message_id" => &mut fields.client_message_id,
                // The server's own words, which an envelope that is sent back has: they are said anew.
                "sender" | "room" | "ts" | "seq" => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    let name: String = name.chars().take(NAME).collect();
                    let odd = format!(
                        "`{name}` is not known: a frame has `v`, `type`, `data` and `client_message_id`."
                    );
                    fields.odd.get_or_insert(odd);
                    continue;
                }
            };
            if field.replace(map.next_value()?).is_some() {
                fields
                    .odd
                    .get_or_insert(format!("`{name}` is there twice."));
            }
        }
        Ok(fields)
    }
}

/// Reads a frame.
pub(super) fn judge(frame: &str) -> Result<Message<'_>, Refusal> {
    let fields: Fields<'_> = serde_json::from_str(frame).map_err(|error| unreadable(&error))?;
    let id = fields.client_message_id.filter(|id| id.get() != NULL);
    let id = id.map(|id| serde_json::from_str::<String>(id.get()));
    let (client_message_id, odd_id) = match id {
        Some(Ok(id)) => (Some(id), None),
        Some(Err(_)) => (
            None,
            Some("`client_message_id` must be a string.".to_owned()),
        ),
        None => (None, None),
    };
    match kind(&fields, odd_id) {
        Ok(kind) => Ok(Message {
            kind,
            data: fields.data.map_or(NULL, RawValue::get),
            client_message_id,
        }),
        Err(detail) => Err(Refusal {
            code: Code::InvalidRequest.as_str(),
            detail,
            client_message_id,
        }),
    }
}

/// The type of a frame, if all of the frame is as it must be.
fn kind<'a>(fields: &Fields<'a>, odd_id: Option<String>) -> Result<Cow<'a, str>, String> {
    if let Some(odd) = fields.odd.clone().or(odd_id) {
        return Err(odd);
    }
    if fields.v.is_none_or(|v| v.get() != "1") {
        return Err("`v` must be 1, the version of the envelope.".to_owned());
    }
    let kind = fields.kind.map_or(NULL, RawValue::get);
    let kind = serde_json::from_str::<Text<'a>>(kind);
    let kind = kind.map_err(|_| "`type` must be a string.".to_owned())?.0;
    check_type(&kind)?;
    Ok(kind)
}

/// A string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Whether a message may have a type; else why not.
pub(super) fn check_type(kind: &str) -> Result<(), String> {
    if is_message_type(kind) {
        return Ok(());
    }
    if kind.starts_with("svc:") {
        return Err("`type` begins with `svc:`, which is the platform's own.".to_owned());
    }
    Err(format!(
        "`type` must be 1 to {NAME} characters of A-Z, a-z, 0-9 and `._~-`."
    ))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    let (code, detail) = if error.is_data() {
        (
            Code::InvalidRequest,
            "A frame must be a JSON object.".to_owned(),
        )
    } else {
        (
            Code::InvalidJson,
            format!("The frame is not valid JSON: {error}."),
        )
    };
    Refusal {
        code: code.as_str(),
        detail,
        client_message_id: None,
    }
}

impl Refusal {
    /// The refusal of a frame that is one too many.
    pub(super) fn rate_limited(per_second: u64, client_message_id: Option<String>) -> Self {
        Self {
            code: Code::RateLimited.as_str(),
            detail: format!(
                "A socket may send {per_second} messages a second: this one was dropped. Send more slowly, or the socket is closed."
            ),
            client_message_id,
        }
    }

    /// As it is told to the sender.
    pub(super) fn envelope(&self) -> String {
        let mut data = serde_json::json!({ "code": self.code, "detail": self.detail });
        if let Some(id) = &self.client_message_id {
            data["client_message_id"] = id.as_str().into();
        }
        format!(r#"{{"v":1,"type":"svc:error","data":{data}}}"#)
    }
}

/// A message as its receivers get it, of a client or of the owner. All texts are names, which stand in JSON as they are.
pub(super) fn message(
    (kind, data): (&str, &str),
    sender: Option<&Client>,
    room: &str,
    ts: Timestamp,
    seq: u64,
) -> String {
    let user = sender.map_or("", Client::user);
    let sender = sender.map_or(OWNER, |client| client);
    format!(
        r#"{{"v":1,"type":"{kind}","data":{data},"sender":"{sender}"{user},"room":"{room}","ts":"{ts}","seq":{seq}}}"#
    )
}

/// An event of the platform's.
fn event(kind: &str, data: fmt::Arguments<'_>, room: &str, ts: Timestamp) -> String {
    format!(r#"{{"v":1,"type":"svc:{kind}","data":{{{data}}},"room":"{room}","ts":"{ts}"}}"#)
}

/// Writes the first message to a member.
pub(super) fn welcome(client: &str, room: &str, members: usize, seq: u64, ts: Timestamp) -> String {
    let data =
        format_args!(r#""client_id":"{client}","room":"{room}","members":{members},"seq":{seq}"#);
    event("welcome", data, room, ts)
}

/// Somebody came.
pub(super) fn join(client: &Client, room: &str, ts: Timestamp) -> String {
    event("join", format_args!("{}", Named(client)), room, ts)
}

/// Somebody went.
pub(super) fn leave(client: &Client, room: &str, ts: Timestamp) -> String {
    event("leave", format_args!("{}", Named(client)), room, ts)
}

/// A client as the data of an event names it.
struct Named<'a>(&'a Client);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, user): (&str, _) = (self.0, self.0.user());
        write!(f, r#""client_id":"{id}"{user}"#)
    }
}

/// How many there are.
pub(super) fn presence(members: usize, room: &str, ts: Timestamp) -> String {
    event("presence", format_args!(r#""members":{members}"#), room, ts)
}

#[cfg(test)]
mod tests;
