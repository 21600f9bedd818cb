//! JSON whose objects are merged in linear time.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use rusqlite::Result;

use super::failed;
use super::json_reader::JsonReader;
use crate::meter::WorkBudget;

/// How deep objects may nest in what is patched, for each takes its share of the thread's stack.
pub(super) const MAX_OBJECT_DEPTH: usize = 200;

/// A value of JSON.
pub(super) enum Json<'t> {
    /// Anything but an object, as it is written.
    Verbatim(&'t [u8]),
    Object(JsonObject<'t>),
}

#[derive(Default)]
pub(super) struct JsonObject<'t> {
    /// Labels as they are written, with their values; `None` where a patch took one away.
    members: Vec<Option<(&'t [u8], Json<'t>)>>,
    /// Where the members of a label are, once somebody looks for them.
    places: Option<HashMap<Cow<'t, [u8]>, VecDeque<usize>>>,
}

impl<'t> Json<'t> {
    /// Reads the next value, which `depth` objects are around.
    pub(super) fn read(
        reader: &mut JsonReader<'t>,
        depth: usize,
        work: &mut WorkBudget<'_>,
    ) -> Result<Self> {
        let start = reader.at;
        if reader.peek()? != b'{' {
            reader.skip(work)?;
            return Ok(Self::Verbatim(&reader.text[start..reader.at]));
        }
        if depth >= MAX_OBJECT_DEPTH {
            return Err(failed(&format!(
                "json_patch() takes objects that nest no deeper than {MAX_OBJECT_DEPTH}"
            )));
        }
        let mut object = JsonObject::default();
        reader.at += 1;
        while reader.peek()? != b'}' {
            if reader.peek()? == b',' {
                reader.at += 1;
            }
            let label = reader.at;
            reader.skip(work)?;
            let label = &reader.text[label..reader.at];
            // The colon.
            reader.at += 1;
            object
                .members
                .push(Some((label, Self::read(reader, depth + 1, work)?)));
        }
        reader.at += 1;
        Ok(Self::Object(object))
    }

    /// Merges a patch into it, as RFC 7396 says. Of members with one label, the first is meant.
    pub(super) fn merge(&mut self, patch: &Json<'t>, work: &mut WorkBudget<'_>) -> Result<()> {
        let patch = match patch {
            Self::Verbatim(value) => {
                *self = Self::Verbatim(value);
                return Ok(());
            }
            Self::Object(patch) => patch,
        };
        if matches!(self, Self::Verbatim(_)) {
            *self = Self::Object(JsonObject::default());
        }
        let Self::Object(target) = self else {
            return Ok(());
        };
        for (label, value) in patch.members.iter().flatten() {
            work.spend(64 + label.len())?;
            let known = target.first(label, work)?;
            match (known, value) {
                (Some(place), Self::Verbatim(b"null")) => {
                    target.members[place] = None;
                    target
                        .places(work)?
                        .entry(plain_label(label))
                        .and_modify(|places| {
                            places.pop_front();
                        });
                }
                (None, Self::Verbatim(b"null")) => {}
                (Some(place), value) => {
                    if let Some((_, old)) = &mut target.members[place] {
                        old.merge(value, work)?;
                    }
                }
                (None, value) => {
                    let mut new = Self::Object(JsonObject::default());
                    new.merge(value, work)?;
                    let place = target.members.len();
                    target.members.push(Some((label, new)));
                    let places = target.places(work)?.entry(plain_label(label));
                    places.or_default().push_back(place);
                }
            }
        }
        Ok(())
    }

    /// Writes it without spaces.
    pub(super) fn write(&self, out: &mut Vec<u8>, work: &mut WorkBudget<'_>) -> Result<()> {
        let object = match self {
            Self::Verbatim(value) => {
                work.spend(value.len())?;
                out.extend_from_slice(value);
                return Ok(());
            }
            Self::Object(object) => object,
        };
        out.push(b'{');
        for (number, (label, value)) in object.members.iter().flatten().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            work.spend(label.len())?;
            out.extend_from_slice(label);
            out.push(b':');
            value.write(out, work)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl<'t> JsonObject<'t> {
    fn places(
        &mut self,
        work: &mut WorkBudget<'_>,
    ) -> Result<&mut HashMap<Cow<'t, [u8]>, VecDeque<usize>>> {
        if self.places.is_none() {
            let mut places = HashMap::<_, VecDeque<usize>>::new();
            for (place, member) in self.members.iter().enumerate() {
                if let Some((label, _)) = member {
                    work.spend(64 + label.len())?;
                    places
                        .entry(plain_label(label))
                        .or_default()
                        .push_back(place);
                }
            }
            self.places = Some(places);
        }
        Ok(self.places.get_or_insert_default())
    }

    /// Where the first member of a label is.
    fn first(&mut self, label: &'t [u8], work: &mut WorkBudget<'_>) -> Result<Option<usize>> {
        let places = self.places(work)?.get(&plain_label(label));
        Ok(places.and_then(|places| places.front().copied()))
    }
}

/// A label without quotes and escapes, halves of characters as bytes of their own.
fn plain_label(written: &[u8]) -> Cow<'_, [u8]> {
    let inner = written.get(1..written.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let (mut out, mut rest) = (Vec::with_capacity(inner.len()), inner);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let Some((escape, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        match escape {
            b'u' => {
                let mut code = hex4(&mut rest);
                let mut low = rest.strip_prefix(b"\\u").unwrap_or_default();
                if code & 0xFC00 == 0xD800 && low.len() >= 4 {
                    let half = hex4(&mut low);
                    if half & 0xFC00 == 0xDC00 {
                        code = ((code & 0x3FF) << 10) + (half & 0x3FF) + 0x1_0000;
                        rest = low;
                    }
                }
                push_character(&mut out, code);
            }
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            other => out.push(*other),
        }
    }
    Cow::Owned(out)
}

fn hex4(rest: &mut &[u8]) -> u32 {
    let (digits, after) = rest.split_at(rest.len().min(4));
    *rest = after;
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
    digits.iter().fold(0, |code, byte| code * 16 + digit(byte))
}

/// Writes a character; half of one, which UTF-8 does not have, in a way of its own.
fn push_character(out: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None => {
            out.push(0xFF);
            out.extend(code.to_be_bytes());
        }
    }
}
