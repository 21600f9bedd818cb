//! The routes of the console's host that are its own: screens, their files and settings, and the exchange of a link.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde::Deserialize;

use super::Console;
use super::files::EmbeddedFile;
use crate::access::AuthenticatedCaller;
use crate::config::Config;
use crate::control::audit::{AuditActor, with_actor};
use crate::http::context::HttpRequestContext;
use crate::http::extract::UnreadBody;
use crate::http::problem::{Problem, ProblemCode};
use crate::workspaces::Workspaces;

/// Rules for crawlers: the host has nothing for them.
const ROBOTS_TEXT: &str = "User-agent: *\nDisallow: /\n";
/// Most bytes of the body with a code.
const MAX_CODE_BODY_BYTES: u64 = 1_024;
/// `Cache-Control` of what is the caller's.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// First segments of addresses that are for programs, on this host or on others: no screen has one.
const PROGRAM_SEGMENTS: [&str; 6] = ["api", "mcp", "problems", "_svc", "_preview", ".well-known"];

/// Code of a link.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenSessionRequest {
    /// 43 characters of base 62.
    code: String,
}

/// Refuses a request from a page of another origin. Clients other than browsers send no `Origin`, nor does a browser that navigates here.
///
/// # Errors
/// `origin_refused`.
pub fn check_origin(config: &Config, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let own = config.console_url.as_deref().unwrap_or_default();
    if origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemCode::OriginRefused,
        "The console's host answers pages of its own origin alone. Programs send no `Origin`; pages call the API at its own host.",
    ))
}

/// Answers the document of all screens at the address of one.
pub async fn screen(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = console.document().await;
    let document = document.map_err(|error| Problem::internal(&error))?;
    document.answer(&headers)
}

/// Answers an address that no screen has: with the document, which says so to people, or with a problem for programs.
pub async fn missing(
    State(console): State<Arc<Console>>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
) -> Result<Response, Problem> {
    let first = uri.path().split('/').nth(1).unwrap_or_default();
    if ![Method::GET, Method::HEAD].contains(&method) || PROGRAM_SEGMENTS.contains(&first) {
        return Err(Problem::not_found());
    }
    // A part of it, or word that it has not changed, would be no 404.
    for name in [header::IF_NONE_MATCH, header::RANGE] {
        headers.remove(name);
    }
    let document = console.document().await;
    let document = document.map_err(|error| Problem::internal(&error))?;
    let mut response = document.answer(&headers)?;
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// Answers a file by its address.
pub async fn file(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let file = console.files.find(&name).ok_or_else(Problem::not_found)?;
    answer_file(file, &headers).await
}

async fn answer_file(file: &EmbeddedFile, request: &HeaderMap) -> Result<Response, Problem> {
    let document = file.document().await;
    let document = document.map_err(|error| Problem::internal(&error))?;
    document.answer(request)
}

/// Answers the icon as lines.
pub async fn icon_svg(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer_file(&console.files.icon_svg, &headers).await
}

/// Answers the icon as dots, for browsers that ask without being told.
pub async fn icon_ico(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer_file(&console.files.icon_ico, &headers).await
}

/// Answers the settings for browsers.
pub async fn settings(State(console): State<Arc<Console>>) -> Response {
    let settings = console.browser_settings().await;
    ([(header::CACHE_CONTROL, NO_STORE)], Json(settings)).into_response()
}

/// Answers the rules for crawlers.
pub async fn robots() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], ROBOTS_TEXT).into_response()
}

/// Exchanges the code of a link for a key, once. The operator who made the link is the one who makes the key.
pub async fn open_session(
    State(workspaces): State<Workspaces>,
    context: HttpRequestContext,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.with_limit(MAX_CODE_BODY_BYTES)?;
    let request = body.json::<OpenSessionRequest>().await?.value;
    let exchanging = workspaces.exchange_console_code(&request.code);
    let operator = AuditActor::operator(&context.request_id);
    let session = with_actor(operator, exchanging).await?;
    let session = session.ok_or_else(code_invalid)?;
    Ok(([(header::CACHE_CONTROL, NO_STORE)], Json(session)).into_response())
}

/// Revokes the key of a caller who came by a link; whoever came otherwise only leaves.
pub async fn end_session(
    State(workspaces): State<Workspaces>,
    AuthenticatedCaller(caller): AuthenticatedCaller,
) -> Result<StatusCode, Problem> {
    workspaces.end_console_session(caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn code_invalid() -> Problem {
    Problem::new(
        ProblemCode::Unauthorized,
        "The link is not valid: it was used, it is past its end, or it is none of this server's. The operator makes another one: svc console.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn only_the_consoles_own_origin_may_ask() {
        let settings: Settings = toml::from_str("cache = '/c'").unwrap();
        let config = settings.resolve("127.0.0.1:8080".parse().unwrap()).unwrap();
        for (origin, allowed) in [
            (None, true),
            (Some("http://console.localhost:8080"), true),
            (Some("HTTP://Console.localhost:8080"), true),
            (Some("http://localhost:8080"), false),
            (Some("https://console.localhost:8080"), false),
            (Some("http://console.localhost"), false),
            (Some("http://console.localhost:8080.evil.example"), false),
            (Some("http://shop-dev.localhost:8080"), false),
            (Some("null"), false),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(
                check_origin(&config, &headers).is_ok(),
                allowed,
                "{origin:?}"
            );
        }
    }
}
