//! How many sockets there may be: of a client, of a backend, and of the server.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_base::ids::BackendId;

/// The most sockets there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) of_client: u64,
    pub(super) of_backend: u64,
    pub(super) of_server: u64,
}

/// Which quota is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Client(u64),
    Backend(u64),
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
    by_client: HashMap<IpAddr, u64>,
    by_backend: HashMap<BackendId, u64>,
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
        let of = |count: Option<&u64>| count.copied().unwrap_or(0);
        if of(held.by_client.get(&client)) >= most.of_client {
            return Err(Reached::Client(most.of_client));
        }
        if of(held.by_backend.get(&backend)) >= most.of_backend {
            return Err(Reached::Backend(most.of_backend));
        }
        if held.total >= most.of_server {
            return Err(Reached::Server);
        }
        held.total += 1;
        held.streams += u64::from(is_stream);
        *held.by_client.entry(client).or_default() += 1;
        *held.by_backend.entry(backend).or_default() += 1;
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
        give_back(&mut held.by_client, &self.client);
        give_back(&mut held.by_backend, &self.backend);
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

fn give_back<K: Eq + Hash>(counts: &mut HashMap<K, u64>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
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
            of_backend: 3,
            of_server: 4,
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
            (held.total, held.by_client.len(), held.by_backend.len()),
            (0, 0, 0)
        );
    }
}
