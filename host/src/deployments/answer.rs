//! From a finished page to an HTTP answer: encoding, validators, ranges (RFC 9110).

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::pages::{self, Page};
use crate::clock::Timestamp;
use crate::content::{Digest, Encoding};
use crate::http::document;
use crate::http::problem::Problem;

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
    let best = document::preferred(&page.variants, request, |variant| variant.encoding);
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
    document::respond(headers, &variant.etag, &variant.bytes, request)
}

/// How long an edge may keep a page: for long, but not past its end.
fn edge_life(page: &Page, now: Timestamp) -> Result<HeaderValue, Problem> {
    let left = page
        .expires_at
        .map_or(EDGE_SECONDS, |end| (end.0 - now.0) / 1000);
    let life = format!("max-age={}", left.clamp(0, EDGE_SECONDS));
    HeaderValue::try_from(life).map_err(|error| Problem::internal(&error))
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
    let etag = document::etag(digest, Encoding::Identity);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, pages::IMMUTABLE);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::ETAG, etag.clone());
    document::respond(headers, &etag, bytes, request)
}
