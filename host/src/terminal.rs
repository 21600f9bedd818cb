//! Texts for the terminal: tables, and what strangers wrote.

/// A text that cannot steer a terminal: what is a control character, or turns the direction of writing, is spelt out.
pub fn plain(text: &str) -> String {
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

/// A table with a head; nothing where there are no rows. What strangers wrote must not steer the terminal, so every cell is escaped.
pub fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().map(Vec::from).collect();
    grid(&head, &rows)
}

/// A value, or a dash where there is none.
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
}
