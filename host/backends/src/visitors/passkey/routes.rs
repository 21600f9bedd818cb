//! The routes of a sign-in by passkey. They are pages for people, and not part of the service's description.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;

use super::{PasskeyAnswer, checked_name, pages};
use crate::access::run_to_completion;
use crate::config::ProviderKind;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnreadBody, invalid_request};
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

/// Form of either kind.
#[derive(Deserialize)]
struct PasskeyForm {
    /// Name of a new account; absent where a known passkey is used.
    name: Option<String>,
    challenge: String,
    credential: String,
}

/// Shows the page.
///
/// # Errors
/// `invalid_request` for a sign-in that was not begun here, `origin_refused` for scripts, and problems of the frontend.
pub async fn show(
    State(visitors): State<Arc<Visitors>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_own_page(&headers)?;
    let state = single_query_value(uri.query(), "state")?;
    let browser = cookies::browser_token(&headers, visitors.infra.config.secure);
    let found = visitors
        .own_page_sign_in(ProviderKind::Passkey, state, browser)
        .await;
    let shown = found.and_then(|at| {
        visitors.check_own_page_time(&at)?;
        Ok(at)
    });
    match shown {
        Ok(at) => page_response(&visitors, &at, StatusCode::OK, ("", None)),
        Err(end) => end_response(end),
    }
}

/// Takes the answer of a browser.
///
/// # Errors
/// Like [`show`]; `origin_refused` for the form of another page.
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
    let found = visitors
        .own_page_sign_in(ProviderKind::Passkey, state, browser.as_deref())
        .await;
    let checked = found.and_then(|at| {
        visitors.check_own_page_time(&at)?;
        Ok(at)
    });
    let at = match checked {
        Ok(at) => at,
        Err(end) => return end_response(end),
    };
    let raw = body.bytes_alone().await?;
    let form: PasskeyForm = serde_urlencoded::from_bytes(&raw)
        .map_err(|error| invalid_request(format!("In the form: {error}.")))?;
    // If the browser hangs up, the challenge is still used up.
    run_to_completion(async move { take_answer(&visitors, &at, form).await }).await
}

async fn take_answer(
    visitors: &Visitors,
    at: &OwnPageSignIn,
    form: PasskeyForm,
) -> Result<Response, Problem> {
    let again = |shown| page_response(visitors, at, StatusCode::BAD_REQUEST, shown);
    let typed = form.name.unwrap_or_default();
    if form.credential.is_empty() {
        return again((&typed, Some(NO_SCRIPT)));
    }
    let answer = PasskeyAnswer {
        challenge: form.challenge,
        credential: form.credential,
    };
    let signed_in: Result<String, OwnPageEnd> = match (typed.is_empty(), checked_name(&typed)) {
        (true, _) => visitors.sign_in_with_passkey(at, &answer).await,
        (false, Some(name)) => visitors.sign_in_with_new_passkey(at, name, &answer),
        (false, None) => return again((&typed, Some(NO_NAME))),
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
