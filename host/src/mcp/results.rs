//! Results of tools: the JSON that REST answers, as structured content and as text, within a bound that models can read.

use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

/// The most bytes of a result, with both of its forms.
pub(super) const RESULT_BYTES: usize = 40_000;
/// What a result has around the document.
const AROUND: usize = 400;
/// How long texts and lists may be in a result that must be cut: what is tried, until it fits.
const CUTS: [(usize, usize); 8] = [
    (4_000, 200),
    (1_000, 200),
    (1_000, 50),
    (400, 50),
    (400, 20),
    (200, 20),
    (200, 5),
    (100, 1),
];
/// Beside a document that was cut.
const NOTE: &str = "Long texts and lists in this result were cut to keep it small. Ask for less at once, or for a part of it, to see the rest.";

/// The result of a call that did what it should.
pub(super) fn success(document: Value) -> CallToolResult {
    CallToolResult::structured(cut(document))
}

/// The result of a call that was refused: its problem.
pub(super) fn failure(problem: Value) -> CallToolResult {
    CallToolResult::structured_error(cut(problem))
}

/// Whether a document can be a result as it is.
pub(super) fn fits(document: &Value) -> bool {
    let text = document.to_string();
    AROUND + text.len() + quoted(&text) <= RESULT_BYTES
}

/// How many characters of a text fit into a result that has `document` beside it.
pub(super) fn room(document: &Value, text: impl Iterator<Item = char>) -> usize {
    let beside = document.to_string();
    let mut left = RESULT_BYTES.saturating_sub(AROUND + beside.len() + quoted(&beside));
    let fitting = text.take_while(|c| {
        let cost = cost(*c);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    fitting.count()
}

/// What a character of a text takes: once in the document, and once in the document as a text.
fn cost(c: char) -> usize {
    match c {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        c if u32::from(c) < 0x20 => 6 + 7,
        c => 2 * c.len_utf8(),
    }
}

/// How long a document is inside a JSON string.
fn quoted(text: &str) -> usize {
    let escaped = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    text.len() + escaped
}

fn cut(document: Value) -> Value {
    if fits(&document) {
        return document;
    }
    let mut shorter = Value::Null;
    for (texts, lists) in CUTS {
        shorter = pruned(&document, texts, lists);
        if let Value::Object(members) = &mut shorter {
            members.insert("truncated".to_owned(), true.into());
            members.insert("note".to_owned(), NOTE.into());
        }
        if fits(&shorter) {
            break;
        }
    }
    shorter
}

/// A document whose texts and lists are no longer than this.
fn pruned(document: &Value, texts: usize, lists: usize) -> Value {
    match document {
        Value::String(text) => match text.char_indices().nth(texts) {
            Some((end, _)) => {
                let left = text.chars().count() - texts;
                let kept = text.get(..end).unwrap_or_default();
                format!("{kept}… [{left} characters more]").into()
            }
            None => document.clone(),
        },
        Value::Array(items) => items
            .iter()
            .take(lists)
            .map(|item| pruned(item, texts, lists))
            .collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), pruned(value, texts, lists)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn size(result: &CallToolResult) -> usize {
        serde_json::to_vec(result).unwrap().len()
    }

    #[test]
    fn what_fits_is_whole() {
        let document = json!({ "content": "a\"b\n".repeat(2_000), "n": 7 });
        assert!(fits(&document));
        let result = success(document.clone());
        assert_eq!(result.structured_content, Some(document));
        assert!(size(&result) <= RESULT_BYTES);
    }

    #[test]
    fn what_does_not_is_cut_with_a_note() {
        let entry = json!({ "sql": "\"\\\n\u{1}é".repeat(1_000), "note": "x".repeat(1_000) });
        let entries: Vec<_> = std::iter::repeat_n(entry, 300).collect();
        for document in [
            json!({ "migrations": entries }),
            json!({ "errors": entries, "warnings": entries, "actions": entries }),
            json!({ "content": "x".repeat(1_000_000) }),
        ] {
            let result = success(document);
            assert!(size(&result) <= RESULT_BYTES, "{}", size(&result));
            let cut = result.structured_content.unwrap();
            assert_eq!(cut["truncated"], true);
            assert_eq!(cut["note"], NOTE);
        }
    }

    #[test]
    fn the_room_for_a_text_is_used_and_never_passed() {
        for text in ["x", "\"", "\n", "\u{1}", "é", "\u{1f600}", "a\"\n\\"] {
            let text = text.repeat(60_000);
            let beside = json!({ "content": "", "note": "read on" });
            let fitting = room(&beside, text.chars());
            let kept: String = text.chars().take(fitting).collect();
            let result = success(json!({ "content": kept, "note": "read on" }));
            let size = size(&result);
            assert!(size <= RESULT_BYTES, "{size}");
            assert!(size > RESULT_BYTES - 1_000, "{size}");
        }
    }
}
