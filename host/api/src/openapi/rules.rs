//! Rules of requests that types cannot express: dependent members, and patterns of texts.

use serde_json::{Value, json};

use crate::access::idempotency;
use crate::backends::calls::requests::MAX_OPS;
use crate::config::Limits;

/// Pattern of a text that is not blank: a character that is no white space (Unicode's `White_Space`).
const NON_BLANK_PATTERN: &str =
    "[^\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

/// Schemas of requests with the files of a site, which has one at least.
const SCHEMAS_WITH_FILES: [&str; 5] = [
    "DeploySite",
    "CreateSite",
    "CreateSiteRevision",
    "RepublishSite",
    "PageRequest",
];

/// Adds the rules to the description.
pub(super) fn apply_rules(document: &mut Value, tags: &[String], limits: &Limits) {
    for (_, operation) in super::operations(document) {
        let parameters = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            match parameter["name"].as_str() {
                Some("Idempotency-Key") => parameter["schema"] = idempotency_key(),
                Some("expires_in") => {
                    parameter["schema"]["maximum"] = limits.quick_share_seconds.into();
                }
                Some("tag") => parameter["schema"] = json!({ "type": "string", "enum": tags }),
                _ => {}
            }
        }
        let file =
            operation["responses"].pointer_mut("/200/content/application~1vnd.sqlite3/schema");
        if let Some(schema) = file {
            *schema = json!({ "type": "string", "format": "binary" });
        }
    }
    let schemas = &mut document["components"]["schemas"];
    for (schema, member) in [("CreateProject", "name"), ("UpdateProject", "name")] {
        schemas[schema]["properties"][member]["pattern"] = NON_BLANK_PATTERN.into();
    }
    for schema in ["DeployRequest", "DeploySite"] {
        schemas[schema]["properties"]["expires_in"]["maximum"] = limits.quick_share_seconds.into();
    }
    for schema in SCHEMAS_WITH_FILES {
        schemas[schema]["properties"]["files"]["minProperties"] = 1.into();
    }
    // `allOf` keeps the schema's own members for generated clients.
    schemas["CreateProject"]["allOf"] = json!([{ "oneOf": expiry_alternatives() }]);
    let changes = ["name", "description", "allowed_providers", "home"].map(non_null_member);
    schemas["UpdateProject"]["allOf"] = json!([{ "anyOf": changes }]);
    schemas["UpdateBackend"]["allOf"] = json!([{ "oneOf": backend_change_alternatives() }]);
    schemas["CreateRevision"]["allOf"] = json!([{ "oneOf": draft_alternatives() }]);
    schemas["CreateSiteRevision"]["allOf"] = json!([{ "oneOf": site_draft_alternatives() }]);
    schemas["ReleaseProject"]["allOf"] = json!([{ "anyOf": release_alternatives() }]);
    schemas["PageRequest"]["allOf"] = json!([{ "anyOf": released_page_alternatives() }]);
    // An empty requested slug means none; an existing slug is kept.
    let wished = &mut schemas["CreateFrontend"]["properties"]["requested_slug"]["pattern"];
    if let Some(pattern) = wished
        .as_str()
        .and_then(|slug| slug.strip_prefix('^')?.strip_suffix('$'))
    {
        *wished = format!("^({pattern})?$").into();
    }
    for schema in ["Republish", "RepublishSite"] {
        schemas[schema]["properties"]["requested_slug"]["maxLength"] = 0.into();
    }
    schemas["RpcMessage"] = rpc_message();
    schemas["SqlValue"] = sql_value(false);
    schemas["GivenValue"] = sql_value(true);
}

/// Returns the schema of a JSON-RPC request or notification. Additions of later protocol versions are allowed.
fn rpc_message() -> Value {
    json!({
        "description": "A JSON-RPC request or, without `id`, a notification.",
        "type": "object", "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": { "type": "string", "const": "2.0" },
            "id": { "type": ["string", "integer"], "minimum": i64::MIN, "maximum": i64::MAX },
            "method": { "type": "string", "description": "Such as `tools/list` and `tools/call`." },
            "params": { "type": "object" },
        },
    })
}

