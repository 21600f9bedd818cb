//! Cookies of the platform: names, attributes and parsing.
//!
//! A page can set a cookie for its parent domain, and browsers send it to sibling hosts without its origin. Over https the names begin
//! with `__Host-`, which browsers accept from the host itself alone. Over plain HTTP the origin is unknown, so several cookies of one
//! name are ignored.

use cookie::time::Duration;
use cookie::{Cookie, SameSite};
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderValue, header};

/// Length of a token: 32 bytes in base 62.
const TOKEN_LENGTH: usize = 43;

/// A cookie that only its own host may set, where browsers can enforce that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCookie {
    name: String,
    path: String,
    secure: bool,
}

impl HostCookie {
    /// Makes the cookie `name` of the page at `slug`; `secure` if visitors use https.
    pub fn for_page(name: &str, slug: &str, secure: bool) -> Self {
        Self::new(name, format!("/{slug}"), secure)
    }

    /// Makes the cookie `name` of a whole host.
    pub fn for_host(name: &str, secure: bool) -> Self {
        Self::new(name, "/".to_owned(), secure)
    }

    fn new(name: &str, path: String, secure: bool) -> Self {
        Self {
            name: host_name(name, secure),
            // `__Host-` requires the path `/`.
            path: if secure { "/".to_owned() } else { path },
            secure,
        }
    }

    /// Returns the `Set-Cookie` header with a lifetime in seconds; 0 removes the cookie.
    ///
    /// # Errors
    /// When a header cannot hold the value.
    pub fn set_header(&self, value: &str, seconds: i64) -> Result<HeaderValue, InvalidHeaderValue> {
        let cookie = Cookie::build((self.name.as_str(), value))
            .path(self.path.as_str())
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(self.secure)
            .max_age(Duration::seconds(seconds));
        let mut header = HeaderValue::try_from(cookie.build().to_string())?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Returns the token in the only cookie of a page's or a host's name; see [`HostCookie`].
pub fn host_token<'h>(headers: &'h HeaderMap, name: &str, secure: bool) -> Option<&'h str> {
    read_token(headers, &host_name(name, secure))
}

/// Returns the tokens in all cookies of a page's or a host's name; a sibling may have set some. For tokens that are to end, or that
/// only show something.
pub fn host_tokens<'h>(headers: &'h HeaderMap, name: &str, secure: bool) -> Vec<&'h str> {
    let name = host_name(name, secure);
    let tokens = cookie_values(headers, &name).filter(|value| is_token(value));
    tokens
        .filter_map(|value| std::str::from_utf8(value).ok())
        .collect()
}

/// Whether a request has several cookies of a page's or a host's name, so that none counts.
pub fn has_several(headers: &HeaderMap, name: &str, secure: bool) -> bool {
    cookie_values(headers, &host_name(name, secure))
        .nth(1)
        .is_some()
}

/// Returns the name under which browsers store the cookie `name` of a page or a host.
fn host_name(name: &str, secure: bool) -> String {
    if secure {
        format!("__Host-{name}")
    } else {
        name.to_owned()
    }
}

/// Returns the token in the only cookie of a name; `None` if there are several, or the value does not have a token's form.
pub fn read_token<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = cookie_values(headers, name);
    match (values.next(), values.next()) {
        (Some(value), None) if is_token(value) => std::str::from_utf8(value).ok(),
        _ => None,
    }
}

/// Returns the values of all cookies of a name, whose origin is unknown: for values that are signed.
pub fn cookie_values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let pair = pair.trim_ascii();
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (found, value) = (&pair[..equals], &pair[equals + 1..]);
        (found == name.as_bytes()).then_some(value)
    })
}

fn is_token(value: &[u8]) -> bool {
    value.len() == TOKEN_LENGTH && value.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cookie_that_is_alone_counts() {
        let (one, two) = ("a".repeat(43), "b".repeat(43));
        for (lines, expected) in [
            (vec![format!("x=1; n={one}")], Some(&one)),
            (vec!["x=1".to_owned(), format!("n={two}")], Some(&two)),
            // Cookies of other names do not matter.
            (vec![format!("\u{fc}=\u{fc}; n={one};")], Some(&one)),
            (vec![format!("n={one}; n={two}")], None),
            (vec![format!("n={one}"), format!("n={one}")], None),
            (vec![format!("n={one}; n=")], None),
            (vec![format!("n=\"; n={one}")], None),
            (vec![format!("n={one}; \tn=x")], None),
            (vec![format!("N={one}")], None),
            (vec![format!("nn={one}")], None),
            (vec![format!("n={one}c")], None),
            (vec!["n=".to_owned()], None),
            (vec!["n".to_owned()], None),
            (vec![format!("n=\"{one}\"")], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                let line = HeaderValue::from_bytes(line.as_bytes()).unwrap();
                headers.append(header::COOKIE, line);
            }
            let expected = expected.map(String::as_str);
            assert_eq!(read_token(&headers, "n"), expected, "{lines:?}");
            assert_eq!(host_token(&headers, "n", false), expected, "{lines:?}");
            assert_eq!(host_token(&headers, "n", true), None, "{lines:?}");
        }
    }

    #[test]
    fn over_https_only_the_host_itself_can_set_it() {
        let given = |cookie: HostCookie| {
            cookie
                .set_header("v", 60)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            given(HostCookie::for_page("n", "page", true)),
            "__Host-n=v; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=60"
        );
        assert_eq!(
            given(HostCookie::for_page("n", "page", false)),
            "n=v; HttpOnly; SameSite=Lax; Path=/page; Max-Age=60"
        );
        assert_eq!(
            given(HostCookie::for_host("n", false)),
            "n=v; HttpOnly; SameSite=Lax; Path=/; Max-Age=60"
        );
    }
}
