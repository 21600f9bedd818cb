//! Counts with their nouns, as people write them.

use std::fmt::Display;

/// Returns a count with its noun, in the plural unless the count is one: `1 project`, `2 entries`.
pub fn pluralize(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_agrees_with_its_count() {
        for (count, noun, expected) in [
            (0, "project", "0 projects"),
            (1, "project", "1 project"),
            (2, "project", "2 projects"),
            (1, "live query", "1 live query"),
            (11, "live query", "11 live queries"),
            (3, "day", "3 days"),
        ] {
            assert_eq!(pluralize(count, noun), expected);
        }
    }
}
