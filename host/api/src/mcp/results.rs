//! Results of tools: the JSON that REST answers, as structured content and as text, bounded for models.

use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use svc_base::pluralize;

/// Maximum size of a result, in bytes, with both of its forms.
pub(super) const RESULT_BYTES: usize = 40_000;
/// Bytes of a result around the document.
const ENVELOPE_BYTES: usize = 400;
/// Limits of a truncated result.
#[derive(Clone, Copy)]
struct TruncationLimits {
    /// Longest text, in characters.
    text_chars: usize,
    /// Most entries of a list.
    list_entries: usize,
}

const fn truncation_limits(text_chars: usize, list_entries: usize) -> TruncationLimits {
    TruncationLimits {
        text_chars,
        list_entries,
    }
}

/// Limits that are tried in this order, until the result fits.
const TRUNCATION_STEPS: [TruncationLimits; 8] = [
    truncation_limits(4_000, 200),
    truncation_limits(1_000, 200),
    truncation_limits(1_000, 50),
    truncation_limits(400, 50),
    truncation_limits(400, 20),
    truncation_limits(200, 20),
    truncation_limits(200, 5),
    truncation_limits(100, 1),
];
/// Note in a truncated document.
const TRUNCATION_NOTE: &str = "Long texts and lists in this result were cut to keep it small: beside each list that was cut stands, as <its name>_left_out, how many entries it has more. Ask for less at once, or for a part of it, to see the rest.";
/// Note in place of a document with too many members.
const TOO_LARGE_NOTE: &str = "This result is too large for a tool, however much its texts and lists are cut. Ask for less at once, or use REST.";
/// Suffix of the member that counts the left-out entries of a list.
const LEFT_OUT_SUFFIX: &str = "_left_out";

/// Returns the result of a call that succeeded.
pub(super) fn success_result(document: Value) -> CallToolResult {
    CallToolResult::structured(truncate_document(document))
}

/// Returns the result of a call that was refused, with its problem.
pub(super) fn failure_result(problem: Value) -> CallToolResult {
    CallToolResult::structured_error(truncate_document(problem))
}

/// Whether a document fits into a result without truncation.
pub(super) fn fits_in_result(document: &Value) -> bool {
    let text = document.to_string();
    ENVELOPE_BYTES + text.len() + json_string_len(&text) <= RESULT_BYTES
}

