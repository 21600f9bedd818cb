//! The two cookies of a sign-in: the session's, and the one that ties a sign-in under way to the browser that began it.

use http::{HeaderMap, HeaderValue};

use super::model::SESSION_SECONDS;
use crate::http::cookies::{HostCookie, host_token};
use crate::http::problem::Problem;
use svc_base::ids::DeploymentId;

/// How long a browser is known as the one that began a sign-in, in seconds.
const BROWSER_SECONDS: i64 = 600;
/// Name of the cookie that ties a sign-in to a browser.
const BROWSER_COOKIE: &str = "svc_sign_in";

/// Name of a frontend's session cookie.
fn session_name(deployment: &DeploymentId) -> String {
    format!("svc_session_{deployment}")
}

/// Returns the token of the session that a request shows for a frontend.
pub(super) fn session_token<'h>(
    headers: &'h HeaderMap,
    deployment: &DeploymentId,
    secure: bool,
) -> Option<&'h str> {
    host_token(headers, &session_name(deployment), secure)
}

/// Returns the token of the browser that sends a request, if it has begun a sign-in here.
pub(super) fn browser_token(headers: &HeaderMap, secure: bool) -> Option<&str> {
    host_token(headers, BROWSER_COOKIE, secure)
}

/// Returns the header that gives a browser its session; an empty token takes it away.
pub(super) fn session_cookie(
    slug: &str,
    deployment: &DeploymentId,
    token: &str,
    secure: bool,
) -> Result<HeaderValue, Problem> {
    let seconds = if token.is_empty() { 0 } else { SESSION_SECONDS };
    HostCookie::for_page(&session_name(deployment), slug, secure).set_header(token, seconds)
}

/// Returns the header that ties a browser to the sign-ins that it begins.
pub(super) fn browser_cookie(token: &str, secure: bool) -> Result<HeaderValue, Problem> {
    HostCookie::for_host(BROWSER_COOKIE, secure).set_header(token, BROWSER_SECONDS)
}
