//! The machine-readable description, from the code: routes from their handlers, problems from their table.

mod examples;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::http::extract::NoQuery;
use crate::http::paths;
use crate::http::problem::Code;
use crate::operations;

/// The least role that an operation takes, in the description.
const ROLE: &str = "x-role";
/// Where a handler names the codes that it can answer; [`finish`] makes responses of them.
const PROBLEMS: &str = "x-problems";

/// What any route can answer: to another method, and to a header that is there twice and may be once.
const EVERYWHERE: &str = "method_not_allowed invalid_request";
/// What any route can answer beside that but the probes, which answer for any host.
const ROUTED: &str = "misdirected internal";
/// What every owner route can answer.
const OWNER: &[&str] = &[
    "invalid_request",
    "unauthorized",
    "payload_too_large",
    "unsupported_media_type",
    "rate_limited",
];
/// What every route with a JSON body can answer.
const BODY: &[&str] = &[
    "invalid_request",
    "invalid_json",
    "timeout",
    "payload_too_large",
    "unsupported_media_type",
    "capacity_reached",
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "svc",
        version = "1.0.0",
        description = "Hosting with a backend, for people and their agents. Errors are RFC 9457 problems with a stable `code`.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    tags(
        (name = "quick share", description = "Publish something for a week, without an account."),
        (name = "projects", description = "Durable envelopes of frontends, owned by a namespace."),
        (name = "frontends", description = "A project's published pages."),
        (name = "revisions", description = "The history of a frontend: drafts, promotions, rollbacks."),
        (name = "backend", description = "A project's database: its schema, its migrations, its actions."),
        (name = "visitors", description = "Below a page's address: actions for its visitors, queries for its owner."),
        (name = "tools", description = "All of the above for agents, through the Model Context Protocol."),
        (name = "pages", description = "What visitors see."),
        (name = "operation", description = "For probes, and about the service itself.")
    ),
    paths(serve)
)]
struct About;

/// The description's head.
pub fn about() -> OpenApi {
    let mut about = About::openapi();
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some("A namespace's credential, as the operator issued it.".into());
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description = Some("The `delete_token` of a share, as publishing it answered.".into());
    let components = about.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("delete_token", SecurityScheme::Http(token));
    about
}

/// The whole description, written out.
#[derive(Clone, Debug)]
pub struct Document(Bytes);

/// The whole description as JSON: the server's address, the problem schema, and each route's problems.
pub fn finish(description: OpenApi, base_url: &str) -> Document {
    let mut document = serde_json::to_value(description).unwrap_or_default();
    document["servers"] = json!([{ "url": base_url }]);
    document["components"]["schemas"]["Problem"] = problem_schema();
    let examples = examples::all(base_url);
    let operations = operations::all();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        let methods = item.as_object_mut().into_iter().flatten();
        for operation in methods.filter_map(|(_, operation)| operation.as_object_mut()) {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let probe = matches!(id, "healthz" | "readyz");
            let row = operations.iter().find(|row| row.id == id);
            let floor = row.map(|row| row.floor.as_str());
            if let Some(examples) = examples.get(id) {
                examples.add_to(operation);
            }
            if let Some(floor) = floor {
                operation.insert(ROLE.to_owned(), floor.into());
            }
            let own = operation.remove(PROBLEMS);
            let own = own.as_ref().and_then(Value::as_str).unwrap_or_default();
            let routed = if probe { "" } else { ROUTED };
            let codes = format!("{own} {EVERYWHERE} {routed}");
            add_problems(operation, &codes, base_url, !paths::is_data(path));
        }
    }
    Document(document.to_string().into())
}

fn add_problems(
    operation: &mut serde_json::Map<String, Value>,
    codes: &str,
    base_url: &str,
    pages: bool,
) {
    let wanted: Vec<&str> = codes
        .split(' ')
        .flat_map(|code| match code {
            "owner" => OWNER.to_vec(),
            "body" => BODY.to_vec(),
            other => vec![other],
        })
        .collect();
    let known = Code::ALL
        .iter()
        .filter(|code| wanted.contains(&code.as_str()));
    for code in known {
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
            // A browser gets the same as a page.
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

fn problem_schema() -> Value {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
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
            "line": { "type": "integer", "description": "With `render_failed`: where in the content, from 1." },
            "column": { "type": "integer", "description": "With `render_failed`: where in the line, from 1." },
            "reason": { "type": "string", "description": "With `ddl_refused` and `statement_refused`: why." },
            "statement": { "type": "integer", "description": "With the same: which statement, from 1." },
            "position": {
                "type": "object", "description": "With the same: where in the SQL; lines and columns from 1, the offset in bytes.",
                "properties": { "line": { "type": "integer" }, "column": { "type": "integer" }, "offset": { "type": "integer" } }
            },
            "missing": { "type": "array", "items": { "type": "string" }, "description": "With `params_mismatch`: what the call does not name." },
            "extra": { "type": "array", "items": { "type": "string" }, "description": "With `params_mismatch`: what it names in vain." },
            "errors": {
                "type": "array", "description": "With a refused batch: every entry that cannot be.",
                "items": { "type": "object", "properties": { "name": { "type": "string" }, "code": { "type": "string" }, "detail": { "type": "string" } } }
            },
            "budget": { "type": "string", "description": "With `render_failed`: which budget ran out." },
            "active_revision_id": { "type": "string", "format": "uuid", "description": "With `revision_conflict`: what is live." },
            "index": { "type": "integer", "minimum": 0, "description": "With a refused batch of calls: which op, from 0." },
            "migration": { "type": "integer", "minimum": 1, "description": "With a refused restore: which migration of the ledger." }
        }
    })
}

/// This description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "operation",
    responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json", body = Value)),
    extensions(("x-problems" = json!("invalid_request")))
)]
pub async fn serve(State(document): State<Document>, _: NoQuery) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], document.0).into_response()
}
