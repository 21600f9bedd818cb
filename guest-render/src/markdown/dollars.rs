//! Dollars that stand for money and for variables of a shell, which the parser takes for formulas where two of them stand in a line.

use std::borrow::Cow;

use comrak::nodes::{Node, NodeValue};
use comrak::{Arena, Options, parse_document};

/// How often a text is read anew. Each reading may show formulas that others hid.
const MAX_PARSES: usize = 4;

/// Parses a text, as often as its dollars ask for it: a text without mistaken ones is parsed once.
pub(super) fn parse<'a>(arena: &'a Arena<'a>, text: &str, options: &Options<'_>) -> Node<'a> {
    let mut text = Cow::Borrowed(text);
    for _ in 1..MAX_PARSES {
        let document = parse_document(arena, &text, options);
        let mistaken = mistaken_dollars(document, &text);
        if mistaken.is_empty() {
            return document;
        }
        text = Cow::Owned(escape_dollars(&text, &mistaken));
    }
    parse_document(arena, &text, options)
}

/// Where the dollars stand that begin what is no formula, ascending.
fn mistaken_dollars(document: Node<'_>, text: &str) -> Vec<usize> {
    if text.bytes().filter(|byte| *byte == b'$').nth(1).is_none() {
        return Vec::new();
    }
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let mut found = Vec::new();
    for node in document.descendants() {
        let node = node.data();
        let NodeValue::Math(math) = &node.value else {
            continue;
        };
        if !math.dollar_math || math.display_math {
            continue;
        }
        let place = node.sourcepos.start;
        let line = place.line.checked_sub(1).and_then(|line| starts.get(line));
        let Some(at) = line.map(|line| line + place.column.saturating_sub(1)) else {
            continue;
        };
        // A formula that the parser does not place exactly stays one.
        let inside = text.get(at..).and_then(|rest| rest.strip_prefix('$'));
        let after = inside
            .and_then(|rest| rest.strip_prefix(math.literal.as_str()))
            .and_then(|rest| rest.strip_prefix('$'));
        if let Some(after) = after
            && is_plain_text(&text[..at], &math.literal, after)
        {
            found.push(at);
        }
    }
    found.sort_unstable();
    found
}

/// Whether what stands between two dollars is text: an amount in dollars of somewhere, the beginning of some code, or what goes on
/// as a word.
fn is_plain_text(before: &str, inside: &str, after: &str) -> bool {
    let follows_word = before.ends_with(char::is_alphabetic);
    let is_amount = inside.starts_with(|first: char| first.is_ascii_digit());
    inside.contains('`') || after.starts_with(char::is_alphanumeric) || follows_word && is_amount
}

fn escape_dollars(text: &str, dollars: &[usize]) -> String {
    let mut escaped = String::with_capacity(text.len() + dollars.len());
    let mut written = 0;
    for at in dollars {
        escaped.push_str(&text[written..*at]);
        escaped.push('\\');
        written = *at;
    }
    escaped.push_str(&text[written..]);
    escaped
}

#[cfg(test)]
mod tests {
    use crate::tests::{body, page};

    #[test]
    fn money_and_variables_are_no_formulas() {
        for (text, formulas, shown) in [
            (
                "both $70. In `bash`, `$HOME` and `$PATH`",
                0,
                "<code>$PATH</code>",
            ),
            ("$HOME/$USER and $x$", 1, "$HOME/$USER and <math"),
            ("- US$5 (A$7), or $a$\n- $b$", 2, "US$5 (A$7), or <math"),
            (
                "> - it costs $5 or `$x`, then $y$\n>   and $z$",
                2,
                "$5 or <code>$x</code>, then <math",
            ),
            ("| a |\n|---|\n| $4 for `$x` |", 0, "$4 for <code>$x</code>"),
            ("between $5 and $10", 0, "between $5 and $10"),
            ("2$\\pi$ and $n$th", 1, "and $n$th"),
            ("$x$, $y$; $z$-axis", 3, "<math"),
            ("$$a`b$$", 1, "<math"),
            ("é$5 costs $7`$8`", 0, "<code>$8</code>"),
        ] {
            let body = body(&page("markdown", text).html);
            assert_eq!(body.matches("<math").count(), formulas, "{text}: {body}");
            assert!(body.contains(shown), "{text}: {body}");
        }
    }

    #[test]
    fn a_text_of_dollars_ends() {
        let text = "$1a`".repeat(2_000);
        assert!(body(&page("markdown", &text).html).contains('$'));
    }
}
