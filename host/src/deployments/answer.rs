//! From a finished page to an HTTP answer: encoding, validators, ranges (RFC 9110).

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::Markup;

use super::pages::{self, Kind, Page};
use super::publish::PublishError;
use super::serve::RawSource;
use super::{Deployments, forms};
use crate::config::Config;
use crate::content::{Digest, Encoding, gzip_quickly};
use crate::http::NOSNIFF;
use crate::http::document;
use crate::http::problem::Problem;
use crate::http::problem_page;
use svc_base::clock::Timestamp;

/// The longest that an edge is told to keep a page, in seconds.
const EDGE_SECONDS: i64 = 31_536_000;
/// Header that edges heed and browsers do not (RFC 9213).
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// A smaller source is sent as it is: it fits into a packet or two.
const WORTH: usize = 1024;

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
    let best = document::preferred_variant(&page.variants, request, |variant| variant.encoding);
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

/// Leads a browser that opens a frontend elsewhere on to its project's origin: only there it can sign visitors in and open sockets.
///
/// # Errors
/// `internal` for an address that no header can hold.
pub(super) fn lead_home(
    config: &Config,
    page: &Page,
    slug: &str,
    query: Option<&str>,
) -> Result<Response, Problem> {
    let Kind::Frontend { host_label } = &page.kind else {
        return Err(Problem::not_found());
    };
    let mut location = format!("{}/{slug}", config.project_origin(host_label));
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

/// How long an edge may keep a page: for long, but not past its end.
fn edge_life(page: &Page, now: Timestamp) -> Result<HeaderValue, Problem> {
    let left = page
        .expires_at
        .map_or(EDGE_SECONDS, |end| (end.0 - now.0) / 1000);
    let life = format!("max-age={}", left.clamp(0, EDGE_SECONDS));
    HeaderValue::try_from(life).map_err(|error| Problem::internal(&error))
}

impl Deployments {
    /// The source of a page, encoded as the request likes it, by a worker. Sources are kept as they were published and asked for
    /// rarely, so their encodings are not kept.
    ///
    /// # Errors
    /// `range_not_satisfiable`, `capacity_reached`.
    pub(super) async fn answer_raw(
        &self,
        page: &Page,
        source: RawSource,
        request: &HeaderMap,
    ) -> Result<Response, Problem> {
        let mut headers =
            pages::headers(&page.kind, page.is_protected(), self.page_policy().origins);
        let kind = HeaderValue::from_static(page.content_type.media_type());
        headers.insert(header::CONTENT_TYPE, kind);
        let encodings = [Encoding::Gzip, Encoding::Identity];
        let liked = document::preferred_variant(&encodings, request, |encoding| *encoding).copied();
        let encoding = liked
            .filter(|_| source.bytes.len() >= WORTH)
            .unwrap_or(Encoding::Identity);
        let bytes = match encoding {
            Encoding::Identity => source.bytes,
            _ => {
                let encoding = self
                    .sandbox
                    .page_lane()
                    .run(move |_| gzip_quickly(&source.bytes));
                let encoded = encoding.await.map_err(PublishError::from)?;
                encoded.map_err(|error| Problem::internal(&error))?
            }
        };
        let etag = document::etag(&source.digest, encoding);
        document::add_variant_headers(&mut headers, &etag, encoding);
        document::respond(headers, &etag, &bytes, request)
    }
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
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    headers.insert(header::ETAG, etag.clone());
    document::respond(headers, &etag, bytes, request)
}

/// The page in place of one that the operator has disabled.
pub(super) fn disabled_page(config: &Config) -> Response {
    platform_page(StatusCode::FORBIDDEN, &forms::disabled(config))
}

/// One of the platform's own pages: its own policy, never stored, never indexed.
pub fn platform_page(status: StatusCode, page: &Markup) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, pages::PRIVATE),
        (header::CONTENT_SECURITY_POLICY, problem_page::POLICY),
        // A form's POST must carry its origin, which `no-referrer` would turn into `null`.
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("same-origin"),
        ),
        NOSNIFF,
        (
            HeaderName::from_static("x-robots-tag"),
            HeaderValue::from_static("noindex"),
        ),
    ];
    let body = Bytes::from(page.clone().into_string());
    (status, headers, body).into_response()
}
