//! `svc backend load`: rows of a file into a table, at most 500 in one transaction.

mod bytes;
mod csv;
mod json;
#[cfg(test)]
mod printed_rows;
mod reals;
mod statement;

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::bytes::ByteReader;
use self::csv::CsvRows;
use self::json::JsonRows;
use self::statement::{EncodedRow, InsertStatement, TableColumns};
use super::{BackendTargetArgs, ProjectHandle};
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::escape_line;
use crate::progress::TerminalProgressBar;
use crate::source::{self, STDIN};
use svc_base::pluralize;

/// The most rows of a transaction.
const MAX_TRANSACTION_ROWS: usize = 500;
/// The largest body of a query that a server takes, unless its operator chose otherwise.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Rows that are read ahead.
const READ_AHEAD: usize = 64;

/// Form of a file with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RowFormat {
    /// A header, then a row a record
    Csv,
    /// An array of objects, or one object after another
    Json,
}

/// A value for a column.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    /// JSON of null, a boolean, an integer or a string.
    Json(String),
    /// A finite number that is written with a fraction or an exponent.
    Real(f64),
    /// Bytes, in hexadecimal.
    Blob(String),
}

/// A row of a file.
#[derive(Debug)]
struct FileRow {
    /// Line at which it begins, from 1.
    line: u64,
    /// Number of the file's bytes up to its end.
    end: u64,
    /// Values by the places of their columns in the table.
    cells: Vec<(usize, Cell)>,
}

/// Fault of a file, at a line.
#[derive(Debug)]
struct RowFault {
    line: u64,
    detail: String,
}

/// Rows that come from the thread that reads the file.
type RowReceiver = mpsc::Receiver<std::result::Result<FileRow, RowFault>>;

/// A load that is under way.
#[derive(Debug)]
struct Load<'a> {
    at: &'a ProjectHandle,
    /// File for messages.
    shown: &'a Path,
    insert: InsertStatement,
    /// Rows that were read and are not stored yet.
    pending: VecDeque<EncodedRow>,
    /// Largest body to send.
    body_limit: usize,
    /// Whether each row is a statement of its own, because the server takes none for many.
    is_single: bool,
    loaded: LoadedRows,
    progress: TerminalProgressBar,
}

/// Rows that a load has stored.
#[derive(Clone, Copy, Debug, Default)]
struct LoadedRows {
    rows: usize,
    transactions: usize,
    /// Line of the last row.
    line: u64,
    /// Bytes of the file up to its end.
    end: u64,
}

/// Inserts the rows of a file.
pub(super) async fn load(
    table: &str,
    file: &Path,
    format: Option<RowFormat>,
    args: &BackendTargetArgs,
) -> Result<()> {
    let format = match format {
        Some(format) => Some(format),
        None if file.as_os_str() == STDIN => None,
        None => Some(format_of(file)?),
    };
    let (input, bytes) = open(file)?;
    let mut at = args.find().await?;
    at.api = at.api.with_retries();
    let columns = Arc::new(find_table(&at, table).await?);
    let shown = match file.as_os_str() == STDIN {
        true => Path::new("standard input"),
        false => file,
    };
    let rows = read_rows(input, format, Arc::clone(&columns));
    let load = Load {
        at: &at,
        shown,
        insert: InsertStatement::new(columns),
        pending: VecDeque::new(),
        body_limit: MAX_BODY_BYTES,
        is_single: false,
        loaded: LoadedRows::default(),
        progress: TerminalProgressBar::bytes("load", bytes),
    };
    let (table, loaded) = load.run(rows).await?;
    let document =
        json!({ "table": table, "rows": loaded.rows, "transactions": loaded.transactions });
    let text = format!(
        "loaded {} into {}",
        pluralize(loaded.rows, "row"),
        escape_line(&table)
    );
    args.output().print_answer(&document, &text)
}

/// Returns the form that a file's name says.
fn format_of(file: &Path) -> Result<RowFormat> {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(RowFormat::Csv),
        "json" | "ndjson" | "jsonl" => Ok(RowFormat::Json),
        _ => Err(CliFailure::local(format!(
            "Which form does {} have? Say `--format csv` or `--format json`.",
            file.display()
        ))),
    }
}

