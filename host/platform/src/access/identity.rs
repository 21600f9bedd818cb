//! Authentication by the headers alone: a credential in an argument does not count. The only place where a key or a token becomes
//! a caller.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::tokens::{TokenRefusal, TokenVerifier};
use crate::http::extract::PresentedCredential;
use crate::http::problem::{Problem, ProblemCode};
use crate::workspaces::{Caller, Workspaces};

/// Result of authenticating a request.
#[derive(Clone, Debug)]
pub enum AuthenticationResult {
    /// The request has no credential, or an empty one.
    Nobody,
    /// The credential is valid.
    Known(Caller),
    /// The credential is malformed, unknown, revoked or expired.
    Invalid,
}

/// Authenticates requests by keys, and by the tokens of the operator's issuer if there is one.
#[derive(Clone, Debug)]
pub struct Authenticator {
    workspaces: Workspaces,
    tokens: Option<Arc<TokenVerifier>>,
}

impl Authenticator {
    /// Makes the authenticator of these workspaces' keys, and of tokens.
    pub fn new(workspaces: Workspaces, tokens: Option<TokenVerifier>) -> Self {
        Self {
            workspaces,
            tokens: tokens.map(Arc::new),
        }
    }

    /// Returns the verifier of users' tokens, if the operator has configured an issuer.
    pub fn tokens(&self) -> Option<&TokenVerifier> {
        self.tokens.as_deref()
    }

    /// Authenticates a request.
    ///
    /// # Errors
    /// The database's; `provider_unavailable` if the issuer's keys cannot be fetched; `forbidden` if the token lacks a scope.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<AuthenticationResult, Problem> {
        let token = match PresentedCredential::from_headers(headers) {
            PresentedCredential::Missing => return Ok(AuthenticationResult::Nobody),
            PresentedCredential::Malformed => return Ok(AuthenticationResult::Invalid),
            PresentedCredential::Token(token) => token,
        };
        let caller = match &self.tokens {
            Some(tokens) if !token.starts_with(KEY_PREFIX) => self.user(tokens, token).await?,
            _ => self.workspaces.authenticate(token).await?,
        };
        Ok(caller.map_or(AuthenticationResult::Invalid, AuthenticationResult::Known))
    }

    async fn user(&self, tokens: &TokenVerifier, token: &str) -> Result<Option<Caller>, Problem> {
        match tokens.check(token).await {
            Ok(person) => Ok(Some(Caller::User(
                self.workspaces
                    .find_or_create_user(person.as_token_holder())
                    .await?,
            ))),
            Err(TokenRefusal::Invalid) => Ok(None),
            Err(TokenRefusal::Scope) => Err(tokens.insufficient_scope()),
            Err(TokenRefusal::Unavailable) => Err(Problem::new(
                ProblemCode::ProviderUnavailable,
                "The issuer of access tokens does not answer, and its keys are not known yet. Try again in a minute; keys work meanwhile.",
            )),
        }
    }
}

/// Prefix of keys; no token begins with it.
const KEY_PREFIX: &str = "svc_";

/// The caller, if the request has a credential; an invalid credential is refused.
#[derive(Clone, Debug)]
pub struct MaybeCaller(pub Option<Caller>);

impl<S> FromRequestParts<S> for MaybeCaller
where
    S: Send + Sync,
    Authenticator: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Authenticator::from_ref(state)
            .identify(&parts.headers)
            .await?
        {
            AuthenticationResult::Nobody => Ok(Self(None)),
            AuthenticationResult::Known(caller) => Ok(Self(Some(caller))),
            AuthenticationResult::Invalid => Err(credential_invalid()),
        }
    }
}

/// The caller of an owner route, authenticated by its layer (`admit.rs`).
#[derive(Clone, Debug)]
pub struct AuthenticatedCaller(pub Caller);

impl<S: Send + Sync> FromRequestParts<S> for AuthenticatedCaller {
    type Rejection = Problem;

    /// Refuses a request whose route lacks the layer.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(credential_missing)
    }
}

/// The 401 of an invalid credential (RFC 6750, section 3.1).
pub fn credential_invalid() -> Problem {
    Problem::new(
        ProblemCode::Unauthorized,
        "The credential is not valid: it is malformed, unknown, revoked or past its end. Send a valid one as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\""))
}

/// The 401 of an owner route without a credential (RFC 6750, section 3).
pub fn credential_missing() -> Problem {
    Problem::new(
        ProblemCode::Unauthorized,
        "This route needs a credential: send the key of a workspace, or the access token of a user, as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
