//! The routes of a sign-in by e-mail, and of the mails that are shown instead of sent, which are not part of the service's description.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use utoipa::ToSchema;

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
use crate::visitors::own_pages::OwnPageSignIn;
use crate::visitors::own_pages::routes::{OwnPage, end_response, see_other};
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

/// A form of a sign-in by e-mail.
#[derive(Debug, Deserialize, ToSchema)]
pub struct EmailForm {
    /// Address that a code is sent to.
    #[schema(example = "ada@example.com")]
    email: Option<String>,
    /// The code, instead.
    #[schema(example = "123456")]
    code: Option<String>,
}

/// Ask for an e-mail address
///
/// A page for people, which the sign-in by the provider `email` leads to. An extension of this implementation.
#[utoipa::path(
    operation_id = "show_email_sign_in",
    get, path = "/_svc/auth/email", tag = "visitors",
    params(("state" = Option<String>, Query, description = "Which sign-in this is.")),
    responses(
        (status = 200, description = "The form for an address.", content_type = "text/html", body = String),
        (status = 303, description = "Back to the page with `auth_error`.")
    ),
    extensions(("x-problems" = json!("invalid_request disabled not_found rate_limited capacity_reached")))
)]
pub async fn show(
    State(visitors): State<Arc<Visitors>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let state = single_query_value(uri.query(), "state")?;
    let secure = visitors.infra.config.secure;
    let browser = cookies::browser_token(&headers, secure);
    let found = visitors.current_own_page_sign_in(ProviderKind::Email, state, browser);
    match found.await {
        Ok(at) => page_response(StatusCode::OK, &at, pages::address_form(&at, "", None)),
        Err(end) => end_response(end),
    }
}

/// Send an address, or a code
///
/// The forms of the page. Only they can be sent. An extension of this implementation.
#[utoipa::path(
    operation_id = "send_email_sign_in",
    post, path = "/_svc/auth/email", tag = "visitors",
    params(("state" = Option<String>, Query, description = "Which sign-in this is.")),
    request_body(content = EmailForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The form for the code that was sent.", content_type = "text/html", body = String),
        (status = 303, description = "On to the frontend, to complete the sign-in; or back to it with `auth_error`."),
        (status = 400, description = "The form again: no mail is sent to such an address, or the code is wrong.", content_type = "text/html", body = String),
        (status = 429, description = "Too many mails; the page says when to come again.", content_type = "text/html", body = String)
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
    let form: EmailForm = body.form().await?;
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
