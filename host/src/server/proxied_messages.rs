//! Messages between nodes: heads and bodies of requests that another node answers, and of its answers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};

use super::admission::ConnectionPermit;
use crate::cluster::PeerBody;
use crate::http::extract::broken_body;
use crate::http::forwarded::ForwardedRequest;
use crate::http::mapped_body::{MappedBody, PolledFrame};
use crate::http::problem::Problem;
use crate::http::request_bodies::BodyMeter;
use svc_base::sync::lock;

/// Service of other nodes that answers such requests: the first segment of their paths, before that of the client.
pub(super) const SERVICE: &str = "proxied";
/// Headers that are about one connection, and are not passed on (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Returns the target of a request as the client has sent it, from what another node has sent.
pub(super) fn client_target(uri: &Uri) -> Option<Uri> {
    let target = uri.path_and_query()?.as_str();
    let target = target.strip_prefix('/')?.strip_prefix(SERVICE)?;
    PathAndQuery::try_from(target).ok().map(Uri::from)
}

/// Returns the headers that a `Connection` lists.
fn listed_in_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect()
}

/// Removes headers that are about one connection. `Upgrade` stays, because routes look at it, and answers name it.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let mut listed = listed_in_connection(headers);
    listed.retain(|name| *name != header::UPGRADE);
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Head of a request on its way to another node.
#[derive(Debug)]
pub(super) struct ForwardedHead {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl ForwardedHead {
    /// Makes the head for another node from the client's.
    pub(super) fn new(parts: Parts, forwarded: &ForwardedRequest) -> Result<Self, Problem> {
        let (method, mut headers) = (parts.method, parts.headers);
        let listed = listed_in_connection(&headers);
        let is_upgrade = parts.version == Version::HTTP_11 && listed.contains(&header::UPGRADE);
        remove_hop_by_hop(&mut headers);
        // The body is sent at once, and the host is in the header of the request.
        headers.remove(header::EXPECT);
        headers.remove(header::HOST);
        if is_upgrade {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        if !forwarded.write(&mut headers) {
            return Err(Problem::internal(&"a request that cannot be passed on"));
        }
        let target = parts.uri.path_and_query();
        let target = target.map_or("/", PathAndQuery::as_str);
        let uri = format!("/{SERVICE}{target}").parse();
        let uri = uri.map_err(|_| Problem::not_found())?;
        Ok(Self {
            method,
            uri,
            headers,
        })
    }

    /// Makes the request.
    pub(super) fn request(&self, body: PeerBody) -> http::Request<PeerBody> {
        let mut request = http::Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Progress of a client's body on its way to another node.
#[derive(Debug, Default)]
pub(super) struct BodyProgress {
    /// Whether the client is waited for.
    is_waited_for: AtomicBool,
    /// Whether the other node has taken some of it since the last look.
    has_moved: AtomicBool,
    /// Error with which the client's body has ended.
    failure: Mutex<Option<axum::Error>>,
}

impl BodyProgress {
    /// Whether the other node alone is waited for, and has taken nothing since the last call.
    pub(super) fn stands_still(&self) -> bool {
        let has_moved = self.has_moved.swap(false, Ordering::Relaxed);
        !has_moved && !self.is_waited_for.load(Ordering::Relaxed)
    }

    /// Returns the problem of a body that has broken off, as the node that answers would have told it.
    pub(super) fn failure(&self) -> Option<Problem> {
        let failure = lock(&self.failure).take()?;
        Some(broken_body(&failure))
    }
}

/// Observer of a client's body on its way.
struct PassedBody {
    progress: Arc<BodyProgress>,
    meter: Option<BodyMeter>,
}

impl PassedBody {
    fn see(&self, polled: PolledFrame) -> PolledFrame {
        let is_pending = polled.is_pending();
        self.progress
            .is_waited_for
            .store(is_pending, Ordering::Relaxed);
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.progress.has_moved.store(true, Ordering::Relaxed);
                // The other node counts the bytes that it holds.
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.meter.iter().for_each(|meter| meter.release(bytes));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                *lock(&self.progress.failure) = Some(error);
                let broken = io::Error::other("the client's body broke off");
                Poll::Ready(Some(Err(axum::Error::new(broken))))
            }
            polled => polled,
        }
    }
}

impl Drop for PassedBody {
    fn drop(&mut self) {
        self.progress.is_waited_for.store(false, Ordering::Relaxed);
    }
}

/// Wraps the body of a client's request, whose bytes count for this node by the meter. Returns it with its progress.
pub(super) fn watch_client(
    body: Body,
    meter: Option<BodyMeter>,
) -> (
    impl HttpBody<Data = Bytes, Error = axum::Error> + Send,
    Arc<BodyProgress>,
) {
    let progress = Arc::new(BodyProgress::default());
    let passed = PassedBody {
        progress: Arc::clone(&progress),
        meter,
    };
    let body = MappedBody::new(body, move |polled| passed.see(polled));
    (body, progress)
}

/// Wraps the body of another node's answer, which counts for the client until it is sent or given up.
pub(super) fn with_permit(body: Body, permit: ConnectionPermit) -> Body {
    let keep = move |polled| {
        let _kept = &permit;
        polled
    };
    Body::new(MappedBody::new(body, keep))
}
