//! JSON merge patch (RFC 7396) in linear time.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use rusqlite::Result;

use super::json_reader::JsonReader;
use super::sqlite_error;
use crate::meter::FunctionWorkMeter;

/// The deepest objects in a patch, since each level uses stack.
pub(super) const MAX_OBJECT_DEPTH: usize = 200;

/// A JSON value.
pub(super) enum JsonValue<'t> {
    /// Any value but an object, as it is written.
    Verbatim(&'t [u8]),
    Object(JsonObject<'t>),
}

#[derive(Default)]
pub(super) struct JsonObject<'t> {
    /// Labels as written, with their values; `None` where a patch removed one.
    members: Vec<Option<(&'t [u8], JsonValue<'t>)>>,
    /// Indexes of the members of each label, computed at the first look-up.
    indexes_by_label: Option<HashMap<Cow<'t, [u8]>, VecDeque<usize>>>,
}

impl<'t> JsonValue<'t> {
    /// Reads the next value, inside of `depth` objects.
    pub(super) fn read(
        reader: &mut JsonReader<'t>,
        depth: usize,
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<Self> {
        let start = reader.at;
        if reader.peek()? != b'{' {
            reader.skip_value(work)?;
            return Ok(Self::Verbatim(&reader.text[start..reader.at]));
        }
        if depth >= MAX_OBJECT_DEPTH {
            return Err(sqlite_error(&format!(
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
            reader.skip_value(work)?;
            let label = &reader.text[label..reader.at];
            // Skips the colon.
            reader.at += 1;
            object
                .members
                .push(Some((label, Self::read(reader, depth + 1, work)?)));
        }
        reader.at += 1;
        Ok(Self::Object(object))
    }

    /// Merges a patch into the value, by RFC 7396. Of several members with one label, the first counts.
    pub(super) fn merge(
        &mut self,
        patch: &JsonValue<'t>,
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<()> {
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
            let known = target.first_index(label, work)?;
            match (known, value) {
                (Some(index), Self::Verbatim(b"null")) => {
                    target.members[index] = None;
                    target
                        .indexes_by_label(work)?
                        .entry(plain_label(label))
                        .and_modify(|indexes_by_label| {
                            indexes_by_label.pop_front();
                        });
                }
                (None, Self::Verbatim(b"null")) => {}
                (Some(index), value) => {
                    if let Some((_, old)) = &mut target.members[index] {
                        old.merge(value, work)?;
                    }
                }
                (None, value) => {
                    let mut new = Self::Object(JsonObject::default());
                    new.merge(value, work)?;
                    let index = target.members.len();
                    target.members.push(Some((label, new)));
                    let indexes_by_label = target.indexes_by_label(work)?.entry(plain_label(label));
                    indexes_by_label.or_default().push_back(index);
                }
            }
        }
        Ok(())
    }

    /// Writes the value without spaces.
    pub(super) fn write(&self, out: &mut Vec<u8>, work: &mut FunctionWorkMeter<'_>) -> Result<()> {
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
    fn indexes_by_label(
        &mut self,
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<&mut HashMap<Cow<'t, [u8]>, VecDeque<usize>>> {
        if self.indexes_by_label.is_none() {
            let mut indexes_by_label = HashMap::<_, VecDeque<usize>>::new();
            for (index, member) in self.members.iter().enumerate() {
                if let Some((label, _)) = member {
                    work.spend(64 + label.len())?;
                    indexes_by_label
                        .entry(plain_label(label))
                        .or_default()
                        .push_back(index);
                }
            }
            self.indexes_by_label = Some(indexes_by_label);
        }
        Ok(self.indexes_by_label.get_or_insert_default())
    }

    /// Index of the first member with a label.
    fn first_index(
        &mut self,
        label: &'t [u8],
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<Option<usize>> {
        let indexes_by_label = self.indexes_by_label(work)?.get(&plain_label(label));
        Ok(indexes_by_label.and_then(|indexes_by_label| indexes_by_label.front().copied()))
    }
}

/// Decodes a label: removes quotes and escapes, and writes unpaired surrogates as special bytes.
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

/// Writes a character, or an unpaired surrogate, which UTF-8 cannot encode, as 0xFF and its code.
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
