//! From a request for a path of a site to an HTTP answer: a file, the page in place of a missing one, or where to ask instead.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;

use super::PageService;
use super::answer::{self, CDN_CACHE_CONTROL, NOTHING_AT_EDGES, RequestOrigin};
use super::pages::{self, PageKind, ServedPage, ServedSite};
use crate::content::Encoding;
use crate::deployments::sites::{
    HeaderScope, MediaType, RuleRedirect, SiteAnswer, SiteFile, SiteRequest, is_runtime_path,
    keeps_from_edges, url_path,
};
use crate::http::document;
use crate::http::negotiate;
use crate::http::problem::Problem;
use svc_base::ids::DeploymentId;

/// A request for a path below a site's mount.
#[derive(Debug)]
pub(in crate::deployments) struct SiteHttpRequest<'r> {
    /// Path of the mount, with a slash at its end.
    mount: Cow<'r, str>,
    /// Decoded path below it.
    path: Cow<'r, str>,
    query: Option<&'r str>,
    headers: &'r HeaderMap,
    origin: RequestOrigin,
    /// Whether a file or a rule may answer.
    may_be_file: bool,
}

impl<'r> SiteHttpRequest<'r> {
    /// Reads a request whose path is in its canonical form.
    ///
    /// # Errors
    /// `not_found` for a path that is not below the mount, is no text, or is the runtime's.
    pub(in crate::deployments) fn new(
        mount: impl Into<Cow<'r, str>>,
        uri: &'r Uri,
        headers: &'r HeaderMap,
        origin: RequestOrigin,
    ) -> Result<Self, Problem> {
        let mount = mount.into();
        let path = uri.path().strip_prefix(&*mount);
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
        (mount, path): (String, &'r str),
        headers: &'r HeaderMap,
        origin: RequestOrigin,
    ) -> Result<Self, Problem> {
        let path = Some(path).filter(|path| !is_runtime_path(path));
        Ok(Self {
            mount: mount.into(),
            path: path.ok_or_else(Problem::not_found)?.into(),
            query: None,
            headers,
            origin,
            may_be_file: false,
        })
    }

    /// Says that clients leave the slug out, so that the mount is the root of the host.
    pub(super) fn at_root(mut self) -> Self {
        self.mount = "/".into();
        self
    }

    /// Returns the decoded path below the mount.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the headers of the request.
    pub(super) fn headers(&self) -> &'r HeaderMap {
        self.headers
    }

    /// Whether a browser opens the address as a page.
    pub(super) fn is_navigation(&self) -> bool {
        match self.headers.get("sec-fetch-mode") {
            Some(mode) => mode == "navigate",
            None => negotiate::wants_html(self.headers),
        }
    }

    /// Whether the site is asked for on an origin where nothing else is.
    fn is_on_own_origin(&self) -> bool {
        matches!(self.origin, RequestOrigin::Project | RequestOrigin::Preview)
    }
}

/// Says in the answer of a file that it answers at another address, too, which is the one to name: that of a path on an origin.
///
/// # Errors
/// `internal` for an address that no header can hold.
pub(super) fn name_canonical(
    headers: &mut HeaderMap,
    (origin, path): (&str, &str),
) -> Result<(), Problem> {
    let link = HeaderValue::try_from(format!("<{origin}{path}>; rel=\"canonical\""))?;
    headers.append(header::LINK, link);
    Ok(())
}

/// Answer to a request below a site's mount.
#[derive(Debug)]
pub(in crate::deployments) struct SiteResponse {
    /// Status, headers and body.
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

    /// Whether the answer is a file, or says that the client has it.
    pub(super) fn has_file(&self) -> bool {
        let status = self.response.status();
        status.is_success() || status == StatusCode::NOT_MODIFIED
    }
}

