//! The routes of pages at their slugs.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::answer::{self, RequestOrigin, disabled_page, platform_page};
use super::password::routes::unlock_tokens;
use super::site_answer::{SiteHttpRequest, name_canonical, site_response};
use super::{PageLookupError, PageService};
use crate::deployments::forms;
use crate::http::context::HttpRequestContext;
use crate::http::hosts::HostKind;
use crate::http::origin::{check_navigation, is_navigation};
use crate::http::problem::{Problem, ProblemCode};

/// Read a page
///
/// The finished page; a locked page's form (401), a one-time page's form, or an error page.
#[utoipa::path(
    get, path = "/{slug}", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses(
        (status = 200, description = "The page, or the form of a one-time page.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 302, description = "For a browser that opens a project's frontend on the API or the sites host, where projects have origins of their own: on to that of the project."),
        (status = 304, description = "The page has not changed."),
        (status = 308, description = "To the address of a site, which has a slash at its end."),
        (status = 401, description = "The form of a protected page.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("disabled origin_refused not_found range_not_satisfiable capacity_reached")))
)]
pub async fn page(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    request: Parts,
) -> Result<Response, Problem> {
    show(&serving, &context.host, &slug, &request).await
}

/// A page, its form or its error.
///
/// # Errors
/// Problems that the route lists.
pub async fn show(
    serving: &PageService,
    host: &HostKind,
    slug: &str,
    request: &Parts,
) -> Result<Response, Problem> {
    let Parts {
        method,
        uri,
        headers,
        ..
    } = request;
    let page = match serving.page_on_host(host, slug).await {
        Ok(page) => page,
        Err(PageLookupError::Disabled) => return Ok(disabled_page(serving.config())),
        Err(error) => return Err(error.into()),
    };
    if serving.is_off_project_origin(host, &page) && is_navigation(headers) {
        let path = format!("/{slug}");
        let at_root = serving.path_at_root(&page, slug, &path).await?;
        let path = at_root.unwrap_or(path);
        return answer::redirect_to_project_origin(serving.config(), &page, &path, uri.query());
    }
    if page.site.is_some() {
        return answer::redirect_below(&format!("/{slug}/"), uri.query());
    }
    if !serving.is_unlocked(&page, unlock_tokens(headers)) {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::password_form(slug, false),
        ));
    }
    if page.one_time {
        return Ok(platform_page(StatusCode::OK, &forms::one_time_form(slug)));
    }
    if page.is_protected() {
        check_navigation(headers)?;
    }
    let origin = RequestOrigin::of(host);
    let now = serving.now();
    let response = answer::page_response(&page, origin, now, headers)?;
    if *method == Method::GET && answer::is_visit(response.status(), headers) {
        serving.count_view(&page, now);
    }
    Ok(response)
}

/// Address of a site, without the path of a file below it.
#[derive(Debug, Deserialize)]
pub struct SitePath {
    slug: String,
}

/// Read a file of a site
///
/// Below the address of a frontend that is a site: a file, the page of its folder, or what the site has in place of a missing one.
#[utoipa::path(
    get, path = "/{slug}/{*path}", tag = "pages",
    params(
        ("slug" = String, Path, description = "The site."),
        ("path" = String, Path, description = "Path of the file.")
    ),
    responses(
        (status = 200, description = "The file, with the media type of its ending.", content_type = "application/octet-stream", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "application/octet-stream", body = String),
        (status = 301, description = "Where a rule in the site's `_redirects` leads."),
        (status = 302, description = "Where a rule in the site's `_redirects` leads. Or, for a browser that opens a project's frontend on the API or the sites host, where projects have origins of their own: on to that of the project."),
        (status = 303, description = "Where a rule in the site's `_redirects` leads."),
        (status = 304, description = "The file has not changed."),
        (status = 307, description = "Where a rule in the site's `_redirects` leads."),
        (status = 308, description = "To the address of the page or the folder, or where a rule in the site's `_redirects` leads.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable capacity_reached")))
)]
pub async fn site_file(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(SitePath { slug }): Path<SitePath>,
    request: Parts,
) -> Result<Response, Problem> {
    show_file(&serving, (&context.host, context.at_root), &slug, &request).await
}

