//! Who calls, by the headers alone: a credential in an argument is nobody's.

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use crate::control;
use crate::http::extract::Presented;
use crate::http::problem::{Code, Problem};
use crate::workspaces::{Caller, Workspaces};

/// What a request says of who sends it.
#[derive(Clone, Debug)]
pub enum Identity {
    /// It has no credential, or an empty one.
    Nobody,
    /// Its credential is valid.
    Known(Caller),
    /// Its credential is malformed, unknown or revoked.
    Invalid,
}

/// Tells who sends a request: the only way from a header to a caller.
///
/// # Errors
/// The database's.
pub async fn identify(
    workspaces: &Workspaces,
    headers: &HeaderMap,
) -> Result<Identity, control::Error> {
    let caller = match Presented::of(headers) {
        Presented::Nothing => return Ok(Identity::Nobody),
        Presented::Malformed => None,
        Presented::Token(token) => workspaces.authenticate(token).await?,
    };
    Ok(caller.map_or(Identity::Invalid, Identity::Known))
}

/// The caller, if the request has a credential: one that is present is valid.
#[derive(Clone, Debug)]
pub struct MaybeCaller(pub Option<Caller>);

impl<S> FromRequestParts<S> for MaybeCaller
where
    S: Send + Sync,
    Workspaces: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match identify(&Workspaces::from_ref(state), &parts.headers).await? {
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
        "The credential is not valid: it is malformed, unknown or revoked. Send a valid one as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer error=\"invalid_token\""))
}

/// The 401 of an owner route without a credential (RFC 6750, section 3).
pub fn credential_missing() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "This route needs the credential of a namespace: send it as Authorization: Bearer.",
    )
    .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
