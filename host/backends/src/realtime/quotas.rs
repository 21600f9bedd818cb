//! Limits on the number of sockets: per client, network and backend, and for the server.
//!
//! A part of the server's sockets is reserved for backends that have few, so that visitors who use up those of some owners do not
//! lock out the visitors of others.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Limits;
use crate::http::client_ip::ClientIp;
use svc_base::CountsByKey;
use svc_base::ids::BackendId;

/// Maximum numbers of sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketLimits {
    pub(super) of_client: u64,
    /// For an IPv6 /48, which contains many clients.
    pub(super) of_network: u64,
    pub(super) of_backend: u64,
    pub(super) of_server: u64,
    /// Number from which on only backends with fewer than `of_backend_reserved` sockets get another one.
    pub(super) open_to_all: u64,
    pub(super) of_backend_reserved: u64,
}

impl SocketLimits {
    /// Computes the limits, and divides the server's sockets.
    pub(super) fn new(limits: &Limits) -> Self {
        let cap = limits.divide_cap("sockets_total", limits.sockets_total);
        let kept = cap.whole - cap.strangers;
        Self {
            of_client: limits.sockets_per_ip,
            of_network: cap.per_client,
            of_backend: limits.sockets_per_backend,
            of_server: cap.whole,
            open_to_all: cap.strangers,
            of_backend_reserved: (kept / limits.backends.max(1)).max(limits.cap_part_least),
        }
    }
}

/// Quota that is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketQuotaReached {
    Client(u64),
    Network(u64),
    Backend(u64),
    /// Quota of the server: the rest is reserved for backends that have fewer.
    Reserved,
    Server,
    Rooms(u64),
}

