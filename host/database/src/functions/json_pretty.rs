//! `json_pretty`, with a bound on the length of its result.

use rusqlite::Result;
use rusqlite::functions::Context;

use super::json_reader::{JsonReader, json_argument};
use super::text::{PlainSqliteConnection, until_nul};
use super::{ByteText, sqlite_error, too_big};
use crate::limits::VALUE_BYTES;
use crate::meter::FunctionWorkMeter;

/// The deepest JSON that SQLite accepts.
const MAX_DEPTH: usize = 1000;

/// Implements `json_pretty`.
pub(super) fn pretty(
    context: &Context<'_>,
    sqlite: &PlainSqliteConnection,
    mut work: FunctionWorkMeter<'_>,
) -> Result<Option<ByteText>> {
    let Some(json) = json_argument(context, 0, sqlite)? else {
        return Ok(None);
    };
    let indent = if context.len() > 1 {
        sqlite.text(context.get_raw(1))?
    } else {
        None
    };
    let mut printer = JsonPrinter {
        out: Vec::with_capacity(json.len()),
        indent: indent.as_deref().map_or(b"    ".as_slice(), until_nul),
        depth: 0,
    };
    let mut reader = JsonReader::new(&json);
    while reader.at < json.len() {
        work.spend(16)?;
        printer.print(&mut reader, &mut work)?;
    }
    Ok(Some(ByteText(printer.out)))
}

/// Writes indented JSON.
struct JsonPrinter<'i> {
    out: Vec<u8>,
    indent: &'i [u8],
    depth: usize,
}

impl JsonPrinter<'_> {
    /// Writes the next token or scalar value.
    fn print(
        &mut self,
        reader: &mut JsonReader<'_>,
        work: &mut FunctionWorkMeter<'_>,
    ) -> Result<()> {
        let byte = reader.peek()?;
        match byte {
            b'[' | b'{' => {
                self.out.push(byte);
                reader.at += 1;
                if matches!(reader.peek()?, b']' | b'}') {
                    self.out.push(reader.peek()?);
                    reader.at += 1;
                    return Ok(());
                }
                self.depth += 1;
                if self.depth >= MAX_DEPTH {
                    return Err(sqlite_error("JSON nested too deep"));
                }
                self.begin_line(work)
            }
            b']' | b'}' => {
                reader.at += 1;
                self.depth = self.depth.saturating_sub(1);
                self.begin_line(work)?;
                self.out.push(byte);
                Ok(())
            }
            b',' => {
                reader.at += 1;
                self.out.push(b',');
                self.begin_line(work)
            }
            b':' => {
                reader.at += 1;
                self.out.extend_from_slice(b": ");
                Ok(())
            }
            _ => {
                let start = reader.at;
                reader.skip_value(work)?;
                self.out.extend_from_slice(&reader.text[start..reader.at]);
                Ok(())
            }
        }
    }

    fn begin_line(&mut self, work: &mut FunctionWorkMeter<'_>) -> Result<()> {
        self.out.push(b'\n');
        let indents = self.indent.len().saturating_mul(self.depth);
        let most = usize::try_from(VALUE_BYTES).unwrap_or(usize::MAX);
        if self.out.len().saturating_add(indents) > most {
            return Err(too_big());
        }
        work.spend(indents)?;
        for _ in 0..self.depth {
            self.out.extend_from_slice(self.indent);
        }
        Ok(())
    }
}
