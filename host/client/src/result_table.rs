//! Rows of a statement, as a table.

use serde_json::Value;

use super::Output;
use super::error::{Failure, Result};
use super::output::grid;

/// The most cells of a table, and the most bytes in them; a server's own bounds are below both.
const MAX_CELLS: usize = 2_000_000;
const MAX_BYTES: usize = 64 << 20;

/// Shows what a statement answered.
pub(super) fn print(out: Output, result: &Value) -> Result<()> {
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

/// The cells of a table, as long as a terminal takes as many.
fn cells(columns: &[&str], rows: &Value) -> Result<Vec<Vec<String>>> {
    let (mut shown, mut count, mut bytes) = (Vec::new(), 0, 0);
    for row in rows.as_array().into_iter().flatten() {
        let mut line = Vec::new();
        for name in columns {
            let cell = cell(&row[*name]);
            (count, bytes) = (count + 1, bytes + cell.len());
            if count > MAX_CELLS || bytes > MAX_BYTES {
                return Err(Failure::local(
                    "The answer is larger than a table for a terminal: narrow the statement, or read it with `--json`.",
                ));
            }
            line.push(cell);
        }
        shown.push(line);
    }
    Ok(shown)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_stays_within_its_bounds() {
        let long = "x".repeat(1 << 20);
        let once = cells(&["a"], &json!([{ "a": long }, { "a": null }])).unwrap();
        assert_eq!((once[0][0].len(), once[1][0].as_str()), (1 << 20, "NULL"));
        // A small answer, and yet a cell for each name that it lists.
        assert!(cells(&["a"; 100], &json!([{ "a": long }])).is_err());
        let rows = json!(vec![json!({}); 3000]);
        assert!(cells(&["a"; 1000], &rows).is_err());
    }
}
