//! Rows of JSON: an array of objects, or one object after another. One object at a time is held in memory.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::bytes::ByteReader;
use super::reals::parse_real;
use super::statement::TableColumns;
use super::{Cell, FileRow, RowFault};

/// The largest object, in bytes: far more than a request takes.
const MAX_OBJECT_BYTES: usize = 1 << 20;

/// Reader of rows.
pub(super) struct JsonRows<'a, R> {
    bytes: ByteReader<R>,
    columns: &'a TableColumns,
    place: DocumentPlace,
}

/// Place in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentPlace {
    /// Nothing was read.
    Beginning,
    /// Between objects that stand one after another.
    Sequence,
    /// After the bracket that opens an array.
    ArrayBeginning,
    /// After an object of an array.
    Array,
    /// After the bracket that closes the array.
    End,
}

/// Members of an object in their order, as they were written.
struct Members(Vec<(String, Box<RawValue>)>);

/// A value of an object: a blob.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlobValue {
    base64: String,
}

impl<'a, R: Read> JsonRows<'a, R> {
    pub(super) fn new(bytes: ByteReader<R>, columns: &'a TableColumns) -> Self {
        Self {
            bytes,
            columns,
            place: DocumentPlace::Beginning,
        }
    }

    /// Passes all rows on, until a fault or until `send` returns false.
    pub(super) fn for_each_row(mut self, send: &mut impl FnMut(Result<FileRow, RowFault>) -> bool) {
        while let Some(row) = self.row().transpose() {
            let is_fault = row.is_err();
            if !send(row) || is_fault {
                return;
            }
        }
    }

    fn row(&mut self) -> Result<Option<FileRow>, RowFault> {
        if !self.find_object()? {
            return Ok(None);
        }
        let line = self.bytes.line();
        let fault = |detail: String| RowFault { line, detail };
        let object = self.object(line)?;
        let members: Members = serde_json::from_slice(&object)
            .map_err(|error| fault(format!("The object is not valid JSON: {error}.")))?;
        let mut cells: Vec<(usize, Cell)> = Vec::with_capacity(members.0.len());
        for (name, value) in &members.0 {
            let place = self.columns.find(name).map_err(fault)?;
            if cells.iter().any(|(known, _)| *known == place) {
                return Err(fault(format!(
                    "The object names the column `{}` twice.",
                    self.columns.name(place)
                )));
            }
            let cell = parse_cell(value).map_err(|reason| fault(format!("`{name}` {reason}.")))?;
            cells.push((place, cell));
        }
        if cells.is_empty() {
            return Err(fault("The object names no column.".to_owned()));
        }
        Ok(Some(FileRow {
            line,
            end: self.bytes.taken(),
            cells,
        }))
    }

    /// Goes to the next object; returns whether there is one.
    fn find_object(&mut self) -> Result<bool, RowFault> {
        use DocumentPlace::{Array, ArrayBeginning, Beginning, End, Sequence};
        if self.place == Beginning {
            let begun = self.bytes.skip_byte_order_mark();
            begun.map_err(|error| self.unreadable(&error))?;
        }
        loop {
            let next = self.bytes.skip(|byte| byte.is_ascii_whitespace());
            let next = next.map_err(|error| self.unreadable(&error))?;
            match (self.place, next) {
                (Beginning | Sequence | End, None) => return Ok(false),
                (Beginning | Sequence, Some(b'{')) => {
                    self.place = Sequence;
                    return Ok(true);
                }
                (ArrayBeginning, Some(b'{')) => {
                    self.place = Array;
                    return Ok(true);
                }
                (Beginning, Some(b'[')) => self.place = ArrayBeginning,
                (ArrayBeginning | Array, Some(b']')) => self.place = End,
                (Array, Some(b',')) => {
                    self.bytes.take(1);
                    let next = self.bytes.skip(|byte| byte.is_ascii_whitespace());
                    return match next.map_err(|error| self.unreadable(&error))? {
                        Some(b'{') => Ok(true),
                        found => Err(self.unexpected(found, "an object")),
                    };
                }
                (Array, found) => return Err(self.unexpected(found, "`,` or `]`")),
                (End, found) => return Err(self.unexpected(found, "the end")),
                (_, found) => return Err(self.unexpected(found, "an object")),
            }
            self.bytes.take(1);
        }
    }

    fn unexpected(&self, found: Option<u8>, expected: &str) -> RowFault {
        let found = match found {
            Some(byte) if byte.is_ascii_graphic() => format!("`{}`", char::from(byte)),
            Some(_) => "something else".to_owned(),
            None => "the end of the file".to_owned(),
        };
        RowFault {
            line: self.bytes.line(),
            detail: format!(
                "There is {found} where {expected} is expected: write an array of objects, or one object after another."
            ),
        }
    }

