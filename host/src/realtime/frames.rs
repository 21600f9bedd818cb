//! Frames of clients: JSON objects whose members stay as they were written, in rooms and in live queries alike.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::NAME;
use crate::http::problem::Code;
use svc_base::pluralize;

/// A frame's members beside `v` and `type`, which every frame has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<const N: usize> {
    /// Names of members that are read.
    pub(super) names: [&'static str; N],
    /// Names of members that a frame may have, and that say nothing.
    pub(super) ignored: &'static [&'static str],
    /// Text on which members there are, for whoever sends another.
    pub(super) hint: &'static str,
}

/// Members of a frame.
#[derive(Debug)]
pub(super) struct Members<'a, const N: usize> {
    v: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    /// Members in the order of the form's names.
    pub(super) others: [Option<&'a RawValue>; N],
    /// Text on the first member that no frame has, or that is there twice.
    odd: Option<String>,
}

impl<const N: usize> Form<N> {
    /// Reads a frame.
    ///
    /// # Errors
    /// The code and the text of what is wrong, where it is no JSON object.
    pub(super) fn read<'a>(&self, frame: &'a str) -> Result<Members<'a, N>, (Code, String)> {
        let mut json = serde_json::Deserializer::from_str(frame);
        let members = self.deserialize(&mut json);
        let members = members.and_then(|members| json.end().map(|()| members));
        members.map_err(|error| unreadable(&error))
    }
}

impl<'de, const N: usize> DeserializeSeed<'de> for &Form<N> {
    type Value = Members<'de, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for &Form<N> {
    type Value = Members<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Members {
            v: None,
            kind: None,
            others: [None; N],
            odd: None,
        };
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let place = self.names.iter().position(|known| *known == name);
            let member = match (name.as_ref(), place) {
                (_, Some(place)) => &mut members.others[place],
                ("v", None) => &mut members.v,
                ("type", None) => &mut members.kind,
                (other, None) => {
                    if !self.ignored.contains(&other) {
                        members.odd.get_or_insert_with(|| self.unknown(other));
                    }
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if member.replace(map.next_value()?).is_some() {
                let odd = format!("`{name}` is there twice.");
                members.odd.get_or_insert(odd);
            }
        }
        Ok(members)
    }
}

impl<const N: usize> Form<N> {
    fn unknown(&self, name: &str) -> String {
        let name: String = name.chars().take(NAME).collect();
        format!("`{name}` is not known: {}", self.hint)
    }
}

impl<'a, const N: usize> Members<'a, N> {
    /// Checks that each member is known and there once, and that the envelope's version is the one that there is.
    ///
    /// # Errors
    /// The text of what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(odd) = &self.odd {
            return Err(odd.clone());
        }
        if self.v.is_none_or(|v| v.get() != "1") {
            return Err("`v` must be 1, the version of the envelope.".to_owned());
        }
        Ok(())
    }

    /// The frame's type, if it is a string.
    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        text(self.kind?.get()).ok()
    }
}

/// Returns a member if it is there and not null, which is its absence.
pub(super) fn given(member: Option<&RawValue>) -> Option<&RawValue> {
    member.filter(|member| member.get() != "null")
}

/// A string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a JSON string.
///
/// # Errors
/// The parser's: it is another value.
pub(super) fn text(json: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    Ok(serde_json::from_str::<Text<'_>>(json)?.0)
}

fn unreadable(error: &serde_json::Error) -> (Code, String) {
    if error.is_data() {
        let detail = "A frame must be a JSON object.".to_owned();
        return (Code::InvalidRequest, detail);
    }
    let detail = format!("The frame is not valid JSON: {error}.");
    (Code::InvalidJson, detail)
}

/// The text of a refusal of one frame too many.
pub(super) fn too_many(per_second: u64) -> String {
    format!(
        "A socket may send {} a second: this one was dropped. Send more slowly, or the socket is closed.",
        pluralize(per_second, "message")
    )
}
