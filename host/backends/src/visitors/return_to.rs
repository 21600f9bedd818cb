//! Return paths of sign-ins and checkouts: paths of their own frontend only.

use percent_encoding::percent_decode_str;
use url::Url;

use super::model::SignInError;
use crate::deployments::serving::PageMounts;

/// Maximum length, in bytes.
pub const MAX_BYTES: usize = 1024;
/// Query parameter with the error of a failed sign-in.
const ERROR_PARAMETER: &str = "auth_error";

/// Checks a return path for the frontend of these mounts on `origin`, and removes the error of an earlier sign-in from it; `None` if it
/// is not a path of the frontend.
pub fn validated_path(origin: &str, mounts: &PageMounts, wanted: &str) -> Option<String> {
    if !wanted.starts_with('/') || wanted.len() > MAX_BYTES {
        return None;
    }
    if wanted.contains(|c: char| c.is_control() || c == '\\') {
        return None;
    }
    let origin = Url::parse(origin).ok()?;
    let mut url = origin.join(wanted).ok()?;
    let path = percent_decode_str(url.path()).decode_utf8().ok()?;
    // A sign-in must not lead back to another sign-in, in whatever form the path is written.
    let loops = mounts.is_sign_in(&path);
    // As it is written, and as it is read: neither leads out of the frontend.
    let is_inside = mounts.has(url.path()) && mounts.has(&path);
    if url.origin() != origin.origin() || !is_inside || loops {
        return None;
    }
    if url.query_pairs().any(|(name, _)| name == ERROR_PARAMETER) {
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| name != ERROR_PARAMETER)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
    // A browser would read two slashes at the begin as another host.
    Some(without_origin(&url)).filter(|path| !path.starts_with("//"))
}

/// Adds an error code to a return path.
pub(super) fn url_with_error(origin: &str, path: &str, code: &str) -> String {
    let joined = Url::parse(origin).and_then(|origin| origin.join(path));
    let Ok(mut url) = joined else {
        return format!("{origin}{path}");
    };
    url.query_pairs_mut().append_pair(ERROR_PARAMETER, code);
    format!("{origin}{}", without_origin(&url))
}

/// Returns the error that a URL for the browser leads back with, if the sign-in has failed.
pub(super) fn error_of(location: &str) -> Option<SignInError> {
    let url = Url::parse(location).ok()?;
    let mut pairs = url.query_pairs();
    let (_, code) = pairs.find(|(name, _)| name == ERROR_PARAMETER)?;
    SignInError::find_by_code(&code)
}

fn without_origin(url: &Url) -> String {
    url[url::Position::BeforePath..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "https://a.example:444";

    fn book() -> PageMounts {
        PageMounts::at_slug("book")
    }

    #[test]
    fn only_paths_of_the_frontend_are_led_back_to() {
        for (wanted, expected) in [
            ("/book", Some("/book")),
            ("/book/", Some("/book/")),
            ("/book?a=b#c", Some("/book?a=b#c")),
            ("/book#c", Some("/book#c")),
            ("/book/x/../y", Some("/book/y")),
            ("/book?auth_error=x", Some("/book")),
            ("/book?a=1&auth_error=x&b=2#c", Some("/book?a=1&b=2#c")),
            (
                "/book?u=https://b.example",
                Some("/book?u=https://b.example"),
            ),
            ("", None),
            ("/", None),
            ("book", None),
            ("/bookish", None),
            ("/other", None),
            ("//book", None),
            ("//b.example/book", None),
            ("https://a.example:444/book", None),
            ("https://b.example/book", None),
            ("/book/../other", None),
            ("/book/%2e%2e/other", None),
            ("/book%2F..%2Fother", None),
            ("/book/..\\other", None),
            ("/book\\..\\..\\other", None),
            ("/book/../../b", None),
            ("/book\r\nLocation: x", None),
            ("/book/auth/login", None),
            ("/book/x/../auth/login", None),
            ("/book/%61uth/login?provider=other", None),
            ("/book/auth%2Flogin", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(
                validated_path(ORIGIN, &book(), wanted).as_deref(),
                expected,
                "{wanted}"
            );
        }
        let long = format!("/book?{}", "x".repeat(MAX_BYTES));
        assert_eq!(validated_path(ORIGIN, &book(), &long), None);
    }

    #[test]
    fn an_error_is_told_beside_what_is_there() {
        for (path, expected) in [
            ("/book", "https://a.example:444/book?auth_error=e"),
            ("/book?a=b", "https://a.example:444/book?a=b&auth_error=e"),
            ("/book#c", "https://a.example:444/book?auth_error=e#c"),
        ] {
            assert_eq!(url_with_error(ORIGIN, path, "e"), expected);
            let failed = url_with_error(ORIGIN, path, "state_invalid");
            assert_eq!(error_of(&failed), Some(SignInError::StateInvalid));
            assert_eq!(error_of(expected), None);
        }
    }
}
