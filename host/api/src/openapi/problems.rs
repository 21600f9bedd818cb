//! Problems in the description: the error codes of each operation, and the schema.

use serde_json::{Map, Value, json};

use crate::http::problem::ProblemCode;

/// Extension in which a handler names its error codes; [`take_codes`] removes it.
const PROBLEMS_ANNOTATION: &str = "x-problems";

/// Errors of every route: of another method, and of a repeated header.
const EVERY_ROUTE_CODES: &[ProblemCode] =
    &[ProblemCode::MethodNotAllowed, ProblemCode::InvalidRequest];
/// Further errors of every route but the probes, which answer for any host.
const HOST_ROUTE_CODES: &[ProblemCode] = &[ProblemCode::Misdirected, ProblemCode::Internal];
/// Errors of every owner route.
const OWNER_ROUTE_CODES: &[ProblemCode] = &[
    ProblemCode::InvalidRequest,
    ProblemCode::Unauthorized,
    ProblemCode::PayloadTooLarge,
    ProblemCode::UnsupportedMediaType,
    ProblemCode::RateLimited,
    ProblemCode::CapacityReached,
];
/// Errors of every route with a JSON body.
const JSON_BODY_CODES: &[ProblemCode] = &[
    ProblemCode::InvalidRequest,
    ProblemCode::InvalidJson,
    ProblemCode::Timeout,
    ProblemCode::PayloadTooLarge,
    ProblemCode::UnsupportedMediaType,
    ProblemCode::CapacityReached,
];

/// Errors of work for which there may be no room. A server of several that does it may also end in the middle.
const WORK_CODES: [ProblemCode; 2] = [ProblemCode::CapacityReached, ProblemCode::DatabaseBusy];

/// Errors of routes that take sources or files, or make pages of them: the operator may have blocked these.
const CONTENT_CODES: [ProblemCode; 2] = [ProblemCode::RenderFailed, ProblemCode::StorageFull];

/// Takes the error codes out of an operation. An unknown word stays there, where a test finds it.
pub(super) fn take_codes(operation: &mut Map<String, Value>, path: &str) -> Vec<ProblemCode> {
    let mut codes = EVERY_ROUTE_CODES.to_vec();
    let probe = matches!(path, "/healthz" | "/readyz");
    // A path parameter without a canonical form is a 404.
    if path.contains('{') {
        codes.push(ProblemCode::NotFound);
    }
    if !probe {
        codes.extend(HOST_ROUTE_CODES);
    }
    let named = operation.remove(PROBLEMS_ANNOTATION).unwrap_or_default();
    let mut unknown = Vec::new();
    for word in named.as_str().unwrap_or_default().split_ascii_whitespace() {
        match word {
            "owner" => codes.extend(OWNER_ROUTE_CODES),
            "body" => codes.extend(JSON_BODY_CODES),
            other => match ProblemCode::ALL.iter().find(|code| code.as_str() == other) {
                Some(code) => codes.push(*code),
                None => unknown.push(other),
            },
        }
    }
    if WORK_CODES.iter().any(|code| codes.contains(code)) {
        codes.push(ProblemCode::Interrupted);
    }
    if CONTENT_CODES.iter().any(|code| codes.contains(code)) {
        codes.push(ProblemCode::ContentBlocked);
    }
    if !unknown.is_empty() {
        operation.insert(PROBLEMS_ANNOTATION.to_owned(), unknown.join(" ").into());
    }
    codes
}

/// Adds the answers of these codes; with `pages`, browsers get them as HTML pages.
pub(super) fn add_responses(
    operation: &mut Map<String, Value>,
    wanted: &[ProblemCode],
    base_url: &str,
    pages: bool,
) {
    for code in ProblemCode::ALL.iter().filter(|code| wanted.contains(code)) {
        let status = code.status().as_u16();
        let responses = &mut operation["responses"][status.to_string()];
        if responses.is_null() {
            *responses = json!({ "description": "" });
        }
        let said = responses["description"].as_str().unwrap_or_default();
        let line = format!("`{}`: {}", code.as_str(), code.title());
        let description = if said.is_empty() {
            line
        } else {
            format!("{said}\n\n{line}")
        };
        responses["description"] = description.into();
        if matches!(status, 429 | 503) {
            responses["headers"]["Retry-After"] =
                json!({ "schema": { "type": "integer" }, "description": "Seconds to wait." });
        }
        if status == 405 {
            responses["headers"]["Allow"] = json!({ "schema": { "type": "string" }, "description": "The methods that are answered." });
        }
        if pages {
            // Browsers get the problem as a page.
            responses["content"]["text/html"]["schema"] = json!({ "type": "string" });
        }
        let content = &mut responses["content"]["application/problem+json"];
        content["schema"] = json!({ "$ref": "#/components/schemas/Problem" });
        content["examples"][code.as_str()]["value"] = json!({
            "type": format!("{base_url}/problems/{}", code.as_str()),
            "title": code.title(),
            "status": status,
            "detail": code.about(),
            "code": code.as_str(),
        });
    }
}

