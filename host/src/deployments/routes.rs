//! The routes of deployments: publish, look, unlock, burn, report.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cookie::{Cookie, SameSite};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use maud::Markup;
use serde::{Deserialize, Serialize};
use svc_base::names::is_slug;
use utoipa::ToSchema;

use super::answer::{self, Place};
use super::pages::{self, Kind};
use super::password::{PASSWORD_BYTES, UNLOCKED_SECONDS};
use super::quick_share::Deployed;
use super::reports::{NewReport, Reason, Reported};
use super::requests::DeployRequest;
use super::serve::{LookupError, UnlockError};
use super::{Deployments, forms, runtime};
use crate::access::idempotency::{Repeatable, Route};
use crate::access::{MaybeCaller, to_the_end};
use crate::config::Config;
use crate::http::context::Context;
use crate::http::extract::{ReadBody, UnreadBody, check_characters, invalid};
use crate::http::hosts::Host;
use crate::http::origin;
use crate::http::problem::{Code, Problem};
use crate::http::problem_page;

/// The longest details of a report, in characters.
pub(in crate::deployments) const DETAILS: usize = 4_000;
/// The longest contact of a report, in characters.
pub(in crate::deployments) const CONTACT: usize = 320;
const UNLOCK_COOKIE: &str = "svc_unlock";

/// A password, for its page.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlockRequest {
    /// The password.
    #[schema(max_length = 1024)]
    password: String,
}

/// A page that this client may now open.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UnlockedAnswer {
    /// The page.
    slug: String,
    /// Always true.
    unlocked: bool,
}

/// A complaint about a page.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportRequest {
    /// Which page.
    slug: String,
    /// Reason of the report.
    reason: Reason,
    /// In your words.
    #[schema(max_length = 4000)]
    details: Option<String>,
    /// How the operator can reach you.
    #[schema(max_length = 320)]
    contact: Option<String>,
}

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
    request: Repeatable,
    MaybeCaller(caller): MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<DeployRequest>().await?;
    let route = Route {
        name: "deploy",
        parent: "",
    };
    let work = |keep| async move {
        let share = body.value.checked(&deployments.config.limits)?;
        Ok::<_, Problem>(deployments.publish_share(share, keep).await?)
    };
    let by = caller.as_ref();
    request
        .once(by, route, &body.raw, StatusCode::CREATED, work)
        .await
}

