//! Client for other nodes: connections are kept, and cut when their run is not trusted any more.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use svc_base::clock::Clock;
use svc_base::sync::lock;
use svc_ledger::RunId;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{
    KnownRuns, MAX_HEAD_BYTES, MAX_HEADERS, PeerBody, REFUSED, end_with_network, full_body,
};
use crate::cluster::keys::{CERTIFICATE_NAME, RunKeys};

/// Time limit of a new connection, until the other side has answered over it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for the turn to connect, behind others that do: a thousand sockets that come back at once take turns.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a connection is kept that nobody uses. The listener waits longer.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
/// Time between two looks for kept connections that have ended or rested for too long.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most connections to a run that are kept.
const MAX_KEPT: usize = 256;
/// Most connections to a run that are being made: fewer than its listener takes of one address.
const MAX_CONNECTING: usize = 16;

/// A request to another node failed.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Nothing of the request was sent: it may be sent to another run.
    #[error("it cannot be reached: {reason}")]
    NotSent {
        /// The request, of whose body nothing was read.
        request: Box<Request<PeerBody>>,
        /// Description of the failure.
        reason: String,
    },
    /// The other node has done nothing. The body of the request may have been read.
    #[error("it does not answer such requests now")]
    Refused,
    /// The request was sent, and the answer is lost: it may have been done.
    #[error("its answer is lost: {reason}")]
    Lost {
        /// Description of the failure.
        reason: String,
    },
}

/// Client of a run for the others.
pub struct PeerClient {
    keys: Arc<RunKeys>,
    known: KnownRuns,
    clock: Clock,
    runs: Mutex<HashMap<RunId, RunConnections>>,
}

/// Connections to a run.
struct RunConnections {
    kept: Vec<KeptConnection>,
    /// Time at which all of them were looked at.
    looked: Duration,
    connecting: Arc<Semaphore>,
    /// Whether the last attempt to connect has failed.
    is_unreached: bool,
}

impl Default for RunConnections {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            looked: Duration::ZERO,
            connecting: Arc::new(Semaphore::new(MAX_CONNECTING)),
            is_unreached: false,
        }
    }
}

/// A connection that has answered, and may answer again once the body of its last answer is read.
struct KeptConnection {
    sender: SendRequest<PeerBody>,
    /// Time at which its last answer began.
    since: Duration,
}

impl fmt::Debug for PeerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerClient").finish_non_exhaustive()
    }
}

impl PeerClient {
    /// Creates the client of the run with these keys.
    pub(super) fn new(keys: Arc<RunKeys>, known: KnownRuns, clock: Clock) -> Self {
        Self {
            keys,
            known,
            clock,
            runs: Mutex::default(),
        }
    }

