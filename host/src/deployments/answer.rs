//! From a finished page to an HTTP answer: encoding, validators, ranges (RFC 9110).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::pages::{self, Page};
use super::serve::RawSource;
use crate::clock::Timestamp;
use crate::content::{Digest, Encoding};
use crate::http::negotiate::{self, Accepted, Wanted};
use crate::http::problem::{Code, Problem};
use crate::sandbox::ContentType;

/// The longest that an edge is told to keep a page, in seconds.
const EDGE_SECONDS: i64 = 31_536_000;
/// What an edge heeds, and nobody else (RFC 9213).
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// Where a page is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On its project's origin.
    Home,
    /// On the sites host.
    Sites,
    /// On a host whose addresses are never purged, so that no edge is told to keep it.
    Elsewhere,
}

/// The whole page, a part of it, or that the client has it.
///
/// # Errors
/// `range_not_satisfiable`.
pub(super) fn page(
    page: &Page,
    place: Place,
    now: Timestamp,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let accepted = Accepted::of(request);
    // Of equals the first is the server's choice, and identity, which everybody takes, is last.
    let mut best = page.variants.first();
    for variant in &page.variants {
        let better = |held: Encoding| accepted.quality(variant.encoding) > accepted.quality(held);
        if best.is_none_or(|held| better(held.encoding)) {
            best = Some(variant);
        }
    }
    let Some(variant) = best else {
        return Err(Problem::internal(&format!(
            "page {} has no variants",
            page.id
        )));
    };
    let headers = match &variant.headers_at_home {
        Some(headers) if place == Place::Home => headers,
        _ => &variant.headers,
    };
    let mut headers = headers.clone();
    if page.at_edge && place != Place::Elsewhere {
        headers.insert(CDN_CACHE_CONTROL, edge_life(page, now)?);
    }
    respond(headers, &variant.etag, &variant.bytes, request)
}

/// How long an edge may keep a page: for long, but not past its end.
fn edge_life(page: &Page, now: Timestamp) -> Result<HeaderValue, Problem> {
    let left = page
        .expires_at
        .map_or(EDGE_SECONDS, |end| (end.0 - now.0) / 1000);
    let life = format!("max-age={}", left.clamp(0, EDGE_SECONDS));
    HeaderValue::try_from(life).map_err(|error| Problem::internal(&error))
}

/// The source of a page, as something that no browser runs.
///
/// # Errors
/// `range_not_satisfiable`.
pub(super) fn raw(
    page: &Page,
    source: &RawSource,
    origins: bool,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let kind = match page.content_type {
        ContentType::Html | ContentType::Markdown | ContentType::Mermaid => {
            "text/plain; charset=utf-8"
        }
        ContentType::Json => "application/json",
        ContentType::Csv => "text/csv; charset=utf-8",
    };
    let etag = pages::etag(&source.digest, Encoding::Identity);
    let mut headers = pages::headers(&page.kind, page.is_protected(), origins);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    respond(headers, &etag, &source.bytes, request)
}

/// Something of the platform's own that is named by its content.
///
/// # Errors
/// `range_not_satisfiable`.
pub(super) fn immutable(
    kind: &'static str,
    digest: &Digest,
    bytes: &Bytes,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = pages::etag(digest, Encoding::Identity);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, pages::IMMUTABLE);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::ETAG, etag.clone());
    respond(headers, &etag, bytes, request)
}

fn respond(
    mut headers: HeaderMap,
    etag: &HeaderValue,
    bytes: &Bytes,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let tag = etag.to_str().unwrap_or_default();
    if request.contains_key(header::IF_NONE_MATCH) && negotiate::none_match(request, tag) {
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::ACCEPT_RANGES,
        ] {
            headers.remove(name);
        }
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let mut response = Response::new(Body::empty());
    match negotiate::range(request, tag, bytes.len()) {
        Wanted::Whole => *response.body_mut() = Body::from(bytes.clone()),
        Wanted::Part(range) => {
            let part = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
            let part = HeaderValue::try_from(part).map_err(|e| Problem::internal(&e))?;
            headers.insert(header::CONTENT_RANGE, part);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            *response.body_mut() = Body::from(bytes.slice(range));
        }
        Wanted::Unsatisfiable => {
            let length = HeaderValue::try_from(format!("bytes */{}", bytes.len()));
            return Err(Problem::new(
                Code::RangeNotSatisfiable,
                format!(
                    "The page has {} bytes, and none in the range that was asked for.",
                    bytes.len()
                ),
            )
            .header(
                header::CONTENT_RANGE,
                length.map_err(|e| Problem::internal(&e))?,
            ));
        }
    }
    *response.headers_mut() = headers;
    Ok(response)
}
