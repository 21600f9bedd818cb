//! The routes of deployments: publish, look, burn.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::answer::{self, Place, disabled_page, platform_page};
use super::pages::{self, Kind};
use super::password::routes::unlock_tokens;
use super::requests::DeployRequest;
use super::room::Publisher;
use super::serve::LookupError;
use super::views::Deployed;
use super::{Deployments, forms};
use crate::access::MaybeCaller;
use crate::access::idempotency::{IdempotencyScope, IdempotentRequest};
use crate::http::context::Context;
use crate::http::extract::UnreadBody;
use crate::http::hosts::Host;
use crate::http::origin::{check_navigation, check_origin, is_navigation};
use crate::http::problem::{Code, Problem};

/// Publish a quick share
///
/// Anybody may; the page lives for {{quick_share_seconds}}. It may carry a password, and it may be readable once.
#[utoipa::path(
    post, path = "/api/v1/deploy", tag = "quick share",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body = DeployRequest,
    responses((status = 201, description = "Published, and durable.", body = Deployed)),
    extensions(("x-problems" = json!("invalid_request invalid_json render_failed unauthorized timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn deploy(
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    request: IdempotentRequest,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<DeployRequest>().await?;
    let publisher = Publisher::new(context.client.network(), caller.clone());
    let route = IdempotencyScope {
        name: "deploy",
        parent: "",
    };
    let work = |keep| async move {
        let share = body.value.checked(&deployments.config.limits)?;
        Ok::<_, Problem>(deployments.publish_share(share, publisher, keep).await?)
    };
    let by = caller.as_ref();
    request
        .run_once(by, route, &body.raw, StatusCode::CREATED, work)
        .await
}

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
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
    request: Parts,
) -> Result<Response, Problem> {
    show(&deployments, &context.host, &slug, &request).await
}

/// A page, its form or its error.
///
/// # Errors
/// What the route describes.
pub async fn show(
    deployments: &Deployments,
    host: &Host,
    slug: &str,
    request: &Parts,
) -> Result<Response, Problem> {
    let Parts {
        method,
        uri,
        headers,
        ..
    } = request;
    let page = match deployments.visited(host, slug).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page(&deployments.config)),
        Err(error) => return Err(error.into()),
    };
    if deployments.is_away(host, &page) && is_navigation(headers) {
        return answer::lead_home(&deployments.config, &page, slug, uri.query());
    }
    if !deployments.is_unlocked(&page, unlock_tokens(headers)) {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::locked(slug, false),
        ));
    }
    if page.one_time {
        return Ok(platform_page(StatusCode::OK, &forms::one_time(slug)));
    }
    if page.is_protected() {
        check_navigation(headers)?;
    }
    let place = match host {
        Host::Project(_) => Place::Home,
        Host::Sites => Place::Sites,
        Host::Api | Host::Landing => Place::Elsewhere,
    };
    let response = answer::page(&page, place, deployments.clock.now(), headers)?;
    let counted = matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
    if counted && *method == Method::GET {
        deployments.visits.count(&page.visits);
    }
    Ok(response)
}

/// Open a one-time page
///
/// Deletes the page and answers it: of all who try, one reader gets it.
#[utoipa::path(
    post, path = "/{slug}", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses(
        (status = 200, description = "The page, which is now gone from here.", content_type = "text/html", body = String),
        (status = 401, description = "The form of a protected page.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("timeout payload_too_large unsupported_media_type disabled origin_refused not_found method_not_allowed capacity_reached")))
)]
pub async fn reveal(
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = match deployments.visited(&context.host, &slug).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page(&deployments.config)),
        Err(error) => return Err(error.into()),
    };
    if !page.one_time {
        return Err(Problem::new(
            Code::MethodNotAllowed,
            "Only a one-time page is opened by POST. Read this one with GET.",
        )
        .header(header::ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    // A form's body says nothing here, and one that is refused must not burn the page.
    let (Parts { headers, .. }, _) = body.read_with_head().await?;
    check_origin(&deployments.config, &context, &headers)?;
    check_navigation(&headers)?;
    if !deployments.is_unlocked(&page, unlock_tokens(&headers)) {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::locked(&slug, false),
        ));
    }
    let id = page.id;
    let content = deployments
        .burn(&slug, id)
        .await?
        .ok_or_else(Problem::not_found)?;
    let mut headers = pages::headers(&Kind::Share, true, true);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    Ok((headers, Body::from(content)).into_response())
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
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = deployments.visited(&context.host, &slug).await?;
    if page.one_time {
        return Err(Problem::not_found());
    }
    if !deployments.is_unlocked(&page, unlock_tokens(&headers)) {
        return Err(Problem::new(
            Code::Unauthorized,
            "This page is protected. Unlock it with its password first.",
        ));
    }
    if page.is_protected() {
        check_navigation(&headers)?;
    }
    let source = deployments.raw_source(&page).await?;
    deployments.answer_raw(&page, source, &headers).await
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
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    match deployments.visited(&context.host, &slug).await {
        Ok(_) => {}
        Err(LookupError::Disabled) => return Ok(disabled_page(&deployments.config)),
        Err(error) => return Err(error.into()),
    }
    let headers = [
        (header::LOCATION, format!("/{slug}")),
        (header::CACHE_CONTROL, "no-store".into()),
    ];
    Ok((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}
