//! Rows of a statement, as a table.

use serde_json::Value;

use super::Out;
use super::error::Result;
use super::output::grid;

/// Shows what a statement answered.
pub(super) fn show(out: Out, result: &Value) -> Result<()> {
    let columns = result["columns"].as_array().into_iter().flatten();
    let columns: Vec<&str> = columns.filter_map(Value::as_str).collect();
    let rows = result["rows"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = rows
        .map(|row| columns.iter().map(|name| cell(&row[*name])).collect())
        .collect();
    let affected = result["rows_affected"].as_u64().unwrap_or(0);
    if affected > 0 || columns.is_empty() {
        let rows = if affected == 1 { "row" } else { "rows" };
        out.note(&format!("{affected} {rows} changed"));
    }
    if result["truncated"] == true {
        out.note(&format!(
            "There are more rows than these {}: narrow the statement.",
            rows.len()
        ));
    }
    out.answer(result, &grid(&columns, &rows))
}

/// A value as it is read: NULL is told from an empty text.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(blob) => match blob.get("base64").and_then(Value::as_str) {
            Some(base64) => format!("base64:{base64}"),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}
