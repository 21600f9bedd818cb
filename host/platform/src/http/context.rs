//! Context of a request, which the front makes for extractors and handlers.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::client_ip::ClientIp;
use super::hosts::HostKind;
use super::problem::Problem;

/// Client of a request, and the host that it names.
#[derive(Clone, Debug)]
pub struct HttpRequestContext {
    /// Address of the client.
    pub client: ClientIp,
    /// Kind of the named host.
    pub host: HostKind,
    /// Whether the client has left out the slug of the site at the root of the host, which the path begins with all the same.
    pub at_root: bool,
    /// The `Host` as it was sent.
    pub authority: Arc<str>,
    /// The request's id.
    pub request_id: Arc<str>,
}

impl<S: Send + Sync> FromRequestParts<S> for HttpRequestContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| Problem::internal(&"a request without a context"))
    }
}
