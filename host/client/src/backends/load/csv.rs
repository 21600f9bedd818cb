//! Rows of CSV: the header names the columns, cells are texts, and an empty cell without quotes is NULL.

use std::io::Read;

use csv_core::{ReadFieldResult, Reader};

use super::bytes::ByteReader;
use super::reals::parse_real;
use super::statement::TableColumns;
use super::{Cell, FileRow, RowFault};

/// Cells of a record; `None` for an empty one, which is NULL.
type CsvRecord = Vec<Option<String>>;

/// The longest cell, in bytes: longer values are in no database.
const MAX_CELL_BYTES: usize = 256 << 10;
/// The most columns of a header.
const MAX_COLUMNS: usize = 2000;
/// Room for a cell at first.
const CELL_BYTES: usize = 256;

/// Reader of rows.
pub(super) struct CsvRows<'a, R> {
    bytes: ByteReader<R>,
    parser: Reader,
    columns: &'a TableColumns,
}

/// A cell as it was read.
struct CsvCell {
    /// `None` for an empty one without quotes.
    text: Option<String>,
    /// Whether it is the last of its record.
    is_last: bool,
}

impl<'a, R: Read> CsvRows<'a, R> {
    pub(super) fn new(bytes: ByteReader<R>, columns: &'a TableColumns) -> Self {
        Self {
            bytes,
            parser: Reader::new(),
            columns,
        }
    }

    /// Passes all rows on, until a fault or until `send` returns false.
    pub(super) fn for_each_row(mut self, send: &mut impl FnMut(Result<FileRow, RowFault>) -> bool) {
        let header = match self.header() {
            Ok(header) => header,
            Err(fault) => {
                send(Err(fault));
                return;
            }
        };
        while let Some(row) = self.row(&header).transpose() {
            let is_fault = row.is_err();
            if !send(row) || is_fault {
                return;
            }
        }
    }

    /// Reads the header; returns the places of its columns in the table.
    fn header(&mut self) -> Result<Vec<usize>, RowFault> {
        let begun = self.bytes.skip_byte_order_mark();
        begun.map_err(|error| self.unreadable(&error))?;
        let Some((line, names)) = self.record(MAX_COLUMNS)? else {
            let detail = "There is no header: the first line names the columns.".to_owned();
            return Err(RowFault { line: 1, detail });
        };
        let mut places = Vec::new();
        for name in names {
            let place = self.columns.find(&name.unwrap_or_default());
            let place = place.map_err(|detail| RowFault { line, detail })?;
            if places.contains(&place) {
                let detail = format!(
                    "The header names the column `{}` twice.",
                    self.columns.name(place)
                );
                return Err(RowFault { line, detail });
            }
            places.push(place);
        }
        Ok(places)
    }

    fn row(&mut self, header: &[usize]) -> Result<Option<FileRow>, RowFault> {
        let Some((line, cells)) = self.record(header.len())? else {
            return Ok(None);
        };
        if cells.len() < header.len() {
            let detail = format!(
                "The row has {} of the {} cells that the header names.",
                cells.len(),
                header.len()
            );
            return Err(RowFault { line, detail });
        }
        let cells = header.iter().copied().zip(cells);
        Ok(Some(FileRow {
            line,
            end: self.bytes.taken(),
            cells: cells
                .map(|(place, text)| (place, self.value(place, text)))
                .collect(),
        }))
    }

    /// Value of a cell: a text, of which its column makes what it takes. A real number is read here, where no digit is lost.
    fn value(&self, place: usize, text: Option<String>) -> Cell {
        let number = text.as_deref().and_then(parse_real);
        match number.filter(|_| self.columns.makes_numbers(place)) {
            Some(number) => Cell::Real(number),
            None => Cell::Json(serde_json::Value::from(text).to_string()),
        }
    }

    /// Reads a record of at most so many cells, with its line. Empty lines are no records.
    fn record(&mut self, most: usize) -> Result<Option<(u64, CsvRecord)>, RowFault> {
        let next = self.bytes.skip(|byte| matches!(byte, b'\r' | b'\n'));
        if next.map_err(|error| self.unreadable(&error))?.is_none() {
            return Ok(None);
        }
        let line = self.bytes.line();
        let mut cells = Vec::new();
        loop {
            let cell = self.cell(line)?;
            if cells.len() == most {
                let detail = format!(
                    "The row has more than the {most} cells that the header names. A cell with a comma is written in quotes."
                );
                return Err(RowFault { line, detail });
            }
            cells.push(cell.text);
            if cell.is_last {
                return Ok(Some((line, cells)));
            }
        }
    }

