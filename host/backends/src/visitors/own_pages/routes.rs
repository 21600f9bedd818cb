//! Answers of the server's own pages for visitors.

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use ring::digest::{SHA256, digest};

use super::OwnPageEnd;
use crate::http::NOSNIFF;
use crate::http::origin::check_navigation;
use crate::http::problem::{Problem, ProblemCode};
use crate::visitors::routes::{redirect_response, return_response};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The URL has the state, which goes nowhere else; the forms keep their `Origin`.
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// Page of the server.
#[derive(Debug)]
pub(in crate::visitors) struct OwnPage<'a> {
    pub status: StatusCode,
    /// Origin of the frontend that its forms lead to in the end, which is another than the page's.
    pub origin: &'a str,
    /// Script in the page, if it has one.
    pub script: Option<&'a str>,
    pub markup: maud::Markup,
}

impl OwnPage<'_> {
    /// Answers the page.
    ///
    /// # Errors
    /// `internal`, for an origin that no header holds.
    pub(in crate::visitors) fn response(self) -> Result<Response, Problem> {
        let script = match self.script {
            Some(script) => {
                let digest = STANDARD.encode(digest(&SHA256, script.as_bytes()));
                format!("script-src 'sha256-{digest}'; ")
            }
            None => String::new(),
        };
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; {script}form-action 'self' {}; base-uri 'none'; frame-ancestors 'none'",
            self.origin
        );
        let policy = HeaderValue::try_from(policy).map_err(|error| Problem::internal(&error))?;
        let headers = [
            (header::CONTENT_TYPE, HTML),
            (header::CACHE_CONTROL, NO_STORE),
            (header::CONTENT_SECURITY_POLICY, policy),
            (REFERRER_POLICY, SAME_ORIGIN),
            NOSNIFF,
        ];
        Ok((self.status, headers, self.markup.into_string()).into_response())
    }
}

/// Refuses scripts a page whose forms do more than sign a visitor in to one project. Clients other than browsers say nothing of it.
///
/// # Errors
/// `origin_refused`.
pub(in crate::visitors) fn check_own_page(headers: &HeaderMap) -> Result<(), Problem> {
    check_navigation(headers).map_err(|_| {
        Problem::new(
            ProblemCode::OriginRefused,
            "This page is answered to navigations only. Open it in a tab of its own.",
        )
    })
}

/// Answers that a page of the server is left.
///
/// # Errors
/// The problem of a refusal.
pub(in crate::visitors) fn end_response(end: OwnPageEnd) -> Result<Response, Problem> {
    match end {
        OwnPageEnd::Return { location, slug } => Ok(after_form(return_response(&location, &slug))),
        OwnPageEnd::Refused(error) => Err(error.into()),
    }
}

/// Leads a browser on from a form.
pub(in crate::visitors) fn see_other(location: &str) -> Response {
    after_form(redirect_response(location))
}

/// Has a browser send no form again where it is led to.
fn after_form(mut response: Response) -> Response {
    if response.status() == StatusCode::FOUND {
        *response.status_mut() = StatusCode::SEE_OTHER;
    }
    response
}
