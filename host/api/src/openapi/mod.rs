//! The OpenAPI description, made from the code: routes from their handlers, problems from their table.

mod examples;
mod links;
mod parts;
mod problems;
mod rules;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use crate::config::Config;
use crate::http::extract::ApiQuery;
use crate::http::problem::Problem;

pub use self::parts::{ApiDescription, DescriptionQuery};

/// Extension with the minimum role of an operation.
const ROLE: &str = "x-role";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "svc",
        version = "1.0.0",
        description = "Hosting with a backend, for people and their agents. Errors are RFC 9457 problems with a stable `code`.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    tags(
        (name = "quick share", description = "Publish something for {{quick_share_seconds}}, without an account."),
        (name = "projects", description = "Durable envelopes of frontends, owned by a workspace."),
        (name = "domains", description = "Host names that owners bring for their projects."),
        (name = "frontends", description = "A project's published pages."),
        (name = "files", description = "Files that are sent ahead of a publication."),
        (name = "revisions", description = "The history of a frontend: drafts, promotions, rollbacks."),
        (name = "backend", description = "A project's database: its schema, its migrations, its actions."),
        (name = "payments", description = "What a project sells, and who has paid."),
        (name = "workspaces", description = "Who works together: people with roles, keys for machines, and what is paid for."),
        (name = "visitors", description = "Below a page's address: actions for its visitors, queries for its owner."),
        (name = "tools", description = "All of the above for agents, through the Model Context Protocol."),
        (name = "pages", description = "What visitors see."),
        (name = "operation", description = "For probes, and about the service itself.")
    ),
    paths(serve)
)]
struct ApiDescriptionBase;

/// Makes the head of the description.
pub fn base_document() -> OpenApi {
    let mut about = ApiDescriptionBase::openapi();
    let mut bearer = Http::new(HttpAuthScheme::Bearer);
    bearer.description = Some("The key of a workspace, or the access token of a user.".into());
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description = Some("The `delete_token` of a share, as publishing it answered.".into());
    let components = about.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("delete_token", SecurityScheme::Http(token));
    about
}

/// The whole description: the server's address and numbers, the problem schema, and of each operation its examples, its
/// problems and where its answers lead. The errors of paths that `is_data` holds for are never pages.
pub fn complete_description(
    description: &OpenApi,
    config: &Arc<Config>,
    is_data: fn(&str) -> bool,
) -> ApiDescription {
    let tags = description.tags.iter().flatten();
    let tags: Vec<String> = tags.map(|tag| tag.name.clone()).collect();
    let (known, config) = (tags.clone(), Arc::clone(config));
    // As text until it is asked for: the tree takes ten times the memory.
    let text = serde_json::to_vec(description).unwrap_or_default();
    ApiDescription::new(tags, config.limits.clone(), move || {
        complete_document(&text, &known, &config, is_data)
    })
}

fn complete_document(
    description: &[u8],
    tags: &[String],
    config: &Config,
    is_data: fn(&str) -> bool,
) -> Value {
    let base_url = config.base_url.as_str();
    let mut document: Value = serde_json::from_slice(description).unwrap_or_default();
    document["servers"] = json!([{ "url": base_url }]);
    rename_rest_parameters(&mut document);
    document["components"]["schemas"]["Problem"] = problems::problem_schema();
    rules::apply_rules(&mut document, tags, &config.limits);
    let examples = examples::all_examples(base_url);
    let rows = crate::operations::all();
    for (path, operation) in operations(&mut document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let row = rows.iter().find(|row| row.id == id);
        if let Some(examples) = examples.get(id) {
            examples.add_to(operation);
        }
        if let Some(row) = row {
            operation.insert(ROLE.to_owned(), row.floor.as_str().into());
        }
        links::add_links(operation);
        let codes = problems::take_codes(operation, path);
        problems::add_responses(operation, &codes, base_url, !is_data(path));
    }
    document
}

/// Writes a parameter that is the rest of a path, which the router calls `{*path}`, as the description writes all.
fn rename_rest_parameters(document: &mut Value) {
    if let Some(paths) = document["paths"].as_object_mut() {
        let renamed = std::mem::take(paths).into_iter();
        paths.extend(renamed.map(|(path, item)| (path.replace("{*", "{"), item)));
    }
}

/// Iterates over all operations with their paths.
fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flatten();
        operations.filter_map(move |(_, operation)| Some((path, operation.as_object_mut()?)))
    })
}

/// This description
///
/// All of it, or by `tag` the part of one tag with only the components that it uses: a description of its own.
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "operation",
    params(DescriptionQuery),
    responses(
        (status = 200, description = "OpenAPI 3.1.", content_type = "application/json", body = Value),
        (status = 206, description = "The range that was asked for.", content((String = "application/json", example = json!("{\"components\":")))),
        (status = 304, description = "It has not changed.")
    ),
    extensions(("x-problems" = json!("invalid_request range_not_satisfiable")))
)]
pub async fn serve(
    State(description): State<Arc<ApiDescription>>,
    ApiQuery(which): ApiQuery<DescriptionQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = description.document(which.tag.as_deref()).await?;
    document.answer(&headers)
}
