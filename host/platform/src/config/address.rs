//! Addresses of issuers: https, or http on this machine alone.

use std::fmt;

use url::{Host, Url};

/// The address of an issuer as the operator wrote it: issuers are compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IssuerAddress(String);

/// Error of an issuer's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerAddressError {
    /// The text is not a URL, or has a query, a fragment or a user.
    #[error(
        "must be a URL such as https://accounts.example.com, without a query, a fragment or a user: {0:?}"
    )]
    NoUrl(String),
    /// Plain HTTP to another machine, which anybody on the network could read and change.
    #[error(
        "must be an https URL; http is for an issuer on this machine (localhost, 127.0.0.1) alone: {0:?}"
    )]
    NotHttps(String),
}

impl IssuerAddress {
    /// Reads the address of an issuer.
    ///
    /// # Errors
    /// [`IssuerAddressError`], without the name of the setting.
    pub fn parse(text: &str) -> Result<Self, IssuerAddressError> {
        let no_url = || IssuerAddressError::NoUrl(text.to_owned());
        let url = Url::parse(text).map_err(|_| no_url())?;
        let plain = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && url.host().is_some()
            && text.trim() == text;
        if !plain {
            return Err(no_url());
        }
        if !is_confidential(&url) {
            return Err(IssuerAddressError::NotHttps(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the issuer has an http URL, which only one on this machine may have.
    pub fn is_loopback(&self) -> bool {
        self.0
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case("http:"))
    }

    /// Returns the URL of the discovery document (OpenID Connect Discovery, section 4).
    pub fn discovery_url(&self) -> String {
        let base = self.0.trim_end_matches('/');
        format!("{base}/.well-known/openid-configuration")
    }

    /// Parses an endpoint that this issuer named: a remote issuer cannot name this machine over http.
    ///
    /// # Errors
    /// [`IssuerAddressError`].
    pub fn endpoint(&self, text: &str) -> Result<Url, IssuerAddressError> {
        let url = Url::parse(text).map_err(|_| IssuerAddressError::NoUrl(text.to_owned()))?;
        let allowed = url.scheme() == "https" || (self.is_loopback() && is_confidential(&url));
        if allowed && url.host().is_some() && url.username().is_empty() && url.fragment().is_none()
        {
            Ok(url)
        } else {
            Err(IssuerAddressError::NotHttps(text.to_owned()))
        }
    }
}

impl fmt::Display for IssuerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the connection is encrypted or stays on this machine.
fn is_confidential(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether a URL names this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_https_or_on_this_machine() {
        for (text, allowed) in [
            ("https://accounts.example.com", true),
            ("https://example.com/realms/a", true),
            ("https://tenant.example.com/", true),
            ("http://localhost:8080", true),
            ("http://127.0.0.1:9000/oidc", true),
            ("http://127.8.8.8:9000", true),
            ("http://[::1]:9000", true),
            ("http://accounts.example.com", false),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("ftp://localhost", false),
            ("https://user:secret@example.com", false),
            ("https://example.com/?a=b", false),
            ("https://example.com/#a", false),
            ("accounts.example.com", false),
            ("", false),
        ] {
            assert_eq!(IssuerAddress::parse(text).is_ok(), allowed, "{text}");
        }
    }

    #[test]
    fn what_an_issuer_elsewhere_names_is_not_on_this_machine() {
        let far = IssuerAddress::parse("https://accounts.example.com").unwrap();
        let near = IssuerAddress::parse("http://127.0.0.1:9000").unwrap();
        for (text, of_far, of_near) in [
            ("https://keys.example.net/jwks", true, true),
            ("http://127.0.0.1:9000/jwks", false, true),
            ("http://keys.example.net/jwks", false, false),
            ("file:///etc/passwd", false, false),
        ] {
            assert_eq!(far.endpoint(text).is_ok(), of_far, "{text}");
            assert_eq!(near.endpoint(text).is_ok(), of_near, "{text}");
        }
    }

    #[test]
    fn discovery_lies_below_the_issuer() {
        for (issuer, expected) in [
            (
                "https://a.example",
                "https://a.example/.well-known/openid-configuration",
            ),
            (
                "https://a.example/",
                "https://a.example/.well-known/openid-configuration",
            ),
            (
                "https://a.example/r/b",
                "https://a.example/r/b/.well-known/openid-configuration",
            ),
        ] {
            assert_eq!(
                IssuerAddress::parse(issuer).unwrap().discovery_url(),
                expected
            );
        }
    }
}
