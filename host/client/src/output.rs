//! Output of commands: text for people, one JSON document for programs.

use std::io::{IsTerminal as _, Write as _};

use serde_json::Value;

use super::error::{CliFailure, Result};
use svc_base::terminal;

/// Most rows of a table; `--json` has all.
const MAX_ROWS: usize = 10_000;
/// Most characters of a server's note.
const MAX_NOTE_CHARACTERS: usize = 4_000;
pub(super) use svc_base::terminal::{
    escape_excerpt, escape_line, escape_text, grid, quote_shell_word,
};

/// Format of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputFormat {
    /// Whether to print JSON, for a program.
    pub(super) json: bool,
}

impl OutputFormat {
    /// Prints an answer to standard output: the document for programs, else the text.
    pub(super) fn print_answer(self, document: &Value, text: &str) -> Result<()> {
        let out = match self.json {
            true => terminal::escape_json(&document.to_string()).into_owned(),
            false => escape_text(text.trim_end()),
        };
        if out.is_empty() {
            return Ok(());
        }
        print_bytes(out.as_bytes(), true)
    }

    /// Prints a note to standard error for people; programs find it in the document.
    pub(super) fn print_note(self, text: &str) {
        if !self.json && !text.is_empty() {
            print_error(&escape_text(text));
        }
    }

    /// Whether a person at a terminal can answer questions.
    pub(super) fn is_interactive(self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Writes bytes to standard output. A reader that closed the pipe is no error.
fn print_bytes(bytes: &[u8], line: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(bytes)
        .and_then(|()| if line { out.write_all(b"\n") } else { Ok(()) })
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(stdout_failure(&error)),
        _ => Ok(()),
    }
}

/// Writes a part of a long answer to standard output. A reader that closed the pipe ends it, so that nobody waits for the rest.
pub(super) fn print_part(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| stdout_failure(&error))
}

fn stdout_failure(error: &std::io::Error) -> CliFailure {
    CliFailure::local(format!("Writing to standard output failed: {error}."))
}

/// Whether standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Writes a text of unknown origin to standard output: unchanged to a file or program, and escaped to a terminal.
pub(super) fn print_source(text: &str) -> Result<()> {
    match is_terminal() {
        true => print_bytes(escape_text(text).as_bytes(), !text.ends_with('\n')),
        false => print_bytes(text.as_bytes(), false),
    }
}

/// Writes a line on standard error.
pub(super) fn print_error(line: &str) {
    // If standard error is closed, there is nowhere to report it.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Formats names and values, one pair a line, with aligned values.
pub(super) fn key_values(lines: &[(&str, String)]) -> String {
    let longest = lines.iter().map(|(name, _)| name.len()).max();
    let width = longest.unwrap_or_default().max(10);
    let shown = lines
        .iter()
        .map(|(name, value)| format!("{name:width$}  {}", escape_line(value)));
    shown.collect::<Vec<_>>().join("\n")
}

/// Formats a JSON value: null as nothing, a string without quotes, anything else as JSON.
pub(super) fn pretty_escaped_json(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats a note of the server as one line, so that none of it passes for a line of ours.
pub(super) fn server_note(text: &str) -> String {
    escape_excerpt(text, MAX_NOTE_CHARACTERS)
}

/// Formats a member of a document; a dash if it is empty.
pub(super) fn member_text(document: &Value, name: &str) -> String {
    match document.get(name).map(pretty_escaped_json) {
        Some(text) if !text.is_empty() => text,
        _ => "-".to_owned(),
    }
}

/// Formats a list of documents as a table with these members, up to [`MAX_ROWS`] of them.
pub(super) fn table_of(list: &Value, members: &[&str]) -> String {
    let rows = list.as_array().into_iter().flatten().take(MAX_ROWS);
    let rows = rows.map(|row| members.iter().map(|name| member_text(row, name)).collect());
    grid(members, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nobody_steers_the_terminal() {
        assert_eq!(
            escape_text("a\u{1b}[2J\nb\u{202e}"),
            "a\\u{1b}[2J\nb\\u{202e}"
        );
        let rows = json!([{"slug": "lönger", "n": 1}, {"slug": "a\nb\r", "n": null}]);
        assert_eq!(
            table_of(&rows, &["slug", "n"]),
            "slug    n\nlönger  1\na\\nb\\r  -"
        );
        assert_eq!(table_of(&json!([]), &["slug"]), "");
        let one = [("id", "1".to_owned()), ("content_sha256", "2".to_owned())];
        assert_eq!(key_values(&one), "id              1\ncontent_sha256  2");
        let forged = [("title", "A\nurl         http://b".to_owned())];
        assert_eq!(key_values(&forged), "title       A\\nurl         http://b");
    }
}
