//! Preparation of a source for merman: the same diagram, in the forms that it reads.

use std::borrow::Cow;

/// A source as merman is given it, and what was put into it.
pub(super) struct PreparedSource<'a> {
    pub(super) text: Cow<'a, str>,
    /// Where single bytes were put in, in the prepared text, ascending.
    added: Vec<usize>,
}

impl PreparedSource<'_> {
    /// The place in the source of a place in the prepared text.
    pub(super) fn source_offset(&self, offset: usize) -> usize {
        offset - self.added.iter().take_while(|at| **at < offset).count()
    }
}

/// The word that a diagram begins with, after its front matter, directives and comments.
pub(super) fn diagram_type(source: &str) -> &str {
    let (mut in_matter, mut is_first) = (false, true);
    for line in source.lines().map(str::trim) {
        if line == "---" && (is_first || in_matter) {
            in_matter = is_first;
        } else if !in_matter && !line.is_empty() && !line.starts_with("%%") {
            return line
                .split(|char: char| char.is_whitespace() || char == ':')
                .next()
                .unwrap_or_default();
        }
        is_first &= line.is_empty();
    }
    ""
}

/// Whether an author has chosen the theme that is made for dark pages.
pub(super) fn is_made_for_dark(source: &str) -> bool {
    strip_quotes_and_blanks(source).contains("theme:dark")
}

/// Whether an author has chosen a theme or colours of their own.
pub(super) fn names_theme(source: &str) -> bool {
    let bare = strip_quotes_and_blanks(source);
    bare.contains("theme:") || bare.contains("themeVariables:")
}

/// A source without quotes and blanks, in which settings are written in several ways.
fn strip_quotes_and_blanks(source: &str) -> String {
    let is_kept = |char: &char| !matches!(char, '"' | '\'' | ' ' | '\t');
    source.chars().filter(is_kept).collect()
}

/// A source that merman reads as mermaid.js does: the brace that closes a class's body stands in a line of its own.
pub(super) fn prepare_source(source: &str) -> PreparedSource<'_> {
    let mut prepared = PreparedSource {
        text: Cow::Borrowed(source),
        added: Vec::new(),
    };
    if !diagram_type(source).starts_with("classDiagram") {
        return prepared;
    }
    let mut text = String::with_capacity(source.len() + 16);
    let mut in_body = false;
    for line in source.split_inclusive('\n') {
        let content = line.trim_end();
        let member = content.strip_suffix('}').map(str::trim);
        let closes_late =
            in_body && member.is_some_and(|member| !member.is_empty() && !member.contains('{'));
        if closes_late {
            let brace = content.len() - 1;
            text.push_str(&line[..brace]);
            prepared.added.push(text.len());
            text.push('\n');
            text.push_str(&line[brace..]);
        } else {
            text.push_str(line);
        }
        let opens = content.trim_start().starts_with("class ") && content.ends_with('{');
        in_body = (in_body || opens) && !content.ends_with('}');
    }
    if !prepared.added.is_empty() {
        prepared.text = Cow::Owned(text);
    }
    prepared
}

/// A source without formulas: what stands between double dollars is text here, dollars and all.
pub(super) fn without_formulas(source: &str) -> String {
    source.replace("$$", "#36;#36;")
}

/// Phrases a message for an author, in words that are not the library's: a sentence without its place, which stands
/// beside it.
pub(super) fn rephrase(message: &str) -> String {
    if message.contains("lacks capability") {
        return "This needs something that is not drawn here: write formulas in labels as text, and use no other layouts.".to_owned();
    }
    if message.contains("semantic model") {
        return "The diagram is not complete: something that its kind needs is missing.".to_owned();
    }
    let mut told = message.trim();
    if let Some((_, rest)) = told
        .split_once("parse error (")
        .and_then(|(_, rest)| rest.split_once("): "))
    {
        told = rest;
    }
    if let Some((before, place)) = told.rsplit_once(" (line ")
        && place.ends_with(')')
    {
        told = before;
    }
    // Where in the front matter, in its own count of lines, which is not the source's.
    if let Some((before, _)) = told.split_once(" at char ") {
        told = before;
    }
    let mut chars = told.trim_end_matches('.').chars();
    let first = chars.next().map(char::to_uppercase);
    first
        .into_iter()
        .flatten()
        .chain(chars)
        .chain(['.'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_the_first_word() {
        for (source, expected) in [
            ("flowchart TD\n A", "flowchart"),
            ("\n\n  pie showData", "pie"),
            (
                "---\ntitle: x\n---\n%% note\nclassDiagram-v2",
                "classDiagram-v2",
            ),
            ("%%{init: {}}%%\nmindmap", "mindmap"),
            ("gitGraph:\n commit", "gitGraph"),
            ("", ""),
        ] {
            assert_eq!(diagram_type(source), expected, "{source}");
        }
    }

    #[test]
    fn bodies_of_classes_close_in_their_own_line() {
        let source = "classDiagram\n class A {\n  +run() void }\n A -- B\n class C { }\n class D {\n  x\n }\n";
        let prepared = super::prepare_source(source);
        assert_eq!(
            prepared.text,
            "classDiagram\n class A {\n  +run() void \n}\n A -- B\n class C { }\n class D {\n  x\n }\n"
        );
        let at = prepared.text.find("A --").unwrap();
        assert_eq!(prepared.source_offset(at), source.find("A --").unwrap());
        assert_eq!(prepared.source_offset(3), 3);
        assert!(matches!(
            super::prepare_source("flowchart TD\n A{x}").text,
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn themes_for_the_dark_are_known() {
        assert!(is_made_for_dark(
            "%%{init: {'theme': 'dark'}}%%\nflowchart TD"
        ));
        assert!(is_made_for_dark("---\nconfig:\n  theme: dark\n---\n"));
        assert!(!is_made_for_dark(
            "%%{init: {'theme': 'base'}}%%\nflowchart TD\n A[dark]"
        ));
    }

    #[test]
    fn messages_are_sentences_in_our_words() {
        for (message, expected) in [
            (
                "Diagram parse error (pie): unexpected pie statement: \"b\" : x (line 3, column 1)",
                "Unexpected pie statement: \"b\" : x.",
            ),
            ("There can be only one root.", "There can be only one root."),
        ] {
            assert_eq!(rephrase(message), expected);
        }
        for message in [
            "render session lacks capability `math` required",
            "invalid semantic model: no actorOrder",
        ] {
            let told = rephrase(message);
            assert!(
                !told.contains("capability") && !told.contains("model"),
                "{told}"
            );
        }
    }
}
