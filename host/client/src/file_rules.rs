//! Rules for visitors' files in the file of an action: `-- files {"types": ["image/*"]}` before the statement.

use std::path::Path;

use serde_json::{Map, Value};

use super::actions::comment_of;
use super::error::{CliFailure, Result};

/// Beginning of a comment that has rules for files.
const FILES_WORD: &str = "files";

/// Rules for files, as an action is defined with them.
pub(super) type FileRules = Map<String, Value>;

/// Returns the JSON of a comment that has rules for files, such as `files {"anonymous": true}`.
pub(super) fn rules_of(comment: &str) -> Option<&str> {
    let json = comment.strip_prefix(FILES_WORD)?.trim_start();
    json.starts_with('{').then_some(json)
}

/// Writes the line of rules for files; there is none without rules.
pub(super) fn line_of(rules: &FileRules) -> Option<String> {
    let json = Value::Object(rules.clone());
    (!rules.is_empty()).then(|| format!("-- {FILES_WORD} {json}\n"))
}

/// Reads the rules for files before a statement.
///
/// # Errors
/// When they are not JSON, stand twice or too late; names the line.
pub(super) fn read_rules(path: &Path, sql: &str) -> Result<FileRules> {
    let mut found: Option<FileRules> = None;
    let (mut is_before_statement, mut offset) = (true, 0);
    for line in sql.split_inclusive('\n') {
        let begin = offset;
        offset += line.len();
        let line = line.trim_end_matches(['\r', '\n']);
        let comment = comment_of(line);
        is_before_statement &= comment.is_some() || line.trim().is_empty();
        let Some(json) = comment.and_then(rules_of) else {
            continue;
        };
        let wrong = |detail: String| {
            let place = begin + (line.len() - line.trim_start().len());
            Err(CliFailure::in_text("Not valid", detail, (path, sql), place))
        };
        if !is_before_statement {
            return wrong(
                "The rules for files stand after the statement's beginning: move the line before the statement."
                    .to_owned(),
            );
        }
        let rules = match serde_json::from_str(json) {
            Ok(rules) => rules,
            Err(error) => {
                return wrong(format!(
                    "The rules for files are not one JSON object in one line: {error}."
                ));
            }
        };
        if found.replace(rules).is_some() {
            return wrong("There are rules for files already: remove one of them.".to_owned());
        }
    }
    Ok(found.unwrap_or_default())
}

/// Returns the rules as a server gives them: without what goes without saying, and lists in its order.
pub(super) fn plain(rules: &FileRules) -> FileRules {
    let said = rules.iter().filter(|(_, value)| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    });
    let said = said.map(|(name, value)| {
        let value = match (name.as_str(), value) {
            ("sizes", Value::Array(list)) => sorted_sizes(list),
            ("types", Value::Array(list)) => list.iter().map(lowercase).collect(),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    said.collect()
}

fn lowercase(value: &Value) -> Value {
    match value {
        Value::String(text) => text.to_ascii_lowercase().into(),
        other => other.clone(),
    }
}

fn sorted_sizes(list: &[Value]) -> Value {
    let mut list = list.to_vec();
    list.sort_by_key(Value::as_u64);
    list.dedup();
    list.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(sql: &str) -> std::result::Result<Value, String> {
        let rules = read_rules(Path::new("add.sql"), sql);
        rules
            .map(Value::Object)
            .map_err(|failure| failure.to_text())
    }

    #[test]
    fn rules_stand_before_the_statement() {
        for (sql, rules) in [
            ("SELECT :svc_file", json!({})),
            ("-- files are nice\nSELECT :svc_file", json!({})),
            (
                "-- Adds one\n-- files {\"embed\": true}\r\nSELECT :svc_file",
                json!({ "embed": true }),
            ),
            (
                "  --files{\"sizes\":[64]}\nSELECT 1",
                json!({ "sizes": [64] }),
            ),
        ] {
            assert_eq!(read(sql).unwrap(), rules, "{sql}");
        }
        for (sql, says) in [
            (
                "-- files {\nSELECT 1",
                "add.sql:1:1: Not valid: The rules for files are not one JSON",
            ),
            (
                "SELECT 1\n-- files {}",
                "add.sql:2:1: Not valid: The rules for files stand after",
            ),
            (
                "-- files {}\n -- files {}\n",
                "add.sql:2:2: Not valid: There are rules for files already",
            ),
        ] {
            let refused = read(sql).unwrap_err();
            assert!(refused.contains(says), "{sql}: {refused}");
        }
    }

    #[test]
    fn rules_that_mean_the_same_are_the_same() {
        let written = json!({
            "max_bytes": 5, "anonymous": false, "sizes": [512, 64, 512], "types": ["Image/*"], "embed": null,
            "keep_metadata": true,
        });
        let known = json!({ "max_bytes": 5, "sizes": [64, 512], "types": ["image/*"], "keep_metadata": true });
        let plainly = |rules: &Value| plain(rules.as_object().unwrap());
        assert_eq!(Value::Object(plainly(&written)), known);
        assert_eq!(Value::Object(plainly(&known)), known);
        assert_eq!(line_of(&FileRules::new()), None);
        let line = line_of(&plainly(&json!({ "embed": true })));
        assert_eq!(line.as_deref(), Some("-- files {\"embed\":true}\n"));
    }
}
