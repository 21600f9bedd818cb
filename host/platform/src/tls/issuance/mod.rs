//! Issuance of certificates to names: the rules between handshakes of strangers and an authority that counts.
//!
//! A certificate is never ordered for a foreign name, for a label that no project has, or for a domain that DNS does not prove. Handshakes
//! share a pending order; a refused name has a backoff; new certificates of projects are counted by the week, those of domains by the
//! hour. The installation's own hosts are ordered at the start, domains once they are served, and every certificate is renewed when a
//! third of its validity is left.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::budget::{IssuanceBudget, IssuanceRefusal, LabelOwner};
use super::domains::{DomainCertificate, ServedDomains};
use super::names::{NameKind, Names};
use super::pair::CertificatePair;
use super::served::ServedCertificates;
use super::store::AuthorityDirectory;
use crate::config::{DividedCap, DividedCapPart};
use svc_base::clock::Clock;

/// Time for which a handshake waits for its certificate.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);
/// Most orders at once.
const MAX_ORDERS: usize = 4;
/// Most pending names, including those that wait for a free order.
const MAX_PENDING_NAMES: usize = 64;

pub(super) trait CertificateAuthority: fmt::Debug + Send + Sync {
    /// Issues a certificate for a name; returns the key and the chain, in PEM.
    fn issue<'a>(
        &'a self,
        name: &'a str,
        proof: NameProof,
    ) -> BoxFuture<'a, Result<String, IssuanceRefusal>>;
}

/// How an authority may be shown that a name leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameProof {
    /// By a handshake alone.
    Handshake,
    /// By a handshake, else by plain HTTP where that is listened to: something in front of a domain may end handshakes.
    HandshakeOrHttp,
}

/// Finds the owner of the project with a label, if there is one.
pub type FindLabelOwnerFn =
    Arc<dyn Fn(String) -> BoxFuture<'static, anyhow::Result<Option<LabelOwner>>> + Send + Sync>;

/// Name that may have a certificate.
enum EligibleName {
    /// A host of the installation.
    Fixed,
    /// The label of a project.
    Label(LabelOwner),
    /// A domain of a project.
    Domain,
}

/// Budget that a new certificate is counted in.
#[derive(Clone, Debug)]
enum OrderBudget {
    /// None, as for renewals and for hosts of the installation.
    Uncounted,
    /// The week's certificates of projects, and of their owner.
    Label(LabelOwner),
    /// The hour's orders for domains.
    Domain,
}

/// Orders and renews the certificates of an authority.
pub(super) struct CertificateIssuance {
    names: Names,
    served: Arc<ServedCertificates>,
    store: AuthorityDirectory,
    authority: Box<dyn CertificateAuthority>,
    find_owner: FindLabelOwnerFn,
    domains: Arc<ServedDomains>,
    clock: Clock,
    /// New certificates of projects, by the week.
    per_week: DividedCap,
    orders: Semaphore,
    state: Mutex<IssuanceState>,
    /// Tasks of pending orders; `None` after the stop.
    tasks: Mutex<Option<JoinSet<()>>>,
    /// Held while the budget is stored, so that the newest state is written last.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct IssuanceState {
    budget: IssuanceBudget,
    /// Pending names; an order ends when its sender is dropped.
    pending: HashMap<String, watch::Receiver<()>>,
    /// Part of the week's certificates that was exhausted at the last attempt, so that it is logged once.
    spent: Option<DividedCapPart>,
    /// Change of the domains up to which all of them have certificates; `None` while some have none.
    complete_until: Option<u64>,
    /// Domains that have ended, whose certificates are still to be deleted.
    ended: Vec<String>,
}

impl fmt::Debug for CertificateIssuance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CertificateIssuance")
            .field(&self.authority)
            .finish()
    }
}

pub(super) struct IssuanceDependencies {
    pub(super) names: Names,
    pub(super) served: Arc<ServedCertificates>,
    pub(super) store: AuthorityDirectory,
    pub(super) authority: Box<dyn CertificateAuthority>,
    pub(super) find_owner: FindLabelOwnerFn,
    pub(super) domains: Arc<ServedDomains>,
    pub(super) clock: Clock,
    pub(super) per_week: DividedCap,
}

impl EligibleName {
    /// Returns the budget that a new certificate is counted in.
    fn budget(self) -> OrderBudget {
        match self {
            Self::Fixed => OrderBudget::Uncounted,
            Self::Label(owner) => OrderBudget::Label(owner),
            Self::Domain => OrderBudget::Domain,
        }
    }
}

