//! The protocol of rooms: parses frames and formats envelopes, without any I/O.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::client::{RoomClient, VisitorDetail};
use super::frames::{self, ClientFrameError, FrameSchema, ParsedFrameFields, non_null};
use super::{MAX_NAME_CHARS, is_message_type, problems};
use svc_base::clock::Timestamp;

/// Maximum size of the list of members in a welcome, in bytes, as long as ids fit into it.
const MAX_LIST_BYTES: usize = 256 << 10;
/// Length of an entry of that list without the id and the visitor.
const ENTRY_BYTES: usize = r#",{"client_id":""}"#.len();
/// End of the first envelope of a new member.
pub(super) const WELCOME_END: &str = "}";
/// Sender of an owner's messages. No client has this id, because clients' ids begin with `c_`.
pub(super) const OWNER_SENDER: &str = "owner";

/// Message of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientMessage<'a> {
    /// Type of the message, safe to insert into JSON.
    pub kind: Cow<'a, str>,
    /// Any JSON, unparsed.
    pub data: &'a str,
    /// Identifier that the sender has given the message.
    pub client_message_id: Option<String>,
}

/// Refusal of a frame.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageRefusal {
    /// Code of a problem.
    pub code: &'static str,
    /// Error text for people.
    pub detail: String,
    /// Identifier that the sender has given the message, if it could be read.
    pub client_message_id: Option<String>,
}

/// Members of a frame.
const FRAME_SCHEMA: FrameSchema<2> = FrameSchema {
    names: ["data", "client_message_id"],
    // Members that only the server sets. A client that sends an envelope back has them; they are ignored.
    ignored: &["sender", "room", "ts", "seq"],
    hint: "a frame has `v`, `type`, `data` and `client_message_id`.",
};

/// Parses a frame.
///
/// # Errors
/// A refusal, for its sender.
pub fn parse_frame(frame: &str) -> Result<ClientMessage<'_>, MessageRefusal> {
    let members = FRAME_SCHEMA
        .read(frame)
        .map_err(|error| MessageRefusal::of(&error, None))?;
    let [data, id] = members.others;
    let id = non_null(id).map(|id| frames::parse_string(id.get()).map(Cow::into_owned));
    let (client_message_id, is_odd) = match id {
        Some(Ok(id)) => (Some(id), false),
        Some(Err(_)) => (None, true),
        None => (None, false),
    };
    match read_kind(&members, is_odd) {
        Ok(kind) => Ok(ClientMessage {
            kind,
            data: data.map_or("null", RawValue::get),
            client_message_id,
        }),
        Err(detail) => Err(MessageRefusal::of(
            &ClientFrameError::Invalid(detail),
            client_message_id,
        )),
    }
}

/// Returns the type of a frame after checking the whole frame.
fn read_kind<'a>(members: &ParsedFrameFields<'a, 2>, is_odd: bool) -> Result<Cow<'a, str>, String> {
    members.check()?;
    if is_odd {
        return Err("`client_message_id` must be a string.".to_owned());
    }
    let kind = members.kind().ok_or("`type` must be a string.")?;
    check_type(&kind)?;
    Ok(kind)
}

/// Checks the type of a message; returns an error text if it is not allowed.
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

impl MessageRefusal {
    fn of(error: &ClientFrameError, client_message_id: Option<String>) -> Self {
        Self {
            code: problems::code_of(error).as_str(),
            detail: error.to_string(),
            client_message_id,
        }
    }

    /// Returns the refusal of a frame above the rate limit.
    pub(super) fn rate_limited(per_second: u64, client_message_id: Option<String>) -> Self {
        Self::of(&ClientFrameError::TooMany(per_second), client_message_id)
    }

