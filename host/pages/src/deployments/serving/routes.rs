//! The routes of pages at their slugs.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};

use super::answer::{self, RequestOrigin, disabled_page, platform_page};
use super::password::routes::unlock_tokens;
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
        return answer::redirect_to_project_origin(serving.config(), &page, slug, uri.query());
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
    let origin = match host {
        HostKind::Project(_) | HostKind::Domain(_) => RequestOrigin::Project,
        HostKind::Sites => RequestOrigin::Sites,
        HostKind::Api | HostKind::Landing => RequestOrigin::Unpurged,
    };
    let response = answer::page_response(&page, origin, serving.now(), headers)?;
    let counted = matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
    if counted && *method == Method::GET {
        serving.count_view(&page);
    }
    Ok(response)
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = serving.page_on_host(&context.host, &slug).await?;
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

/// Leave the slash away
///
/// The canonical address of a page has no slash at its end.
#[utoipa::path(
    get, path = "/{slug}/", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 308, description = "To the page.")),
    extensions(("x-problems" = json!("disabled not_found capacity_reached")))
)]
pub async fn without_slash(
    State(serving): State<Arc<PageService>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    match serving.page_on_host(&context.host, &slug).await {
        Ok(_) => {}
        Err(PageLookupError::Disabled) => return Ok(disabled_page(serving.config())),
        Err(error) => return Err(error.into()),
    }
    let headers = [
        (header::LOCATION, format!("/{slug}")),
        (header::CACHE_CONTROL, "no-store".into()),
    ];
    Ok((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}
