//! From a finished page to an HTTP answer: encoding, validators, ranges (RFC 9110).

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use maud::Markup;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::large_files::{append_vary, large_file_response};
use super::pages::{self, PageKind, PagePolicy, ServedPage};
use super::{PageService, RawSource};
use crate::config::Config;
use crate::content::{Digest, Encoding};
use crate::deployments::forms;
use crate::deployments::sites::{
    HeaderScope, RuleRedirect, SiteAnswer, SiteFile, SiteManifest, SiteRequest, is_encoded,
    is_html, is_runtime_path, keeps_from_edges, media_type,
};
use crate::http::NOSNIFF;
use crate::http::document;
use crate::http::hosts::HostKind;
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::http::problem_page;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

/// Maximum time for which an edge may keep a page, in seconds.
const MAX_EDGE_SECONDS: i64 = 31_536_000;
/// Header that edges heed and browsers do not (RFC 9213).
const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");
/// Has edges keep nothing of an answer that no purge reaches, whatever browsers may keep.
const NOTHING_AT_EDGES: HeaderValue = HeaderValue::from_static("no-store");

/// Characters that stay unencoded in a path: RFC 3986's unreserved ones, and the slash.
const ESCAPED_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Media type of documents that browsers show by a plug-in.
const PDF_TYPE: &str = "application/pdf";
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
            HostKind::Api | HostKind::Landing => Self::Unpurged,
        }
    }
}

/// A request for a path below a site's mount.
#[derive(Debug)]
pub(in crate::deployments) struct SiteHttpRequest<'r> {
    /// Path of the mount, with a slash at its end.
    mount: &'r str,
    /// Decoded path below it.
    path: Cow<'r, str>,
    query: Option<&'r str>,
    headers: &'r HeaderMap,
    origin: RequestOrigin,
    /// Whether a file or a rule may answer.
    may_be_file: bool,
}

/// Says in the answer of a file that it answers at another address, too, which is the one to name.
///
/// # Errors
/// `internal` for an address that no header can hold.
pub(super) fn name_canonical(response: &mut Response, address: &str) -> Result<(), Problem> {
    if response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED {
        let link = HeaderValue::try_from(format!("<{address}>; rel=\"canonical\""))?;
        response.headers_mut().append(header::LINK, link);
    }
    Ok(())
}

impl<'r> SiteHttpRequest<'r> {
    /// Reads a request whose path is in its canonical form.
    ///
    /// # Errors
    /// `not_found` for a path that is not below the mount, is no text, or is the runtime's.
    pub(in crate::deployments) fn new(
        mount: &'r str,
        uri: &'r Uri,
        headers: &'r HeaderMap,
        origin: RequestOrigin,
    ) -> Result<Self, Problem> {
        let path = uri.path().strip_prefix(mount);
        let path = path.and_then(|path| percent_decode_str(path).decode_utf8().ok());
        let path = path.filter(|path| !is_runtime_path(path));
        Ok(Self {
            mount,
            path: path.ok_or_else(Problem::not_found)?,
            query: uri.query(),
            headers,
            origin,
            may_be_file: true,
        })
    }

    /// Reads a request for a path that no file can have, and that is not the runtime's.
    pub(super) fn missing(
        (mount, path): (&'r str, &'r str),
        headers: &'r HeaderMap,
        origin: RequestOrigin,
    ) -> Result<Self, Problem> {
        let path = Some(path).filter(|path| !is_runtime_path(path));
        Ok(Self {
            mount,
            path: path.ok_or_else(Problem::not_found)?.into(),
            query: None,
            headers,
            origin,
            may_be_file: false,
        })
    }

    /// Says that clients leave the slug out, so that the mount is the root of the host.
    pub(super) fn at_root(mut self) -> Self {
        self.mount = "/";
        self
    }

    /// Whether a browser opens the address as a page.
    fn is_navigation(&self) -> bool {
        match self.headers.get("sec-fetch-mode") {
            Some(mode) => mode == "navigate",
            None => negotiate::wants_html(self.headers),
        }
    }
}

/// Answer to a request below a site's mount.
#[derive(Debug)]
pub(in crate::deployments) struct SiteResponse {
    /// The answer.
    pub(in crate::deployments) response: Response,
    /// Whether a visitor has opened a page of the site.
    pub(in crate::deployments) is_view: bool,
}

