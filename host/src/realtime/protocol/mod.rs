//! The language of rooms: a client's text in, a verdict or an envelope out, without any I/O.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::client::Client;
use super::frames::{self, FrameMembers, FrameSchema, non_null};
use super::{MAX_NAME_CHARS, is_message_type};
use crate::http::problem::Code;
use svc_base::clock::Timestamp;

/// The sender of what a backend's owner says: no client's id, which begin otherwise.
pub(super) const OWNER_SENDER: &str = "owner";

/// A message that a client may send.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The type: a name, which stands in JSON as it is.
    pub kind: Cow<'a, str>,
    /// Any JSON, as it was written.
    pub data: &'a str,
    /// The name that its sender knows it by.
    pub client_message_id: Option<String>,
}

/// A frame that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A problem's code.
    pub code: &'static str,
    /// Text on what is wrong, for people.
    pub detail: String,
    /// The name that the message's sender knows it by, if that much could be read.
    pub client_message_id: Option<String>,
}

/// Form of a client's frame.
const FRAME_SCHEMA: FrameSchema<2> = FrameSchema {
    names: ["data", "client_message_id"],
    // The server's own words, which an envelope that is sent back has: they are said anew.
    ignored: &["sender", "room", "ts", "seq"],
    hint: "a frame has `v`, `type`, `data` and `client_message_id`.",
};

/// Reads a frame.
///
/// # Errors
/// A refusal, for its sender.
pub fn parse_frame(frame: &str) -> Result<Message<'_>, Refusal> {
    let members = FRAME_SCHEMA.read(frame).map_err(|(code, detail)| Refusal {
        code: code.as_str(),
        detail,
        client_message_id: None,
    })?;
    let [data, id] = members.others;
    let id = non_null(id).map(|id| frames::parse_string(id.get()).map(Cow::into_owned));
    let (client_message_id, is_odd) = match id {
        Some(Ok(id)) => (Some(id), false),
        Some(Err(_)) => (None, true),
        None => (None, false),
    };
    match kind(&members, is_odd) {
        Ok(kind) => Ok(Message {
            kind,
            data: data.map_or("null", RawValue::get),
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
fn kind<'a>(members: &FrameMembers<'a, 2>, is_odd: bool) -> Result<Cow<'a, str>, String> {
    members.check()?;
    if is_odd {
        return Err("`client_message_id` must be a string.".to_owned());
    }
    let kind = members.kind().ok_or("`type` must be a string.")?;
    check_type(&kind)?;
    Ok(kind)
}

/// Whether a message may have a type; else why not.
pub(super) fn check_type(kind: &str) -> Result<(), String> {
    if is_message_type(kind) {
        return Ok(());
    }
    if kind.starts_with("svc:") {
        return Err("`type` begins with `svc:`, which is the platform's own.".to_owned());
    }
    Err(format!(
        "`type` must be 1 to {MAX_NAME_CHARS} characters of A-Z, a-z, 0-9 and `._~-`."
    ))
}

impl Refusal {
    /// The refusal of a frame that is one too many.
    pub(super) fn rate_limited(per_second: u64, client_message_id: Option<String>) -> Self {
        Self {
            code: Code::RateLimited.as_str(),
            detail: frames::rate_limit_detail(per_second),
            client_message_id,
        }
    }

    /// The envelope in which the sender is told.
    pub fn envelope(&self) -> String {
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
    let sender = sender.map_or(OWNER_SENDER, |client| client);
    format!(
        r#"{{"v":1,"type":"{kind}","data":{data},"sender":"{sender}"{user},"room":"{room}","ts":"{ts}","seq":{seq}}}"#
    )
}

/// An event of the platform's.
fn event(kind: &str, data: fmt::Arguments<'_>, room: &str, ts: Timestamp) -> String {
    format!(r#"{{"v":1,"type":"svc:{kind}","data":{{{data}}},"room":"{room}","ts":"{ts}"}}"#)
}

/// The first envelope of a member.
pub(super) fn welcome(client: &str, room: &str, members: usize, seq: u64, ts: Timestamp) -> String {
    let data =
        format_args!(r#""client_id":"{client}","room":"{room}","members":{members},"seq":{seq}"#);
    event("welcome", data, room, ts)
}

/// Somebody came.
pub(super) fn join(client: &Client, room: &str, ts: Timestamp) -> String {
    event("join", format_args!("{}", ClientData(client)), room, ts)
}

/// Somebody went.
pub(super) fn leave(client: &Client, room: &str, ts: Timestamp) -> String {
    event("leave", format_args!("{}", ClientData(client)), room, ts)
}

/// A client as the data of an event names it.
struct ClientData<'a>(&'a Client);

impl fmt::Display for ClientData<'_> {
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