/// Opens a file, or standard input for `-`; returns its length, too.
fn open(file: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>)> {
    if file.as_os_str() == STDIN {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let (opened, bytes): (File, u64) = source::open_regular(file)?;
    Ok((Box::new(opened), Some(bytes)))
}

/// Finds a table of the project's database.
async fn find_table(at: &ProjectHandle, name: &str) -> Result<TableColumns> {
    let detail = at
        .api
        .call(&endpoints::BACKEND, &at.path_parts())
        .send()
        .await?;
    let tables = || detail["schema"]["tables"].as_array().into_iter().flatten();
    let is_named = |exact: bool| {
        move |table: &&Value| match table["name"].as_str() {
            Some(known) if exact => known == name,
            Some(known) => known.eq_ignore_ascii_case(name),
            None => false,
        }
    };
    let found = tables()
        .find(is_named(true))
        .or_else(|| tables().find(is_named(false)));
    let known = || {
        let names: Vec<_> = tables()
            .filter_map(|table| Some(format!("`{}`", escape_line(table["name"].as_str()?))))
            .collect();
        names.join(", ")
    };
    found.and_then(TableColumns::read).ok_or_else(|| {
        CliFailure::new(
            FailureExitCode::NotFound,
            "No such table",
            format!(
                "The database of `{}` has no table `{name}`. It has {}.",
                at.project.name,
                known()
            ),
        )
    })
}

/// Returns the form that the first bytes say: JSON begins with a brace or a bracket.
fn format_of_bytes(bytes: &mut ByteReader<impl Read>) -> RowFormat {
    // Faults of reading are told in the order of the rows.
    let _ = bytes.skip_byte_order_mark();
    let begin = bytes.peek().unwrap_or_default();
    let first = begin.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') => RowFormat::Json,
        _ => RowFormat::Csv,
    }
}

/// Reads the rows of a file in a thread, since a read of standard input may wait for good.
fn read_rows(
    input: Box<dyn Read + Send>,
    format: Option<RowFormat>,
    columns: Arc<TableColumns>,
) -> RowReceiver {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut bytes = ByteReader::new(input);
        let format = format.unwrap_or_else(|| format_of_bytes(&mut bytes));
        let mut send = |row| sender.blocking_send(row).is_ok();
        match format {
            RowFormat::Csv => CsvRows::new(bytes, &columns).for_each_row(&mut send),
            RowFormat::Json => JsonRows::new(bytes, &columns).for_each_row(&mut send),
        }
    });
    receiver
}

