//! How many sockets there may be: of a client, of a network, of a backend, and of the server.
//!
//! A part of the server's sockets is kept for backends that have few: so visitors who fill those of some owners keep out
//! nobody of the others'.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Limits;
use crate::http::client_ip::ClientIp;
use svc_base::Counts;
use svc_base::ids::BackendId;

/// The most sockets there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) of_client: u64,
    /// Of an IPv6 /48, which has many clients in it.
    pub(super) of_network: u64,
    pub(super) of_backend: u64,
    pub(super) of_server: u64,
    /// Number beyond which only backends get one that have fewer than `of_backend_kept`.
    pub(super) open_to_all: u64,
    pub(super) of_backend_kept: u64,
}

impl Most {
    /// Reads the limits, and divides the server's sockets.
    pub(super) fn new(limits: &Limits) -> Self {
        let cap = limits.cap("sockets_total", limits.sockets_total);
        let kept = cap.whole - cap.strangers;
        Self {
            of_client: limits.sockets_per_ip,
            of_network: cap.of_client,
            of_backend: limits.sockets_per_backend,
            of_server: cap.whole,
            open_to_all: cap.strangers,
            of_backend_kept: (kept / limits.backends.max(1)).max(limits.cap_part_least),
        }
    }
}

/// Which quota is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Client(u64),
    Network(u64),
    Backend(u64),
    /// Quota of the server: the rest of it is kept for backends that have fewer.
    Kept,
    Server,
    Rooms(u64),
}

