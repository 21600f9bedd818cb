//! Reader of JSON without spaces, value by value.

use rusqlite::Result;
use rusqlite::functions::Context;
use rusqlite::types::ToSqlOutput;

use super::sqlite_error;
use super::text::PlainSqliteConnection;
use crate::meter::FunctionWorkMeter;

/// Returns an argument as JSON without spaces, as SQLite writes it.
pub(super) fn json_argument(
    context: &Context<'_>,
    index: usize,
    sqlite: &PlainSqliteConnection,
) -> Result<Option<Vec<u8>>> {
    sqlite.evaluate(
        "SELECT CAST(json(?1) AS BLOB)",
        ToSqlOutput::Borrowed(context.get_raw(index)),
    )
}

/// Reader of JSON that SQLite has written, so that it is valid.
pub(super) struct JsonReader<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
}

impl<'t> JsonReader<'t> {
    /// Starts at the beginning.
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte without consuming it.
    pub(super) fn peek(&self) -> Result<u8> {
        let byte = self.text.get(self.at).copied();
        byte.ok_or_else(|| sqlite_error("malformed JSON"))
    }

    /// Skips a value of any kind.
    pub(super) fn skip_value(&mut self, work: &mut FunctionWorkMeter<'_>) -> Result<()> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let rest = self.text[self.at..].iter();
                    self.at += rest.take_while(|byte| !b",:]}".contains(byte)).count();
                }
            }
            if depth == 0 {
                return work.spend(self.at - start);
            }
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        self.at += 1;
        while self.peek()? != b'"' {
            self.at += if self.peek()? == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        Ok(())
    }
}
