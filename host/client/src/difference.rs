//! Differences between two texts, line by line.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::output::escape_text;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;
/// Time limit of the comparison, after which it is less exact.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Difference between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextDifference {
    /// The lines, as `diff -u` shows them.
    pub(super) text: String,
    /// Number of new lines.
    pub(super) added: usize,
    /// Number of removed lines.
    pub(super) removed: usize,
}

impl TextDifference {
    /// Compares two texts, given with their names.
    pub(super) fn between(old: (&str, &str), new: (&str, &str)) -> Self {
        let difference = TextDiff::configure()
            .timeout(TIMEOUT)
            .diff_lines(old.1, new.1);
        let count = |tag| {
            difference
                .iter_all_changes()
                .filter(|change| change.tag() == tag)
                .count()
        };
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let mut unified = difference.unified_diff();
        let text = unified
            .context_radius(CONTEXT_LINES)
            .header(old.0, new.0)
            .to_string();
        Self {
            text: escape_text(text.trim_end()),
            added,
            removed,
        }
    }

    /// Summary of the size.
    pub(super) fn size(&self) -> String {
        format!("+{} −{} lines", self.added, self.removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_as_everybody_knows_it() {
        let found = TextDifference::between(("live", "a\nb\n"), ("file", "a\nc\u{1b}\n"));
        assert_eq!(
            found.text,
            "--- live\n+++ file\n@@ -1,2 +1,2 @@\n a\n-b\n+c\\u{1b}"
        );
        assert_eq!(found.size(), "+1 −1 lines");
        assert_eq!(TextDifference::between(("a", "x"), ("b", "x")).text, "");
    }
}
