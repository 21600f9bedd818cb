//! The routes of the page's runtime, and of its typings.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::{RuntimeScripts, TYPINGS};
use crate::deployments::problems;
use crate::deployments::serving::{PageService, answer};
use crate::http::context::HttpRequestContext;
use crate::http::problem::Problem;

/// Media type of scripts.
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";

/// The script of a page
///
/// Immutable, because it is named by its content.
#[utoipa::path(
    get, path = "/_svc/runtime/{file}", tag = "pages",
    params(("file" = String, Path, description = "The runtime's name and `.js`, as a page names it.")),
    responses(
        (status = 200, description = "The script.", content_type = "text/javascript", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/javascript", body = String),
        (status = 304, description = "It never changes.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable capacity_reached")))
)]
pub async fn runtime(
    State(runtimes): State<Arc<RuntimeScripts>>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = file.strip_suffix(".js").ok_or_else(Problem::not_found)?;
    let found = runtimes.script(name).await;
    let found = found.map_err(|error| problems::internal_problem(&error))?;
    let (digest, bytes) = found.ok_or_else(Problem::not_found)?;
    answer::immutable_response(SCRIPT_TYPE, &digest, &bytes, &headers)
}

/// The script for a site
///
/// The newest one, bound to the site. Files of a site ask for it: `<script src="/{slug}/_svc/runtime.js"></script>`, or without the slug
/// where the site answers at the root of its project's origin.
#[utoipa::path(
    operation_id = "site_runtime",
    get, path = "/{slug}/_svc/runtime.js", tag = "pages",
    params(("slug" = String, Path, description = "A frontend that is a site.")),
    responses(
        (status = 200, description = "The script.", content_type = "text/javascript", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/javascript", body = String),
        (status = 304, description = "It is the same.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable capacity_reached")))
)]
pub async fn site_runtime(
    State(runtimes): State<Arc<RuntimeScripts>>,
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = serving.page_on_host(&context.host, &slug).await?;
    if !page.is_frontend() || !page.content_type.is_site() {
        return Err(Problem::not_found());
    }
    let base = match context.at_root {
        true => String::new(),
        false => format!("/{slug}"),
    };
    let (digest, bytes) = runtimes.of_site(&slug, &base).await;
    answer::revalidated_response(SCRIPT_TYPE, &digest, &bytes, &headers)
}

/// The typings of the script
///
/// For TypeScript: what `window.svc` offers.
#[utoipa::path(
    get, path = "/_svc/runtime.d.ts", tag = "pages",
    responses((status = 200, description = "The typings.", content_type = "text/plain", body = String))
)]
pub async fn typings() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], TYPINGS).into_response()
}
