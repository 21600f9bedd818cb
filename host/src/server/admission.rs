//! Admission of connections: limits by client, by network and in all, so that idle connections of strangers do not lock out other
//! clients.
//!
//! A part of the server's connections is reserved for clients that have none yet.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;

use crate::config::{Limits, OpenFileShares};
use crate::http::client_ip::ClientIp;
use svc_base::CountsByKey;

/// Part of the connections that one client may have where the limit of files is what bounds them.
const CLIENT_DIVISOR: u64 = 4;
/// Part of the connections that is reserved where the limit of files is what bounds them.
const RESERVED_DIVISOR: u64 = 8;

/// Maximum numbers of connections.
#[derive(Clone, Copy, Debug)]
struct ConnectionLimits {
    per_client: u64,
    /// Maximum for an IPv6 /48, which contains many clients.
    per_network: u64,
    /// Number beyond which only clients without a connection are admitted.
    unreserved: u64,
    total: u64,
}

impl ConnectionLimits {
    fn new(limits: &Limits) -> Self {
        let all = limits
            .connections_total
            .saturating_add(limits.sockets_total);
        let cap = limits.divide_cap("connections_total", all);
        // WebSockets have limits of their own, so they are added here.
        let per_client = limits
            .connections_per_client
            .saturating_add(limits.sockets_per_ip);
        Self {
            per_client,
            per_network: cap.per_client.max(per_client),
            unreserved: cap.strangers,
            total: cap.whole,
        }
    }

    /// Bounds the numbers by the files that the process may have open for connections.
    fn within(self, shares: OpenFileShares, open_databases: u64) -> Self {
        let files = shares.connections;
        if files < self.total || shares.databases < open_databases {
            tracing::info!(
                connections = files,
                databases = shares.databases,
                "the limit of open files bounds connections and open databases: raise it (`LimitNOFILE=`), or lower `open_databases`"
            );
        }
        let of_client = files / CLIENT_DIVISOR;
        Self {
            per_client: self.per_client.min(of_client),
            per_network: self.per_network.min(of_client),
            unreserved: self.unreserved.min(files - files / RESERVED_DIVISOR),
            total: self.total.min(files),
        }
    }
}

/// Counts of open connections, with their limits.
#[derive(Debug)]
pub(super) struct ConnectionCounts {
    limits: ConnectionLimits,
    /// Trusted proxies, whose connections are not counted: they open them for many clients.
    proxies: Vec<IpNet>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    all: u64,
    by_client: CountsByKey<IpAddr>,
    by_network: CountsByKey<IpAddr>,
}

/// Permit of a connection; dropping it releases it.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    /// `None` for a trusted proxy.
    counted: Option<(Arc<ConnectionCounts>, ClientIp)>,
}

impl ConnectionCounts {
    /// Makes the admission with the configured limits.
    pub(super) fn new(limits: &Limits, proxies: &[IpNet]) -> Self {
        Self {
            limits: ConnectionLimits::new(limits)
                .within(OpenFileShares::of_process(limits), limits.open_databases),
            proxies: proxies.to_vec(),
            open: Mutex::default(),
        }
    }

    /// Makes the admission of a listener with other limits: in all, and of a client or a network.
    pub(super) fn with_limits(total: u64, per_client: u64, proxies: &[IpNet]) -> Self {
        Self {
            limits: ConnectionLimits {
                per_client,
                per_network: per_client,
                unreserved: total / 2,
                total,
            },
            proxies: proxies.to_vec(),
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; `None` if there are too many already.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let client = ClientIp(peer.to_canonical());
        if self.proxies.iter().any(|net| net.contains(&client.0)) {
            return Some(ConnectionPermit { counted: None });
        }
        let mut open = self.open();
        let own = open.by_client.count(&client.bucket());
        let is_refused = own >= self.limits.per_client
            || open.by_network.count(&client.network()) >= self.limits.per_network
            || open.all >= self.limits.total
            || (open.all >= self.limits.unreserved && own > 0);
        if is_refused {
            return None;
        }
        open.all += 1;
        open.by_client.increment(client.bucket());
        open.by_network.increment(client.network());
        drop(open);
        Some(ConnectionPermit {
            counted: Some((Arc::clone(self), client)),
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some((connections, client)) = &self.counted else {
            return;
        };
        let mut open = connections.open();
        open.all = open.all.saturating_sub(1);
        open.by_client.decrement(&client.bucket());
        open.by_network.decrement(&client.network());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn connections(limits: ConnectionLimits) -> Arc<ConnectionCounts> {
        Arc::new(ConnectionCounts {
            limits,
            proxies: vec!["10.0.0.0/8".parse().unwrap()],
            open: Mutex::default(),
        })
    }

    #[test]
    fn clients_networks_and_the_server_have_so_many() {
        let connections = connections(ConnectionLimits {
            per_client: 2,
            per_network: 3,
            unreserved: 5,
            total: 6,
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
            // Five are open: the rest is reserved for clients without a connection.
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
        let connections = connections(ConnectionLimits {
            per_client: 10,
            per_network: 10,
            unreserved: 2,
            total: 3,
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
        let limits = ConnectionLimits::new(&limits);
        assert_eq!((limits.per_client, limits.total), (6_000, 1_020_000));
    }
}
