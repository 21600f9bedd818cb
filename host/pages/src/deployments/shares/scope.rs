//! The bearer of a route that takes a share's token.

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderValue, header};

use crate::http::extract::PresentedCredential;
use crate::http::problem::{Problem, ProblemCode};

/// Token of a request; empty if the credential is malformed, which fits no share.
#[derive(Clone)]
pub struct PresentedShareToken(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PresentedShareToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match PresentedCredential::from_headers(&parts.headers) {
            PresentedCredential::Token(token) => Ok(Self(token.to_owned())),
            PresentedCredential::Malformed => Ok(Self(String::new())),
            PresentedCredential::Missing => Err(Problem::new(
                ProblemCode::Unauthorized,
                "This route needs the share's `delete_token`, which publishing it answered: send it as Authorization: Bearer.",
            )
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        }
    }
}
