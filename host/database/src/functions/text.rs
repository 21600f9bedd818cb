//! Conversions between values and text, as SQLite makes them.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use rusqlite::types::{FromSql, ToSql, ValueRef};
use rusqlite::{Connection, Result};

use svc_base::sync::lock;

/// A connection without our functions, for SQLite's own conversions. It is opened at the first use.
#[derive(Clone, Default)]
pub(super) struct PlainSqliteConnection(Arc<Mutex<Option<Connection>>>);

impl PlainSqliteConnection {
    /// Evaluates an expression with one value.
    pub(super) fn evaluate<T: FromSql>(&self, sql: &str, value: impl ToSql) -> Result<T> {
        let mut connection = lock(&self.0);
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(Connection::open_in_memory()?),
        };
        connection
            .prepare_cached(sql)?
            .query_row([value], |row| row.get(0))
    }

    /// Converts a value to text as SQLite does; `None` for NULL.
    pub(super) fn text<'v>(&self, value: ValueRef<'v>) -> Result<Option<Cow<'v, [u8]>>> {
        Ok(match value {
            ValueRef::Null => None,
            ValueRef::Integer(integer) => Some(Cow::Owned(integer.to_string().into_bytes())),
            ValueRef::Real(real) => {
                let text: String = self.evaluate("SELECT CAST(?1 AS TEXT)", real)?;
                Some(Cow::Owned(text.into_bytes()))
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(Cow::Borrowed(bytes)),
        })
    }
}

/// Returns text up to its first zero byte, where many of SQLite's functions stop.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// Whether a byte continues a UTF-8 character.
pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Whether a byte starts a UTF-8 character of several bytes.
pub(super) fn is_lead(byte: u8) -> bool {
    byte >= 0xC0
}

/// Reads the character at `at`, valid or not, and moves behind it; zero at the end.
pub(super) fn read_character(text: &[u8], at: &mut usize) -> u32 {
    let Some(&first) = text.get(*at) else {
        return 0;
    };
    *at += 1;
    if !is_lead(first) {
        return u32::from(first);
    }
    let bits = match first {
        0xC0..0xE0 => 0x1F,
        0xE0..0xF0 => 0x0F,
        0xF0..0xF8 => 0x07,
        0xF8..0xFC => 0x03,
        0xFC..0xFE => 0x01,
        _ => 0,
    };
    let mut character = u32::from(first & bits);
    while let Some(&next) = text.get(*at).filter(|next| is_continuation(**next)) {
        character = (character << 6).wrapping_add(u32::from(next & 0x3F));
        *at += 1;
    }
    if character < 0x80 || character & 0xFFFF_F800 == 0xD800 {
        return 0xFFFD;
    }
    character
}
