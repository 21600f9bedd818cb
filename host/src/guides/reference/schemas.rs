//! Types of the API in words: of a field in a few, of an object in a table.

use std::fmt::Write as _;

use serde_json::Value;

use super::string_or_empty;

/// Prefix of references to types.
const SCHEMAS_PREFIX: &str = "#/components/schemas/";

/// Writes all types, each with its members.
pub(super) fn write_types(out: &mut String, description: &Value) {
    let types = description["components"]["schemas"].as_object();
    for (name, schema) in types.into_iter().flatten() {
        let _ = write!(out, "### <a id=\"type-{name}\"></a>{name}\n\n");
        if !string_or_empty(&schema["description"]).is_empty() {
            let _ = write!(
                out,
                "{}\n\n",
                escape_markup(string_or_empty(&schema["description"]))
            );
        }
        match member_rows(schema) {
            members if members.is_empty() => {
                let _ = write!(out, "{}\n\n", type_text(schema));
            }
            members => {
                out.push_str("| member | type | about |\n|---|---|---|\n");
                members.iter().for_each(|row| out.push_str(row));
                out.push('\n');
            }
        }
    }
}

/// Returns a table row for each member of an object.
fn member_rows(schema: &Value) -> Vec<String> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let members = schema["properties"].as_object().into_iter().flatten();
    let row = |(name, is): (&String, &Value)| {
        let needed = match is_required(name) {
            true => "Required.",
            false => "",
        };
        let about = table_cell(string_or_empty(&is["description"]));
        let said = [needed, about.as_str()];
        let said: Vec<_> = said.into_iter().filter(|part| !part.is_empty()).collect();
        let said = match said.join(" ") {
            said if said.is_empty() => said,
            said => format!("{said} "),
        };
        format!("| `{name}` | {} | {said}|\n", type_text(is))
    };
    members.map(row).collect()
}

/// Describes a type in a few words, for a table cell.
pub(super) fn type_text(schema: &Value) -> String {
    if let Some(name) = string_or_empty(&schema["$ref"]).strip_prefix(SCHEMAS_PREFIX) {
        return format!("[{name}](#type-{name})");
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(ways) = schema[several].as_array() {
            return join_alternatives(ways.iter().map(type_text));
        }
    }
    if let Some(parts) = schema["allOf"].as_array()
        && schema["type"].is_null()
    {
        let parts: Vec<_> = parts.iter().map(type_text).collect();
        return parts.join(" and ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return join_alternatives(
            values
                .iter()
                .map(|value| format!("`{}`", value_text(value))),
        );
    }
    if !schema["const"].is_null() {
        return format!("`{}`", value_text(&schema["const"]));
    }
    match &schema["type"] {
        Value::Array(names) => join_alternatives(
            names
                .iter()
                .map(|name| named_type_text(string_or_empty(name), schema)),
        ),
        Value::String(name) => named_type_text(name, schema),
        _ => "any JSON".to_owned(),
    }
}

/// Describes a JSON type by its name, with its items, format or bounds.
fn named_type_text(name: &str, schema: &Value) -> String {
    let more = match name {
        "array" => format!(" of {}", type_text(&schema["items"])),
        "string" => match string_or_empty(&schema["format"]) {
            "" => String::new(),
            format => format!(" ({format})"),
        },
        "integer" | "number" => bounds_text(schema),
        _ => String::new(),
    };
    format!("{name}{more}")
}

/// Describes the bounds of a number, if it has some.
fn bounds_text(schema: &Value) -> String {
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    match (least.is_null(), most.is_null()) {
        (true, true) => String::new(),
        (false, true) => format!(" (from {least})"),
        (true, false) => format!(" (to {most})"),
        (false, false) => format!(" ({least} to {most})"),
    }
}

fn join_alternatives(ways: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for way in ways {
        if !known.contains(&way) {
            known.push(way);
        }
    }
    known.join(" or ")
}

/// Writes a value for a table.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Escapes a text of the description for a table cell.
pub(super) fn table_cell(said: &str) -> String {
    escape_markup(said).replace('\n', " ").replace('|', "\\|")
}

/// Escapes `<` outside of code in a text of the description.
pub(super) fn escape_markup(said: &str) -> String {
    let mut done = String::with_capacity(said.len());
    let mut is_code = false;
    for char in said.chars() {
        match char {
            '`' => {
                is_code = !is_code;
                done.push(char);
            }
            '<' if !is_code => done.push_str("&lt;"),
            char => done.push(char),
        }
    }
    done
}