impl SiteResponse {
    fn without_view(response: Response) -> Self {
        Self {
            response,
            is_view: false,
        }
    }
}

/// Answers a request below a site's mount.
///
/// # Errors
/// `not_found`, `range_not_satisfiable`, `capacity_reached`.
pub(in crate::deployments) async fn site_response(
    serving: &PageService,
    page: &ServedPage,
    site: &SiteManifest,
    request: &SiteHttpRequest<'_>,
) -> Result<SiteResponse, Problem> {
    let is_navigation = request.is_navigation();
    let asked = SiteRequest {
        path: &request.path,
        is_navigation,
    };
    let by_path = || site.by_path(&request.path);
    let answer = match request.may_be_file.then(by_path).flatten() {
        Some(found) => found,
        None => match former_response(serving, (page, site), request).await? {
            Some(response) => return Ok(response),
            None => site.in_place_of_file(asked),
        },
    };
    let (path, is_routed, status) = match answer {
        SiteAnswer::File(path) => (path, false, StatusCode::OK),
        SiteAnswer::Fallback(path) => (path, true, StatusCode::OK),
        SiteAnswer::NotFoundPage(path) => (path, false, StatusCode::NOT_FOUND),
        SiteAnswer::Redirect(path) => {
            let path = utf8_percent_encode(&path, ESCAPED_IN_PATH);
            let location = format!("{}{path}", request.mount);
            return redirect_below(&location, request.query).map(SiteResponse::without_view);
        }
        SiteAnswer::Rule(redirect) => {
            return rule_response(&redirect, request).map(SiteResponse::without_view);
        }
        SiteAnswer::Missing => return Err(Problem::not_found()),
    };
    let file = site.files.get(path).copied();
    let file = (file.ok_or_else(Problem::not_found)?, path);
    let mut headers = site_file_headers(serving, page, request, path)?;
    let scope = header_scope(page, request, status == StatusCode::NOT_FOUND);
    site.rules.add_headers(&request.path, scope, &mut headers);
    if keeps_from_edges(&headers) {
        headers.remove(CDN_CACHE_CONTROL);
    }
    if is_routed {
        // Another request for the address has another answer, which an edge may not know.
        forbid_edges(&mut headers);
        headers.append(
            header::VARY,
            HeaderValue::from_static("Accept, Sec-Fetch-Mode"),
        );
    }
    let response = match status {
        StatusCode::OK => file_response(serving, page.id, file, headers, request.headers).await?,
        _ => not_found_page(serving, page.id, file, headers).await?,
    };
    let seen = matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
    Ok(SiteResponse {
        is_view: seen && is_navigation && is_html(path),
        response,
    })
}

/// Answers a site's page for missing files, which nobody keeps.
async fn not_found_page(
    serving: &PageService,
    site: DeploymentId,
    file: (SiteFile, &str),
    mut headers: HeaderMap,
) -> Result<Response, Problem> {
    headers.remove(CDN_CACHE_CONTROL);
    let mut response = file_response(serving, site, file, headers, &HeaderMap::new()).await?;
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.remove(header::ETAG);
    headers.remove(header::ACCEPT_RANGES);
    Ok(response)
}

/// Answers a file that a former revision had at a path, and the live one does not have: a tab that was opened before may need it.
async fn former_response(
    serving: &PageService,
    (page, site): (&ServedPage, &SiteManifest),
    request: &SiteHttpRequest<'_>,
) -> Result<Option<SiteResponse>, Problem> {
    let path = &*request.path;
    if !request.may_be_file {
        return Ok(None);
    }
    let Some(found) = serving.former_file(page, path).await? else {
        return Ok(None);
    };
    let mut headers = site_file_headers(serving, page, request, path)?;
    let scope = header_scope(page, request, false);
    site.rules.add_headers(path, scope, &mut headers);
    // Nothing is purged when its time is over.
    forbid_edges(&mut headers);
    if !found.was_immutable {
        headers.insert(header::CACHE_CONTROL, document::REVALIDATE);
    }
    let file = (found.file, path);
    let response = file_response(serving, page.id, file, headers, request.headers).await?;
    Ok(Some(SiteResponse::without_view(response)))
}

/// Returns what rules are applied to.
fn header_scope(page: &ServedPage, request: &SiteHttpRequest<'_>, is_missing: bool) -> HeaderScope {
    HeaderScope {
        is_missing,
        is_own_origin: request.origin == RequestOrigin::Project,
        is_preview: page.kind == PageKind::Preview,
    }
}