/// Answers a request below a site's mount.
///
/// # Errors
/// `not_found`, `range_not_satisfiable`, `capacity_reached`.
pub(in crate::deployments) async fn site_response(
    serving: &PageService,
    (page, site): (&ServedPage, &ServedSite),
    request: &SiteHttpRequest<'_>,
) -> Result<SiteResponse, Problem> {
    let found = match request.may_be_file {
        true => site.manifest.by_path(&request.path),
        false => site.manifest.by_rule(&request.path),
    };
    let answer = match found {
        Some(found) => found,
        None => match former_response(serving, (page, site), request).await? {
            Some(response) => return Ok(SiteResponse::without_view(response)),
            None => site.manifest.in_place_of_file(SiteRequest {
                path: &request.path,
                is_navigation: request.is_navigation(),
            }),
        },
    };
    let (found, is_routed, status) = match answer {
        SiteAnswer::File(found) => (found, false, StatusCode::OK),
        SiteAnswer::Fallback(found) => (found, true, StatusCode::OK),
        SiteAnswer::NotFoundPage(found) => (found, false, StatusCode::NOT_FOUND),
        SiteAnswer::Redirect(path) => {
            let location = format!("{}{}", request.mount, url_path(&path));
            let response = answer::redirect_below(&location, request.query);
            return response.map(SiteResponse::without_view);
        }
        SiteAnswer::Rule(redirect) => {
            return rule_response(&redirect, request).map(SiteResponse::without_view);
        }
        SiteAnswer::Missing => return Err(Problem::not_found()),
    };
    let media = MediaType::of(found.path);
    let of = (request, (found.path, &media));
    let is_missing = status == StatusCode::NOT_FOUND;
    let mut headers = ruled_headers(serving, (page, site), of, is_missing)?;
    if is_routed {
        // Another request for the address has another answer, which an edge may not know.
        forbid_edges(&mut headers);
        headers.append(
            header::VARY,
            HeaderValue::from_static("Accept, Sec-Fetch-Mode"),
        );
    }
    let file = (found.file, &media);
    let response = match status {
        StatusCode::OK => file_response(serving, page.id, file, headers, request.headers).await?,
        _ => not_found_page(serving, page.id, file, headers).await?,
    };
    let seen = answer::is_visit(response.status(), request.headers);
    Ok(SiteResponse {
        is_view: seen && media.is_html() && request.is_navigation(),
        response,
    })
}

/// Answers a site's page for missing files, which nobody keeps.
async fn not_found_page(
    serving: &PageService,
    site: DeploymentId,
    file: (SiteFile, &MediaType),
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
    (page, site): (&ServedPage, &ServedSite),
    request: &SiteHttpRequest<'_>,
) -> Result<Option<Response>, Problem> {
    let path = &*request.path;
    if !request.may_be_file {
        return Ok(None);
    }
    let Some(found) = serving.former_file(page, path).await? else {
        return Ok(None);
    };
    let media = MediaType::of(path);
    let mut headers = file_headers(serving, (page, site), request, (path, &media))?;
    if !found.was_immutable {
        headers.insert(header::CACHE_CONTROL, document::REVALIDATE);
    }
    let scope = header_scope(page, request, false);
    site.manifest.rules.add_headers(path, scope, &mut headers);
    // Nothing is purged when its time is over.
    forbid_edges(&mut headers);
    let file = (found.file, &media);
    let response = file_response(serving, page.id, file, headers, request.headers).await?;
    Ok(Some(response))
}

/// Returns what rules are applied to.
fn header_scope(page: &ServedPage, request: &SiteHttpRequest<'_>, is_missing: bool) -> HeaderScope {
    HeaderScope {
        is_missing,
        is_own_origin: request.is_on_own_origin(),
        is_preview: page.kind == PageKind::Preview,
    }
}

/// Has edges keep nothing of an answer that they would keep.
fn forbid_edges(headers: &mut HeaderMap) {
    if let Some(lifetime) = headers.get_mut(CDN_CACHE_CONTROL) {
        *lifetime = NOTHING_AT_EDGES;
    }
}

