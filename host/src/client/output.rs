//! Answers of client commands: text for people, one JSON document for programs.

use std::io::{IsTerminal as _, Write as _};

use serde_json::Value;

use super::error::{Failure, Result};

/// Where answers go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    /// Whether a program reads.
    pub(super) json: bool,
}

impl Out {
    /// Prints an answer on standard output: the document for programs, else the text.
    pub(super) fn answer(self, document: &Value, text: &str) -> Result<()> {
        let out = match self.json {
            true => document.to_string(),
            false => plain(text.trim_end()),
        };
        if out.is_empty() {
            return Ok(());
        }
        print(out.as_bytes(), true)
    }

    /// Tells a person something beside the answer; programs have it in the document.
    pub(super) fn note(self, text: &str) {
        if !self.json && !text.is_empty() {
            say(&plain(text));
        }
    }

    /// Whether somebody can be asked.
    pub(super) fn can_ask(self) -> bool {
        !self.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Writes bytes to standard output as they are. A reader that has gone has seen enough.
pub(super) fn print(bytes: &[u8], line: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(bytes)
        .and_then(|()| if line { out.write_all(b"\n") } else { Ok(()) })
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::here(
            format!("Writing to standard output failed: {error}."),
        )),
        _ => Ok(()),
    }
}

/// Writes a line on standard error.
pub(super) fn say(line: &str) {
    // There is nobody left to tell that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A text that cannot steer a terminal: what is a control character, or turns the direction of writing, is spelt out.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns || (c.is_control() && !matches!(c, '\n' | '\t')) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// A table with a head; nothing where there are no rows.
#[must_use]
pub fn grid(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // A cell is one line, whatever is in it.
    let cell = |text: &str| plain(text).replace('\n', "\\n").replace('\t', "\\t");
    let mut lines = vec![head.iter().map(|name| cell(name)).collect::<Vec<_>>()];
    lines.extend(
        rows.iter()
            .map(|row| row.iter().map(|text| cell(text)).collect()),
    );
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let shown = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// Names and values, one pair a line.
pub(super) fn pairs(lines: &[(&str, String)]) -> String {
    let shown = lines
        .iter()
        .map(|(name, value)| format!("{name:11} {value}"));
    shown.collect::<Vec<_>>().join("\n")
}

/// A member as text: nothing for null, a string without its quotes, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A member of a document as text; a dash where there is nothing.
pub(super) fn member(document: &Value, name: &str) -> String {
    match document.get(name).map(text_of) {
        Some(text) if !text.is_empty() => text,
        _ => "-".to_owned(),
    }
}

/// Rows of a list, by the names of their members.
pub(super) fn listed(list: &Value, members: &[&str]) -> String {
    let rows = list.as_array().into_iter().flatten();
    let rows = rows.map(|row| members.iter().map(|name| member(row, name)).collect());
    grid(members, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nobody_steers_the_terminal() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\nb\\u{202e}");
        let rows = json!([{"slug": "lönger", "n": 1}, {"slug": "a\nb\r", "n": null}]);
        assert_eq!(
            listed(&rows, &["slug", "n"]),
            "slug    n\nlönger  1\na\\nb\\r  -"
        );
        assert_eq!(listed(&json!([]), &["slug"]), "");
    }
}