/// Unlock a protected page
///
/// The right password is answered with a cookie that opens the page for an hour.
#[utoipa::path(
    post, path = "/api/v1/auth/{slug}", tag = "quick share",
    params(("slug" = String, Path, description = "The page.")),
    request_body(content(
        (UnlockRequest = "application/json"),
        (UnlockRequest = "application/x-www-form-urlencoded")
    )),
    responses(
        (status = 200, description = "Unlocked, for a client that sent JSON.", body = UnlockedAnswer),
        (status = 303, description = "Unlocked, for a form: on to the page."),
        (status = 401, description = "Not the password: for a form, the form once more.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("invalid_request invalid_json unauthorized disabled not_found timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn unlock(
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = deployments.visited(&context.host, &slug).await?;
    if !page.is_protected() {
        return Err(Problem::not_found());
    }
    let body = body.form_or_json::<UnlockRequest>().await?;
    if body.value.password.len() > PASSWORD_BYTES {
        return Err(invalid(format!(
            "`password` is longer than {PASSWORD_BYTES} bytes."
        )));
    }
    let unlocked = match deployments.unlock(&page, body.value.password).await {
        Ok(unlocked) => unlocked,
        Err(UnlockError::Wrong) if body.form => {
            return Ok(platform_page(
                StatusCode::UNAUTHORIZED,
                &forms::locked(&slug, true),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let cookie = Cookie::build((UNLOCK_COOKIE, unlocked.token))
        .path(format!("/{slug}"))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(deployments.config.secure)
        .max_age(time::Duration::seconds(UNLOCKED_SECONDS))
        .build();
    let mut response = if body.form {
        (
            StatusCode::SEE_OTHER,
            [(header::LOCATION, format!("/{slug}"))],
        )
            .into_response()
    } else {
        axum::Json(UnlockedAnswer {
            slug,
            unlocked: true,
        })
        .into_response()
    };
    let cookie = HeaderValue::try_from(cookie.to_string()).map_err(|e| Problem::internal(&e))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, pages::PRIVATE);
    Ok(response)
}

/// Report a page
///
/// Tells the operator about phishing, malware, abuse or an infringement.
#[utoipa::path(
    post, path = "/api/v1/reports", tag = "quick share",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body(content((ReportRequest = "application/json"), (ReportRequest = "application/x-www-form-urlencoded"))),
    responses((status = 202, description = "The operator will see it; a form gets a page.", content((Reported = "application/json"), (String = "text/html")))),
    extensions(("x-problems" = json!("invalid_request invalid_json unauthorized origin_refused not_found timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn report(
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    headers: HeaderMap,
    request: Repeatable,
    caller: MaybeCaller,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.form_or_json::<ReportRequest>().await?;
    if !body.form {
        return take_report(deployments, request, caller, body).await;
    }
    let config = Arc::clone(&deployments.config);
    check_origin(&config, &context, &headers)?;
    let slug = body.value.slug.clone();
    let reported = take_report(deployments, request, caller, body).await;
    after_report(&config, &slug, reported)
}

/// Takes a report, once for each idempotency key.
async fn take_report(
    deployments: Arc<Deployments>,
    request: Repeatable,
    MaybeCaller(caller): MaybeCaller,
    body: ReadBody<ReportRequest>,
) -> Result<Response, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let route = Route {
        name: "reports",
        parent: "",
    };
    let wanted = body.value;
    let work = |keep| async move {
        check_characters("details", wanted.details.as_deref(), DETAILS)?;
        check_characters("contact", wanted.contact.as_deref(), CONTACT)?;
        check_slug(&wanted.slug)?;
        let report = NewReport {
            slug: wanted.slug,
            reason: wanted.reason,
            details: given(wanted.details),
            contact: given(wanted.contact),
        };
        Ok::<_, Problem>(deployments.report(report, keep).await?)
    };
    let by = caller.as_ref();
    request
        .once(by, route, &body.raw, StatusCode::ACCEPTED, work)
        .await
}

/// The form that reports a page
///
/// For people; it posts to `/api/v1/reports`. An extension of this implementation.
#[utoipa::path(
    get, path = "/_svc/report/{slug}", tag = "quick share", operation_id = "report_form",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 200, description = "The form.", content_type = "text/html", body = String)),
    extensions(("x-problems" = json!("not_found")))
)]
pub async fn report_form(
    State(config): State<Arc<Config>>,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    if !is_slug(&slug) {
        return Err(Problem::not_found());
    }
    let page = forms::report(&slug, None, &config);
    Ok(platform_page(StatusCode::OK, &page))
}

/// The form that reports any page
#[utoipa::path(
    get, path = "/_svc/report", tag = "quick share", operation_id = "report_form_of_any",
    responses((status = 200, description = "The form.", content_type = "text/html", body = String))
)]
pub async fn report_form_of_any(State(config): State<Arc<Config>>) -> Response {
    platform_page(StatusCode::OK, &forms::report("", None, &config))
}

/// The answer to the form that reports a page: thanks, or the form once more with what is wrong with it.
fn after_report(
    config: &Config,
    slug: &str,
    reported: Result<Response, Problem>,
) -> Result<Response, Problem> {
    let (status, page) = match reported {
        Ok(_) => (StatusCode::ACCEPTED, forms::reported(config)),
        Err(problem) if problem.code == Code::NotFound => {
            let wrong = "There is no such page. It may have expired, or been deleted.";
            (
                StatusCode::NOT_FOUND,
                forms::report(slug, Some(wrong), config),
            )
        }
        Err(problem) => return Err(problem),
    };
    Ok(platform_page(status, &page))
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
        (status = 304, description = "The page has not changed."),
        (status = 401, description = "The form of a protected page.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("disabled origin_refused not_found range_not_satisfiable")))
)]
pub async fn page(
    State(deployments): State<Arc<Deployments>>,
    context: Context,
    Path(slug): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&deployments, &context.host, &slug, &method, &headers).await
}

