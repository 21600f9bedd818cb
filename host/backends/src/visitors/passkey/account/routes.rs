//! The routes of an account of passkeys, which are pages for people.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AccountChanged, OpenAccount, pages};
use crate::access::run_to_completion;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::origin::check_origin;
use crate::http::problem::{Problem, ProblemCode};
use crate::visitors::own_pages::routes::{OwnPage, check_own_page, end_response, see_other};
use crate::visitors::passkey::PasskeyAnswer;
use crate::visitors::passkey::pages::SCRIPT;
use crate::visitors::passkey::routes::{MAX_FORM_BYTES, NO_SCRIPT};
use crate::visitors::routes::{redirect_response, single_query_value};
use crate::visitors::{Visitors, cookies, sessions};
use crate::workspaces::credential;

/// Answer to the removal of the last passkey.
const LAST: &str = "This is your only passkey: without it nobody could sign in. Add another first.";
/// Answer to a passkey that cannot be added.
const REFUSED: &str =
    "No passkey was added: the account has as many as it can have, or has this one already.";

/// A form of an account of passkeys.
#[derive(Deserialize, ToSchema)]
pub struct AccountForm {
    /// Id of a passkey to remove.
    remove: Option<String>,
    /// The challenge of the page, sealed, where a passkey is added.
    challenge: Option<String>,
    /// Answer of the browser, as JSON.
    credential: Option<String>,
}

/// Manage passkeys
///
/// For browsers: it leads a visitor who is signed in with a passkey to the page of their passkeys. Scripts are refused. An extension of
/// this implementation.
#[utoipa::path(
    operation_id = "leave_for_passkeys",
    get, path = "/{slug}/auth/passkeys", tag = "visitors",
    params(("slug" = String, Path, description = "A project's frontend.")),
    responses((status = 302, description = "To the page, by a ticket; to the frontend's own origin, if it was asked elsewhere.")),
    extensions(("x-problems" = json!("identity_required origin_refused disabled not_found rate_limited capacity_reached")))
)]
pub async fn leave(
    State(visitors): State<Arc<Visitors>>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_own_page(&headers)?;
    let page = visitors.sign_in_page(&context.host, &slug).await?;
    if !sessions::is_own_origin(&visitors.infra.config, &context.host, &page.frontend) {
        let own = format!("{}/{slug}/auth/passkeys", page.origin);
        return Ok(redirect_response(&own));
    }
    let session = visitors
        .current_session(&context.host, &page.frontend, &headers)
        .await?;
    let location = match session {
        Some(session) => visitors.begin_passkey_visit(&page, &session).await?,
        None => None,
    };
    match location {
        Some(location) => Ok(redirect_response(&location)),
        None => Err(Problem::new(
            ProblemCode::IdentityRequired,
            "Only who is signed in with a passkey has passkeys here. Sign in with one, then come back.",
        )),
    }
}

/// Show passkeys
///
/// A page for people. An extension of this implementation.
#[utoipa::path(
    operation_id = "show_passkeys",
    get, path = "/_svc/auth/passkeys", tag = "visitors",
    params(
        ("ticket" = Option<String>, Query, description = "What the frontend gave; used once, within a minute."),
        ("state" = Option<String>, Query, description = "Which visit this is, after that.")
    ),
    responses(
        (status = 200, description = "The page.", content_type = "text/html", body = String),
        (status = 303, description = "On to the page; or back to the frontend with `auth_error`.")
    ),
    extensions(("x-problems" = json!("invalid_request origin_refused disabled not_found rate_limited capacity_reached")))
)]
pub async fn show(
    State(visitors): State<Arc<Visitors>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_own_page(&headers)?;
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(&headers, secure);
    if let Some(ticket) = single_query_value(uri.query(), "ticket")? {
        let browser = match browser {
            Some(known) => known.to_owned(),
            None => credential::random_secret(&visitors.infra.random)
                .map_err(|error| Problem::internal(&error))?,
        };
        let redeemed = visitors.redeem_passkey_ticket(&ticket, &browser);
        return match redeemed.await {
            Ok(location) => {
                let mut response = see_other(&location);
                let cookie = cookies::browser_cookie(&browser, secure)?;
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                Ok(response)
            }
            Err(end) => end_response(end),
        };
    }
    let state = single_query_value(uri.query(), "state")?;
    match visitors.open_passkey_account(state, browser).await {
        Ok(open) => page_response(&visitors, &open, StatusCode::OK, None),
        Err(end) => end_response(end),
    }
}

