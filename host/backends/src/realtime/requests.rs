//! Requests about rooms, and their checks: for REST and for tools alike.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::is_room_id;
use super::protocol::check_type;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};

/// A message to send into a room, in its owner's name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// Type of the message, as in a frame.
    #[serde(rename = "type")]
    #[schema(pattern = "^[A-Za-z0-9._~-]{1,64}$", example = "notice")]
    pub kind: String,
    /// Any JSON; null if absent.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<Box<RawValue>>,
}

impl SendMessage {
    /// Returns the length of the message as a JSON body, for tool calls, which have no body.
    pub(super) fn body_len(&self) -> u64 {
        let data = self
            .data
            .as_ref()
            .map_or(0, |data| r#","data":"#.len() + data.get().len());
        (r#"{"type":""}"#.len() + self.kind.len() + data) as u64
    }

    /// Returns the checked message.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<Self, Problem> {
        check_type(&self.kind).map_err(invalid_request)?;
        Ok(self)
    }
}

/// Checks the id of a room.
///
/// # Errors
/// `invalid_room`.
pub fn room_id(text: &str) -> Result<&str, Problem> {
    if is_room_id(text) {
        return Ok(text);
    }
    Err(Problem::new(
        ProblemCode::InvalidRoom,
        "A room's id must be 1 to 64 characters of A-Z, a-z, 0-9 and `._~-`, and begin with a letter or a digit.",
    ))
}
