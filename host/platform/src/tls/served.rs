//! The certificates that are served, by name: read at every handshake without a lock, replaced whole when one changes.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::CertificatePair;
use super::validity::ValidityPeriod;

#[derive(Debug)]
pub(super) struct ServedCertificates {
    pairs: ArcSwap<ServedCertificatePairs>,
    /// Name for clients that send no SNI.
    default_name: String,
}

#[derive(Clone, Debug, Default)]
struct ServedCertificatePairs {
    /// Certificate for all names.
    any: Option<CertificatePair>,
    by_name: HashMap<String, CertificatePair>,
}

impl ServedCertificates {
    /// Makes an empty set; a client without SNI gets the certificate of `nameless`.
    pub(super) fn new(default_name: &str) -> Self {
        Self {
            pairs: ArcSwap::default(),
            default_name: default_name.to_owned(),
        }
    }

    /// Serves a certificate for every name.
    pub(super) fn serve_for_all(&self, pair: &CertificatePair) {
        self.pairs.rcu(|pairs| ServedCertificatePairs {
            any: Some(pair.clone()),
            by_name: pairs.by_name.clone(),
        });
    }

    /// Serves a certificate for a name.
    pub(super) fn serve(&self, name: &str, pair: &CertificatePair) {
        self.change(|pairs| {
            pairs.insert(name.to_owned(), pair.clone());
        });
    }

    /// Serves the certificates of several names.
    pub(super) fn serve_all(&self, pairs: &HashMap<String, CertificatePair>) {
        if !pairs.is_empty() {
            self.change(|known| known.extend(pairs.clone()));
        }
    }

    /// Stops serving the certificate of a name.
    pub(super) fn remove(&self, name: &str) {
        self.change(|pairs| {
            pairs.remove(name);
        });
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, CertificatePair>)) {
        self.pairs.rcu(|pairs| {
            let mut pairs = ServedCertificatePairs::clone(pairs);
            change(&mut pairs.by_name);
            pairs
        });
    }

    /// Whether there is a certificate for a name.
    pub(super) fn has(&self, name: &str) -> bool {
        let pairs = self.pairs.load();
        pairs.any.is_some() || pairs.by_name.contains_key(name)
    }

    /// Returns the validity of the certificate that a name has of its own.
    pub(super) fn validity(&self, name: &str) -> Option<ValidityPeriod> {
        let pairs = self.pairs.load();
        pairs.by_name.get(name).map(|pair| pair.validity)
    }

    /// Lists the names with a certificate of their own that is wanted, by name and validity.
    pub(super) fn list(&self, is_wanted: impl Fn(&str, &ValidityPeriod) -> bool) -> Vec<String> {
        let pairs = self.pairs.load();
        let wanted = pairs.by_name.iter();
        wanted
            .filter(|(name, pair)| is_wanted(name, &pair.validity))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Returns the name of a handshake, or the default one.
    pub(super) fn effective_name<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.default_name)
    }
}

impl ResolvesServerCert for ServedCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pairs = self.pairs.load();
        // rustls has brought the name into lower case.
        let own = pairs.by_name.get(self.effective_name(hello.server_name()));
        let pair = own.or(pairs.any.as_ref())?;
        Some(Arc::clone(&pair.key))
    }
}
