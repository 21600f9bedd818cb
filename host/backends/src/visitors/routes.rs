//! The routes of visitors' sign-in, on frontends and at the callback, and of owners' lists of visitors.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

use super::flow::{SignInRequest, SignInStart};
use super::kinds::CallbackQuery;
use super::requests::ListVisitors;
use super::views::{Offered, ProviderList, Status, VisitorList};
use super::{Visitors, cookies, flow, operations, pages, return_to, sessions};
use crate::access::{Viewer, run_to_completion};
use crate::deployments::serving::request_log::LogNote;
use crate::http::NOSNIFF;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{CheckedBodyLength, UnparsedQuery};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::problem_page;
use crate::projects::scope::AuthorizedProject;

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The URLs of a sign-in contain secrets, so they are not sent as referrers.
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// Sign a visitor in
///
/// For browsers. With one provider, or with `provider`, it leads there and back to `return_to`; with several, the visitor chooses. What fails
/// leads back to `return_to` with `auth_error` in its query: `access_denied`, `state_invalid`, `provider_error`, `provider_unavailable`,
/// `token_invalid`, `provider_not_allowed` or `ticket_invalid`.
#[utoipa::path(
    operation_id = "begin_sign_in",
    get, path = "/{slug}/auth/login", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend."),
        ("provider" = Option<String>, Query, description = "The name of a provider; the visitor chooses, if absent."),
        ("return_to" = Option<String>, Query, description = "A path of this page, such as /my-page?a=b; the page, if absent.")
    ),
    responses(
        (status = 200, description = "The choice of providers.", content_type = "text/html", body = String),
        (status = 302, description = "To the provider; to the frontend's own origin, if it was asked elsewhere; or back with `auth_error`.")
    ),
    extensions(("x-problems" = json!("invalid_request disabled not_found rate_limited identity_unconfigured capacity_reached")))
)]
pub async fn login(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = visitors.sign_in_page(&context.host, &slug).await?;
    let request = SignInRequest {
        provider: single_query_value(uri.query(), "provider")?.filter(|name| !name.is_empty()),
        return_to: single_query_value(uri.query(), "return_to")?,
    };
    if !sessions::is_own_origin(&visitors.infra.config, &context.host, &page.frontend) {
        // A request that the frontend's own origin would refuse is refused here already.
        visitors.check_request(&page, &request)?;
        return Ok(redirect_response(&flow::login_url(
            &page.origin,
            &slug,
            uri.query(),
        )));
    }
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(&headers, secure);
    Ok(match visitors.start(&page, request, browser).await? {
        SignInStart::Choose { offered, return_to } => {
            html_response(&pages::provider_choice_page(&slug, &offered, &return_to))
        }
        SignInStart::Return(location) => return_response(&location, &slug),
        SignInStart::Redirect { location, browser } => {
            let mut response = redirect_response(&location);
            let cookie = cookies::browser_cookie(&browser, secure)?;
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            response
        }
    })
}

/// Refuses the HEAD of an address whose GET uses up what works once: a HEAD changes nothing (RFC 9110, section 9.2.1).
fn refuse_head(method: &Method) -> Result<(), Problem> {
    match *method == Method::HEAD {
        true => {
            Err(Problem::method_not_allowed()
                .header(header::ALLOW, HeaderValue::from_static("GET")))
        }
        false => Ok(()),
    }
}

/// Come back from a provider
///
/// Where each provider leads browsers back to: the redirect URI that it is registered with.
#[utoipa::path(
    operation_id = "end_sign_in",
    get, path = "/_svc/auth/callback/{provider}", tag = "visitors",
    params(
        ("provider" = String, Path, description = "The provider's name."),
        ("state" = String, Query, description = "Which sign-in this is."),
        ("code" = Option<String>, Query, description = "What the provider gave."),
        ("iss" = Option<String>, Query, description = "Which issuer says so (RFC 9207)."),
        ("error" = Option<String>, Query, description = "What the provider says instead of a code.")
    ),
    responses((status = 302, description = "On to the frontend, to complete the sign-in; or back to it with `auth_error`.")),
    extensions(("x-problems" = json!("invalid_request disabled not_found rate_limited capacity_reached")))
)]
pub async fn callback(
    State(visitors): State<Arc<Visitors>>,
    Path(provider): Path<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    refuse_head(&method)?;
    let parameter = |name| single_query_value(uri.query(), name);
    // An answer with a repeated parameter is not valid (RFC 6749, section 3.1).
    let (code, iss, error) = match (parameter("code"), parameter("iss"), parameter("error")) {
        (Ok(code), Ok(iss), Ok(error)) => (code, iss, error),
        _ => (None, None, None),
    };
    let answer = CallbackQuery {
        state: parameter("state")?,
        code,
        iss,
        error,
    };
    let browser = cookies::browser_token(&headers, visitors.infra.config.secure).map(str::to_owned);
    // If the browser hangs up, the sign-in is still finished at the provider.
    let taking = async move {
        visitors
            .handle_callback(&provider, answer, browser.as_deref())
            .await
    };
    let (location, slug) = run_to_completion(taking).await?;
    Ok(return_response(&location, &slug))
}

