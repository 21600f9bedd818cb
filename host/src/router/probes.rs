//! The routes of probes, and of the pages at problems' `type` URLs.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tokio::time::timeout;

use crate::app::SharedApp;
use crate::control;
use crate::http::NOSNIFF;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::problem_page;

/// Time that a probe of a node of several waits for its control database.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the process lives
#[utoipa::path(
    get, path = "/healthz", tag = "operation",
    responses((status = 200, description = "It does.", content_type = "text/plain", body = String))
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether requests are served
///
/// Pages are served at once; publishing waits until the guests are loaded, which a first start compiles: the text says how far that is.
#[utoipa::path(
    get, path = "/readyz", tag = "operation",
    responses(
        (status = 200, description = "Everything is.", content_type = "text/plain", body = String),
        (status = 503, description = "The guests are still loading.", content_type = "text/plain", body = String)
    )
)]
pub(super) async fn readyz(State(app): State<SharedApp>) -> Response {
    let node = app.cluster.as_ref();
    if node.is_some_and(|node| node.is_stopping()) {
        return not_serving("leaving\n");
    }
    if node.is_some_and(|node| !node.gate().may_answer()) {
        return not_serving("stale\n");
    }
    let reading = app
        .control
        .read(|c| c.query_row("SELECT 1", [], |_| Ok(())));
    let database = match node {
        None => reading.await,
        // A node's read may wait for what the ledger has not acknowledged.
        Some(_) => match timeout(READ_TIMEOUT, reading).await {
            Ok(Err(control::Error::Stale)) | Err(_) => return not_serving("stale\n"),
            Ok(read) => read,
        },
    };
    let text = match (database, app.sandbox.compilation()) {
        (Err(_), _) => "the control database does not answer\n".to_owned(),
        (Ok(()), Some(preparing)) => format!("{preparing}; publishing waits for it\n"),
        (Ok(()), None) if !app.sandbox.is_loaded() => "the guests are still loading\n".to_owned(),
        (Ok(()), None) => return "ready\n".into_response(),
    };
    (
        StatusCode::SERVICE_UNAVAILABLE,
        [(header::RETRY_AFTER, HeaderValue::from_static("60"))],
        text,
    )
        .into_response()
}

/// Answer of a node of several whose clients are served elsewhere: it leaves, or may lack what another one has answered.
fn not_serving(state: &'static str) -> Response {
    let wait = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
    (StatusCode::SERVICE_UNAVAILABLE, wait, state).into_response()
}

/// Meaning of a problem's `type`
#[utoipa::path(
    get, path = "/problems/{code}", tag = "operation",
    params(("code" = String, Path, description = "A problem's code.")),
    responses((status = 200, description = "A page that explains it.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub(super) async fn problem_type(Path(code): Path<String>) -> Result<Response, Problem> {
    let code = ProblemCode::ALL.iter().find(|known| known.as_str() == code);
    let code = code.ok_or_else(Problem::not_found)?;
    Ok(platform_page_response(&problem_page::problem_type_page(
        *code,
    )))
}

fn platform_page_response(page: &maud::Markup) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            problem_page::CONTENT_SECURITY_POLICY,
        ),
        NOSNIFF,
    ];
    (headers, page.clone().into_string()).into_response()
}
