//! The routes of the page's runtime, and of its typings.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::{RuntimeScripts, TYPINGS};
use crate::deployments::problems;
use crate::deployments::serving::answer;
use crate::http::problem::Problem;

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
    answer::immutable_response("text/javascript; charset=utf-8", &digest, &bytes, &headers)
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
