//! The domains of projects that are served, by name, and the state of their certificates: in memory, because each request to a host
//! that is not the installation's own looks here, and each handshake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use svc_base::clock::Timestamp;

/// Most domains that are served at once.
pub const MAX_SERVED_DOMAINS: usize = 100_000;

/// A domain that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedDomain {
    /// Name in lower case and ASCII.
    pub name: String,
    /// Label of its project's origin.
    pub host_label: String,
    /// Host that its requests are sent to, if any.
    pub redirect_to: Option<String>,
}

/// State of the certificate of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DomainCertificate {
    /// This server asks nobody for one.
    #[default]
    None,
    /// One is asked for, or is about to be.
    Waiting,
    /// One is served.
    Issued {
        /// When it ends.
        not_after: Timestamp,
    },
    /// The authority refused; it is asked again later.
    Refused {
        /// Reason that the authority gave.
        detail: String,
    },
}

/// All domains that are served.
#[derive(Debug, Default)]
pub struct ServedDomains {
    by_name: RwLock<HashMap<String, Arc<ServedDomain>>>,
    /// Certificates that were issued or refused, by name; empty where this server asks no authority.
    certificates: RwLock<HashMap<String, DomainCertificate>>,
    /// Number of changes, by which others notice one.
    generation: AtomicU64,
}

impl ServedDomains {
    /// Finds a domain by its name, which is in lower case.
    pub fn find(&self, name: &str) -> Option<Arc<ServedDomain>> {
        self.names().get(name).cloned()
    }

    /// Whether a domain is served.
    pub fn contains(&self, name: &str) -> bool {
        self.names().contains_key(name)
    }

    /// Lists the names of the domains that are served and that `is_wanted`.
    pub fn list(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.names();
        let wanted = names.keys().filter(|name| is_wanted(name));
        wanted.cloned().collect()
    }

    /// Number of changes so far.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Serves a domain, or serves it otherwise than before.
    pub fn serve(&self, domain: ServedDomain) {
        let name = domain.name.clone();
        self.names_mut().insert(name, Arc::new(domain));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Ends the serving of a domain.
    pub fn end(&self, name: &str) {
        self.names_mut().remove(name);
        self.certificates_mut().remove(name);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Replaces all domains by what `load` reads. Nobody changes them in between.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn replace<E>(&self, load: impl FnOnce() -> Result<Vec<ServedDomain>, E>) -> Result<(), E> {
        let mut names = self.names_mut();
        let loaded = load()?.into_iter();
        *names = loaded
            .map(|domain| (domain.name.clone(), Arc::new(domain)))
            .collect();
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Returns the state of a domain's certificate, where `asks` says whether this server asks an authority.
    pub fn certificate(&self, name: &str, asks: bool) -> DomainCertificate {
        if !asks || !self.contains(name) {
            return DomainCertificate::None;
        }
        let states = self.certificates.read();
        let states = states.unwrap_or_else(PoisonError::into_inner);
        let known = states.get(name).cloned();
        known.unwrap_or(DomainCertificate::Waiting)
    }

    /// Records the state of a domain's certificate; one that is refused anew is served on until it ends.
    pub(super) fn record_certificate(&self, name: &str, state: DomainCertificate) {
        let mut states = self.certificates_mut();
        let is_refusal = matches!(state, DomainCertificate::Refused { .. });
        let is_served = matches!(states.get(name), Some(DomainCertificate::Issued { .. }));
        if self.contains(name) && !(is_refusal && is_served) {
            states.insert(name.to_owned(), state);
        }
    }

    fn names(&self) -> RwLockReadGuard<'_, HashMap<String, Arc<ServedDomain>>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, Arc<ServedDomain>>> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn certificates_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, DomainCertificate>> {
        let states = self.certificates.write();
        states.unwrap_or_else(PoisonError::into_inner)
    }
}
