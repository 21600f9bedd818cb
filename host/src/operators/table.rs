//! Tables for the terminal.

use crate::client::grid;

/// A table with a head; nothing where there are no rows. What strangers wrote must not steer the terminal, so every cell is escaped.
pub(super) fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().map(Vec::from).collect();
    grid(&head, &rows)
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
