//! Addresses of issuers: https, or http on this machine alone.

use std::fmt;

use url::{Host, Url};

/// The address of an issuer as the operator wrote it: issuers are compared letter by letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IssuerAddress(String);

/// An address that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no URL, or one with parts that an issuer has not.
    #[error(
        "must be a URL such as https://accounts.example.com, without a query, a fragment or a user: {0:?}"
    )]
    NoUrl(String),
    /// Anybody on the way could read and change what is asked.
    #[error(
        "must be an https URL; http is for an issuer on this machine (localhost, 127.0.0.1) alone: {0:?}"
    )]
    NotHttps(String),
}

impl IssuerAddress {
    /// Reads the address of an issuer.
    ///
    /// # Errors
    /// [`AddressError`], without the name of the setting.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let no_url = || AddressError::NoUrl(text.to_owned());
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
            return Err(AddressError::NotHttps(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the issuer is asked over http, which only one on this machine is.
    pub fn is_loopback(&self) -> bool {
        self.0
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case("http:"))
    }

    /// Where the issuer describes itself (OpenID Connect Discovery, section 4).
    pub fn discovery_url(&self) -> String {
        let base = self.0.trim_end_matches('/');
        format!("{base}/.well-known/openid-configuration")
    }

    /// Reads an address that this issuer named: an issuer elsewhere never leads to this machine.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn endpoint(&self, text: &str) -> Result<Url, AddressError> {
        let url = Url::parse(text).map_err(|_| AddressError::NoUrl(text.to_owned()))?;
        let allowed = url.scheme() == "https" || (self.is_loopback() && is_confidential(&url));
        if allowed && url.host().is_some() && url.username().is_empty() && url.fragment().is_none()
        {
            Ok(url)
        } else {
            Err(AddressError::NotHttps(text.to_owned()))
        }
    }
}

impl fmt::Display for IssuerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether nobody on the way can read what is asked there.
fn is_confidential(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether a URL is of this machine.
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
