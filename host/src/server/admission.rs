//! Admission of connections: how many there may be of a client, of a network and in all, so that strangers who open them and
//! say nothing keep nobody out.
//!
//! A part of the server's connections is kept for clients that have none: nobody who holds many can take it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;

use crate::config::Limits;
use crate::http::client_ip::ClientIp;
use svc_base::Counts;

/// The most connections there may be.
#[derive(Clone, Copy, Debug)]
struct Most {
    of_client: u64,
    /// Of an IPv6 /48, which has many clients in it.
    of_network: u64,
    /// Number beyond which only clients get one that have none.
    open_to_all: u64,
    of_server: u64,
}

impl Most {
    fn new(limits: &Limits) -> Self {
        let all = limits
            .connections_total
            .saturating_add(limits.sockets_total);
        let cap = limits.cap("connections_total", all);
        // WebSockets have limits of their own, within which a client's connections are never the narrower one.
        let of_client = limits
            .connections_per_client
            .saturating_add(limits.sockets_per_ip);
        Self {
            of_client,
            of_network: cap.of_client.max(of_client),
            open_to_all: cap.strangers,
            of_server: cap.whole,
        }
    }
}

/// Connections that are open.
#[derive(Debug)]
pub(super) struct Connections {
    most: Most,
    /// Proxies, which open connections for many clients: theirs are not counted.
    proxies: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: u64,
    by_client: Counts<IpAddr>,
    by_network: Counts<IpAddr>,
}

/// Permit of a connection; dropping it gives the permit back.
#[derive(Debug)]
pub(super) struct Permit {
    /// None for a trusted proxy.
    counted: Option<(Arc<Connections>, ClientIp)>,
}

impl Connections {
    /// Reads the limits; no connection is open yet.
    pub(super) fn new(limits: &Limits, proxies: &[IpNet]) -> Self {
        Self {
            most: Most::new(limits),
            proxies: proxies.to_vec(),
            open: Mutex::default(),
        }
    }

    /// Makes the admission of a listener whose connections are short: so many at once, and so many of a client or a network.
    pub(super) fn few(of_server: u64, of_client: u64, proxies: &[IpNet]) -> Self {
        Self {
            most: Most {
                of_client,
                of_network: of_client,
                open_to_all: of_server / 2,
                of_server,
            },
            proxies: proxies.to_vec(),
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; `None` if there are too many already.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Permit> {
        let client = ClientIp(peer.to_canonical());
        if self.proxies.iter().any(|net| net.contains(&client.0)) {
            return Some(Permit { counted: None });
        }
        let mut open = self.open();
        let own = open.by_client.of(&client.bucket());
        let is_refused = own >= self.most.of_client
            || open.by_network.of(&client.network()) >= self.most.of_network
            || open.all >= self.most.of_server
            || (open.all >= self.most.open_to_all && own > 0);
        if is_refused {
            return None;
        }
        open.all += 1;
        open.by_client.take(client.bucket());
        open.by_network.take(client.network());
        drop(open);
        Some(Permit {
            counted: Some((Arc::clone(self), client)),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some((connections, client)) = &self.counted else {
            return;
        };
        let mut open = connections.open();
        open.all = open.all.saturating_sub(1);
        open.by_client.give_back(&client.bucket());
        open.by_network.give_back(&client.network());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn connections(most: Most) -> Arc<Connections> {
        Arc::new(Connections {
            most,
            proxies: vec!["10.0.0.0/8".parse().unwrap()],
            open: Mutex::default(),
        })
    }

    #[test]
    fn clients_networks_and_the_server_have_so_many() {
        let connections = connections(Most {
            of_client: 2,
            of_network: 3,
            open_to_all: 5,
            of_server: 6,
        });
        let mut held = Vec::new();
        for (peer, is_admitted) in [
            ("2001:db8:1:1::1", true),
            ("2001:db8:1:1::2", true),
            // The /64 has two, then the /48 three.
            ("2001:db8:1:1::3", false),
            ("2001:db8:1:2::1", true),
            ("2001:db8:1:3::1", false),
            ("192.0.2.1", true),
            ("::ffff:192.0.2.1", true),
            ("192.0.2.1", false),
            // Five are open: what is left is for who has none.
            ("2001:db8:1:2::1", false),
            ("192.0.2.2", true),
            ("192.0.2.3", false),
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
        ] {
            let permit = connections.admit(ip(peer));
            assert_eq!(permit.is_some(), is_admitted, "{peer}");
            held.extend(permit);
        }
        held.clear();
        let open = connections.open();
        let left = (open.all, open.by_client.keys(), open.by_network.keys());
        assert_eq!(left, (0, 0, 0));
    }

    #[test]
    fn the_kept_part_is_for_clients_that_have_none() {
        let connections = connections(Most {
            of_client: 10,
            of_network: 10,
            open_to_all: 2,
            of_server: 3,
        });
        let _held = [
            connections.admit(ip("192.0.2.1")).unwrap(),
            connections.admit(ip("192.0.2.1")).unwrap(),
        ];
        assert!(connections.admit(ip("192.0.2.1")).is_none());
        let _last = connections.admit(ip("192.0.2.2")).unwrap();
        assert!(connections.admit(ip("192.0.2.3")).is_none());
    }

    #[test]
    fn sockets_that_the_operator_allows_are_connections_that_there_may_be() {
        let limits = Limits {
            sockets_per_ip: 5_000,
            sockets_total: 1_000_000,
            ..Limits::default()
        };
        let most = Most::new(&limits);
        assert_eq!((most.of_client, most.of_server), (6_000, 1_020_000));
    }
}
