//! The routes of a sign-in by passkey, which are pages for people.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{PasskeyAnswer, checked_name, pages};
use crate::access::run_to_completion;
use crate::config::ProviderKind;
use crate::http::context::HttpRequestContext;
use crate::http::extract::UnreadBody;
use crate::http::origin::check_origin;
use crate::http::problem::Problem;
use crate::visitors::own_pages::routes::{OwnPage, check_own_page, end_response, see_other};
use crate::visitors::own_pages::{OwnPageEnd, OwnPageSignIn};
use crate::visitors::routes::single_query_value;
use crate::visitors::{Visitors, cookies};

/// Maximum size of a form, in bytes: a credential with an RSA key and a chain of certificates fits.
pub(super) const MAX_FORM_BYTES: u64 = 32_768;
/// Answer to a form that the script has not filled in.
pub(super) const NO_SCRIPT: &str =
    "The page's script did not run, and without it there is no passkey. Allow it, and try again.";
/// Answer to a name that is none.
const NO_NAME: &str = "Give a name of 1 to 100 characters: the page shows it.";

/// A form of a sign-in by passkey.
#[derive(Deserialize, ToSchema)]
pub struct PasskeyForm {
    /// Name of a new account; absent where a known passkey is used.
    #[schema(example = "Ada")]
    name: Option<String>,
    /// The challenge of the page, sealed.
    challenge: String,
    /// Answer of the browser, as JSON.
    credential: String,
}

/// Ask for a passkey
///
/// A page for people, which the sign-in by the provider `passkey` leads to. An extension of this implementation.
#[utoipa::path(
    operation_id = "show_passkey_sign_in",
    get, path = "/_svc/auth/passkey", tag = "visitors",
    params(("state" = Option<String>, Query, description = "Which sign-in this is.")),
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String),
        (status = 303, description = "Back to the page with `auth_error`.")
    ),
    extensions(("x-problems" = json!("invalid_request origin_refused disabled not_found rate_limited capacity_reached")))
)]
pub async fn show(
    State(visitors): State<Arc<Visitors>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_own_page(&headers)?;
    let state = single_query_value(uri.query(), "state")?;
    let browser = cookies::browser_token(&headers, visitors.infra.config.secure);
    let found = visitors.current_own_page_sign_in(ProviderKind::Passkey, state, browser);
    match found.await {
        Ok(at) => page_response(&visitors, &at, StatusCode::OK, ("", None)),
        Err(end) => end_response(end),
    }
}

/// Send a passkey
///
/// The forms of the page. Only they can be sent. An extension of this implementation.
#[utoipa::path(
    operation_id = "send_passkey_sign_in",
    post, path = "/_svc/auth/passkey", tag = "visitors",
    params(("state" = Option<String>, Query, description = "Which sign-in this is.")),
    request_body(content = PasskeyForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "On to the frontend, to complete the sign-in; or back to it with `auth_error`."),
        (status = 400, description = "The page again: the name is none.", content_type = "text/html", body = String)
    ),
    extensions(("x-problems" = json!("invalid_request origin_refused disabled not_found timeout payload_too_large unsupported_media_type rate_limited capacity_reached")))
)]
pub async fn submit(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    uri: Uri,
    body: UnreadBody,
) -> Result<Response, Problem> {
    check_origin(&visitors.infra.config, &context, body.headers())?;
    check_own_page(body.headers())?;
    let body = body.with_limit(MAX_FORM_BYTES)?;
    let state = single_query_value(uri.query(), "state")?;
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(body.headers(), secure).map(str::to_owned);
    let found = visitors.current_own_page_sign_in(ProviderKind::Passkey, state, browser.as_deref());
    let at = match found.await {
        Ok(at) => at,
        Err(end) => return end_response(end),
    };
    let form: PasskeyForm = body.form().await?;
    // If the browser hangs up, the challenge is still used up.
    run_to_completion(async move { take_answer(&visitors, &at, form).await }).await
}

async fn take_answer(
    visitors: &Visitors,
    at: &OwnPageSignIn,
    form: PasskeyForm,
) -> Result<Response, Problem> {
    let again = |shown| page_response(visitors, at, StatusCode::BAD_REQUEST, shown);
    let typed = form.name.as_deref();
    if form.credential.is_empty() {
        return again((typed.unwrap_or_default(), Some(NO_SCRIPT)));
    }
    let answer = PasskeyAnswer {
        challenge: form.challenge,
        credential: form.credential,
    };
    let signed_in: Result<String, OwnPageEnd> = match (typed, typed.and_then(checked_name)) {
        (None, _) => visitors.sign_in_with_passkey(at, &answer).await,
        (Some(_), Some(name)) => visitors.sign_in_with_new_passkey(at, name, &answer),
        (Some(typed), None) => return again((typed, Some(NO_NAME))),
    };
    match signed_in {
        Ok(location) => Ok(see_other(&location)),
        Err(end) => end_response(end),
    }
}

/// Answers the page, with new challenges.
fn page_response(
    visitors: &Visitors,
    at: &OwnPageSignIn,
    status: StatusCode,
    shown: (&str, Option<&str>),
) -> Result<Response, Problem> {
    let prompts = match visitors.sign_in_prompts(at) {
        Ok(prompts) => prompts,
        Err(error) => return end_response(visitors.end_passkey_page(at, error)),
    };
    let page = OwnPage {
        status,
        origin: &at.page.origin,
        script: Some(pages::SCRIPT),
        markup: pages::sign_in_page(at, &prompts, shown),
    };
    page.response()
}
