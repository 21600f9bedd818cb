//! Which rules are for a path.

use std::collections::HashMap;

use svc_sandbox::PatternPart;

/// Rules by their paths. Those of one path are looked up, and the others compared in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleIndex {
    /// First rule of each path that has one for itself.
    exact: HashMap<String, usize>,
    /// Rules with placeholders, in their order.
    patterns: Vec<usize>,
}

impl RuleIndex {
    /// Makes an index of rules with their numbers, which ascend.
    pub(super) fn new<'r>(rules: impl Iterator<Item = (usize, &'r [PatternPart])>) -> Self {
        let mut index = Self::default();
        for (number, pattern) in rules {
            match exact_path(pattern) {
                Some(path) => {
                    index.exact.entry(path.to_owned()).or_insert(number);
                }
                None => index.patterns.push(number),
            }
        }
        index
    }

    /// Returns the rules that may be for a path, in their order.
    pub(super) fn candidates(&self, path: &str) -> impl Iterator<Item = usize> {
        let exact = self.exact.get(path).copied();
        let before = match exact {
            Some(exact) => self.patterns.partition_point(|number| *number < exact),
            None => self.patterns.len(),
        };
        let (before, after) = self.patterns.split_at(before);
        let before = before.iter().copied();
        before.chain(exact).chain(after.iter().copied())
    }
}

/// Returns the one path that a pattern without placeholders is for.
fn exact_path(pattern: &[PatternPart]) -> Option<&str> {
    match pattern {
        [] => Some(""),
        [PatternPart::Text(path)] => Some(path),
        _ => None,
    }
}

/// Returns what a pattern captures of a path; `None` if it is not for the path. Each character is looked at once: nothing is tried again.
pub(super) fn captures<'p>(pattern: &[PatternPart], path: &'p str) -> Option<Vec<&'p str>> {
    let (mut captured, mut left) = (Vec::new(), path);
    let mut parts = pattern;
    while let [part, after @ ..] = parts {
        parts = after;
        let length = match (part, after) {
            // A folder counts as what is in it, with a slash at its end and without.
            (PatternPart::Text(text), [PatternPart::Rest])
                if text.strip_suffix('/') == Some(left) =>
            {
                captured.push("");
                return Some(captured);
            }
            (PatternPart::Text(text), _) => {
                left = left.strip_prefix(text.as_str())?;
                continue;
            }
            (PatternPart::Placeholder, _) => left.find('/').unwrap_or(left.len()),
            (PatternPart::Rest, [PatternPart::Text(end), ..]) => {
                left.strip_suffix(end.as_str())?.len()
            }
            (PatternPart::Rest, _) => left.len(),
        };
        if length == 0 && *part == PatternPart::Placeholder {
            return None;
        }
        let (found, rest) = left.split_at(length);
        captured.push(found);
        left = rest;
    }
    left.is_empty().then_some(captured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PatternPart::{Placeholder, Rest};

    fn text(text: &str) -> PatternPart {
        PatternPart::Text(text.to_owned())
    }

    #[test]
    fn patterns_capture_segments_and_the_rest() {
        let none: [&str; 0] = [];
        let both = [Placeholder, text("/x/"), Placeholder];
        for (pattern, path, captured) in [
            (vec![], "", Some(none.to_vec())),
            (vec![], "a", None),
            (vec![text("a/b")], "a/b", Some(none.to_vec())),
            (vec![text("a/b")], "a/b/", None),
            (vec![text("a/b")], "a/B", None),
            (vec![Rest], "", Some(vec![""])),
            (vec![Rest], "a/b/", Some(vec!["a/b/"])),
            (vec![text("a/"), Rest], "a/", Some(vec![""])),
            (vec![text("a/"), Rest], "a/b/c", Some(vec!["b/c"])),
            (vec![text("a/"), Rest], "a", Some(vec![""])),
            (vec![text("a/b/"), Rest], "a/b", Some(vec![""])),
            (vec![text("a/b/"), Rest], "a", None),
            (vec![Placeholder, text("/"), Rest], "a", Some(vec!["a", ""])),
            (vec![Rest, text(".js")], "a/b.js", Some(vec!["a/b"])),
            (vec![Rest, text(".js")], ".js", Some(vec![""])),
            (vec![Rest, text(".js")], "a.jsx", None),
            (
                vec![Rest, text("\u{fc}")],
                "\u{fc}\u{fc}",
                Some(vec!["\u{fc}"]),
            ),
            (
                vec![text("a/"), Rest, text("/b")],
                "a/x/y/b",
                Some(vec!["x/y"]),
            ),
            (vec![text("a/"), Rest, text("/b")], "a/b", None),
            (vec![text("a/"), Rest, text("/b")], "a", None),
            (vec![text("a"), Rest], "ab/c", Some(vec!["b/c"])),
            (vec![Placeholder], "a", Some(vec!["a"])),
            (vec![Placeholder], "", None),
            (vec![Placeholder], "a/", None),
            (both.to_vec(), "a/x/\u{fc}", Some(vec!["a", "\u{fc}"])),
            (both.to_vec(), "a/y/b", None),
            (both.to_vec(), "a/x/", None),
            (both.to_vec(), "a/x/b/c", None),
            (
                vec![Placeholder, text("/"), Rest],
                "a/b/c",
                Some(vec!["a", "b/c"]),
            ),
        ] {
            assert_eq!(captures(&pattern, path), captured, "{pattern:?} {path}");
        }
    }

    #[test]
    fn rules_come_in_their_order() {
        let patterns = [
            vec![text("a"), Rest],
            vec![text("ab")],
            vec![Rest],
            vec![text("ab")],
            vec![Placeholder],
        ];
        let rules = patterns.iter().map(Vec::as_slice).enumerate();
        let index = RuleIndex::new(rules);
        assert!(index.candidates("ab").eq([0, 1, 2, 4]));
        assert!(index.candidates("x").eq([0, 2, 4]));
    }

    #[test]
    fn a_path_of_many_parts_is_compared_once() {
        let pattern = [Placeholder, text("/"), Placeholder, text("/a"), Rest];
        let path = "a/".repeat(100_000);
        assert!(captures(&pattern, &path).is_some());
        let pattern = [Placeholder, text("/"), Placeholder, text("/b"), Rest];
        assert!(captures(&pattern, &path).is_none());
    }
}