    /// Takes an object whose first byte is next.
    fn object(&mut self, line: u64) -> Result<Vec<u8>, RowFault> {
        let mut object = Vec::new();
        let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
        loop {
            let piece = match self.bytes.peek() {
                Ok(piece) => piece,
                Err(error) => return Err(self.unreadable(&error)),
            };
            if piece.is_empty() {
                let detail = "The object is not closed.".to_owned();
                return Err(RowFault { line, detail });
            }
            let end = piece.iter().position(|byte| {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if is_string => is_escaped = true,
                    b'"' => is_string = !is_string,
                    b'{' if !is_string => depth += 1,
                    b'}' if !is_string => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let count = end.map_or(piece.len(), |end| end + 1);
            if object.len() + count > MAX_OBJECT_BYTES {
                let detail = format!(
                    "The object has more than {MAX_OBJECT_BYTES} bytes, which no request takes."
                );
                return Err(RowFault { line, detail });
            }
            object.extend_from_slice(&piece[..count]);
            self.bytes.take(count);
            if end.is_some() {
                return Ok(object);
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> RowFault {
        RowFault {
            line: self.bytes.line(),
            detail: format!("Reading failed: {error}."),
        }
    }
}

/// Parses a value; an error completes a sentence, such as `is not valid base64`.
fn parse_cell(value: &RawValue) -> Result<Cell, String> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => {
            // Half of a pair of surrogates is refused.
            let text: String =
                serde_json::from_str(text).map_err(|error| format!("is no text: {error}"))?;
            Ok(Cell::Json(Value::from(text).to_string()))
        }
        Some(b'{') => match serde_json::from_str::<BlobValue>(text) {
            Ok(blob) => {
                let bytes = STANDARD.decode(blob.base64);
                let bytes = bytes.map_err(|_| "is not valid base64".to_owned())?;
                Ok(Cell::Blob(
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                ))
            }
            // Columns hold JSON as text.
            Err(_) => Ok(Cell::Json(Value::from(text).to_string())),
        },
        Some(b'[') => Ok(Cell::Json(Value::from(text).to_string())),
        Some(b'-' | b'0'..=b'9') => parse_number(text),
        _ => Ok(Cell::Json(text.to_owned())),
    }
}

/// Parses a number, which is a 64-bit integer or a finite double.
fn parse_number(text: &str) -> Result<Cell, String> {
    if !text.contains(['.', 'e', 'E']) {
        return match text.parse::<i64>() {
            Ok(_) => Ok(Cell::Json(text.to_owned())),
            Err(_) => Err("is an integer of more than 64 bits".to_owned()),
        };
    }
    let number = parse_real(text).map(Cell::Real);
    number.ok_or_else(|| "is larger than any number of a database".to_owned())
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed_rows::PrintedRows;
    use super::*;

    fn rows(text: &str) -> (Vec<String>, Option<String>) {
        let columns = TableColumns::of_names(&["a", "b"]);
        let mut printed = PrintedRows::default();
        JsonRows::new(ByteReader::new(text.as_bytes()), &columns)
            .for_each_row(&mut |row| printed.add(row));
        (printed.rows, printed.fault)
    }

    #[test]
    fn objects_are_rows_with_their_lines() {
        for (text, expected) in [
            ("", &[][..]),
            ("[ ]", &[]),
            (
                "[{\"a\":1},\n{\"b\": null,\"a\":true}]\n",
                &["1: 0=1", "2: 1=null 0=true"],
            ),
            (
                "{\"a\":1}\n\n{\"a\":\n2}{\"a\":3}",
                &["1: 0=1", "3: 0=2", "4: 0=3"],
            ),
            ("\u{feff}{\"A\":\"}\\\"\\u00e4{\"}", &["1: 0=\"}\\\"ä{\""]),
            (
                "[{\"a\":9223372036854775807,\"b\":-9223372036854775808}, {\"a\":1.50,\"b\":-1e300}]",
                &[
                    "1: 0=9223372036854775807 1=-9223372036854775808",
                    "1: 0=1.5 1=-1e300",
                ],
            ),
            (
                "{\"a\":{\"base64\":\"AAH/\"},\"b\":{\"x\": [1]}}",
                &["1: 0=x0001ff 1=\"{\\\"x\\\": [1]}\""],
            ),
        ] {
            let expected: Vec<_> = expected.iter().map(|row| (*row).to_owned()).collect();
            assert_eq!(rows(text), (expected, None), "{text}");
        }
    }

    #[test]
    fn a_fault_is_told_with_its_line() {
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_OBJECT_BYTES));
        for (text, line, said) in [
            ("5", 1, "`5` where an object"),
            ("[{\"a\":1}\n{\"a\":2}]", 2, "`{` where `,` or `]`"),
            ("[{\"a\":1},]", 1, "`]` where an object"),
            ("[{\"a\":1}\n", 2, "the end of the file"),
            ("[]\n[]", 2, "where the end is expected"),
            ("{\"a\":1}\n{\"a\":", 2, "not closed"),
            ("{\"a\":1}\n{\"a\" 1}", 2, "not valid JSON"),
            ("{\"a\":1}\n{\"c\":1}", 2, "no column `c`"),
            ("{\"a\":1,\"A\":2}", 1, "`a` twice"),
            ("\n{}", 2, "names no column"),
            ("{\"a\":9223372036854775808}", 1, "more than 64 bits"),
            ("{\"a\":1e999}", 1, "larger than any"),
            ("{\"a\":\"\\ud800\"}", 1, "is no text"),
            ("{\"a\":{\"base64\":\"?\"}}", 1, "not valid base64"),
            (&large, 1, "which no request takes"),
        ] {
            let (_, fault) = rows(text);
            let fault = fault.unwrap_or_default();
            let is_told = fault.starts_with(&format!("{line}: ")) && fault.contains(said);
            assert!(is_told, "{text:.40}: {fault}");
        }
    }
}