    /// Returns the envelope of the refusal, for the sender.
    pub fn envelope(&self) -> String {
        let mut data = serde_json::json!({ "code": self.code, "detail": self.detail });
        if let Some(id) = &self.client_message_id {
            data["client_message_id"] = id.as_str().into();
        }
        format!(r#"{{"v":1,"type":"svc:error","data":{data}}}"#)
    }
}

/// Returns the envelope of a message, from a client or the owner. The texts need no escaping in JSON.
pub(super) fn message_event(
    (kind, data): (&str, &str),
    sender: Option<&RoomClient>,
    room: &str,
    ts: Timestamp,
    seq: u64,
) -> String {
    let user = sender.map_or("", |client| client.user(VisitorDetail::Full));
    let sender = sender.map_or(OWNER_SENDER, |client| client);
    format!(
        r#"{{"v":1,"type":"{kind}","data":{data},"sender":"{sender}"{user},"room":"{room}","ts":"{ts}","seq":{seq}}}"#
    )
}

/// Returns the envelope of a platform event.
fn event_frame(kind: &str, data: fmt::Arguments<'_>, room: &str, ts: Timestamp) -> String {
    format!(r#"{{"v":1,"type":"svc:{kind}","data":{{{data}}},"room":"{room}","ts":"{ts}"}}"#)
}

/// Returns how the first envelope of a new member begins: [`welcome_rest`] follows.
pub(super) fn welcome_start(client: &RoomClient) -> String {
    let client: &str = client;
    format!(r#"{{"v":1,"type":"svc:welcome","data":{{"client_id":"{client}""#)
}

/// Returns what follows in the first envelopes of all members that join together, without [`WELCOME_END`].
pub(super) fn welcome_rest(
    (members, list): (usize, &str),
    room: &str,
    seq: u64,
    ts: Timestamp,
) -> String {
    format!(
        r#","room":"{room}","members":{members},"seq":{seq},"list":{list}}},"room":"{room}","ts":"{ts}""#
    )
}

/// Returns the members of a room as a JSON array, in order. An array that is too long leaves out pictures, and then names.
pub(super) fn member_list<'a>(members: impl Iterator<Item = &'a RoomClient> + Clone) -> String {
    let bytes = |detail: &VisitorDetail| -> usize {
        let entries = members.clone();
        let bytes = entries.map(|one| ENTRY_BYTES + one.len() + one.user(*detail).len());
        bytes.sum()
    };
    let mut details = VisitorDetail::ALL.into_iter();
    let fitting = details.find(|detail| bytes(detail) <= MAX_LIST_BYTES);
    let detail = fitting.unwrap_or(VisitorDetail::IdAlone);
    let mut list = String::with_capacity(bytes(&detail) + "[]".len());
    list.push('[');
    for client in members {
        let before = if list.len() > 1 { "," } else { "" };
        let (id, user): (&str, _) = (client, client.user(detail));
        list.extend([before, r#"{"client_id":""#, id, r#"""#, user, "}"]);
    }
    list.push(']');
    list
}

/// Returns the event that a client has joined.
pub(super) fn join_event(client: &RoomClient, room: &str, ts: Timestamp) -> String {
    event_frame(
        "join",
        format_args!("{}", ClientEventData(client)),
        room,
        ts,
    )
}

/// Returns the event that a client has left.
pub(super) fn leave_event(client: &RoomClient, room: &str, ts: Timestamp) -> String {
    event_frame(
        "leave",
        format_args!("{}", ClientEventData(client)),
        room,
        ts,
    )
}

/// Formats a client for the data of an event.
struct ClientEventData<'a>(&'a RoomClient);

impl fmt::Display for ClientEventData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, user): (&str, _) = (self.0, self.0.user(VisitorDetail::Full));
        write!(f, r#""client_id":"{id}"{user}"#)
    }
}

/// Returns the event with the number of members.
pub(super) fn presence_event(members: usize, room: &str, ts: Timestamp) -> String {
    event_frame("presence", format_args!(r#""members":{members}"#), room, ts)
}

#[cfg(test)]
mod tests;