/// A page, its form or its error.
///
/// # Errors
/// What the route describes.
pub async fn show(
    deployments: &Deployments,
    host: &Host,
    slug: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let page = match deployments.visited(host, slug).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page(&deployments.config)),
        Err(error) => return Err(error.into()),
    };
    if !deployments.is_unlocked(&page, unlock_cookie(headers).as_deref()) {
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
    let (Parts { headers, .. }, _) = body.raw().await?;
    check_origin(&deployments.config, &context, &headers)?;
    check_navigation(&headers)?;
    if !deployments.is_unlocked(&page, unlock_cookie(&headers).as_deref()) {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::locked(&slug, false),
        ));
    }
    let id = page.id;
    let burning = async move { deployments.burn(&slug, id).await };
    let content = to_the_end(burning).await?.ok_or_else(Problem::not_found)?;
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
    extensions(("x-problems" = json!("unauthorized disabled origin_refused not_found range_not_satisfiable")))
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
    if !deployments.is_unlocked(&page, unlock_cookie(&headers).as_deref()) {
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

/// The script of a page
///
/// Immutable, because it is named by its content.
#[utoipa::path(
    get, path = "/_svc/runtime/{file}", tag = "pages",
    params(("file" = String, Path, description = "The runtime's name and `.js`, as a page names it.")),
    responses(
        (status = 200, description = "The script.", content_type = "text/javascript", body = String),
        (status = 206, description = "The range that was asked for.", content_type = "text/javascript", body = String),
        (status = 304, description = "It never changes.")
    ),
    extensions(("x-problems" = json!("not_found range_not_satisfiable")))
)]
pub async fn runtime(
    State(deployments): State<Arc<Deployments>>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = file.strip_suffix(".js").ok_or_else(Problem::not_found)?;
    let found = deployments.runtime(name).await;
    let found = found.map_err(|error| Problem::internal(&format!("{error:#}")))?;
    let (digest, bytes) = found.ok_or_else(Problem::not_found)?;
    answer::immutable("text/javascript; charset=utf-8", &digest, &bytes, &headers)
}

/// The typings of the script
///
/// For TypeScript: what `window.svc` offers.
#[utoipa::path(
    get, path = "/_svc/runtime.d.ts", tag = "pages",
    responses((status = 200, description = "The typings.", content_type = "text/plain", body = String))
)]
pub async fn typings() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], runtime::TYPINGS).into_response()
}

/// Leave the slash away
///
/// The canonical address of a page has no slash at its end.
#[utoipa::path(
    get, path = "/{slug}/", tag = "pages",
    params(("slug" = String, Path, description = "The page.")),
    responses((status = 308, description = "To the page.")),
    extensions(("x-problems" = json!("disabled not_found")))
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

fn check_slug(slug: &str) -> Result<(), Problem> {
    if is_slug(slug) {
        Ok(())
    } else {
        Err(Problem::not_found())
    }
}

fn unlock_cookie(headers: &HeaderMap) -> Option<String> {
    let lines = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok());
    lines
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .find(|cookie| cookie.name() == UNLOCK_COOKIE)
        .map(|cookie| cookie.value().to_owned())
}

/// A form is believed only from a page of ours; a client that is no browser sends no `Origin`.
///
/// # Errors
/// `origin_refused`.
pub fn check_origin(
    config: &Config,
    context: &Context,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    if origin::is_own(&config.scheme, &context.authority, headers) {
        return Ok(());
    }
    Err(Problem::new(
        Code::OriginRefused,
        "The request comes from a page of another origin. Open the page itself and use its button.",
    ))
}

/// Protected content is for a person who opens it, not for a script that fetches it (Fetch Metadata).
fn check_navigation(headers: &HeaderMap) -> Result<(), Problem> {
    let is = |name: &str, wanted: &[u8]| headers.get(name).is_none_or(|v| v.as_bytes() == wanted);
    if is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document") {
        return Ok(());
    }
    Err(Problem::new(
        Code::OriginRefused,
        "Protected and one-time content is answered to navigations only. Open the page in a tab of its own.",
    ))
}

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
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::HeaderName::from_static("x-robots-tag"),
            HeaderValue::from_static("noindex"),
        ),
    ];
    let body = Bytes::from(page.clone().into_string());
    (status, headers, body).into_response()
}
