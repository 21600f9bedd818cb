//! Access tokens of users: a resource server (RFC 6750) of the issuer that the operator names.

use http::{HeaderValue, header};

use crate::clock::Clock;
use crate::config::Oauth;
use crate::http::problem::{Code, Problem};
use crate::issuers::{Address, AddressError, Issuer, IssuerError};
use crate::outbound::Outbound;
use crate::workspaces;

/// The issuer whose tokens identify users, and what a token must be for.
#[derive(Debug)]
pub struct Tokens {
    issuer: Issuer,
    audience: String,
    scopes: Vec<String>,
}

/// Why a token does not identify anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not valid, here and now.
    Invalid,
    /// It lacks a scope.
    Scope,
    /// Its issuer cannot be asked, and what is known does not suffice.
    Unavailable,
}

/// Who a token stands for.
#[derive(Clone, Debug)]
pub(super) struct Person {
    issuer: String,
    subject: String,
    email: Option<String>,
}

impl Person {
    /// The same, lent.
    pub(super) fn borrowed(&self) -> workspaces::Person<'_> {
        workspaces::Person {
            issuer: &self.issuer,
            subject: &self.subject,
            email: self.email.as_deref(),
        }
    }
}

impl Tokens {
    /// The tokens of the issuer in the settings.
    ///
    /// # Errors
    /// When its address is none that can be asked.
    pub fn new(oauth: &Oauth, outbound: Outbound, clock: Clock) -> Result<Self, AddressError> {
        Ok(Self {
            issuer: Issuer::new(Address::parse(&oauth.issuer)?, outbound, clock),
            audience: oauth.audience.clone(),
            scopes: oauth.scopes.clone(),
        })
    }

    /// The issuer's address.
    pub fn issuer(&self) -> &str {
        self.issuer.address().as_str()
    }

    /// The scopes that a token must have.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Checks a token.
    pub(super) async fn check(&self, token: &str) -> Result<Person, Refused> {
        let checked = self.issuer.access_token(token, &self.audience).await;
        let claims = checked.map_err(|error| match error {
            IssuerError::Token(reason) => {
                tracing::debug!(%reason, "an access token is refused");
                Refused::Invalid
            }
            IssuerError::Unreachable(_) | IssuerError::Unusable(_) => {
                tracing::warn!(%error, "access tokens cannot be checked");
                Refused::Unavailable
            }
        })?;
        let has = claims.scope.as_deref().unwrap_or_default();
        let lacks = |wanted: &&String| !has.split(' ').any(|scope| scope == *wanted);
        if self.scopes.iter().find(lacks).is_some() {
            return Err(Refused::Scope);
        }
        Ok(Person {
            issuer: claims.issuer,
            subject: claims.subject,
            email: claims.email,
        })
    }

    /// The 403 of a token that is for less than this service takes (RFC 6750, section 3.1).
    pub(super) fn insufficient(&self) -> Problem {
        let scopes = self.scopes.join(" ");
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
        let challenge = HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static(
            "Bearer error=\"insufficient_scope\"",
        ));
        Problem::new(
            Code::Forbidden,
            format!("The access token lacks a scope: this service takes tokens with {scopes}. Ask the issuer for one."),
        )
        .header(header::WWW_AUTHENTICATE, challenge)
    }
}
