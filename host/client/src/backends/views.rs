//! Formats backends for people.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::output::{key_values, member_text, server_note, table_of};

/// Formats a member of a server's document as one line.
fn line_of(document: &Value, name: &str) -> String {
    server_note(&member_text(document, name))
}

/// Formats the result of a dry run.
pub(crate) fn dry_run_text(run: &Value) -> String {
    let changes = &run["changes"];
    let mut lines = vec![format!("would be {}", line_of(run, "status"))];
    for table in changes["tables"].as_array().into_iter().flatten() {
        let columns = table["columns"].as_array().into_iter().flatten();
        let columns: Vec<_> = columns.map(|column| line_of(column, "name")).collect();
        let kind = if table["new"] == true {
            "table"
        } else {
            "columns of"
        };
        lines.push(format!(
            "+ {kind} {} ({})",
            line_of(table, "name"),
            columns.join(", ")
        ));
    }
    for (name, kind) in [("indexes", "index"), ("views", "view")] {
        let new = changes[name].as_array().into_iter().flatten();
        lines.extend(new.map(|one| format!("+ {kind} {}", line_of(one, "name"))));
    }
    let broken = run["broken_actions"].as_array().into_iter().flatten();
    lines.extend(broken.map(|one| {
        format!(
            "! action {} would break: {}",
            line_of(one, "name"),
            line_of(one, "detail")
        )
    }));
    lines.join("\n")
}

/// Formats the warnings, a line each.
pub(super) fn warnings(document: &Value) -> String {
    let warnings = document["warnings"].as_array().into_iter().flatten();
    let lines = warnings.map(|warning| format!("warning: {}", line_of(warning, "detail")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats the details of a backend.
pub(super) fn details_text(detail: &Value) -> String {
    let database = &detail["database"];
    let head = key_values(&[
        (
            "database",
            format!(
                "{} of {} bytes",
                member_text(database, "bytes"),
                member_text(database, "max_bytes")
            ),
        ),
        (
            "rooms",
            if detail["realtime"]["enabled"] == true {
                "on"
            } else {
                "off"
            }
            .to_owned(),
        ),
        ("id", member_text(detail, "id")),
    ]);
    let counted = detail["inventory"]["tables"]
        .as_array()
        .into_iter()
        .flatten();
    let counted: HashMap<_, _> = counted
        .map(|one| (one["name"].as_str().unwrap_or_default(), one))
        .collect();
    let tables = detail["schema"]["tables"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|table| {
            let count = counted.get(table["name"].as_str().unwrap_or_default());
            let columns = table["columns"].as_array().into_iter().flatten();
            let columns: Vec<_> = columns.map(|column| member_text(column, "name")).collect();
            let count = count.map_or_else(|| "-".to_owned(), |one| member_text(one, "rows"));
            json!({ "table": table["name"], "rows": count, "columns": columns.join(", ") })
        });
    let parts = [
        head,
        table_of(&tables.collect(), &["table", "rows", "columns"]),
        table_of(&detail["migrations"], &["version", "applied_at", "note"]),
        table_of(&detail["actions"], &["name", "version", "kind", "note"]),
        warnings(detail),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the server's text must not pass for one of ours.
    #[test]
    fn names_and_details_are_one_line() {
        let run = json!({
            "status": "a\n+ page", "broken_actions": [{"name": "a\n+ page", "detail": "a\n+ page"}],
            "changes": {
                "tables": [{"name": "a\n+ page", "new": true, "columns": [{"name": "a\n+ page"}]}],
                "indexes": [{"name": "a\n+ page"}], "views": [],
            },
        });
        assert_eq!(dry_run_text(&run).lines().count(), 4);
        let warned = warnings(&json!({ "warnings": [{"detail": "a\nerror: b"}] }));
        assert_eq!(warned.lines().count(), 1);
    }
}
