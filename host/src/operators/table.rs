//! Tables for the terminal.

/// A table with a head; nothing where there are no rows. What strangers wrote must not steer the terminal, so every cell is escaped.
pub(super) fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let escaped = |cell: String| cell.escape_debug().to_string();
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.into_iter().map(|row| row.map(escaped)));
    if lines.len() == 1 {
        return String::new();
    }
    let mut widths = [0; COLUMNS];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; COLUMNS]| {
        let padded = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value, or a dash where there is none.
pub(super) fn or_dash(value: Option<impl ToString>) -> String {
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
