//! Access tokens of users: a resource server (RFC 6750) of the issuer that the operator names.

use std::sync::Arc;

use http::{HeaderValue, header};
use quick_cache::sync::Cache;

use crate::config::OauthSettings;
use crate::content::Digest;
use crate::http::problem::{Problem, ProblemCode};
use crate::issuers::{
    AccessTokenClaims, Issuer, IssuerAddress, IssuerAddressError, IssuerError, IssuerMetadata,
};
use crate::outbound::OutboundClient;
use crate::workspaces;
use svc_base::clock::{Clock, Timestamp};

/// Tokens whose verification is cached: it costs as much as the rest of a call.
const CACHED_TOKENS: usize = 4_096;
/// Time for which a verification is cached, in milliseconds, unless the issuer's keys are fetched again.
const RECHECK_MILLIS: i64 = 60_000;
/// Most bytes of an e-mail address that is stored.
const MAX_EMAIL_BYTES: usize = 320;

/// Verifier of the access tokens of one issuer, with the required audience and scopes.
#[derive(Debug)]
pub struct TokenVerifier {
    issuer: Issuer,
    audience: String,
    scopes: Vec<String>,
    clock: Clock,
    /// Cache by the token's digest: the person, the end of the entry's validity, and the number of the key set.
    checked: Cache<Digest, (Arc<OwnedTokenHolder>, Timestamp, u64)>,
}

/// Reason for refusing a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    /// The token is not valid.
    Invalid,
    /// The token lacks a scope.
    Scope,
    /// The issuer does not answer, and the cached keys do not suffice.
    Unavailable,
}

/// Person that a token identifies.
#[derive(Clone, Debug)]
pub(super) struct OwnedTokenHolder {
    issuer: String,
    subject: String,
    email: Option<String>,
}

impl OwnedTokenHolder {
    /// Lends the person's fields.
    pub(super) fn as_token_holder(&self) -> workspaces::TokenHolder<'_> {
        workspaces::TokenHolder {
            issuer: &self.issuer,
            subject: &self.subject,
            email: self.email.as_deref(),
        }
    }
}

impl TokenVerifier {
    /// Makes the verifier of the configured issuer's tokens.
    ///
    /// # Errors
    /// When the issuer's address is not valid.
    pub fn new(
        oauth: &OauthSettings,
        outbound: OutboundClient,
        clock: Clock,
    ) -> Result<Self, IssuerAddressError> {
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

    pub fn issuer(&self) -> &str {
        self.issuer.address().as_str()
    }

    /// Returns the issuer's discovery document.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub async fn issuer_metadata(&self) -> Result<Arc<IssuerMetadata>, IssuerError> {
        self.issuer.metadata().await
    }

    /// Returns the required scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Verifies a token; returns the person that it identifies.
    pub(super) async fn check(&self, token: &str) -> Result<Arc<OwnedTokenHolder>, TokenRefusal> {
        let (name, now) = (Digest::of(token.as_bytes()), self.clock.now());
        // Read before the verification, so that keys fetched during it invalidate the entry.
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
        let person = Arc::new(OwnedTokenHolder {
            issuer: claims.issuer,
            subject: claims.subject,
            email: claims.email.filter(|email| email.len() <= MAX_EMAIL_BYTES),
        });
        self.checked
            .insert(name, (Arc::clone(&person), until, asked));
        Ok(person)
    }

    /// Whether a token has every required scope.
    fn has_scopes(&self, claims: &AccessTokenClaims) -> bool {
        let has = claims.scope.as_deref().unwrap_or_default();
        let mut wanted = self.scopes.iter();
        wanted.all(|wanted| has.split(' ').any(|scope| scope == wanted))
    }

    /// The 403 of a token that lacks a scope (RFC 6750, section 3.1).
    pub(super) fn insufficient_scope(&self) -> Problem {
        let scopes = self.scopes.join(" ");
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
        let challenge = HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static(
            "Bearer error=\"insufficient_scope\"",
        ));
        Problem::new(
            ProblemCode::Forbidden,
            format!("The access token lacks a scope: this service takes tokens with {scopes}. Ask the issuer for one."),
        )
        .header(header::WWW_AUTHENTICATE, challenge)
    }
}