    fn cell(&mut self, line: u64) -> Result<CsvCell, RowFault> {
        let (mut cell, mut written) = (vec![0; CELL_BYTES], 0);
        let (mut first, mut quotes) = (None, 0);
        loop {
            let input = match self.bytes.peek() {
                Ok(input) => input,
                Err(error) => return Err(self.unreadable(&error)),
            };
            let (result, read, wrote) = self.parser.read_field(input, &mut cell[written..]);
            first = first.or(input.first().copied());
            quotes += input[..read].iter().filter(|byte| **byte == b'"').count();
            self.bytes.take(read);
            written += wrote;
            let is_last = match result {
                ReadFieldResult::InputEmpty => continue,
                ReadFieldResult::OutputFull if written < MAX_CELL_BYTES => {
                    cell.resize(2 * cell.len(), 0);
                    continue;
                }
                ReadFieldResult::OutputFull => {
                    let detail = format!(
                        "A cell has more than {MAX_CELL_BYTES} bytes, which is the most of a value. Is a quote not closed?"
                    );
                    return Err(RowFault { line, detail });
                }
                ReadFieldResult::Field { record_end } => record_end,
                ReadFieldResult::End => true,
            };
            let is_quoted = first == Some(b'"');
            if is_quoted && quotes % 2 == 1 && matches!(self.bytes.peek(), Ok([])) {
                let detail = "A quote of this row is not closed.".to_owned();
                return Err(RowFault { line, detail });
            }
            cell.truncate(written);
            let text = String::from_utf8(cell).map_err(|_| RowFault {
                line,
                detail: "The row is no text in UTF-8.".to_owned(),
            })?;
            return Ok(CsvCell {
                text: Some(text).filter(|text| !text.is_empty() || is_quoted),
                is_last,
            });
        }
    }

    fn unreadable(&self, error: &std::io::Error) -> RowFault {
        RowFault {
            line: self.bytes.line(),
            detail: format!("Reading failed: {error}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed_rows::PrintedRows;
    use super::*;

    fn rows(text: &str) -> (Vec<String>, Option<String>) {
        let columns = TableColumns::of_names(&["a", "b"]);
        let mut printed = PrintedRows::default();
        CsvRows::new(ByteReader::new(text.as_bytes()), &columns)
            .for_each_row(&mut |row| printed.add(row));
        (printed.rows, printed.fault)
    }

    #[test]
    fn records_are_rows_with_their_lines() {
        let long = "x".repeat(100_000);
        for (text, expected) in [
            ("a,b\n1,2\n", vec!["2: 0=\"1\" 1=\"2\"".to_owned()]),
            (
                "\u{feff}B,a\r\n1,2\r\n\r\n\"3\",",
                vec![
                    "2: 1=\"1\" 0=\"2\"".to_owned(),
                    "4: 1=\"3\" 0=null".to_owned(),
                ],
            ),
            (
                "a\n\"\"\n\"x\"\"y\"\n",
                vec!["2: 0=\"\"".to_owned(), "3: 0=\"x\\\"y\"".to_owned()],
            ),
            (
                "a,b\n\"1\n2\",\"\"\n,3",
                vec![
                    "2: 0=\"1\\n2\" 1=\"\"".to_owned(),
                    "4: 0=null 1=\"3\"".to_owned(),
                ],
            ),
            (
                &format!("a\n{long}\n{long}"),
                vec![format!("2: 0=\"{long}\""), format!("3: 0=\"{long}\"")],
            ),
            ("a,b\n", vec![]),
        ] {
            assert_eq!(rows(text), (expected, None), "{text:.40}");
        }
    }

    #[test]
    fn columns_of_numbers_get_real_numbers() {
        let columns = TableColumns::read(&serde_json::json!({ "name": "t", "columns": [
            { "name": "a", "type": "REAL", "default": null }, { "name": "b", "type": "TEXT", "default": null },
        ] }))
        .unwrap();
        let mut printed = PrintedRows::default();
        let text = "b,a\n0.50,0.50\n7,7\n1e5,one\n";
        CsvRows::new(ByteReader::new(text.as_bytes()), &columns)
            .for_each_row(&mut |row| printed.add(row));
        assert_eq!(
            printed.rows,
            [
                "2: 1=\"0.50\" 0=0.5",
                "3: 1=\"7\" 0=\"7\"",
                "4: 1=\"1e5\" 0=\"one\""
            ]
        );
    }

    #[test]
    fn a_fault_is_told_with_its_line() {
        let long = format!("a\n\"{}", "x".repeat(MAX_CELL_BYTES + 1));
        for (text, line, said) in [
            ("", 1, "no header"),
            ("a,c\n1,2", 1, "no column `c`"),
            ("a,A\n1,2", 1, "`a` twice"),
            ("a,b\n1,2\n3\n", 3, "1 of the 2 cells"),
            ("a,b\n1,2,3\n", 2, "more than the 2 cells"),
            ("a,b\n1,2\n\"3,4\n", 3, "not closed"),
            (&long, 2, "more than 262144 bytes"),
        ] {
            let (_, fault) = rows(text);
            let fault = fault.unwrap_or_default();
            let is_told = fault.starts_with(&format!("{line}: ")) && fault.contains(said);
            assert!(is_told, "{text:.40}: {fault}");
        }
    }
}