impl Load<'_> {
    /// Stores all rows; returns the name of the table, too.
    async fn run(mut self, mut rows: RowReceiver) -> Result<(String, LoadedRows)> {
        loop {
            while self.pending.len() < MAX_TRANSACTION_ROWS
                && self.pending_bytes() < self.body_limit
            {
                match rows.recv().await {
                    Some(Ok(row)) => self.pending.push_back(self.insert.encode(&row)),
                    Some(Err(fault)) => {
                        let failure = CliFailure::local(fault.detail);
                        return Err(self.refuse(failure, fault.line));
                    }
                    None => break,
                }
            }
            if self.pending.is_empty() {
                return Ok((self.insert.table().to_owned(), self.loaded));
            }
            self.store_next().await?;
        }
    }

    fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|row| row.body_bytes).sum()
    }

    /// Stores as many of the pending rows as one transaction takes.
    async fn store_next(&mut self) -> Result<()> {
        self.is_single |= self.is_wide();
        let count = match self.is_single {
            true => 1,
            false => self.fitting_rows()?,
        };
        let rows: Vec<&EncodedRow> = self.pending.iter().take(count).collect();
        let body = match rows[..] {
            [row] if self.is_single => self.insert.single_body(row),
            _ => self.insert.body(&rows),
        };
        let sent = self
            .at
            .api
            .call(&endpoints::OWNER_QUERY, &self.at.path_parts());
        match sent.body(body).send().await {
            Ok(_) => {
                let last = self.pending.drain(..count).next_back();
                let (line, end) = last.map_or((0, 0), |row| (row.line, row.end));
                self.progress
                    .add(usize::try_from(end - self.loaded.end).unwrap_or(usize::MAX));
                let LoadedRows {
                    rows, transactions, ..
                } = self.loaded;
                self.loaded = LoadedRows {
                    rows: rows + count,
                    transactions: transactions + 1,
                    line,
                    end,
                };
                Ok(())
            }
            Err(failure) if count > 1 && is_too_much(&failure) => {
                // Half of the bytes may suit a server with lower limits.
                self.body_limit = self.insert.body_bytes(&rows) / 2;
                Ok(())
            }
            Err(failure) if !self.is_single && is_too_much(&failure) => {
                self.is_single = true;
                Ok(())
            }
            Err(failure) => Err(self.explain(failure, count).await),
        }
    }

    /// Whether the statement for many rows leaves them less than half of a request, because the table has very many columns.
    fn is_wide(&self) -> bool {
        2 * self.insert.body_bytes(&[]) > self.body_limit
    }

    /// Number of pending rows that one request takes.
    fn fitting_rows(&self) -> Result<usize> {
        let mut bytes = self.insert.body_bytes(&[]);
        let fits = |row: &&EncodedRow| {
            bytes += row.body_bytes;
            bytes <= self.body_limit
        };
        let count = self
            .pending
            .iter()
            .take(MAX_TRANSACTION_ROWS)
            .take_while(fits);
        match (count.count(), self.pending.front()) {
            (0, Some(row)) => Err(self.refuse(
                CliFailure::local(format!(
                    "The row is too large: with its statement it has {} bytes, and a request {} at most.",
                    self.insert.body_bytes(&[row]),
                    self.body_limit
                )),
                row.line,
            )),
            (count, _) => Ok(count),
        }
    }

    /// Adds the row to a refusal, and what was loaded before.
    async fn explain(&self, failure: CliFailure, count: usize) -> CliFailure {
        let rows: Vec<&EncodedRow> = self.pending.iter().take(count).collect();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return failure;
        };
        let lines = match first.line == last.line {
            true => format!("line {}", first.line),
            false => format!("lines {} to {}", first.line, last.line),
        };
        let failure = match failure.exit {
            FailureExitCode::NoAnswer => failure.with_hint(&format!(
                "The rows of {lines} may have been loaded or not: look before you send them again."
            )),
            _ if is_refused_row(&failure) => match self.find_refused(&rows, &failure).await {
                Some(row) => return self.refuse(failure, row.line),
                None => failure.with_hint(&format!(
                    "It is a row of {lines}; none of these was loaded."
                )),
            },
            _ => failure.with_hint(&format!("No row of {lines} was loaded.")),
        };
        failure
            .with_file(self.shown)
            .with_hint(&self.loaded_sentence())
    }

    /// Builds the failure of a row.
    fn refuse(&self, failure: CliFailure, line: u64) -> CliFailure {
        failure
            .with_file(self.shown)
            .with_line(line)
            .with_hint(&self.loaded_sentence())
    }

    fn loaded_sentence(&self) -> String {
        match self.loaded.rows {
            0 => "Nothing was loaded.".to_owned(),
            rows => format!(
                "{} before it, to line {}, were loaded; none after that was.",
                pluralize(rows, "row"),
                self.loaded.line
            ),
        }
    }

    /// Finds the row that was refused, by dry runs of ever fewer rows. `None` if the server does not tell.
    async fn find_refused<'r>(
        &self,
        rows: &[&'r EncodedRow],
        failure: &CliFailure,
    ) -> Option<&'r EncodedRow> {
        // As many rows pass; as many do not.
        let (mut good, mut bad) = (0, rows.len());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.is_refused(&rows[..middle], failure).await? {
                true => bad = middle,
                false => good = middle,
            }
        }
        rows.get(good).copied()
    }

    /// Whether rows are refused for the same reason, on a copy that the server throws away. `None` if that is not known.
    async fn is_refused(&self, rows: &[&EncodedRow], failure: &CliFailure) -> Option<bool> {
        let asked = self
            .at
            .api
            .call(&endpoints::UPDATE_BACKEND, &self.at.path_parts());
        let asked = asked.query("dry_run", Some(true));
        match asked
            .body(json!({ "ddl": self.insert.script(rows) }))
            .send()
            .await
        {
            Ok(_) => Some(false),
            Err(tried) => match tried.code() {
                // Other rows may be refused for another reason, such as a reference to a row that comes later.
                "constraint_violation" => Some(tried.detail() == failure.detail()),
                "ddl_refused" => Some(failure.code() == "statement_failed"),
                _ => None,
            },
        }
    }
}

/// Whether a failure says that a value or the whole of a request is too large for this server, or takes too long.
fn is_too_much(failure: &CliFailure) -> bool {
    match failure.code() {
        "payload_too_large" | "query_timeout" => true,
        "statement_failed" => failure.detail().contains("longer"),
        _ => false,
    }
}

/// Whether a failure is about a row's values.
fn is_refused_row(failure: &CliFailure) -> bool {
    ["constraint_violation", "statement_failed"].contains(&failure.code())
}

/// Path of a file with rows, and its form.
#[derive(Clone, Debug, clap::Args)]
pub struct RowFileArgs {
    /// The file: CSV with a header, or JSON; `-` is standard input
    pub(super) file: PathBuf,
    /// Form of the file [default: by its name, of standard input by its first byte]
    #[arg(long)]
    pub(super) format: Option<RowFormat>,
}
