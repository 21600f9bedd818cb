//! Finds a text or a line in a source and returns the lines around it, so that changing one line does not require reading all.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::pluralize;

/// Number of lines shown before and after a match.
const CONTEXT_LINES: usize = 2;
/// Maximum number of characters shown before and after a match, because lines may be long.
const MAX_CONTEXT_CHARS: usize = 200;
/// Maximum number of characters shown of a match.
const MAX_MATCH_CHARS: usize = 400;
/// Maximum number of excerpts.
const MAX_EXCERPTS: usize = 5;

/// Text or line to find.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum SourceSearch {
    /// Line, by its number from 1.
    Line(usize),
    /// Exact text.
    Text(String),
}

impl SourceSearch {
    /// Searches a source; returns `lines`, `occurrences` and `found`, with a `note` if there are more matches or none.
    ///
    /// # Errors
    /// `invalid_request` for an empty text or a line that does not exist.
    pub(super) fn run(&self, source: &str) -> Result<Value, Problem> {
        let lines = source.lines().count();
        match self {
            Self::Line(number) => {
                let Some((start, end)) = line_range(source, *number) else {
                    return Err(invalid_request(format!(
                        "`find` is line {number}, and the source has lines 1 to {lines}."
                    )));
                };
                let found = [excerpt(source, *number, start, end).0];
                Ok(json!({ "lines": lines, "found": found }))
            }
            Self::Text(text) if text.is_empty() => Err(invalid_request(
                "`find` is empty: send a text of the source, or the number of a line.",
            )),
            Self::Text(text) => Ok(occurrences(source, text, lines)),
        }
    }
}

fn occurrences(source: &str, text: &str, lines: usize) -> Value {
    let (mut found, mut occurrences, mut unseen) = (Vec::new(), 0, 0);
    // End of the last excerpt, and the position and line of the search.
    let (mut shown, mut at, mut number) = (0, 0, 1);
    for (start, _) in source.match_indices(text) {
        occurrences += 1;
        number += count_line_breaks(source, at, start);
        at = start;
        if start < shown {
            continue;
        }
        if found.len() == MAX_EXCERPTS {
            unseen += 1;
            continue;
        }
        let (place, end) = excerpt(source, number, start, start + text.len());
        found.push(place);
        shown = end;
    }
    let mut document = json!({ "lines": lines, "occurrences": occurrences, "found": found });
    if occurrences == 0 {
        document["note"] = "The stored source does not have this text. It is looked for exactly, with case and white space; the page as it is served may differ from its source.".into();
    } else if unseen > 0 {
        document["note"] = format!(
            "{} not shown: look for a longer text, or for the number of a line.",
            pluralize(unseen, "more occurrence")
        )
        .into();
    }
    document
}

/// Returns the byte range of a line, without its line break.
fn line_range(source: &str, number: usize) -> Option<(usize, usize)> {
    let mut start = 0;
    for _ in 1..number {
        start += source.get(start..)?.find('\n')? + 1;
    }
    let rest = source
        .get(start..)
        .filter(|rest| number > 0 && !rest.is_empty())?;
    let length = rest.find('\n').unwrap_or(rest.len());
    Some((start, start + length))
}

/// Returns the excerpt around a byte range, and the position of its end.
fn excerpt(source: &str, number: usize, start: usize, end: usize) -> (Value, usize) {
    let end = offset_after(source, start, MAX_MATCH_CHARS).min(end);
    let from = excerpt_start(source, start).max(offset_before(source, start, MAX_CONTEXT_CHARS));
    let to = excerpt_end(source, end).min(offset_after(source, end, MAX_CONTEXT_CHARS));
    let first = number - count_line_breaks(source, from, start);
    let content = source.get(from..to).unwrap_or_default();
    let offset = source.get(..from).unwrap_or_default().chars().count();
    let place = json!({ "line": number, "from_line": first, "offset": offset, "content": content });
    (place, to)
}

