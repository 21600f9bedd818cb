//! The two cookies of a sign-in: the session cookie, and the cookie that ties a pending sign-in to its browser.

use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderValue};

use super::model::SESSION_SECONDS;
use crate::deployments::serving::PageMounts;
use crate::http::cookies::{HostCookie, host_token, host_tokens};
use svc_base::ids::DeploymentId;

/// Lifetime of the browser cookie, in seconds: that of a sign-in, of a code that is sent at its end, and of a ticket.
const BROWSER_COOKIE_SECONDS: i64 = 1_260;

/// Name of the cookie that ties a sign-in to a browser.
///
/// Over https its prefix is `__Host-Http-`: browsers that know it take such a cookie from an answer alone, not from a script. Otherwise the
/// script of a page could plant the token of a sign-in that its owner has begun elsewhere, and lead the visitor to the provider by an address
/// that does not have the provider ask for the account.
fn browser_name(secure: bool) -> &'static str {
    if secure {
        "Http-svc_sign_in"
    } else {
        "svc_sign_in"
    }
}

/// Name of a frontend's session cookie.
fn session_name(deployment: &DeploymentId) -> String {
    format!("svc_session_{deployment}")
}

/// Returns the session token for a frontend from a request's cookies.
pub(super) fn session_token<'h>(
    headers: &'h HeaderMap,
    deployment: &DeploymentId,
    secure: bool,
) -> Option<&'h str> {
    host_token(headers, &session_name(deployment), secure)
}

/// Returns the session tokens in all cookies of a frontend's name, of which [`session_token`] counts one that is alone.
pub(super) fn session_tokens<'h>(
    headers: &'h HeaderMap,
    deployment: &DeploymentId,
    secure: bool,
) -> Vec<&'h str> {
    host_tokens(headers, &session_name(deployment), secure)
}

/// Returns the browser token from a request's cookies.
pub(super) fn browser_token(headers: &HeaderMap, secure: bool) -> Option<&str> {
    host_token(headers, browser_name(secure), secure)
}

/// Returns the `Set-Cookie` headers of a session; an empty token deletes the cookie.
pub(super) fn session_cookies(
    mounts: &PageMounts,
    deployment: &DeploymentId,
    token: &str,
    secure: bool,
) -> Result<Vec<HeaderValue>, InvalidHeaderValue> {
    let seconds = if token.is_empty() { 0 } else { SESSION_SECONDS };
    mounts.cookie_headers(&session_name(deployment), secure, (token, seconds))
}

/// Returns the header that ties a browser to the sign-ins that it begins.
pub(super) fn browser_cookie(token: &str, secure: bool) -> Result<HeaderValue, InvalidHeaderValue> {
    HostCookie::for_host(browser_name(secure), secure).set_header(token, BROWSER_COOKIE_SECONDS)
}
