//! Parts of a backend's detail, because the whole may be too large for a tool result.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::to_json;
use crate::backends::views::DryRunView;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use crate::mcp::results;
use svc_base::pluralize;

/// Part of a backend's detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DetailPart {
    /// Tables, indexes and views.
    Schema,
    /// Actions with their SQL.
    Actions,
    /// Migrations with their SQL.
    Migrations,
    /// Row counts of the tables, and the size in bytes.
    Inventory,
}

impl DetailPart {
    /// Names of all parts, for the tool's schema and its errors.
    pub(super) const NAMES: [&'static str; 4] = ["schema", "actions", "migrations", "inventory"];

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Part of a backend's detail that a call requests.
#[derive(Debug, Default)]
pub(super) struct DetailPartRequest {
    /// Requested part; all parts if absent.
    pub(super) part: Option<DetailPart>,
    /// Table to which the detail is restricted.
    pub(super) table: Option<String>,
}

/// Note in a detail that is too large.
const TOO_LARGE_NOTE: &str = "Send `part` (schema, actions, migrations or inventory) to see one part of it, and `table` to see one table. GET /api/v1/projects/{id}/backend answers all of it.";

/// Selects the requested part of a backend's detail.
///
/// # Errors
/// `not_found` for an unknown table.
pub(super) fn select_part(detail: Value, request: &DetailPartRequest) -> Result<Value, Problem> {
    let mut document = match request {
        DetailPartRequest {
            part: None,
            table: None,
        } => detail,
        request => select_parts(detail, request)?,
    };
    if !results::fits_in_result(&document)
        && let Value::Object(members) = &mut document
    {
        results::append_note(members, TOO_LARGE_NOTE);
    }
    Ok(document)
}

fn select_parts(mut detail: Value, request: &DetailPartRequest) -> Result<Value, Problem> {
    if let Some(table) = &request.table {
        let is_there = contains_name(&detail["schema"]["tables"], table);
        if !is_there {
            return Err(Problem::new(
                ProblemCode::NotFound,
                format!(
                    "The database has no table `{table}`. Send `part` schema, without `table`, to see which it has."
                ),
            ));
        }
        retain_table(&mut detail, table);
    }
    let parts = match request.part {
        Some(part) => vec![part],
        None => vec![DetailPart::Schema, DetailPart::Inventory],
    };
    let names = parts.into_iter().map(DetailPart::name);
    let names = names.chain(["id", "warnings"]);
    let kept = names.map(|name| (name.to_owned(), detail[name].take()));
    Ok(Value::Object(kept.collect::<Map<_, _>>()))
}

fn contains_name(list: &Value, name: &str) -> bool {
    let mut list = list.as_array().into_iter().flatten();
    list.any(|one| same_name(&one["name"], name))
}

/// Whether a name is that of a table; case does not matter.
fn same_name(name: &Value, table: &str) -> bool {
    name.as_str()
        .is_some_and(|name| name.eq_ignore_ascii_case(table))
}

/// Removes everything about other tables.
fn retain_table(detail: &mut Value, table: &str) {
    for (pointer, member) in [
        ("/schema/tables", "name"),
        ("/schema/indexes", "table"),
        ("/inventory/tables", "name"),
    ] {
        if let Some(Value::Array(list)) = detail.pointer_mut(pointer) {
            list.retain(|one| same_name(&one[member], table));
        }
    }
    detail["schema"]["views"] = json!([]);
}

/// Removes the SQL of actions that the call did not name, and adds a note about it.
pub(super) fn without_sql_of_others(mut defined: Value, named: &HashSet<String>) -> Value {
    let mut left_out = 0;
    let actions = defined.get_mut("actions").and_then(Value::as_array_mut);
    for action in actions.into_iter().flatten() {
        let is_named = action["name"]
            .as_str()
            .is_some_and(|name| named.contains(name));
        if let (false, Value::Object(members)) = (is_named, action) {
            members.remove("sql");
            left_out += 1;
        }
    }
    if let (1.., Value::Object(members)) = (left_out, &mut defined) {
        let note = format!(
            "The `sql` of {} that this call did not name is left out: manage_backend get with part \"actions\" has it.",
            pluralize(left_out, "action")
        );
        results::append_note(members, &note);
    }
    defined
}

/// Returns the result of a dry run; without the two whole schemas if they do not fit.
pub(super) fn dry_run_result(run: DryRunView) -> Result<Value, Problem> {
    let mut document = to_json(run)?;
    if !results::fits_in_result(&document)
        && let Value::Object(members) = &mut document
    {
        members.remove("schema");
        members.insert("truncated".to_owned(), true.into());
        results::append_note(
            members,
            "The whole `schema`, before and after, is left out to keep this small: `changes` is the difference. manage_backend get with part \"schema\" has the schema as it is.",
        );
    }
    Ok(document)
}

/// Refuses `table` together with a part that has no tables.
pub(super) fn check_table(request: &DetailPartRequest) -> Result<(), Problem> {
    match request {
        DetailPartRequest {
            part: Some(DetailPart::Actions | DetailPart::Migrations),
            table: Some(_),
        } => Err(invalid_request(
            "In the arguments: `table` goes with the parts schema and inventory, or without `part`.",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail() -> Value {
        json!({
            "id": "b", "spec": { "version": 1 }, "warnings": [],
            "schema": {
                "tables": [{ "name": "Notes" }, { "name": "svc_payments" }],
                "indexes": [{ "name": "i", "table": "Notes" }, { "name": "j", "table": "svc_payments" }],
                "views": [{ "name": "v" }],
            },
            "actions": [{ "name": "a" }], "migrations": [{ "version": 1 }],
            "inventory": { "tables": [{ "name": "Notes", "rows": 1 }, { "name": "svc_payments", "rows": 0 }], "bytes_on_disk": 7 },
        })
    }

    #[test]
    fn a_part_is_what_the_whole_has() {
        let whole = DetailPartRequest::default();
        assert_eq!(select_part(detail(), &whole).unwrap(), detail());
        for name in DetailPart::NAMES {
            let request = DetailPartRequest {
                part: serde_json::from_value(json!(name)).unwrap(),
                table: None,
            };
            let expected = json!({ "id": "b", "warnings": [], name: detail()[name] });
            assert_eq!(select_part(detail(), &request).unwrap(), expected);
        }
    }

    #[test]
    fn a_table_is_shown_alone() {
        let mut request = DetailPartRequest {
            part: None,
            table: Some("notes".to_owned()),
        };
        let schema = json!({ "tables": [{ "name": "Notes" }], "indexes": [{ "name": "i", "table": "Notes" }], "views": [] });
        let inventory = json!({ "tables": [{ "name": "Notes", "rows": 1 }], "bytes_on_disk": 7 });
        let expected =
            json!({ "id": "b", "warnings": [], "schema": schema, "inventory": inventory });
        assert_eq!(select_part(detail(), &request).unwrap(), expected);
        request.part = Some(DetailPart::Schema);
        let expected = json!({ "id": "b", "warnings": [], "schema": schema });
        assert_eq!(select_part(detail(), &request).unwrap(), expected);
        request.table = Some("i".to_owned());
        assert_eq!(
            select_part(detail(), &request).unwrap_err().code,
            ProblemCode::NotFound
        );
    }
}
