//! The bearer of a route that takes a share's token.

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderValue, header};

use crate::http::extract::Presented;
use crate::http::problem::{Code, Problem};

/// Token of a request; empty if the credential is malformed, which fits no share.
#[derive(Clone)]
pub struct ShareToken(pub String);

impl<S: Send + Sync> FromRequestParts<S> for ShareToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Presented::of(&parts.headers) {
            Presented::Token(token) => Ok(Self(token.to_owned())),
            Presented::Malformed => Ok(Self(String::new())),
            Presented::Nothing => Err(Problem::new(
                Code::Unauthorized,
                "This route needs the share's `delete_token`, which publishing it answered: send it as Authorization: Bearer.",
            )
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        }
    }
}
