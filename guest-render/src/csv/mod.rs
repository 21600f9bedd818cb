//! CSV pages: RFC 4180 read leniently, in the dialects that spreadsheets write, all rows in one table.
//!
//! The text is read twice: first for the width of the widest row and the size of the page, so that padding short rows can never
//! exceed the host's limit, then for writing.

mod dialect;
mod numbers;

use std::fmt::Write as _;

use csv::{ReaderBuilder, StringRecord};
use maud::html;

use crate::language;
use crate::page::{self, PageMetadata, PageTypeProperties};
use crate::page_writer::{PageWriter, escaped_len};
use crate::position::malformed_error;
use crate::{Page, RenderError, Source};
use dialect::DelimitedRows;
pub(crate) use numbers::is_number;

/// Number of columns that are checked for numbers: styles for more would outgrow the table.
const MAX_STYLED_COLUMNS: usize = 64;

/// Number of columns that fit on paper in one line.
const MAX_PRINTED_COLUMNS: usize = 8;
/// Number of cells in a line on paper, for wider tables.
const PRINTED_CELLS_PER_LINE: f32 = 8.0;

/// Tables of more rows than this scroll in a box of their own with a fixed head; others are shown whole.
const MAX_UNSCROLLED_ROWS: u64 = 200;

/// Space for the runtime's tools above a table, so that nothing moves when they load.
const TOOLBAR_SPACE: &str = "<div class=\"tools\"></div>\n";

/// Renders a CSV source.
pub(crate) fn render(source: &Source) -> Result<Page, RenderError> {
    let table = DelimitedRows::detect(&source.text);
    check_quotes(&table, &source.text)?;
    let layout = TableLayout::measure(table)?;
    let shell = PageTypeProperties {
        source,
        kind: "csv",
        styles: &[include_str!("../../assets/csv.css")],
        own_styles: layout.own_styles(),
        metadata: PageMetadata {
            title: None,
            description: layout.description.clone(),
            language: language::detect(language_sample(table.text)).map(str::to_owned),
        },
    };
    page::build_page(&shell, |out| {
        let what = format!("Table of {}", layout.caption());
        out.markup(&page::fallback_heading(source, &what))?;
        if source.runtime.is_some() && layout.rows > 0 {
            out.markup(TOOLBAR_SPACE)?;
        }
        write_table(out, table, &layout)
    })
}

/// Bytes of a table that its language is detected from.
const SAMPLE_BYTES: usize = 1_500;

fn language_sample(text: &str) -> &str {
    &text[..text.floor_char_boundary(SAMPLE_BYTES)]
}

fn write_table(
    out: &mut PageWriter<'_>,
    table: DelimitedRows<'_>,
    layout: &TableLayout,
) -> Result<(), RenderError> {
    if layout.rows == 0 {
        return out.markup("<p>This file has no rows.</p>");
    }
    if layout.bytes() > u64::try_from(out.room()).unwrap_or(u64::MAX) {
        return Err(RenderError::TooLarge);
    }
    out.markup(if layout.rows > MAX_UNSCROLLED_ROWS {
        "<div class=\"scroll tall\" role=\"region\" tabindex=\"0\" aria-label=\"Table\">\n<table>\n"
    } else {
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table\">\n<table>\n"
    })?;
    out.markup(&html! { caption { (layout.caption()) } }.into_string())?;
    out.markup("\n<thead>\n")?;
    let mut is_first = true;
    for_each_row(table, |row| {
        if is_first {
            write_row(out, row, layout.columns, &HEADER_CELL)?;
            out.markup("</thead>\n<tbody>\n")?;
        } else {
            write_row(out, row, layout.columns, &CELL_MARKUP)?;
        }
        is_first = false;
        Ok(())
    })?;
    out.markup("</tbody>\n</table>\n</div>")
}

/// The markup around the text of a cell.
struct CellMarkup {
    open: &'static str,
    /// Opening tag for cells with words, which have a direction.
    open_words: &'static str,
    close: &'static str,
}

