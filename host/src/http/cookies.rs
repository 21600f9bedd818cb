//! Cookies of the platform: their names, their attributes, and how they are read.
//!
//! A page can set a cookie for the whole domain above it, and a browser sends that one to siblings without saying who set it. Over https
//! the names begin with `__Host-`, which browsers take from the very host alone. Over plain HTTP nobody can tell, so
//! of several cookies of one name none counts.

use cookie::time::Duration;
use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, header};

use super::problem::Problem;

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
    /// The cookie `name` of the page at `slug`; `secure` where visitors come over https.
    pub fn for_page(name: &str, slug: &str, secure: bool) -> Self {
        Self::new(name, format!("/{slug}"), secure)
    }

    /// The cookie `name` of a whole host.
    pub fn for_host(name: &str, secure: bool) -> Self {
        Self::new(name, "/".to_owned(), secure)
    }

    fn new(name: &str, path: String, secure: bool) -> Self {
        if secure {
            return Self {
                name: format!("__Host-{name}"),
                // The prefix demands it.
                path: "/".to_owned(),
                secure,
            };
        }
        Self {
            name: name.to_owned(),
            path,
            secure,
        }
    }

    /// Returns the header that gives the cookie to a browser for some seconds; for none it takes the cookie away.
    ///
    /// # Errors
    /// `internal` for a value that no header can hold.
    pub fn set_header(&self, value: &str, seconds: i64) -> Result<HeaderValue, Problem> {
        let cookie = Cookie::build((self.name.as_str(), value))
            .path(self.path.as_str())
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(self.secure)
            .max_age(Duration::seconds(seconds));
        let header = HeaderValue::try_from(cookie.build().to_string());
        let mut header = header.map_err(|error| Problem::internal(&error))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// Returns the token in the only cookie of a page's or a host's name; see [`HostCookie`].
pub fn host_token<'h>(headers: &'h HeaderMap, name: &str, secure: bool) -> Option<&'h str> {
    if secure {
        token(headers, &format!("__Host-{name}"))
    } else {
        token(headers, name)
    }
}

/// Returns the token in the only cookie of a name: several of one name, and what has not a token's form, are none.
pub fn token<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = values(headers, name);
    match (values.next(), values.next()) {
        (Some(value), None) if is_token(value) => std::str::from_utf8(value).ok(),
        _ => None,
    }
}

/// Returns the values of all cookies of a name. Only for those that prove something by themselves, whoever set them.
pub fn values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
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
            // What another one is beside it does not matter.
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
            assert_eq!(token(&headers, "n"), expected, "{lines:?}");
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
