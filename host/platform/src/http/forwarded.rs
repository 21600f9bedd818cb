//! Requests that one node of several passes on to another, and the header by which it tells whose they are.
//!
//! The header is read from other nodes alone, whose connections prove who they are. A client may send what it likes.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::client_ip::ClientIp;

/// Header of a request that a node passes on.
const FORWARDED: HeaderName = HeaderName::from_static("svc-forwarded");

/// Request as it came to the node that a client has asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedRequest {
    /// Number of times that it was passed on.
    pub hops: u8,
    /// Name of the database whose owner is to answer it.
    pub database: String,
    /// Address of the client.
    pub client: ClientIp,
    /// The request's id.
    pub request_id: Arc<str>,
    /// The `Host` as the client has sent it, which the first node answers for.
    pub authority: Arc<str>,
}

impl ForwardedRequest {
    /// Writes the header, in place of any that the client has sent. `false` if the host cannot be written.
    pub fn write(&self, headers: &mut HeaderMap) -> bool {
        let Self {
            hops,
            database,
            client: ClientIp(client),
            request_id,
            authority,
        } = self;
        // The host comes last: it may have anything that a header may.
        let text = format!("{hops} {database} {client} {request_id} {authority}");
        let Ok(value) = HeaderValue::try_from(text) else {
            return false;
        };
        headers.insert(FORWARDED, value);
        true
    }

    /// Takes the header out of a request of another node; `None` if it is not there or not readable.
    pub fn take(headers: &mut HeaderMap) -> Option<Self> {
        let value = headers.remove(FORWARDED)?;
        let mut parts = value.to_str().ok()?.splitn(5, ' ');
        Some(Self {
            hops: parts.next()?.parse().ok()?,
            database: parts.next()?.to_owned(),
            client: ClientIp(parts.next()?.parse().ok()?),
            request_id: parts.next()?.into(),
            // Spaces at the end are not transferred.
            authority: parts.next().unwrap_or_default().into(),
        })
    }
}

/// Sender of a request.
#[derive(Clone, Debug)]
pub enum RequestSource {
    /// A client, or a proxy before this server, by its address.
    Client(IpAddr),
    /// Another node, which passes the request on.
    Node(ForwardedRequest),
}

impl RequestSource {
    /// Returns the request as another node has passed it on.
    pub fn forwarded(&self) -> Option<&ForwardedRequest> {
        match self {
            Self::Client(_) => None,
            Self::Node(forwarded) => Some(forwarded),
        }
    }
}

/// Passes a request about a project's backend on to the node that has the backend's database. A route that knows the project only once
/// it has read the body finds it in the extensions of a request to a node of several.
#[derive(Clone)]
pub struct BackendForwarder(Arc<ForwardFn>);

/// Function that passes a request on, by the id of a project. It returns the request if this node answers it itself.
pub type ForwardFn =
    dyn Fn(String, Request) -> BoxFuture<'static, Result<Response, Box<Request>>> + Send + Sync;

impl BackendForwarder {
    /// Makes a forwarder of a function.
    pub fn new(forward: Arc<ForwardFn>) -> Self {
        Self(forward)
    }

    /// Passes a request on.
    ///
    /// # Errors
    /// The request, if this node answers it itself.
    pub async fn forward(
        &self,
        project: String,
        request: Request,
    ) -> Result<Response, Box<Request>> {
        (self.0)(project, request).await
    }
}

impl std::fmt::Debug for BackendForwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackendForwarder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(authority: &str) -> ForwardedRequest {
        ForwardedRequest {
            hops: 1,
            database: "control".to_owned(),
            client: ClientIp("2001:db8::5".parse().unwrap()),
            request_id: "0a-01".into(),
            authority: authority.into(),
        }
    }

    #[test]
    fn what_a_node_writes_another_one_reads() {
        for authority in ["share.example.com", "[::1]:8080", "", "a b"] {
            let sent = forwarded(authority);
            let mut headers = HeaderMap::new();
            headers.append(FORWARDED, HeaderValue::from_static("1 control 1.1.1.1 x y"));
            headers.append(FORWARDED, HeaderValue::from_static("a client's"));
            assert!(sent.write(&mut headers));
            assert_eq!(headers.get_all(FORWARDED).iter().count(), 1);
            assert_eq!(ForwardedRequest::take(&mut headers), Some(sent));
            assert!(headers.is_empty());
        }
    }

    #[test]
    fn what_no_node_has_written_is_nothing() {
        for text in [
            "",
            "x",
            "1 control",
            "1 control nobody id host",
            "300 control 1.1.1.1 id host",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED, HeaderValue::from_static(text));
            assert_eq!(ForwardedRequest::take(&mut headers), None, "{text}");
        }
        assert!(!forwarded("a\nb").write(&mut HeaderMap::new()));
    }
}