const HEADER_CELL: CellMarkup = CellMarkup {
    open: "<th scope=\"col\">",
    open_words: "<th scope=\"col\" dir=\"auto\">",
    close: "</th>",
};
const CELL_MARKUP: CellMarkup = CellMarkup {
    open: "<td>",
    open_words: "<td dir=\"auto\">",
    close: "</td>",
};
const ROW_MARKUP: CellMarkup = CellMarkup {
    open: "<tr>",
    open_words: "<tr>",
    close: "</tr>\n",
};

fn write_row(
    out: &mut PageWriter<'_>,
    row: &StringRecord,
    columns: usize,
    cell: &CellMarkup,
) -> Result<(), RenderError> {
    out.markup(ROW_MARKUP.open)?;
    for column in 0..columns {
        let text = row.get(column).unwrap_or_default();
        out.markup(if has_words(text) {
            cell.open_words
        } else {
            cell.open
        })?;
        out.text(text)?;
        out.markup(cell.close)?;
    }
    out.markup(ROW_MARKUP.close)
}

/// Whether a cell has a letter.
fn has_words(cell: &str) -> bool {
    cell.bytes()
        .any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii())
}

/// Layout of a table, which must be known before the first row is written.
#[derive(Default)]
struct TableLayout {
    /// Number of rows, the header included.
    rows: u64,
    /// Number of cells in the widest row.
    columns: usize,
    /// Bytes of the text of all cells, escaped.
    text_bytes: u64,
    /// Number of cells with words.
    cells_with_words: u64,
    /// The table in a sentence.
    description: String,
    /// Content of each of the first columns.
    contents: Vec<ColumnContentKind>,
}

/// Content of a column's cells, without the header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnContentKind {
    Nothing,
    Numbers,
    Text,
}

impl TableLayout {
    fn measure(table: DelimitedRows<'_>) -> Result<Self, RenderError> {
        let mut layout = Self::default();
        let mut names = String::new();
        for_each_row(table, |row| {
            if layout.rows == 0 {
                names = row
                    .iter()
                    .map(str::trim)
                    .take(12)
                    .collect::<Vec<_>>()
                    .join(", ");
            }
            layout.add(row);
            Ok(())
        })?;
        if layout.rows > 0 {
            layout.description = format!("A table of {}: {names}", layout.caption());
        }
        Ok(layout)
    }

    fn add(&mut self, row: &StringRecord) {
        let wide = row.len().min(MAX_STYLED_COLUMNS).max(self.contents.len());
        self.contents.resize(wide, ColumnContentKind::Nothing);
        for (cell, contents) in row.iter().zip(&mut self.contents) {
            if self.rows > 0 && !cell.trim().is_empty() && *contents != ColumnContentKind::Text {
                *contents = if is_number(cell.trim()) {
                    ColumnContentKind::Numbers
                } else {
                    ColumnContentKind::Text
                };
            }
        }
        self.columns = self.columns.max(row.len());
        self.rows += 1;
        self.cells_with_words += row.iter().filter(|cell| has_words(cell)).count() as u64;
        self.text_bytes += row.iter().map(|cell| escaped_len(cell) as u64).sum::<u64>();
    }

    /// Returns a lower bound of the bytes that the rows take in a page.
    fn bytes(&self) -> u64 {
        let cell = (CELL_MARKUP.open.len() + CELL_MARKUP.close.len()) as u64;
        let row = (ROW_MARKUP.open.len() + ROW_MARKUP.close.len()) as u64;
        let cells = self
            .rows
            .saturating_mul(self.columns as u64)
            .saturating_mul(cell);
        let direction = (CELL_MARKUP.open_words.len() - CELL_MARKUP.open.len()) as u64;
        cells
            .saturating_add(self.rows * row)
            .saturating_add(self.cells_with_words * direction)
            .saturating_add(self.text_bytes)
    }

