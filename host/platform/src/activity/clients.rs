//! Hashes by which an owner tells the clients of a day apart: they say nothing of an address, nor of another project's visitors.
//!
//! A project has a key of its own each day, made from the key of the run. Each entry hashes its client under that key alone, because calls are many.

use std::fmt;
use std::net::IpAddr;

use ring::hmac;
use siphasher::sip::SipHasher24;

use crate::http::client_ip::ClientIp;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;
use svc_base::random::{Random, RandomSourceError};

/// Milliseconds of a day, after which clients have other hashes.
const DAY_MS: i64 = 86_400_000;
/// Bytes of an IPv6 address that name a client's network, which is what a single client is given.
const NETWORK_BYTES: usize = 8;

/// Key of the hashes of all clients. It is of this run, as the log is.
#[derive(Debug)]
pub(super) struct ClientKey(hmac::Key);

impl ClientKey {
    /// Makes a key.
    pub(super) fn new(random: &Random) -> Result<Self, RandomSourceError> {
        let key: [u8; 32] = random.bytes()?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the hasher of a project's clients of a day.
    fn hasher(&self, project: ProjectId, day: i64) -> SipHasher24 {
        let made = hmac::sign(&self.0, format!("{day} {project}").as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&made.as_ref()[..16]);
        SipHasher24::new_with_key(&key)
    }
}

/// Hasher of a project's clients of one day.
pub(super) struct DayClients {
    /// Number of the day since the epoch; `None` before the first client.
    day: Option<i64>,
    hasher: SipHasher24,
}

impl Default for DayClients {
    fn default() -> Self {
        Self {
            day: None,
            hasher: SipHasher24::new(),
        }
    }
}

impl fmt::Debug for DayClients {
    /// Writes the day alone: the hasher has a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DayClients");
        shown.field("day", &self.day).finish_non_exhaustive()
    }
}

impl DayClients {
    /// Returns the hash of a client of a project at a time.
    pub(super) fn hash(
        &mut self,
        (key, project): (&ClientKey, ProjectId),
        client: ClientIp,
        at: Timestamp,
    ) -> u64 {
        let day = at.0.div_euclid(DAY_MS);
        if self.day != Some(day) {
            self.day = Some(day);
            self.hasher = key.hasher(project, day);
        }
        match client.bucket() {
            IpAddr::V4(address) => self.hasher.hash(&address.octets()),
            IpAddr::V6(address) => self.hasher.hash(&address.octets()[..NETWORK_BYTES]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;

    #[test]
    fn a_client_has_one_hash_a_day_and_project() {
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let [mine, other] = [1, 2].map(|_| ProjectId::new(&clock, &Random::system()).unwrap());
        let [run, next_run] = [1, 2].map(|_| ClientKey::new(&Random::system()).unwrap());
        let hash = |key, project, client: &str, at| {
            let client = ClientIp(client.parse().unwrap());
            DayClients::default().hash((key, project), client, at)
        };
        let now = clock.now();
        let first = hash(&run, mine, "192.0.2.7", now);
        assert_eq!(first, hash(&run, mine, "192.0.2.7", now.plus_seconds(1)));
        for different in [
            hash(&run, mine, "192.0.2.8", now),
            hash(&run, mine, "192.0.2.7", now.plus_seconds(86_400)),
            hash(&run, other, "192.0.2.7", now),
            hash(&next_run, mine, "192.0.2.7", now),
        ] {
            assert_ne!(first, different);
        }
        let [one, same, neighbour] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
            .map(|client| hash(&run, mine, client, now));
        assert!(one == same && one != neighbour);
        let mut clients = DayClients::default();
        let client = ClientIp("192.0.2.7".parse().unwrap());
        for at in [now, now.plus_seconds(86_400), now] {
            let found = clients.hash((&run, mine), client, at);
            assert_eq!(found == first, at == now);
        }
    }
}