/// Counts of all sockets, from before the upgrade until they are closed.
#[derive(Debug)]
pub(super) struct SocketQuotas {
    most: SocketLimits,
    counts: Mutex<SocketCounts>,
    /// Notified when the last socket is gone.
    gone: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct SocketCounts {
    total: u64,
    /// Number of streams, which a stop does not wait for.
    streams: u64,
    by_client: CountsByKey<IpAddr>,
    /// Networks of IPv6 clients alone: the address of an IPv4 one is its network.
    by_network: CountsByKey<IpAddr>,
    by_backend: CountsByKey<BackendId>,
}

/// Permit of one socket; dropping it releases the quota.
#[derive(Debug)]
pub(super) struct SocketPermit {
    quotas: Arc<SocketQuotas>,
    client: IpAddr,
    backend: BackendId,
    is_stream: bool,
}

impl SocketQuotas {
    pub(super) fn new(most: SocketLimits) -> Self {
        Self {
            most,
            counts: Mutex::default(),
            gone: tokio::sync::Notify::new(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, SocketCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// The quota that is exhausted.
    pub(super) fn acquire(
        self: &Arc<Self>,
        client: IpAddr,
        backend: BackendId,
        is_stream: bool,
    ) -> Result<SocketPermit, SocketQuotaReached> {
        let most = self.most;
        let mut counts = self.counts();
        if counts.by_client.count(&client) >= most.of_client {
            return Err(SocketQuotaReached::Client(most.of_client));
        }
        let network = client_network(client);
        let in_network = network.map_or(0, |network| counts.by_network.count(&network));
        if in_network >= most.of_network {
            return Err(SocketQuotaReached::Network(most.of_network));
        }
        let of_backend = counts.by_backend.count(&backend);
        if of_backend >= most.of_backend {
            return Err(SocketQuotaReached::Backend(most.of_backend));
        }
        if counts.total >= most.of_server {
            return Err(SocketQuotaReached::Server);
        }
        if counts.total >= most.open_to_all && of_backend >= most.of_backend_reserved {
            return Err(SocketQuotaReached::Reserved);
        }
        counts.total += 1;
        counts.streams += u64::from(is_stream);
        counts.by_client.increment(client);
        if let Some(network) = network {
            counts.by_network.increment(network);
        }
        counts.by_backend.increment(backend);
        drop(counts);
        Ok(SocketPermit {
            quotas: Arc::clone(self),
            client,
            backend,
            is_stream,
        })
    }

    /// Returns the number of sockets and streams.
    pub(super) fn total(&self) -> u64 {
        self.counts().total
    }

    /// Waits until there are no sockets; streams may be left.
    pub(super) async fn wait_until_none(&self) {
        loop {
            let gone = self.gone.notified();
            if self.counts().sockets() == 0 {
                return;
            }
            gone.await;
        }
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let mut counts = self.quotas.counts();
        counts.total = counts.total.saturating_sub(1);
        counts.streams = counts.streams.saturating_sub(u64::from(self.is_stream));
        counts.by_client.decrement(&self.client);
        if let Some(network) = client_network(self.client) {
            counts.by_network.decrement(&network);
        }
        counts.by_backend.decrement(&self.backend);
        if counts.sockets() == 0 {
            self.quotas.gone.notify_waiters();
        }
    }
}

impl SocketCounts {
    fn sockets(&self) -> u64 {
        self.total.saturating_sub(self.streams)
    }
}

/// Returns the network of an IPv6 client.
fn client_network(client: IpAddr) -> Option<IpAddr> {
    client.is_ipv6().then(|| ClientIp(client).network())
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    fn backend() -> BackendId {
        BackendId::new(&Clock::manual(Timestamp(0)), &Random::system()).unwrap()
    }

    #[test]
    fn each_quota_is_counted_and_given_back() {
        let most = SocketLimits {
            of_client: 2,
            of_network: 2,
            of_backend: 3,
            of_server: 4,
            open_to_all: 4,
            of_backend_reserved: 3,
        };
        let quotas = Arc::new(SocketQuotas::new(most));
        let (one, other) = (backend(), backend());
        let ip = |n: u8| IpAddr::from([192, 0, 2, n]);
        let first = quotas.acquire(ip(1), one, false).unwrap();
        let _second = quotas.acquire(ip(1), one, false).unwrap();
        assert_eq!(
            quotas.acquire(ip(1), other, false).unwrap_err(),
            SocketQuotaReached::Client(2)
        );
        let _third = quotas.acquire(ip(2), one, false).unwrap();
        assert_eq!(
            quotas.acquire(ip(3), one, false).unwrap_err(),
            SocketQuotaReached::Backend(3)
        );
        let _fourth = quotas.acquire(ip(2), other, false).unwrap();
        assert_eq!(
            quotas.acquire(ip(3), other, false).unwrap_err(),
            SocketQuotaReached::Server
        );
        drop(first);
        assert_eq!(quotas.total(), 3);
        let again = quotas.acquire(ip(1), one, false).unwrap();
        drop(again);
        drop((_second, _third, _fourth));
        let counts = quotas.counts();
        assert_eq!(
            (
                counts.total,
                counts.by_client.keys(),
                counts.by_backend.keys()
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_network_has_a_part_and_backends_with_few_sockets_another() {
        let most = SocketLimits {
            of_client: 2,
            of_network: 3,
            of_backend: 100,
            of_server: 6,
            open_to_all: 4,
            of_backend_reserved: 1,
        };
        let quotas = Arc::new(SocketQuotas::new(most));
        let (one, other) = (backend(), backend());
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut counts = Vec::new();
        for client in ["2001:db8:1:1::", "2001:db8:1:1::", "2001:db8:1:2::"] {
            counts.push(quotas.acquire(ip(client), one, false).unwrap());
        }
        let third = quotas.acquire(ip("2001:db8:1:3::"), one, false);
        assert_eq!(third.unwrap_err(), SocketQuotaReached::Network(3));
        counts.push(quotas.acquire(ip("2001:db8:2:1::"), one, false).unwrap());
        let fifth = quotas.acquire(ip("192.0.2.1"), one, false);
        assert_eq!(fifth.unwrap_err(), SocketQuotaReached::Reserved);
        counts.push(quotas.acquire(ip("192.0.2.1"), other, false).unwrap());
        let sixth = quotas.acquire(ip("192.0.2.1"), other, false);
        assert_eq!(sixth.unwrap_err(), SocketQuotaReached::Reserved);
        counts.push(quotas.acquire(ip("192.0.2.1"), backend(), false).unwrap());
        let seventh = quotas.acquire(ip("192.0.2.2"), backend(), false);
        assert_eq!(seventh.unwrap_err(), SocketQuotaReached::Server);
        counts.clear();
        let counts = quotas.counts();
        assert_eq!((counts.total, counts.by_network.keys()), (0, 0));
    }

    #[test]
    fn limits_are_divided() {
        let most = SocketLimits::new(&Limits::default());
        let parts = (most.of_server, most.open_to_all, most.of_network);
        assert_eq!(
            (parts, most.of_backend_reserved),
            ((25_000, 20_000, 2_500), 20)
        );
    }
}