/// The sockets that there are, counted from before their upgrade to their very end.
#[derive(Debug)]
pub(super) struct Quotas {
    most: Most,
    held: Mutex<Held>,
    /// Told when the last socket is gone.
    gone: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct Held {
    total: u64,
    /// How many of them are streams, which nobody waits for.
    streams: u64,
    by_client: Counts<IpAddr>,
    /// Networks of IPv6 clients alone: the address of an IPv4 one is its network.
    by_network: Counts<IpAddr>,
    by_backend: Counts<BackendId>,
}

/// The place of one socket; dropping it gives the place back.
#[derive(Debug)]
pub(super) struct Permit {
    quotas: Arc<Quotas>,
    client: IpAddr,
    backend: BackendId,
    is_stream: bool,
}

impl Quotas {
    pub(super) fn new(most: Most) -> Self {
        Self {
            most,
            held: Mutex::default(),
            gone: tokio::sync::Notify::new(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place.
    ///
    /// # Errors
    /// The quota that is reached.
    pub(super) fn take(
        self: &Arc<Self>,
        client: IpAddr,
        backend: BackendId,
        is_stream: bool,
    ) -> Result<Permit, Reached> {
        let most = self.most;
        let mut held = self.held();
        if held.by_client.of(&client) >= most.of_client {
            return Err(Reached::Client(most.of_client));
        }
        let network = network(client);
        let in_network = network.map_or(0, |network| held.by_network.of(&network));
        if in_network >= most.of_network {
            return Err(Reached::Network(most.of_network));
        }
        let of_backend = held.by_backend.of(&backend);
        if of_backend >= most.of_backend {
            return Err(Reached::Backend(most.of_backend));
        }
        if held.total >= most.of_server {
            return Err(Reached::Server);
        }
        if held.total >= most.open_to_all && of_backend >= most.of_backend_kept {
            return Err(Reached::Kept);
        }
        held.total += 1;
        held.streams += u64::from(is_stream);
        held.by_client.take(client);
        if let Some(network) = network {
            held.by_network.take(network);
        }
        held.by_backend.take(backend);
        drop(held);
        Ok(Permit {
            quotas: Arc::clone(self),
            client,
            backend,
            is_stream,
        })
    }

    /// How many sockets there are.
    pub(super) fn total(&self) -> u64 {
        self.held().total
    }

    /// Waits until there are no sockets; streams may be left.
    pub(super) async fn none_left(&self) {
        loop {
            let gone = self.gone.notified();
            if self.held().sockets() == 0 {
                return;
            }
            gone.await;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.quotas.held();
        held.total = held.total.saturating_sub(1);
        held.streams = held.streams.saturating_sub(u64::from(self.is_stream));
        held.by_client.give_back(&self.client);
        if let Some(network) = network(self.client) {
            held.by_network.give_back(&network);
        }
        held.by_backend.give_back(&self.backend);
        if held.sockets() == 0 {
            self.quotas.gone.notify_waiters();
        }
    }
}

impl Held {
    fn sockets(&self) -> u64 {
        self.total.saturating_sub(self.streams)
    }
}

/// The network of an IPv6 client.
fn network(client: IpAddr) -> Option<IpAddr> {
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
        let most = Most {
            of_client: 2,
            of_network: 2,
            of_backend: 3,
            of_server: 4,
            open_to_all: 4,
            of_backend_kept: 3,
        };
        let quotas = Arc::new(Quotas::new(most));
        let (one, other) = (backend(), backend());
        let ip = |n: u8| IpAddr::from([192, 0, 2, n]);
        let first = quotas.take(ip(1), one, false).unwrap();
        let _second = quotas.take(ip(1), one, false).unwrap();
        assert_eq!(
            quotas.take(ip(1), other, false).unwrap_err(),
            Reached::Client(2)
        );
        let _third = quotas.take(ip(2), one, false).unwrap();
        assert_eq!(
            quotas.take(ip(3), one, false).unwrap_err(),
            Reached::Backend(3)
        );
        let _fourth = quotas.take(ip(2), other, false).unwrap();
        assert_eq!(
            quotas.take(ip(3), other, false).unwrap_err(),
            Reached::Server
        );
        drop(first);
        assert_eq!(quotas.total(), 3);
        let again = quotas.take(ip(1), one, false).unwrap();
        drop(again);
        drop((_second, _third, _fourth));
        let held = quotas.held();
        assert_eq!(
            (held.total, held.by_client.keys(), held.by_backend.keys()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_network_has_a_part_and_backends_with_few_sockets_another() {
        let most = Most {
            of_client: 2,
            of_network: 3,
            of_backend: 100,
            of_server: 6,
            open_to_all: 4,
            of_backend_kept: 1,
        };
        let quotas = Arc::new(Quotas::new(most));
        let (one, other) = (backend(), backend());
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut held = Vec::new();
        for client in ["2001:db8:1:1::", "2001:db8:1:1::", "2001:db8:1:2::"] {
            held.push(quotas.take(ip(client), one, false).unwrap());
        }
        let third = quotas.take(ip("2001:db8:1:3::"), one, false);
        assert_eq!(third.unwrap_err(), Reached::Network(3));
        held.push(quotas.take(ip("2001:db8:2:1::"), one, false).unwrap());
        let fifth = quotas.take(ip("192.0.2.1"), one, false);
        assert_eq!(fifth.unwrap_err(), Reached::Kept);
        held.push(quotas.take(ip("192.0.2.1"), other, false).unwrap());
        let sixth = quotas.take(ip("192.0.2.1"), other, false);
        assert_eq!(sixth.unwrap_err(), Reached::Kept);
        held.push(quotas.take(ip("192.0.2.1"), backend(), false).unwrap());
        let seventh = quotas.take(ip("192.0.2.2"), backend(), false);
        assert_eq!(seventh.unwrap_err(), Reached::Server);
        held.clear();
        let held = quotas.held();
        assert_eq!((held.total, held.by_network.keys()), (0, 0));
    }

    #[test]
    fn limits_are_divided() {
        let most = Most::new(&Limits::default());
        let parts = (most.of_server, most.open_to_all, most.of_network);
        assert_eq!((parts, most.of_backend_kept), ((25_000, 20_000, 2_500), 20));
    }
}
