//! From a finished page to an HTTP answer: encoding, validators, ranges (RFC 9110).

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::Markup;

use super::RawSource;
use super::pages::{self, PageKind, PagePolicy, ServedPage};
use crate::config::Config;
use crate::content::{Digest, Encoding};
use crate::deployments::forms;
use crate::http::NOSNIFF;
use crate::http::document;
use crate::http::hosts::HostKind;
use crate::http::problem::Problem;
use crate::http::problem_page;
use svc_base::clock::Timestamp;

/// Maximum time for which an edge may keep a page, in seconds.
const MAX_EDGE_SECONDS: i64 = 31_536_000;
/// Header that edges heed and browsers do not (RFC 9213).
pub(super) const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// Has edges keep nothing of an answer that no purge reaches, whatever browsers may keep.
pub(super) const NOTHING_AT_EDGES: HeaderValue = HeaderValue::from_static("no-store");

/// Bytes of the smallest source that is compressed: a smaller one fits into a packet or two.
const SMALLEST_COMPRESSED: usize = 1024;

/// Origin that a page is asked for on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::deployments) enum RequestOrigin {
    /// The project's own.
    Project,
    /// The sites host.
    Sites,
    /// Host whose addresses are never purged, so no edge may keep its pages.
    Unpurged,
    /// The own origin of a revision, which no edge may keep.
    Preview,
}

impl RequestOrigin {
    /// Returns the origin of a host.
    pub(super) fn of(host: &HostKind) -> Self {
        match host {
            HostKind::Project(_) | HostKind::Domain(_) => Self::Project,
            HostKind::Sites => Self::Sites,
            HostKind::Preview(_) => Self::Preview,
            HostKind::Api | HostKind::Landing | HostKind::Console => Self::Unpurged,
        }
    }
}

/// Whether a GET of a page that is answered with a status is a visit: one that asks for a part is none, whatever it gets.
pub(super) fn is_visit(status: StatusCode, request: &HeaderMap) -> bool {
    matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED)
        && !request.contains_key(header::RANGE)
}

/// Redirects to another path, with the query of the request.
///
/// # Errors
/// `internal` for a path that no header can hold.
pub(super) fn redirect_below(path: &str, query: Option<&str>) -> Result<Response, Problem> {
    let location = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let headers = [
        (header::LOCATION, HeaderValue::try_from(location)?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}

/// Answers the whole page, a part of it, or that the client has it.
///
/// # Errors
/// `range_not_satisfiable`.
pub(in crate::deployments) fn page_response(
    page: &ServedPage,
    origin: RequestOrigin,
    now: Timestamp,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let best = document::preferred_variant(&page.variants, request, |variant| variant.encoding);
    let Some(variant) = best else {
        return Err(Problem::internal(&format!(
            "page {} has no variants",
            page.id
        )));
    };
    let headers = match &variant.project_origin_headers {
        Some(headers) if origin == RequestOrigin::Project => headers,
        _ => &variant.headers,
    };
    let mut headers = headers.clone();
    add_edge_header(&mut headers, page, origin, now)?;
    document::respond(headers, &variant.etag, &variant.bytes, request)
}

/// Redirects a browser that opens a frontend elsewhere to its project's origin: only there it can sign visitors in and open sockets.
///
/// # Errors
/// `internal` for an address that no header can hold.
pub(super) fn redirect_to_project_origin(
    config: &Config,
    page: &ServedPage,
    path: &str,
    query: Option<&str>,
) -> Result<Response, Problem> {
    let PageKind::Frontend { host_label } = &page.kind else {
        return Err(Problem::not_found());
    };
    let mut location = format!("{}{path}", config.project_origin(host_label));
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    let location = HeaderValue::try_from(location).map_err(|error| Problem::internal(&error))?;
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::VARY, pages::VARY_NAVIGATION),
    ];
    Ok((StatusCode::FOUND, headers).into_response())
}

