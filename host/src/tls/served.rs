//! The certificates that are served, by name: read at every handshake without a lock, replaced whole when one changes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::CertificatePair;
use super::validity::Validity;

/// The certificates that are served.
#[derive(Debug)]
pub(super) struct ServedCertificates {
    pairs: ArcSwap<ServedPairs>,
    /// The name that a client who names none means.
    default_name: String,
}

#[derive(Clone, Debug, Default)]
struct ServedPairs {
    /// One for every name.
    any: Option<CertificatePair>,
    by_name: HashMap<String, CertificatePair>,
}

impl ServedCertificates {
    /// An empty one, where a client who names no host means `nameless`.
    pub(super) fn new(default_name: &str) -> Self {
        Self {
            pairs: ArcSwap::default(),
            default_name: default_name.to_owned(),
        }
    }

    /// Serves a certificate for every name.
    pub(super) fn serve_for_all(&self, pair: &CertificatePair) {
        self.pairs.rcu(|pairs| ServedPairs {
            any: Some(pair.clone()),
            by_name: pairs.by_name.clone(),
        });
    }

    /// Serves a certificate for a name.
    pub(super) fn serve(&self, name: &str, pair: &CertificatePair) {
        self.change(|pairs| pairs.insert(name.to_owned(), pair.clone()));
    }

    /// Serves none for a name any more.
    pub(super) fn remove(&self, name: &str) {
        self.change(|pairs| pairs.remove(name));
    }

    fn change(
        &self,
        change: impl Fn(&mut HashMap<String, CertificatePair>) -> Option<CertificatePair>,
    ) {
        self.pairs.rcu(|pairs| {
            let mut pairs = ServedPairs::clone(pairs);
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
    pub(super) fn effective_name<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.default_name)
    }
}

impl ResolvesServerCert for ServedCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pairs = self.pairs.load();
        // Names of a handshake are in lower case by then.
        let own = pairs.by_name.get(self.effective_name(hello.server_name()));
        let pair = own.or(pairs.any.as_ref())?;
        Some(Arc::clone(&pair.key))
    }
}
