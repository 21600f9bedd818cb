//! The two cookies of a sign-in: the session's, and the one that ties a sign-in under way to the browser that began it.

use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, header};

use super::model::SESSION_SECONDS;
use crate::http::problem::Problem;
use svc_base::ids::DeploymentId;

/// How long a browser is known as the one that began a sign-in, in seconds.
pub(super) const BROWSER_SECONDS: i64 = 600;
/// The length of a token: 32 bytes in base 62.
const TOKEN: usize = 43;

/// The name of a frontend's session cookie.
pub(super) fn session_name(deployment: &DeploymentId) -> String {
    format!("svc_session_{deployment}")
}

/// The name of the cookie that ties a sign-in to a browser. Over https no other host can set it.
fn browser_name(secure: bool) -> &'static str {
    if secure {
        "__Host-svc_sign_in"
    } else {
        "svc_sign_in"
    }
}

/// The value of the first cookie of a name, if it has the form of a token.
pub fn token_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = pairs.flat_map(|line| line.split(';'));
    pairs.find_map(|pair| {
        let (found, value) = pair.trim().split_once('=')?;
        (found == name && is_token(value)).then_some(value)
    })
}

/// The browser that sends a request, if it has begun a sign-in here.
pub(super) fn browser_of(headers: &HeaderMap, secure: bool) -> Option<&str> {
    token_of(headers, browser_name(secure))
}

fn is_token(text: &str) -> bool {
    text.len() == TOKEN && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The header that gives a browser its session; an empty token takes it.
pub(super) fn give_session(
    slug: &str,
    deployment: &DeploymentId,
    token: &str,
    secure: bool,
) -> Result<HeaderValue, Problem> {
    let seconds = if token.is_empty() { 0 } else { SESSION_SECONDS };
    let cookie = Cookie::build((session_name(deployment), token.to_owned()))
        .path(format!("/{slug}"))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .max_age(cookie::time::Duration::seconds(seconds));
    written(&cookie.build())
}

/// The header that ties a browser to the sign-ins that it begins.
pub(super) fn give_browser(token: &str, secure: bool) -> Result<HeaderValue, Problem> {
    let cookie = Cookie::build((browser_name(secure), token.to_owned()))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .max_age(cookie::time::Duration::seconds(BROWSER_SECONDS));
    written(&cookie.build())
}

fn written(cookie: &Cookie<'_>) -> Result<HeaderValue, Problem> {
    let mut value =
        HeaderValue::try_from(cookie.to_string()).map_err(|error| Problem::internal(&error))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cookie_of_a_name_counts() {
        let (one, two) = ("a".repeat(43), "b".repeat(43));
        for (lines, expected) in [
            (vec![format!("x=1; n={one}")], Some(&one)),
            (vec![format!("n={one}; n={two}")], Some(&one)),
            (vec!["x=1".to_owned(), format!("n={two}")], Some(&two)),
            (vec![format!("nn={one}")], None),
            (vec![format!("n={one}c")], None),
            (vec!["n=".to_owned()], None),
            (vec![format!("n=\"{one}\"")], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(header::COOKIE, line.parse().unwrap());
            }
            assert_eq!(
                token_of(&headers, "n"),
                expected.map(String::as_str),
                "{lines:?}"
            );
        }
    }
}