/// Says how long an edge in front may keep an answer, if there is one: a frontend's until it is purged, and nothing that no purge reaches.
pub(super) fn add_edge_header(
    headers: &mut HeaderMap,
    page: &ServedPage,
    origin: RequestOrigin,
    now: Timestamp,
) -> Result<(), Problem> {
    if !page.has_edge {
        return Ok(());
    }
    let said = match origin {
        RequestOrigin::Unpurged | RequestOrigin::Preview => NOTHING_AT_EDGES,
        RequestOrigin::Project | RequestOrigin::Sites if page.is_frontend() => {
            edge_lifetime(page, now)?
        }
        // It tells browsers and edges alike that it is asked for every time.
        RequestOrigin::Project | RequestOrigin::Sites => return Ok(()),
    };
    headers.insert(CDN_CACHE_CONTROL, said);
    Ok(())
}

/// Returns how long an edge may keep a page: for long, but not past its end.
fn edge_lifetime(page: &ServedPage, now: Timestamp) -> Result<HeaderValue, Problem> {
    let left = page
        .expires_at
        .map_or(MAX_EDGE_SECONDS, |end| (end.0 - now.0) / 1000);
    let lifetime = format!("max-age={}", left.clamp(0, MAX_EDGE_SECONDS));
    HeaderValue::try_from(lifetime).map_err(|error| Problem::internal(&error))
}

/// Chooses the encoding of a source: a large one is compressed for a client that takes gzip.
pub(super) fn source_encoding(source: &RawSource, request: &HeaderMap) -> Encoding {
    let encodings = [Encoding::Gzip, Encoding::Identity];
    let preferred = document::preferred_variant(encodings, request, |encoding| *encoding);
    preferred
        .filter(|_| source.bytes.len() >= SMALLEST_COMPRESSED)
        .unwrap_or(Encoding::Identity)
}

/// Answers the source of a page: all of it, a part of it, or that the client has it.
///
/// # Errors
/// `range_not_satisfiable`.
pub(super) fn source_response(
    page: &ServedPage,
    source: &RawSource,
    policy: PagePolicy,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let mut headers = pages::trust_headers(&page.kind, page.is_protected(), policy.origins);
    let content_type = page.content_type.page().ok_or_else(Problem::not_found)?;
    let media_type = HeaderValue::from_static(content_type.media_type());
    headers.insert(header::CONTENT_TYPE, media_type);
    let etag = document::etag(&source.digest, source.encoding);
    document::add_variant_headers(&mut headers, &etag, source.encoding);
    document::respond(headers, &etag, &source.bytes, request)
}

/// Answers a file of the platform that is named by its content.
///
/// # Errors
/// `range_not_satisfiable`.
pub(in crate::deployments) fn immutable_response(
    media_type: &'static str,
    digest: &Digest,
    bytes: &Bytes,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = document::etag(digest, Encoding::Identity);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, pages::CACHE_FOREVER);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    headers.insert(header::ETAG, etag.clone());
    document::respond(headers, &etag, bytes, request)
}

/// Answers a file of the platform that is another one after each release of it, and for each site.
///
/// # Errors
/// `range_not_satisfiable`.
pub(in crate::deployments) fn revalidated_response(
    media_type: &'static str,
    digest: &Digest,
    bytes: &Bytes,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = document::etag(digest, Encoding::Identity);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    let cache = HeaderValue::from_static("no-cache");
    headers.insert(header::CACHE_CONTROL, cache);
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    headers.insert(header::ETAG, etag.clone());
    document::respond(headers, &etag, bytes, request)
}

/// Returns the page in place of one that the operator has disabled.
pub(in crate::deployments) fn disabled_page(config: &Config) -> Response {
    platform_page(StatusCode::FORBIDDEN, &forms::taken_down_notice(config))
}

/// Answers one of the platform's own pages: its own policy, never stored, never indexed.
pub fn platform_page(status: StatusCode, page: &Markup) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, pages::NO_STORE),
        (
            header::CONTENT_SECURITY_POLICY,
            problem_page::CONTENT_SECURITY_POLICY,
        ),
        // A form's POST must carry its origin, which `no-referrer` would turn into `null`.
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("same-origin"),
        ),
        NOSNIFF,
        pages::UNLISTED,
    ];
    let body = Bytes::from(page.clone().into_string());
    (status, headers, body).into_response()
}