    fn caption(&self) -> String {
        let rows = self.rows.saturating_sub(1);
        let (row, column) = (plural_suffix(rows), plural_suffix(self.columns as u64));
        format!("{rows} row{row}, {} column{column}", self.columns)
    }

    /// Returns styles for this table. Columns of numbers are aligned right and never broken. On paper a wide row takes several
    /// lines of equal cells, and the column names above them do, too.
    fn own_styles(&self) -> String {
        let mut styles = String::new();
        for (column, contents) in self.contents.iter().enumerate() {
            if *contents == ColumnContentKind::Numbers {
                // Writing to a string cannot fail.
                let _ = write!(
                    styles,
                    "tr>:nth-child({}){{text-align:right;white-space:nowrap}}",
                    column + 1
                );
            }
        }
        if self.columns > MAX_PRINTED_COLUMNS {
            let _ = write!(
                styles,
                "@page{{size:landscape}}@media print{{tr{{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--line)}}th,td{{border:0!important;flex:0 0 {}%;min-width:0!important;\
                 max-width:none!important;white-space:pre-wrap!important}}}}",
                100.0 / PRINTED_CELLS_PER_LINE
            );
        }
        styles
    }
}

fn plural_suffix(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Calls `row` for every row of a table.
///
/// The reader skips blank lines. Between rows they are rows with one empty cell, by the grammar of RFC 4180; around the table
/// they are left out.
fn for_each_row<F>(table: DelimitedRows<'_>, mut row: F) -> Result<(), RenderError>
where
    F: FnMut(&StringRecord) -> Result<(), RenderError>,
{
    let blank = StringRecord::new();
    let mut reader = csv_reader(table);
    let mut record = StringRecord::new();
    let mut is_first = true;
    loop {
        let start = reader_offset(&reader);
        // A valid text with rows of any length gives no errors.
        if !reader.read_record(&mut record).unwrap_or(false) {
            return Ok(());
        }
        if !is_first {
            for _ in 0..blank_lines(table.text, start) {
                row(&blank)?;
            }
        }
        row(&record)?;
        is_first = false;
    }
}

fn csv_reader(table: DelimitedRows<'_>) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(table.delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(table.text.as_bytes())
}

/// Returns the offset of the next row, or of the blank lines before it.
fn reader_offset(reader: &csv::Reader<&[u8]>) -> usize {
    usize::try_from(reader.position().byte()).unwrap_or(usize::MAX)
}

/// Counts the blank lines at `start`.
fn blank_lines(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    // The line feed after the previous row's carriage return was not read yet.
    let ends_row_before =
        start > 0 && bytes[start - 1] == b'\r' && bytes.get(start) == Some(&b'\n');
    let mut rest = &bytes[start + usize::from(ends_row_before)..];
    let mut lines = 0;
    loop {
        rest = match rest {
            [b'\r', b'\n', after @ ..] | [b'\r' | b'\n', after @ ..] => after,
            _ => return lines,
        };
        lines += 1;
    }
}

/// Fails on a quote that is never closed: it would swallow the rest of the file into one cell.
///
/// A quote as a cell's first character opens the cell, and a single quote closes it. Text after it up to the next delimiter
/// belongs to the cell, as do quotes in other cells.
fn check_quotes(table: &DelimitedRows<'_>, source: &str) -> Result<(), RenderError> {
    let before = source.len() - table.text.len();
    let bom = if source.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let mut bytes = table.text.bytes().enumerate().peekable();
    let mut at_cell_start = true;
    while let Some((offset, byte)) = bytes.next() {
        if byte != b'"' || !at_cell_start {
            at_cell_start = matches!(byte, b'\r' | b'\n') || byte == table.delimiter;
            continue;
        }
        at_cell_start = false;
        loop {
            match bytes.next() {
                None => {
                    return Err(malformed_error(
                        &source[bom..],
                        before - bom + offset,
                        String::from("This quote is never closed."),
                    ));
                }
                Some((_, b'"')) if bytes.next_if(|(_, next)| *next == b'"').is_none() => break,
                Some(_) => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