/// Add or remove a passkey
///
/// The forms of the page. Only they can be sent. An extension of this implementation.
#[utoipa::path(
    operation_id = "change_passkeys",
    post, path = "/_svc/auth/passkeys", tag = "visitors",
    params(("state" = Option<String>, Query, description = "Which visit this is.")),
    request_body(content = AccountForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "To the page as it is now; or back to the frontend with `auth_error`. A visit from a domain is confirmed by a passkey first."),
        (status = 400, description = "The page again: its script did not run.", content_type = "text/html", body = String),
        (status = 409, description = "The page again: the last passkey stays, and an account has no more than 20.", content_type = "text/html", body = String)
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
    let opened = visitors.open_passkey_account(state, browser.as_deref());
    let open = match opened.await {
        Ok(open) => open,
        Err(end) => return end_response(end),
    };
    let form: AccountForm = body.form().await?;
    // If the browser hangs up, the change is still made.
    run_to_completion(async move { change(&visitors, &open, form).await }).await
}

async fn change(
    visitors: &Visitors,
    open: &OpenAccount,
    form: AccountForm,
) -> Result<Response, Problem> {
    if !open.is_confirmed {
        return confirm(visitors, open, form).await;
    }
    let changed = match (form.remove, form.challenge, form.credential) {
        (Some(id), None, None) => {
            let id = URL_SAFE_NO_PAD.decode(id);
            let id = id.map_err(|_| invalid_request("`remove` must be the id of a passkey."))?;
            visitors.remove_passkey(open, id).await
        }
        (None, Some(_), Some(credential)) if credential.is_empty() => {
            return page_response(visitors, open, StatusCode::BAD_REQUEST, Some(NO_SCRIPT));
        }
        (None, Some(challenge), Some(credential)) => {
            let answer = PasskeyAnswer {
                challenge,
                credential,
            };
            visitors.add_passkey(open, &answer).await
        }
        _ => {
            return Err(invalid_request(
                "The form has `remove`, or `challenge` and `credential`.",
            ));
        }
    };
    let wrong = match changed {
        // The page is loaded anew, so that the form is not sent again.
        Ok(AccountChanged::Done) => return Ok(see_other(&open.at.form_url(pages::PATH))),
        Ok(AccountChanged::Last) => LAST,
        Ok(AccountChanged::Refused) => REFUSED,
        Err(error) => return end_response(visitors.end_passkey_page(&open.at, error)),
    };
    page_response(visitors, open, StatusCode::CONFLICT, Some(wrong))
}

/// Takes the passkey that a visit is confirmed with, and nothing else.
async fn confirm(
    visitors: &Visitors,
    open: &OpenAccount,
    form: AccountForm,
) -> Result<Response, Problem> {
    let (None, Some(challenge), Some(credential)) = (form.remove, form.challenge, form.credential)
    else {
        return Err(invalid_request(
            "The form has `challenge` and `credential`: a passkey of the account is shown first.",
        ));
    };
    if credential.is_empty() {
        return page_response(visitors, open, StatusCode::BAD_REQUEST, Some(NO_SCRIPT));
    }
    let answer = PasskeyAnswer {
        challenge,
        credential,
    };
    match visitors.confirm_passkey_visit(open, &answer).await {
        Ok(path) => Ok(see_other(&path)),
        Err(error) => end_response(visitors.end_passkey_page(&open.at, error)),
    }
}

/// Answers the page with a new challenge: the account, or what asks for a passkey before it is shown.
fn page_response(
    visitors: &Visitors,
    open: &OpenAccount,
    status: StatusCode,
    wrong: Option<&str>,
) -> Result<Response, Problem> {
    let prompt = match open.is_confirmed {
        true => visitors.another_passkey_prompt(open),
        false => visitors.request_prompt(&open.at),
    };
    let prompt = match prompt {
        Ok(prompt) => prompt,
        Err(error) => return end_response(visitors.end_passkey_page(&open.at, error)),
    };
    let render = match open.is_confirmed {
        true => pages::account_page,
        false => pages::confirmation_page,
    };
    let page = OwnPage {
        status,
        origin: &open.at.page.origin,
        script: Some(SCRIPT),
        markup: render(open, &prompt, wrong),
    };
    page.response()
}