/// Has edges keep nothing of an answer that they would keep.
fn forbid_edges(headers: &mut HeaderMap) {
    if let Some(lifetime) = headers.get_mut(CDN_CACHE_CONTROL) {
        *lifetime = NOTHING_AT_EDGES;
    }
}

/// Composes the headers of a file of a site, without those of its encoding.
fn site_file_headers(
    serving: &PageService,
    page: &ServedPage,
    request: &SiteHttpRequest<'_>,
    path: &str,
) -> Result<HeaderMap, Problem> {
    let policy = serving.page_policy();
    let on_own_origin = request.origin == RequestOrigin::Project;
    let mut headers = match request.origin {
        RequestOrigin::Preview => pages::preview_origin_headers(),
        _ => pages::site_headers(&page.kind, on_own_origin, policy.origins),
    };
    let media_type = media_type(path);
    if media_type == PDF_TYPE && headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        // Browsers show none in a sandbox.
        let saved = HeaderValue::from_static("attachment");
        headers.insert(header::CONTENT_DISPOSITION, saved);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::try_from(media_type)?);
    if is_immutable(page, request, path) {
        headers.insert(header::CACHE_CONTROL, pages::CACHE_FOREVER);
    }
    if page.is_frontend() && policy.origins && !on_own_origin {
        headers.insert(header::VARY, pages::VARY_NAVIGATION);
    }
    add_edge_header(&mut headers, page, request.origin, serving.now())?;
    Ok(headers)
}

/// Whether a file's address never answers other bytes. One without the file's whole name may lead to another file some day, and a quick
/// share ends.
fn is_immutable(page: &ServedPage, request: &SiteHttpRequest<'_>, path: &str) -> bool {
    let has_pattern = |site: &SiteManifest| site.options.is_immutable(path);
    page.is_frontend() && request.path == path && page.site.as_ref().is_some_and(has_pattern)
}

/// Answers a file: all of it, a part of it, or that the client has it. A large one is read as it is sent.
async fn file_response(
    serving: &PageService,
    site: DeploymentId,
    (file, path): (SiteFile, &str),
    mut headers: HeaderMap,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    serving.check_file(&file)?;
    let vary: Vec<HeaderValue> = headers.get_all(header::VARY).iter().cloned().collect();
    let is_text = is_encoded(path, file.bytes, serving.config().limits.page_bytes);
    let is_part = request.contains_key(header::RANGE);
    // The parts of a large file are looked at where it is read, if content is blocked.
    let is_whole = is_text && !is_part && serving.blocked.is_empty();
    if file.list.is_none() || is_whole {
        let served = serving.served_file(file, is_text.then_some(site)).await?;
        if let Some(variant) = served.variant(request) {
            document::add_variant_headers(&mut headers, &variant.etag, variant.encoding);
            append_vary(&mut headers, vary);
            return document::respond(headers, &variant.etag, &variant.bytes, request);
        }
    }
    large_file_response(serving, file, (headers, vary), request).await
}

/// Redirects as a rule of the site says. Nobody keeps the answer: the next revision may have another rule.
fn rule_response(
    redirect: &RuleRedirect<'_>,
    request: &SiteHttpRequest<'_>,
) -> Result<Response, Problem> {
    let location = redirect.location(request.mount, request.query);
    let headers = [
        (header::LOCATION, HeaderValue::try_from(location)?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((redirect.status, headers).into_response())
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
fn add_edge_header(
    headers: &mut HeaderMap,
    page: &ServedPage,
    origin: RequestOrigin,
    now: Timestamp,
) -> Result<(), Problem> {
    let said = match origin {
        RequestOrigin::Unpurged | RequestOrigin::Preview => NOTHING_AT_EDGES,
        RequestOrigin::Project | RequestOrigin::Sites if page.is_frontend() => {
            edge_lifetime(page, now)?
        }
        // It tells browsers and edges alike that it is asked for every time.
        RequestOrigin::Project | RequestOrigin::Sites => return Ok(()),
    };
    if page.has_edge {
        headers.insert(CDN_CACHE_CONTROL, said);
    }
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
    let preferred = document::preferred_variant(&encodings, request, |encoding| *encoding).copied();
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
