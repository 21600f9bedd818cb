//! TLS handshakes: bounded in time and in count, so that idle connections of strangers do not lock out others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::http::client_ip::ClientIp;
use crate::http::stall::StallTimeoutStream;
use crate::tls::{Tls, challenges};

/// Timeout of a client's first message, and of the rest of the handshake after the answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent handshakes of one client.
const MAX_PER_CLIENT: usize = 128;
/// Maximum number of concurrent handshakes.
const MAX_HANDSHAKES: usize = 2048;

/// Counts of running handshakes.
#[derive(Debug)]
pub(super) struct HandshakeCounts {
    tls: Arc<Tls>,
    /// Trusted proxies, which open connections for many clients: their handshakes are counted in all, not by address.
    proxies: Vec<IpNet>,
    open: Mutex<OpenHandshakes>,
}

#[derive(Debug, Default)]
struct OpenHandshakes {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// A counted handshake; dropping it releases the slot.
#[derive(Debug)]
pub(super) struct HandshakeSlot {
    handshakes: Arc<HandshakeCounts>,
    client: Option<IpAddr>,
}

impl HandshakeCounts {
    pub(super) fn new(tls: Arc<Tls>, proxies: &[IpNet]) -> Self {
        Self {
            tls,
            proxies: proxies.to_vec(),
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenHandshakes> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a handshake; `None` if too many are running, of this client or in all.
    pub(super) fn reserve_slot(self: &Arc<Self>, peer: IpAddr) -> Option<HandshakeSlot> {
        let peer = peer.to_canonical();
        let is_proxy = self.proxies.iter().any(|net| net.contains(&peer));
        let client = (!is_proxy).then(|| ClientIp(peer).bucket());
        let mut open = self.open();
        if open.all >= MAX_HANDSHAKES {
            return None;
        }
        if let Some(client) = client {
            let own = open.by_client.entry(client).or_default();
            if *own >= MAX_PER_CLIENT {
                return None;
            }
            *own += 1;
        }
        open.all += 1;
        drop(open);
        Some(HandshakeSlot {
            handshakes: Arc::clone(self),
            client,
        })
    }
}

impl HandshakeSlot {
    /// Performs the handshake; `None` if it fails, takes too long, or was an ACME challenge.
    pub(super) async fn perform(
        self,
        stream: StallTimeoutStream<TcpStream>,
    ) -> Option<TlsStream<StallTimeoutStream<TcpStream>>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream);
        let hello = timeout(HANDSHAKE_TIMEOUT, hello).await.ok()?;
        let hello = hello.map_err(|error| log_failure(&error)).ok()?;
        let (name, is_challenge) = {
            let said = hello.client_hello();
            let mut protocols = said.alpn().into_iter().flatten();
            let is_challenge = protocols.any(|protocol| protocol == challenges::ACME_PROTOCOL);
            (
                said.server_name().map(str::to_ascii_lowercase),
                is_challenge,
            )
        };
        let tls = &self.handshakes.tls;
        let config = tls.handshake_config(name.as_deref(), is_challenge).await?;
        let stream = timeout(HANDSHAKE_TIMEOUT, hello.into_stream(config))
            .await
            .ok()?;
        let stream = stream.map_err(|error| log_failure(&error)).ok()?;
        // A challenge is complete with its handshake.
        (!is_challenge).then_some(stream)
    }
}

fn log_failure(error: &std::io::Error) {
    tracing::debug!(%error, "a handshake failed");
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut open = self.handshakes.open();
        open.all = open.all.saturating_sub(1);
        let Some(client) = self.client else {
            return;
        };
        if let Some(own) = open.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                open.by_client.remove(&client);
            }
        }
    }
}
