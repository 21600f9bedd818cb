//! TLS handshakes: bounded in time and in count, so that idle connections of strangers do not lock out others.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{ConnectionCounts, ConnectionPermit};
use crate::http::stall::StallTimeoutStream;
use crate::tls::{Tls, challenges};

/// Timeout of a client's first message, and of the rest of the handshake after the answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent handshakes of one client, or of the network that it is in.
const MAX_PER_CLIENT: u64 = 128;
/// Maximum number of concurrent handshakes. Half of them is reserved for clients that have none yet.
const MAX_HANDSHAKES: u64 = 2048;

/// Counts of running handshakes. Those of trusted proxies are not counted, like their connections.
#[derive(Debug)]
pub(super) struct HandshakeCounts {
    tls: Arc<Tls>,
    admission: Arc<ConnectionCounts>,
}

/// A counted handshake; dropping it releases the slot.
#[derive(Debug)]
pub(super) struct HandshakeSlot {
    tls: Arc<Tls>,
    _permit: ConnectionPermit,
}

impl HandshakeCounts {
    pub(super) fn new(tls: Arc<Tls>, proxies: &[IpNet]) -> Self {
        Self {
            tls,
            admission: handshake_admission(proxies),
        }
    }

    /// Reserves a slot for a handshake; `None` if too many are running, of this client, of its network or in all.
    pub(super) fn reserve_slot(&self, peer: IpAddr) -> Option<HandshakeSlot> {
        Some(HandshakeSlot {
            _permit: self.admission.admit(peer)?,
            tls: Arc::clone(&self.tls),
        })
    }
}

fn handshake_admission(proxies: &[IpNet]) -> Arc<ConnectionCounts> {
    let admission = ConnectionCounts::with_limits(MAX_HANDSHAKES, MAX_PER_CLIENT, proxies);
    Arc::new(admission)
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
        let config = self
            .tls
            .handshake_config(name.as_deref(), is_challenge)
            .await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_network_nor_silent_clients_together_keep_others_out() {
        let admission = handshake_admission(&[]);
        let admit = |peer: String| admission.admit(peer.parse().unwrap());
        let mut held = Vec::new();
        // Other /64s of a /48 get no more than one would.
        for n in 0..2 * MAX_PER_CLIENT {
            held.extend(admit(format!("2001:db8:1:{n:x}::1")));
        }
        assert_eq!(held.len() as u64, MAX_PER_CLIENT);
        let clients = MAX_HANDSHAKES / 2 / MAX_PER_CLIENT;
        for client in 1..=clients {
            for _ in 0..MAX_PER_CLIENT {
                held.extend(admit(format!("192.0.2.{client}")));
            }
        }
        assert_eq!(held.len() as u64, MAX_HANDSHAKES / 2 + 1);
        // The other half is for clients that have none.
        let late = admit("198.51.100.1".to_owned());
        assert!(late.is_some());
        assert!(admit("198.51.100.1".to_owned()).is_none());
        drop(late);
        assert!(admit("198.51.100.1".to_owned()).is_some());
    }
}
