//! Requests between nodes: HTTP/1.1 over TLS, where each side knows the other by the key in the table of nodes.
//!
//! The listener hands a request to the handler of its service, which the first segment of the path names, with the run that asks. The
//! client keeps connections to runs, and cuts them as soon as a run is not trusted any more: nobody waits longer for a run than it is
//! believed to live.

mod client;
mod known;
mod listener;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use socket2::{SockRef, TcpKeepalive};
use svc_base::clock::Clock;
use svc_base::sync::lock;
use svc_ledger::RunId;
use tokio::net::TcpStream;

use super::keys::RunKeys;

pub use client::{PeerClient, PeerError};
pub use known::KnownRuns;
pub(super) use listener::PeerListener;

/// Error of a body between nodes.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Body of a request or an answer between nodes.
pub type PeerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Handler of the requests for a service, each with the run that asks. Its future is dropped when the connection ends.
pub type PeerHandlerFn =
    Arc<dyn Fn(RunId, Request<Incoming>) -> BoxFuture<'static, Response<PeerBody>> + Send + Sync>;

/// Largest head of a request or an answer, in bytes: that of a client, and what a node adds.
const MAX_HEAD_BYTES: usize = 128 << 10;
/// Most headers of a request or an answer.
const MAX_HEADERS: usize = 512;
/// Header of an answer which says that nothing was done.
const REFUSED: HeaderName = HeaderName::from_static("svc-peer-refused");
/// Time after which a path of the network that carries nothing is taken for dead.
const PATH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without traffic after which a path is looked at, and pause between two looks.
const PATH_LOOK: Duration = Duration::from_secs(2);
const PATH_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Other nodes, as this run asks and answers them.
pub struct Peers {
    keys: Arc<RunKeys>,
    known: KnownRuns,
    client: PeerClient,
    handlers: Mutex<BTreeMap<&'static str, PeerHandlerFn>>,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

impl Peers {
    /// Creates them for a run with these keys.
    pub(super) fn new(keys: RunKeys, known: KnownRuns, clock: Clock) -> Self {
        let keys = Arc::new(keys);
        Self {
            client: PeerClient::new(Arc::clone(&keys), known.clone(), clock),
            keys,
            known,
            handlers: Mutex::default(),
        }
    }

    /// Returns the client for other nodes.
    pub fn client(&self) -> &PeerClient {
        &self.client
    }

    /// Returns the runs that are known.
    pub fn known(&self) -> &KnownRuns {
        &self.known
    }

    /// Has requests whose path begins with `/{service}` be answered by a handler, in place of an earlier one.
    pub fn serve(&self, service: &'static str, handler: PeerHandlerFn) {
        lock(&self.handlers).insert(service, handler);
    }

    /// Has requests for a service be refused again.
    pub fn withdraw(&self, service: &str) {
        lock(&self.handlers).remove(service);
    }

    /// Has all requests be refused: nobody listens any more. Handlers have the application, which has these peers.
    fn withdraw_all(&self) {
        let handlers = mem::take(&mut *lock(&self.handlers));
        drop(handlers);
    }

    /// Answers a request of another run.
    async fn answer(&self, from: RunId, request: Request<Incoming>) -> Response<PeerBody> {
        if !self.known.is_live(from) {
            return refusal();
        }
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        if service.is_empty() {
            return greeting();
        }
        let handler = lock(&self.handlers).get(service).cloned();
        match handler {
            Some(answer) => answer(from, request).await,
            None => refusal(),
        }
    }
}

/// Makes a body of bytes.
pub fn full_body(bytes: impl Into<Bytes>) -> PeerBody {
    let body = Full::new(bytes.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

/// Makes an answer that is a status alone.
pub(super) fn empty_response(status: StatusCode) -> Response<PeerBody> {
    let mut response = Response::new(full_body(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// Answer of a node that has done nothing with a request, and does not answer such requests now.
pub fn refusal() -> Response<PeerBody> {
    let mut response = empty_response(StatusCode::SERVICE_UNAVAILABLE);
    let refused = HeaderValue::from_static("1");
    response.headers_mut().insert(REFUSED, refused);
    response
}

/// Answer to the first request of a connection, by which the other side knows that its key was accepted.
fn greeting() -> Response<PeerBody> {
    empty_response(StatusCode::NO_CONTENT)
}

/// Has the system end a connection whose network is gone, whether anything waits to be sent or not.
fn end_with_network(stream: &TcpStream) -> io::Result<()> {
    // Answers are written whole, so Nagle's algorithm only delays them.
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(PATH_LOOK);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive.with_interval(PATH_LOOK_EVERY))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(PATH_TIMEOUT))?;
    Ok(())
}
