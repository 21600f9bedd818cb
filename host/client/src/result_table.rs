//! Table of a statement's rows.

use serde_json::Value;

use super::OutputFormat;
use super::error::{CliFailure, Result};
use super::output::grid;

/// The most cells of a table, and the most bytes in them; a server's limits are lower.
const MAX_CELLS: usize = 2_000_000;
const MAX_BYTES: usize = 64 << 20;

/// Prints the result of a statement.
pub(super) fn print(out: OutputFormat, result: &Value) -> Result<()> {
    let columns = result["columns"].as_array().into_iter().flatten();
    let columns: Vec<&str> = columns.filter_map(Value::as_str).collect();
    let rows = match out.json {
        true => Vec::new(),
        false => cells(&columns, &result["rows"])?,
    };
    let affected = result["rows_affected"].as_u64().unwrap_or(0);
    if affected > 0 || columns.is_empty() {
        let rows = if affected == 1 { "row" } else { "rows" };
        out.print_note(&format!("{affected} {rows} changed"));
    }
    if result["truncated"] == true {
        out.print_note(&format!(
            "There are more rows than these {}: narrow the statement.",
            rows.len()
        ));
    }
    out.print_answer(result, &grid(&columns, &rows))
}

/// Builds the cells of a table, within the bounds.
fn cells(columns: &[&str], rows: &Value) -> Result<Vec<Vec<String>>> {
    let (mut shown, mut count, mut bytes) = (Vec::new(), 0, 0);
    for row in rows.as_array().into_iter().flatten() {
        let mut line = Vec::new();
        for name in columns {
            let cell = cell(&row[*name]);
            (count, bytes) = (count + 1, bytes + cell.len());
            if count > MAX_CELLS || bytes > MAX_BYTES {
                return Err(CliFailure::local(
                    "The answer is larger than a table for a terminal: narrow the statement, or read it with `--json`.",
                ));
            }
            line.push(cell);
        }
        shown.push(line);
    }
    Ok(shown)
}

/// Formats a value; NULL differs from an empty text.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_stays_within_its_bounds() {
        let long = "x".repeat(1 << 20);
        let once = cells(&["a"], &json!([{ "a": long }, { "a": null }])).unwrap();
        assert_eq!((once[0][0].len(), once[1][0].as_str()), (1 << 20, "NULL"));
        // The answer is small, but it names a column many times.
        assert!(cells(&["a"; 100], &json!([{ "a": long }])).is_err());
        let rows = json!(vec![json!({}); 3000]);
        assert!(cells(&["a"; 1000], &rows).is_err());
    }
}
