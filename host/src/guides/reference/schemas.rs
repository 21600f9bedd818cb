//! Types of the API in words: of a field in a few, of an object in a table.

use std::fmt::Write as _;

use serde_json::Value;

use super::text;

/// Where references to types begin.
const TYPES: &str = "#/components/schemas/";

/// All types, each with its members.
pub(super) fn types(out: &mut String, description: &Value) {
    out.push_str("## Types\n\n");
    let types = description["components"]["schemas"].as_object();
    for (name, schema) in types.into_iter().flatten() {
        let _ = write!(out, "### <a id=\"type-{name}\"></a>{name}\n\n");
        if !text(&schema["description"]).is_empty() {
            let _ = write!(out, "{}\n\n", escape_markup(text(&schema["description"])));
        }
        match members(schema) {
            members if members.is_empty() => {
                let _ = write!(out, "{}\n\n", type_text(schema));
            }
            members => {
                out.push_str("| member | type | |\n|---|---|---|\n");
                members.iter().for_each(|row| out.push_str(row));
                out.push('\n');
            }
        }
    }
}

/// A row for each member of an object.
fn members(schema: &Value) -> Vec<String> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let members = schema["properties"].as_object().into_iter().flatten();
    let row = |(name, is): (&String, &Value)| {
        let needed = match is_required(name) {
            true => "Required.",
            false => "",
        };
        let about = table_cell(text(&is["description"]));
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

/// A type in a few words, for a cell of a table.
pub(super) fn type_text(schema: &Value) -> String {
    if let Some(name) = text(&schema["$ref"]).strip_prefix(TYPES) {
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
        Value::Array(names) => {
            join_alternatives(names.iter().map(|name| named_type_text(text(name), schema)))
        }
        Value::String(name) => named_type_text(name, schema),
        _ => "any JSON".to_owned(),
    }
}

/// A type by its name, with what its items are or what form it has.
fn named_type_text(name: &str, schema: &Value) -> String {
    let more = match name {
        "array" => format!(" of {}", type_text(&schema["items"])),
        "string" => match text(&schema["format"]) {
            "" => String::new(),
            format => format!(" ({format})"),
        },
        "integer" | "number" => bounds(schema),
        _ => String::new(),
    };
    format!("{name}{more}")
}

/// Bounds of a number, if it has some.
fn bounds(schema: &Value) -> String {
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

/// A value as it is written in a table.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text of the description in a cell of a table.
pub(super) fn table_cell(said: &str) -> String {
    escape_markup(said).replace('\n', " ").replace('|', "\\|")
}

/// A text of the description, in which `<` outside of code begins no markup.
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
