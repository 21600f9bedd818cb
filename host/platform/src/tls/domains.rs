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
        /// Reason for which it was not renewed, if that was refused.
        detail: Option<String>,
    },
    /// None was issued, or the last one has ended; the authority is asked again later.
    Refused {
        /// When the last one ended, if there was one.
        not_after: Option<Timestamp>,
        /// Reason for which none was issued.
        detail: String,
    },
}

/// Known facts about the certificate of a domain.
#[derive(Clone, Debug, Default)]
struct CertificateFacts {
    /// End of the certificate that is served.
    not_after: Option<Timestamp>,
    /// Reason of the last refusal since then.
    refusal: Option<String>,
}

impl CertificateFacts {
    /// Returns the state at a time.
    fn state(&self, now: Timestamp) -> DomainCertificate {
        let not_after = self.not_after;
        match (not_after.filter(|ends| now < *ends), &self.refusal) {
            (Some(not_after), detail) => DomainCertificate::Issued {
                not_after,
                detail: detail.clone(),
            },
            (None, Some(detail)) => DomainCertificate::Refused {
                not_after,
                detail: detail.clone(),
            },
            (None, None) => DomainCertificate::Waiting,
        }
    }
}

/// All domains that are served.
#[derive(Debug, Default)]
pub struct ServedDomains {
    by_name: RwLock<HashMap<String, Arc<ServedDomain>>>,
    /// Certificates that were issued or refused, by name; empty where this server asks no authority.
    certificates: RwLock<HashMap<String, CertificateFacts>>,
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
    pub fn certificate(&self, name: &str, asks: bool, now: Timestamp) -> DomainCertificate {
        if !asks || !self.contains(name) {
            return DomainCertificate::None;
        }
        let known = self.certificates.read();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let facts = known.get(name);
        facts.map_or(DomainCertificate::Waiting, |facts| facts.state(now))
    }

    /// Records that a domain has a certificate; of other names nothing is recorded.
    pub(super) fn record_issued(&self, name: &str, not_after: Timestamp) {
        self.record(name, |facts| {
            *facts = CertificateFacts {
                not_after: Some(not_after),
                refusal: None,
            };
        });
    }

    /// Records why a domain has no newer certificate; the one that it has is served on.
    pub(super) fn record_refusal(&self, name: &str, detail: String) {
        self.record(name, |facts| facts.refusal = Some(detail));
    }

    fn record(&self, name: &str, change: impl FnOnce(&mut CertificateFacts)) {
        // Taken before the look at the names, as `end` removes a name first and its facts after.
        let mut known = self.certificates_mut();
        if self.contains(name) {
            change(known.entry(name.to_owned()).or_default());
        }
    }

    fn names(&self) -> RwLockReadGuard<'_, HashMap<String, Arc<ServedDomain>>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, Arc<ServedDomain>>> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn certificates_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, CertificateFacts>> {
        let states = self.certificates.write();
        states.unwrap_or_else(PoisonError::into_inner)
    }
}