impl CertificateIssuance {
    /// Opens the stored state. Blocks.
    ///
    /// # Errors
    /// The disk's, and files that are damaged.
    pub(super) fn open(parts: IssuanceDependencies) -> anyhow::Result<Self> {
        let budget = parts.store.budget().context("opening data/tls")?;
        let pairs = parts.store.pairs().context("opening data/tls")?;
        for (name, pair) in pairs {
            // Settings may have changed: certificates of foreign names are not served.
            if parts.names.classify(&name).is_some() {
                parts.served.serve(&name, &pair);
            } else if parts.domains.contains(&name) {
                record_issued(&parts.domains, &name, &pair);
                parts.served.serve(&name, &pair);
            } else {
                // A domain may have ended while nobody looked.
                parts.store.remove(&name).context("cleaning data/tls")?;
            }
        }
        let budget = budget.unwrap_or_default();
        Ok(Self {
            names: parts.names,
            served: parts.served,
            store: parts.store,
            authority: parts.authority,
            find_owner: parts.find_owner,
            domains: parts.domains,
            clock: parts.clock,
            per_week: parts.per_week,
            orders: Semaphore::new(MAX_ORDERS),
            state: Mutex::new(IssuanceState {
                budget,
                ..IssuanceState::default()
            }),
            tasks: Mutex::new(Some(JoinSet::new())),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, IssuanceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a certificate for the name of a handshake, if it may have one; returns after a timeout at the latest.
    pub(super) async fn ensure_certificate(self: &Arc<Self>, name: &str) {
        if self.served.has(name) {
            return;
        }
        if self.names.classify(name).is_none() && !self.domains.contains(name) {
            return;
        }
        let pending = self.state().pending.get(name).cloned();
        let pending = match pending {
            Some(pending) => Some(pending),
            // The look-up costs a query, so names in backoff are skipped.
            None if self.is_name_backing_off(name) => None,
            None => match self.check_eligibility(name).await {
                Some(known) if !self.served.has(name) => self.start_order(name, known.budget()),
                _ => None,
            },
        };
        if let Some(mut ended) = pending {
            // The result is an error once the sender is dropped: nothing is ever sent.
            let _ = tokio::time::timeout(HANDSHAKE_WAIT, ended.changed()).await;
        }
    }

    /// Orders missing and expiring certificates, and removes those of names that no longer exist.
    pub(super) async fn renew(self: &Arc<Self>) {
        let now = self.clock.now();
        for name in self.names.fixed() {
            if !self.served.has(name) && !self.is_name_backing_off(name) {
                self.start_order(name, OrderBudget::Uncounted);
            }
        }
        self.order_for_domains();
        for (name, validity) in self.served.names() {
            let is_ended = self.names.classify(&name).is_none() && !self.domains.contains(&name);
            if !is_ended && (now < validity.renewal_time() || self.is_name_backing_off(&name)) {
                continue;
            }
            if self.check_eligibility(&name).await.is_some() {
                self.start_order(&name, OrderBudget::Uncounted);
            } else {
                self.remove_certificate(&name).await;
            }
        }
        let ended = std::mem::take(&mut self.state().ended);
        for name in ended {
            if self.check_eligibility(&name).await.is_none() {
                self.remove_certificate(&name).await;
            }
        }
    }

    /// Orders the certificates of domains that have none. All are looked at only after a change, and while some have none.
    fn order_for_domains(self: &Arc<Self>) {
        let generation = self.domains.generation();
        if self.state().complete_until == Some(generation) {
            return;
        }
        let missing = self.domains.list(|name| !self.served.has(name));
        for name in &missing {
            if !self.is_name_backing_off(name) {
                self.start_order(name, OrderBudget::Domain);
            }
        }
        self.state().complete_until = missing.is_empty().then_some(generation);
    }

    /// Stops serving the certificate of a domain that has ended, and has it deleted by the next renewal.
    pub(super) fn end_domain(&self, name: &str) {
        if self.names.classify(name).is_none() {
            self.served.remove(name);
            self.state().ended.push(name.to_owned());
        }
    }

    fn is_name_backing_off(&self, name: &str) -> bool {
        let now = self.clock.now();
        self.state().budget.blocked_until(name, now).is_some()
    }

    /// Checks whether a name may have a certificate.
    async fn check_eligibility(&self, name: &str) -> Option<EligibleName> {
        let label = match self.names.classify(name) {
            Some(NameKind::Fixed) => return Some(EligibleName::Fixed),
            Some(NameKind::Label(label)) => label,
            None => return self.domains.contains(name).then_some(EligibleName::Domain),
        };
        match (self.find_owner)(label.to_owned()).await {
            Ok(owner) => owner.map(EligibleName::Label),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "whether a project has a label is not known");
                None
            }
        }
    }

    /// Starts an order, unless one is pending or too many are; returns a receiver that closes with the order. A new certificate is
    /// counted in its budget.
    fn start_order(
        self: &Arc<Self>,
        name: &str,
        counted: OrderBudget,
    ) -> Option<watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(pending) = state.pending.get(name) {
            return Some(pending.clone());
        }
        // Checked again under the lock: another order may have ended meanwhile.
        let now = self.clock.now();
        if state.pending.len() >= MAX_PENDING_NAMES
            || state.budget.blocked_until(name, now).is_some()
        {
            return None;
        }
        let is_allowed = match counted {
            OrderBudget::Uncounted => true,
            OrderBudget::Label(owner) => self.spend_of_week(&mut state, name, &owner),
            OrderBudget::Domain => state.budget.spend_for_domain(now),
        };
        if !is_allowed {
            return None;
        }
        let (end, ended) = watch::channel(());
        state.pending.insert(name.to_owned(), ended.clone());
        let order = PendingOrderGuard {
            name: name.to_owned(),
            issuance: Arc::clone(self),
            _end: end,
        };
        drop(state);
        let mut tasks = self.tasks();
        let tasks = tasks.as_mut()?;
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { order.run().await });
        Some(ended)
    }

    /// Spends one of the week's certificates for projects; returns whether there was one.
    fn spend_of_week(&self, state: &mut IssuanceState, name: &str, owner: &LabelOwner) -> bool {
        let spent = state.budget.spend(&self.per_week, owner, self.clock.now());
        let spent = spent.err();
        let was_spent = std::mem::replace(&mut state.spent, spent);
        let Some(part) = spent else {
            return true;
        };
        if was_spent != Some(part) {
            tracing::warn!(
                name,
                per_week = self.per_week.whole,
                part = part.as_str(),
                "this part of the week's certificates for projects is spent: they come back one by one (acme.projects_per_week)"
            );
        }
        false
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels pending orders: the next server starts them again.
    pub(super) async fn stop(&self) {
        let tasks = self.tasks().take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    async fn remove_certificate(&self, name: &str) {
        self.served.remove(name);
        let (store, owned) = (self.store.clone(), name.to_owned());
        let removed = tokio::task::spawn_blocking(move || store.remove(&owned)).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!(name, "a certificate that nobody needs is not removed");
        }
    }

    /// Issues a certificate, stores it, and serves it.
    async fn issue(&self, name: &str) {
        let Ok(_turn) = self.orders.acquire().await else {
            return;
        };
        // Stored before the order: a crash must not refill the budget.
        self.save_budget().await;
        let proof = match self.names.classify(name) {
            Some(_) => NameProof::Handshake,
            None => NameProof::HandshakeOrHttp,
        };
        let kept = match self.authority.issue(name, proof).await {
            Ok(pem) => self.store_certificate(name, pem).await,
            Err(why) => Err(why),
        };
        match kept {
            Ok(pair) => {
                let ends = pair.validity.ends;
                self.served.serve(name, &pair);
                record_issued(&self.domains, name, &pair);
                self.state().budget.record_success(name, self.clock.now());
                tracing::info!(name, %ends, "a certificate was issued");
                // The domain may have ended meanwhile.
                if self.check_eligibility(name).await.is_none() {
                    self.remove_certificate(name).await;
                }
            }
            Err(why) => {
                let now = self.clock.now();
                let again = self.state().budget.record_failure(name, &why, now);
                let detail = why.to_string();
                self.domains
                    .record_certificate(name, DomainCertificate::Refused { detail });
                tracing::error!(name, error = %why, %again, "no certificate was issued");
            }
        }
        self.save_budget().await;
    }

    async fn store_certificate(
        &self,
        name: &str,
        pem: String,
    ) -> Result<CertificatePair, IssuanceRefusal> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let kept = tokio::task::spawn_blocking(move || {
            let pair = CertificatePair::read(pem.as_bytes(), pem.as_bytes())?;
            store.put(&name, &pem)?;
            anyhow::Ok(pair)
        });
        // Counted as refused: an order at once would cost another certificate.
        match kept.await {
            Ok(Ok(pair)) => Ok(pair),
            Ok(Err(error)) => Err(IssuanceRefusal::Refused(format!("keeping it: {error:#}"))),
            Err(error) => Err(IssuanceRefusal::Refused(format!("keeping it: {error}"))),
        }
    }

    async fn save_budget(&self) {
        let _turn = self.writing.lock().await;
        let (store, budget) = (self.store.clone(), self.state().budget.clone());
        let written = tokio::task::spawn_blocking(move || store.put_budget(&budget)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::error!("what was asked of the authority is not written down");
        }
    }
}

/// Records that a domain has a certificate; of other names nothing is recorded.
fn record_issued(domains: &ServedDomains, name: &str, pair: &CertificatePair) {
    let not_after = pair.validity.ends;
    domains.record_certificate(name, DomainCertificate::Issued { not_after });
}

/// A pending order. Dropping it, for any reason, wakes those who wait.
struct PendingOrderGuard {
    name: String,
    issuance: Arc<CertificateIssuance>,
    _end: watch::Sender<()>,
}

impl PendingOrderGuard {
    async fn run(self) {
        self.issuance.issue(&self.name).await;
    }
}

impl Drop for PendingOrderGuard {
    fn drop(&mut self) {
        self.issuance.state().pending.remove(&self.name);
    }
}

#[cfg(test)]
mod tests;