/// Counts the line breaks between two positions.
fn count_line_breaks(source: &str, from: usize, to: usize) -> usize {
    let between = source.as_bytes().get(from..to).unwrap_or_default();
    between.iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the start of the first line of the excerpt around a position.
fn excerpt_start(source: &str, at: usize) -> usize {
    let earlier = source.get(..at).unwrap_or_default();
    let starts = earlier.rmatch_indices('\n').map(|(at, _)| at + 1);
    starts.chain([0]).nth(CONTEXT_LINES).unwrap_or(0)
}

/// Returns the end of the last line of the excerpt around a position.
fn excerpt_end(source: &str, at: usize) -> usize {
    let later = source.get(at..).unwrap_or_default();
    let ends = later.match_indices('\n').map(|(end, _)| at + end);
    ends.chain([source.len()])
        .nth(CONTEXT_LINES)
        .unwrap_or(source.len())
}

/// Returns the position some characters before another.
fn offset_before(source: &str, at: usize, characters: usize) -> usize {
    let earlier = source.get(..at).unwrap_or_default();
    let place = earlier.char_indices().rev().take(characters).last();
    place.map_or(at, |(place, _)| place)
}

/// Returns the position some characters after another.
fn offset_after(source: &str, at: usize, characters: usize) -> usize {
    let later = source.get(at..).unwrap_or_default();
    let place = later.char_indices().nth(characters);
    place.map_or(source.len(), |(place, _)| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, find: &SourceSearch) -> Value {
        find.run(source).unwrap()
    }

    fn text(text: &str) -> SourceSearch {
        SourceSearch::Text(text.to_owned())
    }

    #[test]
    fn a_text_is_shown_with_the_lines_around_it() {
        let source = "one\ntwo\nthree\nfour ä\nfive\nsix\nseven";
        let document = found(source, &text("our ä"));
        assert_eq!(
            (&document["lines"], &document["occurrences"]),
            (&json!(7), &json!(1))
        );
        let place = json!({ "line": 4, "from_line": 2, "offset": 4, "content": "two\nthree\nfour ä\nfive\nsix" });
        assert_eq!(document["found"], json!([place]));
        assert_eq!(document["note"], Value::Null);
        assert_eq!(
            found(source, &SourceSearch::Line(4))["found"],
            json!([place])
        );
        for (line, content) in [(1, "one\ntwo\nthree"), (7, "five\nsix\nseven")] {
            assert_eq!(
                found(source, &SourceSearch::Line(line))["found"][0]["content"],
                content
            );
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let nothing = found("one\r\ntwo\n", &text("TWO"));
        assert_eq!(
            (&nothing["occurrences"], &nothing["found"]),
            (&json!(0), &json!([]))
        );
        assert!(nothing["note"].as_str().unwrap().contains("does not have"));
        for find in [text(""), SourceSearch::Line(0), SourceSearch::Line(3)] {
            assert!(find.run("one\r\ntwo\n").is_err(), "{find:?}");
        }
        assert_eq!(
            found("one\r\ntwo\n", &SourceSearch::Line(2))["found"][0]["content"],
            "one\r\ntwo\n"
        );
    }

    #[test]
    fn long_lines_and_long_texts_are_cut() {
        let source = format!("{}needle{}", "ä".repeat(100_000), "ö".repeat(100_000));
        let place = &found(&source, &text("needle"))["found"][0];
        let expected = format!(
            "{}needle{}",
            "ä".repeat(MAX_CONTEXT_CHARS),
            "ö".repeat(MAX_CONTEXT_CHARS)
        );
        assert_eq!(place["content"], expected);
        assert_eq!(place["offset"], 100_000 - MAX_CONTEXT_CHARS);
        let longest = found(&source, &text(&source));
        let shown = longest["found"][0]["content"]
            .as_str()
            .unwrap()
            .chars()
            .count();
        assert_eq!(shown, MAX_MATCH_CHARS + MAX_CONTEXT_CHARS);
        let line = found(&source, &SourceSearch::Line(1));
        assert_eq!(
            line["found"][0]["content"]
                .as_str()
                .unwrap()
                .chars()
                .count(),
            MAX_MATCH_CHARS + MAX_CONTEXT_CHARS
        );
    }

    #[test]
    fn of_many_places_the_first_are_shown() {
        let far = "x\n\n\n\n\n\n".repeat(8);
        let document = found(&far, &text("x"));
        assert_eq!(document["occurrences"], 8);
        assert_eq!(document["found"].as_array().unwrap().len(), MAX_EXCERPTS);
        assert!(document["note"].as_str().unwrap().starts_with("3 more"));
        assert_eq!(document["found"][4]["line"], 25);
        // A match inside an earlier excerpt is not shown again.
        let near = found("x x\nx", &text("x"));
        assert_eq!(near["occurrences"], 3);
        assert_eq!(near["found"].as_array().unwrap().len(), 1);
        assert_eq!(near["note"], Value::Null);
    }
}
