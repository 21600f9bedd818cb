//! Format of answers: whether a problem is a page or a document, who may read an answer, and the headers of all.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use crate::app::App;
use crate::console;
use crate::http::NOSNIFF;
use crate::http::problem::Problem;
use crate::http::{extract, negotiate, problem_page};
use crate::router::paths;

/// Header with the id of a request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
/// Has browsers use https alone, for a year.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, ETag, Location, X-Request-Id",
);
const ALLOWED_METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, If-None-Match, If-Range, Range, Idempotency-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name",
);

/// Properties of a request that decide the format of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerFormat {
    options: bool,
    /// Whether this is a HEAD request, whose answer has no body.
    head: bool,
    /// Whether any origin may read the answer.
    cors: bool,
    /// Whether errors are answered as HTML pages.
    html_errors: bool,
    /// Whether the path is `/`.
    is_start_page: bool,
    /// Whether the console's host answers, whose answers are for its own origin alone.
    is_console: bool,
}

impl AnswerFormat {
    /// Returns the format of the answer to a request, whose path is in its canonical form.
    pub(super) fn for_request(is_console: bool, request: &Request) -> Self {
        let (path, headers) = (request.uri().path(), request.headers());
        // A form in a browser is answered with a page, whatever its path.
        let is_page = !paths::is_for_programs(path)
            || (paths::takes_forms(path) && extract::is_form(headers));
        Self {
            options: request.method() == Method::OPTIONS,
            head: request.method() == Method::HEAD,
            cors: !is_console && !paths::is_same_origin_only(path),
            html_errors: !is_console && is_page && negotiate::wants_html(headers),
            is_start_page: path == "/",
            is_console,
        }
    }

    /// Lets any origin read the answer, where it may.
    fn add_cors_headers(&self, headers: &mut HeaderMap) {
        if !self.cors {
            return;
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        if self.options {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
            headers.insert(
                header::ACCESS_CONTROL_MAX_AGE,
                HeaderValue::from_static("86400"),
            );
        }
    }
}

/// Adds the headers of every answer.
pub(super) fn add_common_headers(
    app: &App,
    format: &AnswerFormat,
    request_id: &str,
    headers: &mut HeaderMap,
) {
    format.add_cors_headers(headers);
    if format.is_console {
        console::add_protective_headers(headers);
    }
    if app.config.secure || (format.is_console && app.config.has_secure_console()) {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    if let Ok(value) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, value);
    }
}

/// Logs and writes the problem of an answer, if it carries one.
pub(super) fn write_if_problem(
    app: &App,
    format: &AnswerFormat,
    request_id: &str,
    response: &mut Response,
) {
    let Some(problem) = response.extensions_mut().remove::<Box<Problem>>() else {
        return;
    };
    problem.log(request_id);
    write_problem(app, format, request_id, &problem, response);
}

/// Writes a problem into the answer's body: an HTML page for a browser on a page route, else the problem document.
fn write_problem(
    app: &App,
    format: &AnswerFormat,
    request_id: &str,
    problem: &Problem,
    response: &mut Response,
) {
    let (body, kind) = if format.html_errors {
        // A 404 of the start page itself, as of a project that has published nothing, leads to the API host.
        let start = match format.is_start_page {
            true => app.config.base_url.as_str(),
            false => "/",
        };
        (
            problem_page::error_page(problem, request_id, start).into_string(),
            "text/html; charset=utf-8",
        )
    } else {
        let document = problem.document(&app.config.base_url, request_id);
        (document.to_json(), "application/problem+json")
    };
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    if format.html_errors {
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            problem_page::CONTENT_SECURITY_POLICY,
        );
    }
    *response.body_mut() = if format.head {
        Body::empty()
    } else {
        Body::from(body)
    };
}
