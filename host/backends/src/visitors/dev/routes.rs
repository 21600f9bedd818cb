//! The routes of the development issuer; each answers 404 where there is none.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{AuthorizationRequest, DevIssuer, pages};
use crate::config::Config;
use crate::http::NOSNIFF;
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::problem::{Problem, ProblemCode};

/// The development issuer, if there is one.
pub type MaybeDevIssuer = Option<Arc<DevIssuer>>;

/// Content security policy of the form. It has no `form-action`, because that would stop a form whose answer redirects to another
/// origin, as the end of a sign-in does.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
);

/// Query of the authorization endpoint.
#[derive(Debug, Deserialize)]
struct AuthorizationQuery {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    state: String,
    nonce: String,
    code_challenge: String,
    code_challenge_method: String,
}

#[derive(Debug, Deserialize)]
struct SignInForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    email: String,
    cancel: Option<String>,
}

/// Body of a request to the token endpoint.
#[derive(Debug, Deserialize)]
struct TokenRequest {
    grant_type: String,
    code: String,
    redirect_uri: String,
    code_verifier: String,
}

/// Creates the router of the issuer.
pub fn router<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    MaybeDevIssuer: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    Router::new()
        .route("/_svc/dev/.well-known/openid-configuration", get(discovery))
        .route("/_svc/dev/keys", get(keys))
        .route("/_svc/dev/authorize", get(show_form).post(submit_form))
        .route("/_svc/dev/token", post(token))
}

fn require_issuer(issuer: MaybeDevIssuer) -> Result<Arc<DevIssuer>, Problem> {
    issuer.ok_or_else(Problem::not_found)
}

/// Answers the discovery document.
///
/// # Errors
/// `not_found` without an issuer, like all of these routes.
async fn discovery(State(issuer): State<MaybeDevIssuer>) -> Result<Json<Value>, Problem> {
    Ok(Json(require_issuer(issuer)?.discovery()))
}

/// Answers the public keys.
///
/// # Errors
/// `not_found`.
async fn keys(State(issuer): State<MaybeDevIssuer>) -> Result<Json<Value>, Problem> {
    Ok(Json(require_issuer(issuer)?.keys()))
}

/// Shows the form.
///
/// # Errors
/// `not_found`, `invalid_request`.
async fn show_form(State(issuer): State<MaybeDevIssuer>, uri: Uri) -> Result<Response, Problem> {
    authorization_request(&*require_issuer(issuer)?, uri.query())?;
    Ok(sign_in_page_response(StatusCode::OK, "", "", None))
}

/// Accepts the form, and redirects back with a code.
///
/// # Errors
/// `not_found`, `invalid_request`.
async fn submit_form(
    State(issuer): State<MaybeDevIssuer>,
    uri: Uri,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let issuer = require_issuer(issuer)?;
    let request = authorization_request(&issuer, uri.query())?;
    let form: SignInForm = body.form().await?;
    let state = request.state.clone();
    if form.cancel.is_some() {
        return redirect_to_client(&issuer, &state, ("error", "access_denied"));
    }
    let (name, email) = (form.name.trim(), form.email.trim());
    let is_email =
        email.contains('@') && email.len() <= 200 && !email.contains(char::is_whitespace);
    if !is_email || name.chars().count() > 100 {
        let wrong = "Give an e-mail address such as ada@example.com.";
        return Ok(sign_in_page_response(
            StatusCode::BAD_REQUEST,
            name,
            email,
            Some(wrong),
        ));
    }
    match issuer.issue_code(request, name.to_owned(), email.to_owned()) {
        Some(code) => redirect_to_client(&issuer, &state, ("code", &code)),
        None => redirect_to_client(&issuer, &state, ("error", "temporarily_unavailable")),
    }
}

/// Exchanges a code for tokens.
///
/// # Errors
/// `not_found`.
async fn token(
    State(issuer): State<MaybeDevIssuer>,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let issuer = require_issuer(issuer)?;
    let (_, raw) = body.read_with_head().await?;
    let exchange = serde_urlencoded::from_bytes::<TokenRequest>(&raw).ok();
    let exchange = exchange.filter(|exchange| exchange.grant_type == "authorization_code");
    let tokens = exchange
        .and_then(|sent| issuer.exchange_code(&sent.code, &sent.code_verifier, &sent.redirect_uri));
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok(match tokens {
        Some(tokens) => (no_store, Json(tokens)).into_response(),
        None => {
            let refusal = Json(json!({ "error": "invalid_grant" }));
            (StatusCode::BAD_REQUEST, no_store, refusal).into_response()
        }
    })
}

fn authorization_request(
    issuer: &DevIssuer,
    query: Option<&str>,
) -> Result<AuthorizationRequest, Problem> {
    let query: AuthorizationQuery = serde_urlencoded::from_str(query.unwrap_or_default())
        .map_err(|error| invalid_request(format!("In the query: {error}.")))?;
    let fits = query.response_type == "code"
        && query.code_challenge_method == "S256"
        && query.client_id == issuer.settings.client_id
        && query.redirect_uri == issuer.redirect_uri;
    if !fits {
        return Err(Problem::new(
            ProblemCode::InvalidRequest,
            "This is no sign-in of this server's. Go back to the page and sign in again.",
        ));
    }
    Ok(AuthorizationRequest {
        state: query.state,
        nonce: query.nonce,
        challenge: query.code_challenge,
    })
}

/// Redirects the browser to the server's own callback.
fn redirect_to_client(
    issuer: &DevIssuer,
    state: &str,
    parameter: (&str, &str),
) -> Result<Response, Problem> {
    let mut url = Url::parse(&issuer.redirect_uri).map_err(|error| Problem::internal(&error))?;
    url.query_pairs_mut()
        .append_pair(parameter.0, parameter.1)
        .append_pair("state", state)
        .append_pair("iss", &issuer.settings.issuer);
    let location =
        HeaderValue::try_from(url.as_str()).map_err(|error| Problem::internal(&error))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, location);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

fn sign_in_page_response(
    status: StatusCode,
    name: &str,
    email: &str,
    wrong: Option<&str>,
) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        NOSNIFF,
    ];
    (
        status,
        headers,
        pages::sign_in_form(name, email, wrong).into_string(),
    )
        .into_response()
}