/// Counts the leading characters of a text that fit into a result beside `document`.
pub(super) fn fitting_chars(document: &Value, text: impl Iterator<Item = char>) -> usize {
    let beside = document.to_string();
    let mut left =
        RESULT_BYTES.saturating_sub(ENVELOPE_BYTES + beside.len() + json_string_len(&beside));
    let fitting = text.take_while(|c| {
        let cost = json_char_len(*c);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    fitting.count()
}

/// Counts the leading members that fit into a result as members of an object in `document`.
pub(super) fn fitting_members(document: &Value, members: &[(String, Value)]) -> usize {
    let beside = document.to_string();
    let mut left =
        RESULT_BYTES.saturating_sub(ENVELOPE_BYTES + beside.len() + json_string_len(&beside));
    let fitting = members.iter().take_while(|(name, value)| {
        // With its quotes, its colon and its comma.
        let text = format!("{},{value}:", Value::from(name.as_str()));
        let cost = text.len() + json_string_len(&text);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    fitting.count()
}

/// Returns the size of a character in both forms: in the document, and in the document as a JSON string.
fn json_char_len(c: char) -> usize {
    match c {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        c if u32::from(c) < 0x20 => 6 + 7,
        c => 2 * c.len_utf8(),
    }
}

/// Returns the length of a document inside a JSON string.
fn json_string_len(text: &str) -> usize {
    let escaped = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    text.len() + escaped
}

fn truncate_document(document: Value) -> Value {
    if fits_in_result(&document) {
        return document;
    }
    let mut shorter = Value::Null;
    for limits in TRUNCATION_STEPS {
        shorter = prune(&document, limits);
        if let Value::Object(members) = &mut shorter {
            members.insert("truncated".to_owned(), true.into());
            append_note(members, TRUNCATION_NOTE);
        }
        if fits_in_result(&shorter) {
            return shorter;
        }
    }
    reduce_to_scalars(&shorter)
}

/// Appends a sentence to the document's note.
pub(super) fn append_note(members: &mut Map<String, Value>, more: &str) {
    let note = match members.get("note").and_then(Value::as_str) {
        Some(note) => format!("{note} {more}"),
        None => more.to_owned(),
    };
    members.insert("note".to_owned(), note.into());
}

/// Reduces a document with too many members to its own short members that are not lists or objects.
fn reduce_to_scalars(document: &Value) -> Value {
    let members = document.as_object().into_iter().flatten();
    let short = members.filter(|(name, value)| {
        let nested = value.is_array() || value.is_object();
        !nested && name.len() + value.to_string().len() <= ENVELOPE_BYTES
    });
    let short = short.take(20);
    let mut bare: Map<String, Value> = short.map(|(n, v)| (n.clone(), v.clone())).collect();
    bare.insert("truncated".to_owned(), true.into());
    bare.insert("note".to_owned(), TOO_LARGE_NOTE.into());
    Value::Object(bare)
}

/// Truncates the texts and lists of a document.
fn prune(document: &Value, limits: TruncationLimits) -> Value {
    match document {
        Value::String(text) => match text.char_indices().nth(limits.text_chars) {
            Some((end, _)) => {
                let left = text.chars().count() - limits.text_chars;
                let kept = text.get(..end).unwrap_or_default();
                format!("{kept}… [{} more]", pluralize(left, "character")).into()
            }
            None => document.clone(),
        },
        Value::Array(items) => items
            .iter()
            .take(limits.list_entries)
            .map(|item| prune(item, limits))
            .collect(),
        Value::Object(members) => Value::Object(prune_members(members, limits)),
        other => other.clone(),
    }
}

/// Truncates the members of an object. Each truncated list gets a count of its left-out entries, so that it is not mistaken for the whole.
fn prune_members(members: &Map<String, Value>, limits: TruncationLimits) -> Map<String, Value> {
    let mut shorter = Map::new();
    let mut cut = false;
    for (name, value) in members {
        shorter.insert(name.clone(), prune(value, limits));
        let left_out = value
            .as_array()
            .map_or(0, |all| all.len().saturating_sub(limits.list_entries));
        if left_out > 0 {
            cut = true;
            shorter.insert(format!("{name}{LEFT_OUT_SUFFIX}"), left_out.into());
        }
    }
    if cut && members.contains_key("truncated") {
        shorter.insert("truncated".to_owned(), true.into());
    }
    shorter
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
        assert!(fits_in_result(&document));
        let result = success_result(document.clone());
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
            let result = success_result(document);
            assert!(size(&result) <= RESULT_BYTES, "{}", size(&result));
            let cut = result.structured_content.unwrap();
            assert_eq!(cut["truncated"], true);
            assert_eq!(cut["note"], TRUNCATION_NOTE);
        }
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        let rows: Vec<_> = (0..500)
            .map(|n| json!({ "n": n, "text": "x".repeat(400) }))
            .collect();
        let answer =
            |rows: &[Value]| json!({ "columns": ["n", "text"], "rows": rows, "truncated": false });
        let batch = json!({ "results": [answer(&rows), answer(&rows[..1])] });
        let cut = success_result(batch).structured_content.unwrap();
        let [long, short] = cut["results"].as_array().unwrap().as_slice() else {
            panic!("{cut}");
        };
        let shown = long["rows"].as_array().unwrap().len();
        assert!(shown > 1, "{cut}");
        assert_eq!(long["rows_left_out"], 500 - shown);
        assert_eq!(long["truncated"], true, "not all rows are there");
        assert_eq!(short, &answer(&rows[..1]), "what is whole says nothing");
        assert_eq!(cut["truncated"], true);
    }

    #[test]
    fn what_the_document_says_itself_stays() {
        let cut = success_result(json!({ "note": "Mind this.", "texts": "x".repeat(100_000) }));
        let note = cut.structured_content.unwrap()["note"].to_string();
        assert!(
            note.contains("Mind this.") && note.contains("were cut"),
            "{note}"
        );
    }

    #[test]
    fn what_no_cut_makes_fit_is_left_out() {
        let row: Map<_, _> = (0..2_000)
            .map(|n| (format!("{n}{}", "\"".repeat(20)), json!("x".repeat(100))))
            .collect();
        let result =
            success_result(json!({ "rows": [row], "rows_affected": 0, "truncated": false }));
        assert!(size(&result) <= RESULT_BYTES, "{}", size(&result));
        let bare = result.structured_content.unwrap();
        assert_eq!(bare["truncated"], true);
        assert_eq!(bare["rows_affected"], 0);
        assert_eq!(bare["note"], TOO_LARGE_NOTE);
    }

    #[test]
    fn the_room_for_members_is_used_and_never_passed() {
        let file = json!({ "sha256": "0".repeat(64), "size": 7, "media_type": "text/css" });
        let name = |number| format!("a \"{number}\" é");
        let files: Vec<_> = (0..1_000)
            .map(|number| (name(number), file.clone()))
            .collect();
        let mut document = json!({ "files": {}, "note": "read on" });
        let fitting = fitting_members(&document, &files);
        document["files"] = Value::Object(files.into_iter().take(fitting).collect());
        assert!(fits_in_result(&document));
        let size = size(&success_result(document));
        assert!(
            size <= RESULT_BYTES && size > RESULT_BYTES - 1_000,
            "{size}"
        );
    }

    #[test]
    fn the_room_for_a_text_is_used_and_never_passed() {
        for text in ["x", "\"", "\n", "\u{1}", "é", "\u{1f600}", "a\"\n\\"] {
            let text = text.repeat(60_000);
            let beside = json!({ "content": "", "note": "read on" });
            let fitting = fitting_chars(&beside, text.chars());
            let kept: String = text.chars().take(fitting).collect();
            let result = success_result(json!({ "content": kept, "note": "read on" }));
            let size = size(&result);
            assert!(size <= RESULT_BYTES, "{size}");
            assert!(size > RESULT_BYTES - 1_000, "{size}");
        }
    }
}
