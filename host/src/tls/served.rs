//! The certificates that are served, by name: read at every handshake without a lock, replaced whole when one changes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::Pair;
use super::validity::Validity;

/// The certificates that are served.
#[derive(Debug)]
pub(super) struct Shelf {
    pairs: ArcSwap<Pairs>,
    /// The name that a client who names none means.
    nameless: String,
}

#[derive(Clone, Debug, Default)]
struct Pairs {
    /// One for every name.
    any: Option<Pair>,
    by_name: HashMap<String, Pair>,
}

impl Shelf {
    /// An empty one, where a client who names no host means `nameless`.
    pub(super) fn new(nameless: &str) -> Self {
        Self {
            pairs: ArcSwap::default(),
            nameless: nameless.to_owned(),
        }
    }

    /// Serves a certificate for every name.
    pub(super) fn put_for_all(&self, pair: &Pair) {
        self.pairs.rcu(|pairs| Pairs {
            any: Some(pair.clone()),
            by_name: pairs.by_name.clone(),
        });
    }

    /// Serves a certificate for a name.
    pub(super) fn put(&self, name: &str, pair: &Pair) {
        self.change(|pairs| pairs.insert(name.to_owned(), pair.clone()));
    }

    /// Serves none for a name any more.
    pub(super) fn remove(&self, name: &str) {
        self.change(|pairs| pairs.remove(name));
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, Pair>) -> Option<Pair>) {
        self.pairs.rcu(|pairs| {
            let mut pairs = Pairs::clone(pairs);
            change(&mut pairs.by_name);
            pairs
        });
    }

    /// Whether there is a certificate for a name.
    pub(super) fn has(&self, name: &str) -> bool {
        let pairs = self.pairs.load();
        pairs.any.is_some() || pairs.by_name.contains_key(name)
    }

    /// The names with certificates of their own, and how long these are valid.
    pub(super) fn names(&self) -> Vec<(String, Validity)> {
        let pairs = self.pairs.load();
        let names = pairs.by_name.iter();
        names
            .map(|(name, pair)| (name.clone(), pair.validity))
            .collect()
    }

    /// The name that a client means.
    pub(super) fn meant<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.nameless)
    }
}

impl ResolvesServerCert for Shelf {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pairs = self.pairs.load();
        // Names of a handshake are in lower case by then.
        let own = pairs.by_name.get(self.meant(hello.server_name()));
        let pair = own.or(pairs.any.as_ref())?;
        Some(Arc::clone(&pair.key))
    }
}