/// Answers a request for a path below the address of a site; `at_root` says that the client has left out the slug.
///
/// # Errors
/// Problems that the route lists.
pub async fn show_file(
    serving: &PageService,
    (host, at_root): (&HostKind, bool),
    slug: &str,
    request: &Parts,
) -> Result<Response, Problem> {
    let at = SiteAddress {
        host,
        at_root,
        slug,
        missing: None,
    };
    let answered = show_site(serving, at, request).await?;
    answered.ok_or_else(Problem::not_found)
}

/// Path below a site's mount that no file can have.
#[derive(Clone, Debug)]
pub struct MissingPath {
    /// Slug of the site.
    pub slug: String,
    /// Path below the mount: the folder up to which it could be a file's, and its last segment as it was asked for.
    pub path: String,
    /// Whether the mount is the root of the host.
    pub at_root: bool,
}

/// Answers a request for a path that no file can have: with what a site has for missing files, where one is. Not a route by itself: the
/// front tells such paths from those of routes.
///
/// # Errors
/// `not_found`, `disabled`, `capacity_reached`.
pub async fn missing(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    request: Parts,
) -> Result<Response, Problem> {
    let missing = request.extensions.get::<MissingPath>();
    let missing = missing.ok_or_else(Problem::not_found)?;
    let at = SiteAddress {
        missing: Some(&missing.path),
        ..SiteAddress::of(&context, &missing.slug)
    };
    let answered = show_site(&serving, at, &request).await?;
    answered.ok_or_else(Problem::not_found)
}

/// Address below a site.
#[derive(Clone, Copy, Debug)]
struct SiteAddress<'a> {
    host: &'a HostKind,
    /// Whether the client has left out the slug.
    at_root: bool,
    slug: &'a str,
    /// Path below the site, if no file can have it.
    missing: Option<&'a str>,
}

impl<'a> SiteAddress<'a> {
    fn of(context: &'a HttpRequestContext, slug: &'a str) -> Self {
        Self {
            host: &context.host,
            at_root: context.at_root,
            slug,
            missing: None,
        }
    }
}

/// Refuses another method than those of [`site_file`]: with 405 below a site, and with 404 below a page, where nothing is.
pub async fn refuse_method(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(SitePath { slug }): Path<SitePath>,
    request: Parts,
) -> Problem {
    let at = SiteAddress::of(&context, &slug);
    let answered = show_site(&serving, at, &request).await;
    answered.err().unwrap_or_else(Problem::not_found)
}