    /// Sends a request to another run, and returns the head of its answer. It waits as long as the run is trusted: the connection is cut
    /// then, which ends the body of an answer, too, but not what a connection was upgraded to.
    ///
    /// # Errors
    /// [`PeerError`], which says whether anything of the request was sent.
    pub async fn send(
        &self,
        run: RunId,
        mut request: Request<PeerBody>,
    ) -> Result<Response<Incoming>, PeerError> {
        *request.version_mut() = Version::HTTP_11;
        loop {
            let (mut sender, is_new) = match self.take_kept(run) {
                Some(sender) => (sender, false),
                None => match self.connect(run).await {
                    Ok(sender) => (sender, true),
                    Err(error) => return Err(not_sent(request, format!("{error:#}"))),
                },
            };
            let answered = sender.try_send_request(request).await;
            match answered {
                Ok(response) if response.headers().contains_key(REFUSED) => {
                    return Err(PeerError::Refused);
                }
                Ok(response) => {
                    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                        self.keep(run, sender);
                    }
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    None => {
                        let reason = error.into_error().to_string();
                        return Err(PeerError::Lost { reason });
                    }
                    Some(unsent) if is_new => {
                        return Err(not_sent(unsent, error.into_error().to_string()));
                    }
                    // The other side has given up the kept connection meanwhile.
                    Some(unsent) => request = unsent,
                },
            }
        }
    }

    /// Takes a kept connection to a run that is trusted.
    fn take_kept(&self, run: RunId) -> Option<SendRequest<PeerBody>> {
        if !self.known.is_trusted(run) {
            return None;
        }
        let now = self.clock.elapsed();
        let mut runs = lock(&self.runs);
        let connections = runs.get_mut(&run)?;
        let is_old = |one: &KeptConnection| now.saturating_sub(one.since) > IDLE_LIMIT;
        let kept = &mut connections.kept;
        // Not with each request: there may be hundreds, and the lock is held.
        if now.saturating_sub(connections.looked) >= LOOK_EVERY {
            connections.looked = now;
            kept.retain(|one| !(one.sender.is_closed() || is_old(one) && one.sender.is_ready()));
        }
        loop {
            let ready = kept.iter().rposition(|one| one.sender.is_ready())?;
            let one = kept.swap_remove(ready);
            if !is_old(&one) {
                return Some(one.sender);
            }
        }
    }

    /// Keeps a connection, whose answer may still be under way.
    fn keep(&self, run: RunId, sender: SendRequest<PeerBody>) {
        let since = self.clock.elapsed();
        let mut runs = lock(&self.runs);
        let kept = &mut runs.entry(run).or_default().kept;
        if kept.len() >= MAX_KEPT {
            kept.retain(|one| !one.sender.is_closed());
        }
        // Of one that is dropped the answer under way still arrives.
        if kept.len() < MAX_KEPT {
            kept.push(KeptConnection { sender, since });
        }
    }

    /// Connects to a run that is trusted. A connection counts when the other side has answered over it, so that a key which is refused is
    /// noticed before anything is sent.
    async fn connect(&self, run: RunId) -> anyhow::Result<SendRequest<PeerBody>> {
        if !self.known.is_trusted(run) {
            bail!("it is not known to live");
        }
        let turns = self.turns_of(run);
        let turn = timeout(TURN_TIMEOUT, turns.acquire()).await;
        let _turn = turn.context("too many connect to it")??;
        let connected = timeout(CONNECT_TIMEOUT, self.connect_and_greet(run)).await;
        let connected = connected.context("it does not answer in time").flatten();
        self.note_reached(run, connected.as_ref().err());
        connected
    }

    /// Notes whether a run is reached. One that lives and is not reached is named in the log, once until it is: it beats on, and keeps what
    /// it has.
    fn note_reached(&self, run: RunId, failure: Option<&anyhow::Error>) {
        let was_unreached = match lock(&self.runs).get_mut(&run) {
            Some(connections) => mem::replace(&mut connections.is_unreached, failure.is_some()),
            None => return,
        };
        if let Some(error) = failure.filter(|_| !was_unreached && self.known.is_trusted(run)) {
            let error = format!("{error:#}");
            tracing::warn!(%run, error, "another node is not reached: is its `peer_url` right, and open to this node?");
        }
    }

    /// Returns the turns of those that connect to a run. Runs that are dead or suspected are forgotten.
    fn turns_of(&self, run: RunId) -> Arc<Semaphore> {
        let mut runs = lock(&self.runs);
        runs.retain(|run, _| self.known.is_trusted(*run));
        Arc::clone(&runs.entry(run).or_default().connecting)
    }

    async fn connect_and_greet(&self, run: RunId) -> anyhow::Result<SendRequest<PeerBody>> {
        let address = self.known.address_of(run);
        let address = address.context("it is not known to live")?;
        let (host, port) = split_url(&address.url)?;
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        end_with_network(&stream)?;
        let config = self.keys.client_config(address.key)?;
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(CERTIFICATE_NAME)?;
        let stream = connector.connect(name, stream).await?;
        let mut builder = Builder::new();
        builder
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        let handshake = builder.handshake::<_, PeerBody>(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await?;
        let known = self.known.clone();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection.with_upgrades() => {
                    let error = ended.err().map(tracing::field::display);
                    tracing::debug!(error, %run, "a connection to a node ended");
                }
                // Nobody waits for it any longer.
                () = known.wait_until_distrusted(run) => {}
            }
        });
        let greeting = Request::new(full_body(Bytes::new()));
        let greeted = sender.send_request(greeting).await?;
        if greeted.status() != StatusCode::NO_CONTENT {
            bail!("it answers a greeting by {}", greeted.status());
        }
        drop(greeted);
        sender.ready().await?;
        Ok(sender)
    }
}

fn not_sent(request: Request<PeerBody>, reason: String) -> PeerError {
    let request = Box::new(request);
    PeerError::NotSent { request, reason }
}

/// Splits the URL of a node into its host and its port.
fn split_url(url: &str) -> anyhow::Result<(String, u16)> {
    let url: Url = url.parse().context("its peer_url is no URL")?;
    let host = match url.host().context("its peer_url names no host")? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    Ok((host, url.port().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_reached_by_name_and_by_address() {
        for (url, host, port) in [
            ("https://n1.example", "n1.example", 443),
            ("https://10.0.0.1:9443", "10.0.0.1", 9443),
            ("https://[fd00::1]:9443", "fd00::1", 9443),
        ] {
            assert_eq!(split_url(url).unwrap(), (host.to_owned(), port));
        }
        assert!(split_url("").is_err());
    }
}