/// Returns the schema of a problem.
pub(super) fn problem_schema() -> Value {
    let codes: Vec<_> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "An error (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": { "type": "string", "format": "uri", "description": "A page that explains the code." },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "What was wrong in this request, and what to do." },
            "code": { "type": "string", "enum": codes },
            "request_id": { "type": "string", "description": "With 5xx: what to tell the operator." },
            "file": { "type": "string", "enum": ["_headers", "_redirects"], "description": "With `rules_refused`: which file has the line." },
            "line": { "type": "integer", "description": "With `render_failed`: where in the content, from 1. With `rules_refused`: where in the file, from 1." },
            "column": { "type": "integer", "description": "With `render_failed`: where in the line, from 1." },
            "reason": { "type": "string", "description": "With `ddl_refused`, `statement_refused`, `statement_failed` and `rules_refused`: why." },
            "statement": { "type": "integer", "description": "With `ddl_refused` and `statement_refused`: which statement, from 1." },
            "position": {
                "type": "object", "description": "With the same, where it is known: where in the SQL; lines and columns from 1, the offset in bytes.",
                "properties": { "line": { "type": "integer" }, "column": { "type": "integer" }, "offset": { "type": "integer" } }
            },
            "missing": { "type": "array", "items": { "type": "string" }, "description": "With `params_mismatch`: what the call does not name." },
            "extra": { "type": "array", "items": { "type": "string" }, "description": "With `params_mismatch`: what it names in vain." },
            "errors": {
                "type": "array", "description": "With a refused batch: every entry that cannot be.",
                "items": { "type": "object", "properties": { "name": { "type": "string" }, "code": { "type": "string" }, "detail": { "type": "string" } } }
            },
            "budget": { "type": "string", "description": "With `render_failed`: which budget ran out." },
            "cap": { "type": "string", "description": "With `capacity_reached`, where a cap of the settings is reached: its key." },
            "part": { "type": "string", "description": "With `cap`: which part of it is reached. `whole` is all of it, `strangers` all but what is kept for owners, `client` what one client may hold, `owner` what one owner may. With a refused release: which part of that, such as `pages[2]` or `home`." },
            "conflicts": {
                "type": "array", "description": "With `release_conflict`: every page and action that is another one than expected.",
                "items": {
                    "type": "object", "required": ["kind", "name", "expected", "found"],
                    "properties": {
                        "kind": { "type": "string", "enum": ["page", "action"] },
                        "name": { "type": "string", "description": "The page's slug, or the action's name." },
                        "expected": { "type": ["string", "integer", "null"], "description": "The revision's id, or null where no page was expected; the action's version, or 0 where none was." },
                        "found": { "type": ["string", "integer", "null"], "description": "What is live, in the same form." }
                    }
                }
            },
            "records": { "type": "array", "items": { "$ref": "#/components/schemas/DnsRecord" }, "description": "With `domain_unproven` and `domain_taken`: the records of DNS that are wanted, the best first; one of them suffices." },
            "seen": { "type": "array", "items": { "$ref": "#/components/schemas/DnsRecord" }, "description": "With `domain_unproven` and `domain_taken`: the records that are there." },
            "sha256": { "type": "string", "description": "With `content_blocked`: what is blocked." },
            "active_revision_id": { "type": "string", "format": "uuid", "description": "With `revision_conflict`: what is live." },
            "name": { "type": "string", "description": "With `action_conflict`: the action's name." },
            "expected": { "type": "integer", "description": "With `action_conflict`: the version that was expected; 0 for none." },
            "found": { "type": "integer", "description": "With `action_conflict`: the version that there is; 0 for none." },
            "index": { "type": "integer", "minimum": 0, "description": "With a refused batch of calls: which op, from 0." },
            "migration": { "type": "integer", "minimum": 1, "description": "With a refused restore: which migration of the ledger." }
        }
    })
}
