//! Access tokens of users: a resource server (RFC 6750) of the issuer that the operator names.

use std::sync::Arc;

use http::{HeaderValue, header};
use quick_cache::sync::Cache;

use crate::config::Oauth;
use crate::content::Digest;
use crate::http::problem::{Code, Problem};
use crate::issuers::{AccessClaims, AddressError, Issuer, IssuerAddress, IssuerError};
use crate::outbound::Outbound;
use crate::workspaces;
use svc_base::clock::{Clock, Timestamp};

/// Tokens whose signatures are remembered: checking one costs as much as the rest of a call.
const CACHED_TOKENS: usize = 4_096;
/// For so long a signature is not checked again, in milliseconds, unless the issuer's keys are asked for meanwhile.
const RECHECK_MILLIS: i64 = 60_000;
/// The longest address that is kept, in bytes.
const MAX_EMAIL_BYTES: usize = 320;

/// The issuer whose tokens identify users, and what a token must be for.
#[derive(Debug)]
pub struct TokenVerifier {
    issuer: Issuer,
    audience: String,
    scopes: Vec<String>,
    clock: Clock,
    /// By the digest of the token: who it stands for, until when that is not looked at again, and of which set of keys that is true.
    checked: Cache<Digest, (Arc<Person>, Timestamp, u64)>,
}

/// Why a token does not identify anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// It is not valid, here and now.
    Invalid,
    /// It lacks a scope.
    Scope,
    /// The token's issuer cannot be asked, and the keys that are known do not suffice.
    Unavailable,
}

/// Person that a token stands for.
#[derive(Clone, Debug)]
pub(super) struct Person {
    issuer: String,
    subject: String,
    email: Option<String>,
}

impl Person {
    /// Lends the person's fields.
    pub(super) fn borrowed(&self) -> workspaces::Person<'_> {
        workspaces::Person {
            issuer: &self.issuer,
            subject: &self.subject,
            email: self.email.as_deref(),
        }
    }
}

impl TokenVerifier {
    /// The tokens of the issuer in the settings.
    ///
    /// # Errors
    /// When its address is none that can be asked.
    pub fn new(oauth: &Oauth, outbound: Outbound, clock: Clock) -> Result<Self, AddressError> {
        Ok(Self {
            issuer: Issuer::new(
                IssuerAddress::parse(&oauth.issuer)?,
                outbound,
                clock.clone(),
            ),
            audience: oauth.audience.clone(),
            scopes: oauth.scopes.clone(),
            clock,
            checked: Cache::new(CACHED_TOKENS),
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
    pub(super) async fn check(&self, token: &str) -> Result<Arc<Person>, TokenRefusal> {
        let (name, now) = (Digest::of(token.as_bytes()), self.clock.now());
        // Before the check: a set that comes during it counts as a later one.
        let asked = self.issuer.key_fetches();
        match self.checked.get(&name) {
            Some((person, until, of)) if now < until && of == asked => return Ok(person),
            _ => {}
        }
        let checked = self.issuer.verify_access_token(token, &self.audience).await;
        let claims = checked.map_err(|error| match error {
            IssuerError::Token(reason) => {
                tracing::debug!(%reason, "an access token is refused");
                TokenRefusal::Invalid
            }
            IssuerError::Unreachable(_) | IssuerError::Unusable(_) => {
                tracing::warn!(%error, "access tokens cannot be checked");
                TokenRefusal::Unavailable
            }
        })?;
        if !self.has_scopes(&claims) {
            return Err(TokenRefusal::Scope);
        }
        let until = claims.until.min(Timestamp(now.0 + RECHECK_MILLIS));
        let person = Arc::new(Person {
            issuer: claims.issuer,
            subject: claims.subject,
            email: claims.email.filter(|email| email.len() <= MAX_EMAIL_BYTES),
        });
        self.checked
            .insert(name, (Arc::clone(&person), until, asked));
        Ok(person)
    }

    /// Whether a token has every scope that is asked for.
    fn has_scopes(&self, claims: &AccessClaims) -> bool {
        let has = claims.scope.as_deref().unwrap_or_default();
        let mut wanted = self.scopes.iter();
        wanted.all(|wanted| has.split(' ').any(|scope| scope == wanted))
    }

    /// The 403 of a token that is for less than this service takes (RFC 6750, section 3.1).
    pub(super) fn insufficient_scope(&self) -> Problem {
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