/// Complete a sign-in
///
/// The last step, which sets the frontend's cookie.
#[utoipa::path(
    operation_id = "complete_sign_in",
    get, path = "/{slug}/auth/complete", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend."),
        ("ticket" = String, Query, description = "What the callback gave; used once, within a minute, by the browser that began.")
    ),
    responses((status = 302, description = "Back to the page, signed in; or with `auth_error`.")),
    extensions(("x-problems" = json!("invalid_request disabled not_found capacity_reached")))
)]
pub async fn complete(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    refuse_head(&method)?;
    let page = visitors.sign_in_page(&context.host, &slug).await?;
    // A ticket that is sent twice is not valid.
    let ticket = single_query_value(uri.query(), "ticket").unwrap_or_default();
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(&headers, secure).map(str::to_owned);
    let (deployment, mounts) = (page.frontend.id, page.mounts.clone());
    let set_cookies =
        |token: String| cookies::session_cookies(&mounts, &deployment, &token, secure);
    let before = cookies::session_token(&headers, &deployment, secure).map(sessions::hash_token);
    let service = Arc::clone(&visitors);
    let completing = async move {
        let (ticket, browser) = (ticket.as_deref(), browser.as_deref());
        service.complete(&page, ticket, browser, before).await
    };
    let (token, location) = run_to_completion(completing).await?;
    let mut response = return_response(&location, &slug);
    if let Some(token) = token {
        // For the log alone, which may do without it.
        let session = visitors.session(sessions::hash_token(&token)).await;
        let session = session.ok().flatten();
        response.extensions_mut().insert(LogNote {
            user_id: session.map(|session| session.visitor.to_string()),
            ..LogNote::default()
        });
        for cookie in set_cookies(token)? {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    Ok(response)
}

/// Say who is signed in
#[utoipa::path(
    operation_id = "get_visitor",
    get, path = "/{slug}/auth/status", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "The visitor, or null.", body = Status)),
    extensions(("x-problems" = json!("disabled not_found capacity_reached")))
)]
pub async fn status(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = visitors.frontend(&context.host, &slug).await?;
    let session = visitors
        .current_session(&context.host, &page, &headers)
        .await?;
    let status = Status::of(session.as_deref());
    Ok(([(header::CACHE_CONTROL, NO_STORE)], Json(status)).into_response())
}

/// List the sign-in providers of a page
#[utoipa::path(
    operation_id = "list_providers",
    get, path = "/{slug}/auth/providers", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 200, description = "Those that its project offers.", body = ProviderList)),
    extensions(("x-problems" = json!("disabled not_found capacity_reached")))
)]
pub async fn providers(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
) -> Result<Response, Problem> {
    let page = visitors.sign_in_page(&context.host, &slug).await?;
    let offered = visitors.offered_providers(&page.project);
    let providers = offered.iter().map(|one| Offered::new(&one.settings));
    let list = ProviderList {
        providers: providers.collect(),
    };
    Ok(([(header::CACHE_CONTROL, NO_STORE)], Json(list)).into_response())
}

/// Sign a visitor out
///
/// Of this page. Only the page itself can ask for it.
#[utoipa::path(
    operation_id = "sign_out",
    post, path = "/{slug}/auth/logout", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 204, description = "Nobody is signed in now.")),
    extensions(("x-problems" = json!("origin_refused disabled not_found payload_too_large unsupported_media_type capacity_reached")))
)]
pub async fn logout(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
    _: CheckedBodyLength,
) -> Result<Response, Problem> {
    let page = visitors.frontend(&context.host, &slug).await?;
    if !visitors.is_from_page(&context.host, &page, &headers) {
        return Err(Problem::new(
            ProblemCode::OriginRefused,
            "The request comes from a page of another origin. Sign out from the page itself.",
        ));
    }
    visitors.end_sessions(&page, &headers).await?;
    let mounts = visitors.mounts(&page, &slug).await?;
    let secure = visitors.infra.config.secure;
    let headers = [(header::CACHE_CONTROL, NO_STORE)];
    let mut response = (StatusCode::NO_CONTENT, headers).into_response();
    for cookie in cookies::session_cookies(&mounts, &page.id, "", secure)? {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// List visitors
///
/// An extension. Those who have signed in to the project's frontends, newest first.
#[utoipa::path(
    operation_id = "list_visitors",
    get, path = "/api/v1/projects/{id}/visitors", tag = "projects",
    params(("id" = String, Path, description = "The project."), ListVisitors),
    responses((status = 200, description = "Visitors.", body = VisitorList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(visitors): State<Arc<Visitors>>,
    at: AuthorizedProject<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<VisitorList>, Problem> {
    let input = query.read::<ListVisitors>()?;
    operations::list(visitors, at, input).await.map(Json)
}

/// Returns the value of a query parameter that may be sent at most once.
pub(super) fn single_query_value(
    query: Option<&str>,
    name: &str,
) -> Result<Option<String>, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut values = pairs
        .filter(|(found, _)| found == name)
        .map(|(_, value)| value.into_owned());
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(crate::http::extract::invalid_request(format!(
            "The query has `{name}` more than once. Send it once."
        ))),
    }
}

/// Redirects a browser.
pub(super) fn redirect_response(location: &str) -> Response {
    let mut response = StatusCode::FOUND.into_response();
    let headers = response.headers_mut();
    match HeaderValue::try_from(location) {
        Ok(location) => headers.insert(header::LOCATION, location),
        Err(error) => return Problem::internal(&error).into_response(),
    };
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(REFERRER_POLICY, NO_REFERRER);
    response
}

/// Redirects a browser on, or back to the page at a slug; the log is told of a sign-in that has failed.
pub(super) fn return_response(location: &str, slug: &str) -> Response {
    let mut response = redirect_response(location);
    if let Some(error) = return_to::error_of(location) {
        response.extensions_mut().insert(LogNote {
            code: Some(error.code()),
            slug: Some(slug.to_owned()),
            ..LogNote::default()
        });
    }
    response
}

fn html_response(page: &maud::Markup) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, NO_STORE),
        (
            header::CONTENT_SECURITY_POLICY,
            problem_page::CONTENT_SECURITY_POLICY,
        ),
        NOSNIFF,
        (REFERRER_POLICY, NO_REFERRER),
    ];
    (headers, page.clone().into_string()).into_response()
}