fn idempotency_key() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": idempotency::MAX_KEY_CHARS, "pattern": "^[!-~]+$" })
}

/// Returns a schema that requires a member that is not null.
fn non_null_member(member: &str) -> Value {
    json!({ "required": [member], "properties": { member: { "not": { "type": "null" } } } })
}

/// Returns the alternatives of a project's lifetime: permanent, or a time to live.
fn expiry_alternatives() -> Value {
    json!([
        { "properties": { "ttl_seconds": { "type": "null" }, "permanent": { "enum": [true, null] } } },
        { "required": ["ttl_seconds"], "properties": { "ttl_seconds": { "type": "integer" }, "permanent": { "enum": [false, null] } } },
    ])
}

/// Returns the alternatives of a draft's source: a whole source, or edits of the base's.
fn draft_alternatives() -> Value {
    json!([
        { "required": ["content"], "properties": { "content": { "type": "string" }, "edits": { "type": "null" } } },
        { "required": ["edits"], "properties": { "edits": { "type": "array" }, "content": { "type": "null" } } },
    ])
}

/// Returns the alternatives of a site's draft: all files, or changes of the base's.
fn site_draft_alternatives() -> Value {
    json!([
        { "required": ["files"], "properties": { "files": { "type": "object" }, "changes": { "type": "null" } } },
        { "required": ["changes"], "properties": { "changes": { "type": "object" }, "files": { "type": "null" } } },
    ])
}

/// Returns what a release must have one of: a part.
fn release_alternatives() -> Vec<Value> {
    let lists = [
        "migrations",
        "actions",
        "remove_actions",
        "pages",
        "remove_pages",
    ];
    let lists = lists.map(|list| {
        json!({ "required": [list], "properties": { list: { "type": "array", "minItems": 1 } } })
    });
    lists.into_iter().chain([non_null_member("home")]).collect()
}

/// Returns the alternatives of a page of a release: one that is there, or a new one, which needs a type.
fn released_page_alternatives() -> Value {
    json!([
        { "properties": { "expected_active_revision_id": { "type": "string" } } },
        non_null_member("type"),
    ])
}

/// Returns the alternatives of a change of a backend: a migration, or one switch alone.
fn backend_change_alternatives() -> Value {
    json!([
        { "required": ["ddl"], "properties": { "ddl": { "type": "string" }, "realtime": { "type": "null" }, "agents": { "type": "null" } } },
        { "required": ["realtime"], "properties": { "realtime": { "type": "boolean" }, "agents": { "type": "null" }, "ddl": { "type": "null" }, "note": { "type": "null" } } },
        { "required": ["agents"], "properties": { "agents": { "type": "boolean" }, "realtime": { "type": "null" }, "ddl": { "type": "null" }, "note": { "type": "null" } } },
    ])
}

/// Returns the schema of a value of a row or a param; in a batch, also a reference to the result of an earlier op.
fn sql_value(in_batch: bool) -> Value {
    let mut kinds = vec![
        json!({ "type": ["null", "string"] }),
        json!({ "type": "boolean", "description": "Becomes 0 or 1." }),
        json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
        json!({ "type": "number", "description": "A double." }),
        json!({
            "type": "object", "description": "A BLOB.", "required": ["base64"], "additionalProperties": false,
            "properties": { "base64": { "type": "string", "contentEncoding": "base64", "pattern": BASE64_PATTERN } },
        }),
    ];
    if in_batch {
        kinds.push(json!({
            "type": "object", "required": ["from"], "additionalProperties": false,
            "description": "What the first row of an earlier op has in a column.",
            "properties": { "from": {
                "type": "array", "minItems": 2, "maxItems": 2, "items": false,
                "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": MAX_OPS - 2 }, { "type": "string" }],
            } },
        }));
    }
    json!({ "description": "A value of a row or a param.", "anyOf": kinds })
}

/// Pattern of canonical base64 with padding.
const BASE64_PATTERN: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
