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
use utoipa::ToSchema;

use super::answer::{self, Place};
use super::model::is_slug;
use super::pages::{self, Kind, Page};
use super::password::{PASSWORD_BYTES, UNLOCKED_SECONDS};
use super::publish::PublishError;
use super::quick_share::Deployed;
use super::reports::{NewReport, Reason, ReportError, Reported};
use super::requests::DeployRequest;
use super::serve::{LookupError, UnlockError};
use super::{forms, runtime};
use crate::app::{App, SharedApp};
use crate::http::extract::{MaybePrincipal, UnreadBody, check_characters, invalid};
use crate::http::front::Context;
use crate::http::hosts::Host;
use crate::http::idempotency::Repeatable;
use crate::http::problem::{Code, Problem};
use crate::http::problem_page;
use crate::http::serve::to_the_end;

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
    /// Why.
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
/// Anybody may; the page lives for 7 days. It may carry a password, and it may be readable once.
#[utoipa::path(
    post, path = "/api/v1/deploy", tag = "quick share",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")),
    request_body = DeployRequest,
    responses((status = 201, description = "Published, and durable.", body = Deployed)),
    extensions(("x-problems" = json!("invalid_request invalid_json render_failed unauthorized timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn deploy(
    State(app): State<SharedApp>,
    request: Repeatable,
    principal: MaybePrincipal,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<DeployRequest>().await?;
    let work = |key| async move {
        let share = body.value.checked()?;
        let deployed = app.deployments.publish_share(share, key).await?;
        let location = HeaderValue::try_from(&deployed.url).map_err(|e| Problem::internal(&e))?;
        let headers = [(header::LOCATION, location)];
        Ok((StatusCode::CREATED, headers, axum::Json(deployed)).into_response())
    };
    let by = principal.0.as_ref();
    request.once(by, "deploy", "", &body.raw, work).await
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
    State(app): State<SharedApp>,
    context: Context,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = find(&app, &context.host, &slug).await?;
    if !page.is_protected() {
        return Err(Problem::not_found());
    }
    let body = body.form_or_json::<UnlockRequest>().await?;
    if body.value.password.len() > PASSWORD_BYTES {
        return Err(invalid(format!(
            "`password` is longer than {PASSWORD_BYTES} bytes."
        )));
    }
    let unlocked = match app.deployments.unlock(&page, body.value.password).await {
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
        .secure(app.config.secure)
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
    request_body = ReportRequest,
    responses((status = 202, description = "The operator will see it.", body = Reported)),
    extensions(("x-problems" = json!("invalid_request invalid_json unauthorized not_found timeout idempotency_conflict payload_too_large unsupported_media_type rate_limited capacity_reached"))),
    security((), ("bearer" = []))
)]
pub async fn report(
    State(app): State<SharedApp>,
    request: Repeatable,
    principal: MaybePrincipal,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<ReportRequest>().await?;
    let wanted = body.value;
    let work = |key| async move {
        check_characters("details", wanted.details.as_deref(), DETAILS)?;
        check_characters("contact", wanted.contact.as_deref(), CONTACT)?;
        check_slug(&wanted.slug)?;
        let report = NewReport {
            slug: wanted.slug,
            reason: wanted.reason,
            details: wanted.details,
            contact: wanted.contact,
        };
        let reported = app.deployments.report(report, key).await?;
        Ok((StatusCode::ACCEPTED, axum::Json(reported)).into_response())
    };
    let by = principal.0.as_ref();
    request.once(by, "reports", "", &body.raw, work).await
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
    State(app): State<SharedApp>,
    context: Context,
    Path(slug): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    show(&app, &context.host, &slug, &method, &headers).await
}

/// A page, its form or its error.
///
/// # Errors
/// What the route describes.
pub async fn show(
    app: &App,
    host: &Host,
    slug: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let page = match find(app, host, slug).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page()),
        Err(error) => return Err(error.into()),
    };
    if !app
        .deployments
        .is_unlocked(&page, unlock_cookie(headers).as_deref())
    {
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
    let response = answer::page(&page, place, app.clock.now(), headers)?;
    let counted = matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
    if counted && *method == Method::GET {
        app.deployments.visits.count(&page.visits);
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
    State(app): State<SharedApp>,
    context: Context,
    Path(slug): Path<String>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let page = match find(&app, &context.host, &slug).await {
        Ok(page) => page,
        Err(LookupError::Disabled) => return Ok(disabled_page()),
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
    check_origin(&app, &context, &headers)?;
    check_navigation(&headers)?;
    if !app
        .deployments
        .is_unlocked(&page, unlock_cookie(&headers).as_deref())
    {
        return Ok(platform_page(
            StatusCode::UNAUTHORIZED,
            &forms::locked(&slug, false),
        ));
    }
    let (deployments, id) = (Arc::clone(&app.deployments), page.id);
    let burning = async move { deployments.burn(&slug, id).await };
    let content = to_the_end(burning).await??.ok_or_else(Problem::not_found)?;
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
    State(app): State<SharedApp>,
    context: Context,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = find(&app, &context.host, &slug).await?;
    if page.one_time {
        return Err(Problem::not_found());
    }
    if !app
        .deployments
        .is_unlocked(&page, unlock_cookie(&headers).as_deref())
    {
        return Err(Problem::new(
            Code::Unauthorized,
            "This page is protected. Unlock it with its password first.",
        ));
    }
    if page.is_protected() {
        check_navigation(&headers)?;
    }
    let source = app.deployments.raw_source(&page).await?;
    app.deployments.answer_raw(&page, source, &headers).await
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
    State(app): State<SharedApp>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = file.strip_suffix(".js").ok_or_else(Problem::not_found)?;
    let found = app.deployments.runtime(name).await;
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
    State(app): State<SharedApp>,
    context: Context,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    match find(&app, &context.host, &slug).await {
        Ok(_) => {}
        Err(LookupError::Disabled) => return Ok(disabled_page()),
        Err(error) => return Err(error.into()),
    }
    let headers = [
        (header::LOCATION, format!("/{slug}")),
        (header::CACHE_CONTROL, "no-store".into()),
    ];
    Ok((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}

/// The page at a slug, on the host that was asked: a project's origin has its own frontends and nothing else.
///
/// # Errors
/// [`LookupError`].
pub async fn find(app: &App, host: &Host, slug: &str) -> Result<Arc<Page>, LookupError> {
    if !is_slug(slug) {
        return Err(LookupError::NotFound);
    }
    let page = app.deployments.page(slug).await?;
    let here = match host {
        Host::Project(label) => {
            matches!(&page.kind, Kind::Frontend { host_label } if host_label == label)
        }
        Host::Api | Host::Sites | Host::Landing => true,
    };
    if !here {
        return Err(LookupError::NotFound);
    }
    app.deployments.check(&page)?;
    Ok(page)
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
fn check_origin(app: &App, context: &Context, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let ours = format!("{}://{}", app.config.scheme, context.authority);
    if origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes()) {
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

pub(super) fn disabled_page() -> Response {
    platform_page(StatusCode::FORBIDDEN, &forms::disabled())
}

/// One of the platform's own pages: its own policy, never stored, never indexed.
pub(in crate::deployments) fn platform_page(status: StatusCode, page: &Markup) -> Response {
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

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        let detail = error.to_string();
        match error {
            PublishError::Malformed(malformed) => {
                let problem = Self::new(Code::RenderFailed, detail);
                match malformed.place {
                    Some(place) => problem.with("line", place.line).with("column", place.column),
                    None => problem,
                }
            }
            PublishError::Budget(budget) => Self::new(
                Code::RenderFailed,
                format!("The content needs more than the {} budget of a page allows. Make it smaller or simpler.", budget.as_str()),
            )
            .with("budget", budget.as_str()),
            PublishError::Capacity(detail) => Self::new(Code::CapacityReached, detail),
            PublishError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound => Self::not_found(),
            LookupError::Disabled => Self::new(
                Code::Disabled,
                "The operator of this service has disabled this page for safety.",
            ),
            LookupError::Render(error) => error.into(),
            LookupError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

impl From<UnlockError> for Problem {
    fn from(error: UnlockError) -> Self {
        match error {
            UnlockError::Lookup(error) => error.into(),
            UnlockError::Wrong => Self::new(Code::Unauthorized, "That is not the page's password."),
            UnlockError::Busy => Self::new(
                Code::CapacityReached,
                "No worker is free to check the password. Try again in a minute.",
            ),
        }
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::NotFound => Self::not_found(),
            ReportError::Store(error) => error.into(),
            ReportError::Random(error) => Self::internal(&error),
        }
    }
}
