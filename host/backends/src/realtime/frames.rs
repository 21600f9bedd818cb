//! Parses clients' frames, in rooms and in live queries: JSON objects whose members stay unparsed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::MAX_NAME_CHARS;
use crate::backends::calls::requests::ParamsError;
use svc_base::pluralize;

/// Error of a frame, for its sender.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientFrameError {
    /// The frame is not JSON.
    #[error("The frame is not valid JSON: {0}.")]
    NotJson(String),
    /// The frame breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// The params cannot be read.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The client sends too fast; contains the maximum number a second.
    #[error(
        "A socket may send {} a second: this one was dropped. Send more slowly, or the socket is closed.",
        pluralize(.0, "message")
    )]
    TooMany(u64),
}

/// A frame's members beside `v` and `type`, which every frame has.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameSchema<const N: usize> {
    /// Names of the members that are read.
    pub(super) names: [&'static str; N],
    /// Names of members that are allowed and ignored.
    pub(super) ignored: &'static [&'static str],
    /// Error text that lists the allowed members.
    pub(super) hint: &'static str,
}

#[derive(Debug)]
pub(super) struct ParsedFrameFields<'a, const N: usize> {
    v: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    /// Members in the order of the form's names.
    pub(super) others: [Option<&'a RawValue>; N],
    /// Error about the first unknown or repeated member.
    first_error: Option<String>,
}

impl<const N: usize> FrameSchema<N> {
    /// Parses a frame.
    ///
    /// # Errors
    /// When the frame is not a JSON object.
    pub(super) fn read<'a>(
        &self,
        frame: &'a str,
    ) -> Result<ParsedFrameFields<'a, N>, ClientFrameError> {
        let mut json = serde_json::Deserializer::from_str(frame);
        let members = self.deserialize(&mut json);
        let members = members.and_then(|members| json.end().map(|()| members));
        members.map_err(|error| parse_error(&error))
    }
}

impl<'de, const N: usize> DeserializeSeed<'de> for &FrameSchema<N> {
    type Value = ParsedFrameFields<'de, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for &FrameSchema<N> {
    type Value = ParsedFrameFields<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = ParsedFrameFields {
            v: None,
            kind: None,
            others: [None; N],
            first_error: None,
        };
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let place = self.names.iter().position(|known| *known == name);
            let member = match (name.as_ref(), place) {
                (_, Some(place)) => &mut members.others[place],
                ("v", None) => &mut members.v,
                ("type", None) => &mut members.kind,
                (other, None) => {
                    if !self.ignored.contains(&other) {
                        members
                            .first_error
                            .get_or_insert_with(|| self.unknown_member(other));
                    }
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if member.replace(map.next_value()?).is_some() {
                let first_error = format!("`{name}` is there twice.");
                members.first_error.get_or_insert(first_error);
            }
        }
        Ok(members)
    }
}

impl<const N: usize> FrameSchema<N> {
    fn unknown_member(&self, name: &str) -> String {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        format!("`{name}` is not known: {}", self.hint)
    }
}

impl<'a, const N: usize> ParsedFrameFields<'a, N> {
    /// Checks that every member is known and appears once, and the version.
    ///
    /// # Errors
    /// The error text.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(first_error) = &self.first_error {
            return Err(first_error.clone());
        }
        if self.v.is_none_or(|v| v.get() != "1") {
            return Err("`v` must be 1, the version of the envelope.".to_owned());
        }
        Ok(())
    }

    /// Returns the frame's type, if it is a string.
    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        parse_string(self.kind?.get()).ok()
    }
}

/// Returns a member unless it is null, which counts as absent.
pub(super) fn non_null(member: Option<&RawValue>) -> Option<&RawValue> {
    member.filter(|member| member.get() != "null")
}

/// String, borrowed if it has no escapes.
#[derive(Deserialize)]
struct BorrowedJsonString<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses a JSON string.
///
/// # Errors
/// The parser's error, for any other value.
pub(super) fn parse_string(json: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    Ok(serde_json::from_str::<BorrowedJsonString<'_>>(json)?.0)
}

fn parse_error(error: &serde_json::Error) -> ClientFrameError {
    if error.is_data() {
        return ClientFrameError::Invalid("A frame must be a JSON object.".to_owned());
    }
    ClientFrameError::NotJson(error.to_string())
}
