//! Listener for other nodes. Whoever has no key of a run that lives costs little: handshakes are bounded in time, in number, and in how
//! often an address may fail.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::Error;
use svc_ledger::RunId;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::slots::{Slot, Slots};
use super::{MAX_HEAD_BYTES, MAX_HEADERS, Peers, end_with_network};
use crate::cluster::keys::public_key_of;
use crate::http::client_ip::ClientIp;

/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// Most handshakes under way, and of one address.
const MAX_HANDSHAKES: u64 = 1024;
const MAX_HANDSHAKES_PER_ADDRESS: u64 = 64;
/// Time for which a failed handshake counts on, so that failing again and again is no work.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// Most connections of all runs, and of one: each request under way and each WebSocket has one.
const MAX_CONNECTIONS: u64 = 262_144;
const MAX_CONNECTIONS_PER_RUN: u64 = 32_768;
/// Time limit of a request's head, and of the wait for the next one: the client gives connections up before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after a connection could not be accepted, as when file descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Listener that has its address, and does not answer yet.
#[derive(Debug)]
pub(in crate::cluster) struct PeerListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// State that all connections share.
struct Listening {
    peers: Arc<Peers>,
    acceptor: TlsAcceptor,
    handshakes: Arc<Slots<IpAddr>>,
    connections: Arc<Slots<RunId>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.peers.withdraw_all();
    }
}

impl PeerListener {
    /// Binds an address; port 0 takes a free one. On a machine without IPv6, all addresses means those of IPv4.
    ///
    /// # Errors
    /// The system's.
    pub(in crate::cluster) async fn bind(at: SocketAddr) -> io::Result<Self> {
        let is_taken = |error: &io::Error| {
            let kind = error.kind();
            kind == io::ErrorKind::AddrInUse || kind == io::ErrorKind::PermissionDenied
        };
        let listener = match TcpListener::bind(at).await {
            Err(error) if at.ip() == Ipv6Addr::UNSPECIFIED && !is_taken(&error) => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, at.port())).await?
            }
            bound => bound?,
        };
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the address.
    pub(in crate::cluster) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer, until the process ends.
    ///
    /// # Errors
    /// TLS cannot be spoken.
    pub(in crate::cluster) fn start(self, peers: &Arc<Peers>) -> Result<(), Error> {
        let config = peers.keys.server_config(peers.known.clone())?;
        let listening = Listening {
            peers: Arc::clone(peers),
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handshakes: Slots::new(MAX_HANDSHAKES, MAX_HANDSHAKES_PER_ADDRESS),
            connections: Slots::new(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_RUN),
        };
        tokio::spawn(accept(self.listener, Arc::new(listening)));
        Ok(())
    }
}

async fn accept(listener: TcpListener, listening: Arc<Listening>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let address = ClientIp(from.ip().to_canonical()).bucket();
                // Beyond the bound a connection is closed at once.
                if let Some(slot) = listening.handshakes.take(address) {
                    tokio::spawn(Arc::clone(&listening).serve(stream, slot));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of a node could not be accepted");
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

impl Listening {
    /// Serves a connection, once its handshake has shown whose it is.
    async fn serve(self: Arc<Self>, stream: TcpStream, slot: Slot<IpAddr>) {
        let Some((stream, run)) = self.shake_hands(stream).await else {
            sleep(FAILED_PAUSE).await;
            drop(slot);
            return;
        };
        drop(slot);
        let Some(_slot) = self.connections.take(run) else {
            tracing::warn!(%run, "a node has too many connections: one is closed");
            return;
        };
        let known = self.peers.known.clone();
        tokio::select! {
            () = self.serve_http(stream, run) => {}
            () = known.wait_until_dead(run) => {}
        }
    }

    /// Performs the handshake. Returns the run that has shown its key; `None` if it fails or takes too long.
    async fn shake_hands(&self, stream: TcpStream) -> Option<(TlsStream<TcpStream>, RunId)> {
        let log = |error: &dyn std::error::Error| tracing::debug!(%error, "no node has called");
        end_with_network(&stream)
            .map_err(|error| log(&error))
            .ok()?;
        let shaken = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await;
        let shaken = shaken.map_err(|late| log(&late)).ok()?;
        let stream = shaken.map_err(|error| log(&error)).ok()?;
        let certificate = stream.get_ref().1.peer_certificates()?.first()?;
        let key = public_key_of(certificate).ok()?;
        let run = self.peers.known.find_by_key(&key)?;
        Some((stream, run))
    }

    async fn serve_http(&self, stream: TlsStream<TcpStream>, run: RunId) {
        let peers = Arc::clone(&self.peers);
        let service = service_fn(move |request: Request<Incoming>| {
            let peers = Arc::clone(&peers);
            async move { Ok::<_, Infallible>(peers.answer(run, request).await) }
        });
        let mut builder = Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, %run, "a connection of a node ended");
        }
    }
}
