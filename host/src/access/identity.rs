//! Identity of the caller, by the headers alone: a credential in an argument does not count. The only place where a key
//! or a token becomes a caller.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::tokens::{TokenRefusal, TokenVerifier};
use crate::http::extract::PresentedCredential;
use crate::http::problem::{Code, Problem};
use crate::workspaces::{Caller, Workspaces};

/// Result of looking at a request's credential.
#[derive(Clone, Debug)]
pub enum Identity {
    /// It has no credential, or an empty one.
    Nobody,
    /// The credential is valid.
    Known(Caller),
    /// The credential is malformed, unknown, revoked or past its end.
    Invalid,
}

/// Tells who sends a request: by keys, and by the tokens of the operator's issuer if there is one.
#[derive(Clone, Debug)]
pub struct Authenticator {
    workspaces: Workspaces,
    tokens: Option<Arc<TokenVerifier>>,
}

impl Authenticator {
    /// Callers with keys of these workspaces, or tokens.
    pub fn new(workspaces: Workspaces, tokens: Option<TokenVerifier>) -> Self {
        Self {
            workspaces,
            tokens: tokens.map(Arc::new),
        }
    }

    /// The issuer of users' tokens, if the operator has named one.
    pub fn tokens(&self) -> Option<&TokenVerifier> {
        self.tokens.as_deref()
    }

    /// Tells who sends a request: the only way from a header to a caller.
    ///
    /// # Errors
    /// The database's; `provider_unavailable` if the issuer of a token cannot be asked; `forbidden` if the token is for less.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let token = match PresentedCredential::from_headers(headers) {
            PresentedCredential::Missing => return Ok(Identity::Nobody),
            PresentedCredential::Malformed => return Ok(Identity::Invalid),
            PresentedCredential::Token(token) => token,
        };
        let caller = match &self.tokens {
            Some(tokens) if !token.starts_with(KEY) => self.user(tokens, token).await?,
            _ => self.workspaces.authenticate(token).await?,
        };
        Ok(caller.map_or(Identity::Invalid, Identity::Known))
    }

    async fn user(&self, tokens: &TokenVerifier, token: &str) -> Result<Option<Caller>, Problem> {
        match tokens.check(token).await {
            Ok(person) => Ok(Some(Caller::User(
                self.workspaces
                    .find_or_create_user(person.borrowed())
                    .await?,
            ))),
            Err(TokenRefusal::Invalid) => Ok(None),
            Err(TokenRefusal::Scope) => Err(tokens.insufficient_scope()),
            Err(TokenRefusal::Unavailable) => Err(Problem::new(
                Code::ProviderUnavailable,
                "The issuer of access tokens does not answer, and its keys are not known yet. Try again in a minute; keys work meanwhile.",
            )),
        }
    }
}

/// Prefix of keys, with which no token begins.
const KEY: &str = "svc_";

/// The caller, if the request has a credential: one that is present is valid.
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
            Identity::Nobody => Ok(Self(None)),
            Identity::Known(caller) => Ok(Self(Some(caller))),
            Identity::Invalid => Err(credential_invalid()),
        }
    }
}

/// The caller of an owner route, proven by its layer (`admit.rs`).
#[derive(Clone, Debug)]
pub struct Authenticated(pub Caller);

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    /// Without the layer there is no caller, and so no authority.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.map(Self).ok_or_else(credential_missing)
    }
}

/// The 401 of an invalid credential (RFC 6750, section 3.1).
pub fn credential_invalid() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "The credential is not valid: it is malformed, unknown, revoked or past its end. Send a valid one as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\""))
}

/// The 401 of an owner route without a credential (RFC 6750, section 3).
pub fn credential_missing() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "This route needs a credential: send the key of a workspace, or the access token of a user, as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