/// Composes the headers of a file of a site with those of the site's rules, without those of one encoding.
///
/// # Errors
/// `internal` for a lifetime that no header can hold.
pub(super) fn ruled_headers(
    serving: &PageService,
    (page, site): (&ServedPage, &ServedSite),
    (request, file): (&SiteHttpRequest<'_>, (&str, &MediaType)),
    is_missing: bool,
) -> Result<HeaderMap, Problem> {
    let mut headers = file_headers(serving, (page, site), request, file)?;
    let scope = header_scope(page, request, is_missing);
    let rules = &site.manifest.rules;
    rules.add_headers(&request.path, scope, &mut headers);
    if page.has_edge && keeps_from_edges(&headers) {
        headers.remove(CDN_CACHE_CONTROL);
    }
    Ok(headers)
}

/// Composes the headers of a file of a site, without those of its rules and of one encoding.
fn file_headers(
    serving: &PageService,
    (page, site): (&ServedPage, &ServedSite),
    request: &SiteHttpRequest<'_>,
    (path, media): (&str, &MediaType),
) -> Result<HeaderMap, Problem> {
    let mut headers = site.headers(request.is_on_own_origin()).clone();
    if media.is_pdf() && headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        // Browsers show none in a sandbox.
        let saved = HeaderValue::from_static("attachment");
        headers.insert(header::CONTENT_DISPOSITION, saved);
    }
    headers.insert(header::CONTENT_TYPE, media.header());
    // The address of such a file never answers other bytes. One without the file's whole name may lead to another file some day, and
    // a quick share ends.
    let options = &site.manifest.options;
    if page.is_frontend() && request.path == path && options.is_immutable(path) {
        headers.insert(header::CACHE_CONTROL, pages::CACHE_FOREVER);
    }
    answer::add_edge_header(&mut headers, page, request.origin, serving.now())?;
    Ok(headers)
}

/// Answers a file: all of it, a part of it, or that the client has it. A large one is read as it is sent.
async fn file_response(
    serving: &PageService,
    site: DeploymentId,
    (file, media): (SiteFile, &MediaType),
    mut headers: HeaderMap,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    serving.check_file(&file)?;
    let is_text = media.is_encoded(file.bytes, serving.config().limits.page_bytes);
    let is_part = request.contains_key(header::RANGE);
    // The parts of a large file are looked at where it is read, if content is blocked.
    let is_whole = is_text && !is_part && serving.blocked.is_empty();
    if file.list.is_none() || is_whole {
        let served = serving.served_file(file, is_text.then_some(site)).await?;
        if let Some(variant) = served.variant(request) {
            document::name_variant(&mut headers, &variant.etag, variant.encoding);
            return document::respond(headers, &variant.etag, &variant.bytes, request);
        }
    }
    // Boxed, so that a view of a small file does not carry the state of a large one around.
    Box::pin(streamed_response(serving, file, headers, request)).await
}

/// Answers a large file, of which one object at a time is read.
pub(super) async fn streamed_response(
    serving: &PageService,
    file: SiteFile,
    mut headers: HeaderMap,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = document::etag(&file.digest, Encoding::Identity);
    document::name_variant(&mut headers, &etag, Encoding::Identity);
    if request.contains_key(header::IF_NONE_MATCH)
        && negotiate::if_none_match_has(request, etag.to_str().unwrap_or_default())
    {
        headers.remove(header::CONTENT_TYPE);
        headers.remove(header::ACCEPT_RANGES);
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let length = usize::try_from(file.bytes).map_err(|error| Problem::internal(&error))?;
    let (status, range) = document::requested_part(&mut headers, &etag, length, request)?;
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.len()));
    let reader = serving.open_file(file).await?;
    let part = range.start as u64..range.end as u64;
    let body = serving.streamed_file(reader, part).await?;
    Ok((status, headers, body).into_response())
}

/// Redirects as a rule of the site says. Nobody keeps the answer: the next revision may have another rule.
fn rule_response(
    redirect: &RuleRedirect<'_>,
    request: &SiteHttpRequest<'_>,
) -> Result<Response, Problem> {
    let location = redirect.location(&request.mount, request.query);
    let headers = [
        (header::LOCATION, HeaderValue::try_from(location)?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((redirect.status, headers).into_response())
}
