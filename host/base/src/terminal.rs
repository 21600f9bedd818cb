//! Texts for the terminal: tables, and escapes for texts from strangers.

use std::borrow::Cow;

/// Widest column that is padded; a longer cell shifts the rest of its row.
const MAX_PADDED_WIDTH: usize = 60;

/// Escapes characters that control a terminal or change the direction of writing. Newlines and tabs stay.
#[must_use]
pub fn escape_text(text: &str) -> String {
    escape_where(text, |c| {
        is_terminal_control(c) && !matches!(c, '\n' | '\t')
    })
}

/// Escapes a text as [`escape_text`] does, and newlines and tabs too: the result is one line.
#[must_use]
pub fn escape_line(text: &str) -> String {
    escape_where(text, is_terminal_control)
}

/// Cuts a text to at most `most` characters and escapes it to one line.
#[must_use]
pub fn escape_excerpt(text: &str, most: usize) -> String {
    let mut cut: String = text.chars().take(most).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    escape_line(&cut)
}

/// Escapes the control characters in a JSON document. The document means the same to a JSON parser.
#[must_use]
pub fn escape_json(document: &str) -> Cow<'_, str> {
    // Such characters stand in strings alone: the JSON writer has escaped everything below U+0020.
    if !document.chars().any(is_terminal_control) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        match is_terminal_control(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Quotes a text as one word of a POSIX shell, for commands that people copy.
#[must_use]
pub fn quote_shell_word(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.:/=@%+,".contains(c);
    let text = escape_line(text);
    match !text.is_empty() && text.chars().all(is_safe) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Whether a character controls a terminal or changes the direction of writing (UAX #9). All of them have four hexadecimal
/// digits.
fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_where(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => plain.extend(c.escape_default()),
            false => plain.push(c),
        }
    }
    plain
}

/// Formats a table with a header row; empty if there are no rows. Cells are escaped, each to one line.
#[must_use]
pub fn grid(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut lines = vec![
        head.iter()
            .map(|name| escape_line(name))
            .collect::<Vec<_>>(),
    ];
    lines.extend(
        rows.iter()
            .map(|row| row.iter().map(|text| escape_line(text)).collect()),
    );
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        let longest = cells.map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).min(MAX_PADDED_WIDTH)
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

/// Formats a table like [`grid`], with a number of columns that the compiler checks.
pub fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().map(Vec::from).collect();
    grid(&head, &rows)
}

/// Returns the value as text, or a dash for none.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nobody_steers_the_terminal() {
        let rows = [
            ["a".to_owned(), "1".to_owned()],
            ["lönger".to_owned(), "\u{1b}[2J".to_owned()],
        ];
        assert_eq!(
            table(["slug", "title"], rows),
            "slug    title\na       1\nlönger  \\u{1b}[2J"
        );
        assert_eq!(table(["slug"], []), "");
    }

    #[test]
    fn a_strangers_text_is_harmless_in_every_form() {
        let text = "a\u{1b}[2J\u{9b}2J\u{7}\r\n\t\u{202e}b\u{200f}\u{2028}";
        assert_eq!(
            escape_text(text),
            "a\\u{1b}[2J\\u{9b}2J\\u{7}\\r\n\t\\u{202e}b\\u{200f}\\u{2028}"
        );
        assert_eq!(escape_line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(escape_excerpt("ab\ncd", 4), "ab\\nc…");
        assert_eq!(escape_excerpt("abcd", 4), "abcd");
        let document = serde_json::json!({ "a": text });
        let written = document.to_string();
        let harmless = escape_json(&written);
        assert!(!harmless.chars().any(is_terminal_control), "{harmless}");
        let read: serde_json::Value = serde_json::from_str(&harmless).unwrap();
        assert_eq!(read, document);
        for (word, shown) in [
            ("shop-acme", "shop-acme"),
            ("2026-11-20T12:00:00.000Z", "2026-11-20T12:00:00.000Z"),
            ("$(id)", "'$(id)'"),
            ("a'b", "'a'\\''b'"),
            ("a\nb", "'a\\nb'"),
            ("", "''"),
        ] {
            assert_eq!(quote_shell_word(word), shown);
        }
    }

    #[test]
    fn one_long_cell_does_not_widen_every_row() {
        let mut rows = vec![vec!["x".repeat(100_000), "1".to_owned()]];
        rows.extend((0..1000).map(|n| vec!["y".to_owned(), n.to_string()]));
        assert!(grid(&["long", "n"], &rows).len() < 200_000);
    }
}