/// Answers a request below the address of a site; `None` where no site is.
async fn show_site(
    serving: &PageService,
    at: SiteAddress<'_>,
    request: &Parts,
) -> Result<Option<Response>, Problem> {
    let Parts {
        method,
        uri,
        headers,
        ..
    } = request;
    let (host, slug) = (at.host, at.slug);
    let page = match serving.page_on_host(host, slug).await {
        Ok(page) => page,
        // The pages of a slug that is taken down say so at their own addresses.
        Err(PageLookupError::Disabled) if serving.is_site(slug).await => {
            return Ok(Some(disabled_page(serving.config())));
        }
        Err(PageLookupError::Disabled | PageLookupError::NotFound) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(site) = &page.site else {
        return Ok(None);
    };
    if ![Method::GET, Method::HEAD].contains(method) {
        let allowed = HeaderValue::from_static("GET,HEAD");
        return Err(Problem::method_not_allowed().header(header::ALLOW, allowed));
    }
    if serving.is_off_project_origin(host, &page) && is_navigation(headers) {
        let at_root = serving.path_at_root(&page, slug, uri.path()).await?;
        let path = at_root.as_deref().unwrap_or(uri.path());
        let config = serving.config();
        let sent_on = answer::redirect_to_project_origin(config, &page, path, uri.query());
        return sent_on.map(Some);
    }
    let (mount, origin) = (format!("/{slug}/"), RequestOrigin::of(host));
    let asked = match at.missing {
        None => SiteHttpRequest::new(mount, uri, headers, origin)?,
        Some(path) => SiteHttpRequest::missing((mount, path), headers, origin)?,
    };
    let asked = match at.at_root {
        true => asked.at_root(),
        false => asked,
    };
    let mut answered = site_response(serving, (&page, site), &asked).await?;
    if answered.is_view && *method == Method::GET {
        serving.count_view(&page, serving.now());
    }
    if !at.at_root
        && at.missing.is_none()
        && let Some(path) = serving.path_at_root(&page, slug, uri.path()).await?
        && let Some(origin) = serving.origin_of(host, &page)
        && answered.has_file()
    {
        name_canonical(answered.response.headers_mut(), (&origin, &path))?;
    }
    Ok(Some(answered.response))
}

/// Read a page's source
///
/// Exactly the source that was published, never as HTML.
#[utoipa::path(
    get, path = "/{slug}/raw", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses(
        (status = 200, description = "The source, as what it is written in.", content((String = "text/plain"), (serde_json::Value = "application/json"), (String = "text/csv"))),
        (status = 206, description = "The range that was asked for.", content((String = "text/plain"), (String = "application/json", example = json!("[{\"day\":")), (String = "text/csv"))),
        (status = 304, description = "The source has not changed.")
    ),
    extensions(("x-problems" = json!("unauthorized disabled origin_refused not_found range_not_satisfiable capacity_reached")))
)]
pub async fn raw(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    request: Parts,
) -> Result<Response, Problem> {
    let at = SiteAddress::of(&context, &slug);
    if let Some(answered) = show_site(&serving, at, &request).await? {
        return Ok(answered);
    }
    let page = serving.page_on_host(&context.host, &slug).await?;
    let headers = request.headers;
    if page.one_time {
        return Err(Problem::not_found());
    }
    if !serving.is_unlocked(&page, unlock_tokens(&headers)) {
        return Err(Problem::new(
            ProblemCode::Unauthorized,
            "This page is protected. Unlock it with its password first.",
        ));
    }
    if page.is_protected() {
        check_navigation(&headers)?;
    }
    let source = serving.raw_source(&page).await?;
    let encoding = answer::source_encoding(&source, &headers);
    let source = serving.encode_source(source, encoding).await?;
    answer::source_response(&page, &source, serving.page_policy(), &headers)
}

/// Read the start page of a site
///
/// The address of a site has a slash at its end. That of a page has none, so that this leads to it.
#[utoipa::path(
    get, path = "/{slug}/", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses(
        (status = 200, description = "The start page of a site.", content_type = "text/html", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/html", body = String),
        (status = 301, description = "Where a rule in the site's `_redirects` leads."),
        (status = 302, description = "Where a rule in the site's `_redirects` leads. Or, for a browser that opens a project's frontend on the API or the sites host, where projects have origins of their own: on to that of the project."),
        (status = 303, description = "Where a rule in the site's `_redirects` leads."),
        (status = 304, description = "The start page has not changed."),
        (status = 307, description = "Where a rule in the site's `_redirects` leads."),
        (status = 308, description = "To the page, or where a rule in the site's `_redirects` leads.")
    ),
    extensions(("x-problems" = json!("disabled not_found range_not_satisfiable capacity_reached")))
)]
pub async fn without_slash(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    request: Parts,
) -> Result<Response, Problem> {
    let at = SiteAddress::of(&context, &slug);
    if let Some(answered) = show_site(&serving, at, &request).await? {
        return Ok(answered);
    }
    match serving.page_on_host(&context.host, &slug).await {
        Ok(_) => {}
        Err(PageLookupError::Disabled) => return Ok(disabled_page(serving.config())),
        Err(error) => return Err(error.into()),
    }
    answer::redirect_below(&format!("/{slug}"), request.uri.query())
}
