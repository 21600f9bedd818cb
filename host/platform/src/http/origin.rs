//! Checks of a request's origin: same-origin requests, and navigations.

use http::{HeaderMap, header};

use super::context::HttpRequestContext;
use super::problem::{Problem, ProblemCode};
use crate::config::Config;

/// Whether the `Origin` of a request is its own host's, or absent, as for clients other than browsers. `null` is foreign.
pub fn is_same_origin(scheme: &str, authority: &str, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let ours = format!("{scheme}://{authority}");
    origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes())
}

/// Refuses a form from a page of another origin. Clients other than browsers send no `Origin`.
///
/// # Errors
/// `origin_refused`.
pub fn check_origin(
    config: &Config,
    context: &HttpRequestContext,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    if is_same_origin(&config.scheme, &context.authority, headers) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemCode::OriginRefused,
        "The request comes from a page of another origin. Open the page itself and use its button.",
    ))
}

/// Whether a browser navigates to the address (Fetch Metadata).
pub fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, wanted: &[u8]| headers.get(name).is_some_and(|v| v.as_bytes() == wanted);
    is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document")
}

/// Refuses requests of scripts for protected content, which is for navigations alone (Fetch Metadata).
///
/// # Errors
/// `origin_refused`.
pub fn check_navigation(headers: &HeaderMap) -> Result<(), Problem> {
    let is = |name: &str, wanted: &[u8]| headers.get(name).is_none_or(|v| v.as_bytes() == wanted);
    if is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document") {
        return Ok(());
    }
    Err(Problem::new(
        ProblemCode::OriginRefused,
        "Protected and one-time content is answered to navigations only. Open the page in a tab of its own.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_origin_is_own() {
        for (origin, own) in [
            (None, true),
            (Some("https://a.example"), true),
            (Some("HTTPS://A.example"), true),
            (Some("http://a.example"), false),
            (Some("https://a.example:444"), false),
            (Some("https://b.example"), false),
            (Some("https://a.example.b.example"), false),
            (Some("null"), false),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(
                is_same_origin("https", "a.example", &headers),
                own,
                "{origin:?}"
            );
        }
    }
}
