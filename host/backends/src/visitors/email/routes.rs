//! The routes of a sign-in by e-mail, and of the mails that are shown instead of sent. They are pages for people, and not part of the
//! service's description.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;

use super::{CodeEntered, CodeSent, pages};
use crate::access::run_to_completion;
use crate::config::ProviderKind;
use crate::http::NOSNIFF;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnreadBody, invalid_request};
use crate::http::origin::check_origin;
use crate::http::problem::Problem;
use crate::http::problem_page;
use crate::outbound::mail::MailAddress;
use crate::visitors::Visitors;
use crate::visitors::cookies;
use crate::visitors::own_pages::routes::{OwnPage, end_response, see_other};
use crate::visitors::own_pages::{OwnPageEnd, OwnPageSignIn};
use crate::visitors::routes::single_query_value;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Maximum size of a form, in bytes.
const MAX_FORM_BYTES: u64 = 4_096;
/// Answer to an address that no mail is sent to.
const NO_ADDRESS: &str = "Give an e-mail address such as ada@example.com.";
/// Answer to any code when none is valid.
const NO_CODE_LEFT: &str =
    "This code is not valid any more, or belongs to another browser. Ask for a new one.";

/// Form of either page.
#[derive(Debug, Deserialize)]
struct EmailForm {
    email: Option<String>,
    code: Option<String>,
}

/// Shows the form for an address.
///
/// # Errors
/// `invalid_request` for a sign-in that was not begun here, and problems of the frontend.
pub async fn show(
    State(visitors): State<Arc<Visitors>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let state = single_query_value(uri.query(), "state")?;
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(&headers, secure);
    let found = async {
        let kind = ProviderKind::Email;
        let at = visitors.own_page_sign_in(kind, state, browser).await?;
        visitors.check_own_page_time(&at)?;
        Ok::<_, OwnPageEnd>(at)
    };
    match found.await {
        Ok(at) => page_response(StatusCode::OK, &at, pages::address_form(&at, "", None)),
        Err(end) => end_response(end),
    }
}

/// Takes an address, or a code.
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
    let body = body.with_limit(MAX_FORM_BYTES)?;
    let state = single_query_value(uri.query(), "state")?;
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(body.headers(), secure).map(str::to_owned);
    let found = visitors
        .own_page_sign_in(ProviderKind::Email, state, browser.as_deref())
        .await;
    let at = match found {
        Ok(at) => at,
        Err(end) => return end_response(end),
    };
    let raw = body.bytes_alone().await?;
    let form: EmailForm = serde_urlencoded::from_bytes(&raw)
        .map_err(|error| invalid_request(format!("In the form: {error}.")))?;
    // If the browser hangs up, the code is still sent, or used up.
    let working = async move {
        match (form.email, form.code) {
            (Some(email), None) => {
                let client = (&context, browser.as_deref());
                take_address(&visitors, &at, &email, client).await
            }
            (None, Some(code)) => take_code(&visitors, &at, &code, browser.as_deref()),
            _ => Err(invalid_request(
                "The form has one field: `email`, or after that `code`.",
            )),
        }
    };
    run_to_completion(working).await
}

/// Shows the mails that are not sent.
///
/// # Errors
/// `not_found` where mails are sent.
pub async fn mailbox(
    State(visitors): State<Arc<Visitors>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mailbox = visitors.mailbox().ok_or_else(Problem::not_found)?;
    let accept = headers.get(header::ACCEPT).map(HeaderValue::as_bytes);
    let cache = [(header::CACHE_CONTROL, NO_STORE)];
    if accept == Some(b"application/json") {
        let document = serde_json::json!({ "mails": mailbox.mails() });
        return Ok((cache, axum::Json(document)).into_response());
    }
    let headers = [
        (header::CONTENT_TYPE, HTML),
        (
            header::CONTENT_SECURITY_POLICY,
            problem_page::CONTENT_SECURITY_POLICY,
        ),
        NOSNIFF,
    ];
    let page = pages::mailbox_page(mailbox).into_string();
    Ok((cache, headers, page).into_response())
}

async fn take_address(
    visitors: &Visitors,
    at: &OwnPageSignIn,
    email: &str,
    (context, browser): (&HttpRequestContext, Option<&str>),
) -> Result<Response, Problem> {
    if let Err(end) = visitors.check_own_page_time(at) {
        return end_response(end);
    }
    let Some(address) = MailAddress::parse(email) else {
        let page = pages::address_form(at, email.trim(), Some(NO_ADDRESS));
        return page_response(StatusCode::BAD_REQUEST, at, page);
    };
    let (shown, client) = (address.to_string(), context.client.bucket());
    let sent = visitors.send_code(at, address, client, browser).await;
    match sent {
        Ok(CodeSent::Sent { browser }) => {
            let page = pages::code_form(at, &shown, None);
            let mut response = page_response(StatusCode::OK, at, page)?;
            let cookie = cookies::browser_cookie(&browser, visitors.infra.config.secure)?;
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            Ok(response)
        }
        Ok(CodeSent::TooMany(reached)) => {
            let page = pages::limit_page(at, reached);
            let mut response = page_response(StatusCode::TOO_MANY_REQUESTS, at, page)?;
            let wait = HeaderValue::from(reached.wait_seconds);
            response.headers_mut().insert(header::RETRY_AFTER, wait);
            Ok(response)
        }
        Err(end) => end_response(end),
    }
}

fn take_code(
    visitors: &Visitors,
    at: &OwnPageSignIn,
    code: &str,
    browser: Option<&str>,
) -> Result<Response, Problem> {
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let page = match visitors.enter_code(at, &code, browser) {
        Ok(CodeEntered::Right(location)) => return Ok(see_other(&location)),
        Ok(CodeEntered::Wrong(address, left)) if left > 0 => {
            let left = svc_base::pluralize(left, "attempt");
            let wrong = format!("That is not the code. You have {left} left.");
            pages::code_form(at, &address.to_string(), Some(&wrong))
        }
        Ok(CodeEntered::Wrong(address, _)) => {
            let wrong =
                "That is not the code, and the right one is not valid any more. Ask for a new one.";
            pages::address_form(at, &address.to_string(), Some(wrong))
        }
        Ok(CodeEntered::Unknown) => pages::address_form(at, "", Some(NO_CODE_LEFT)),
        Err(end) => return end_response(end),
    };
    page_response(StatusCode::BAD_REQUEST, at, page)
}

/// Answers a page of a sign-in.
fn page_response(
    status: StatusCode,
    at: &OwnPageSignIn,
    markup: maud::Markup,
) -> Result<Response, Problem> {
    let page = OwnPage {
        status,
        origin: &at.page.origin,
        script: None,
        markup,
    };
    page.response()
}
