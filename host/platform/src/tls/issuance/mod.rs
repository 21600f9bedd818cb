//! Issuance of certificates to names: the rules between handshakes of strangers and an authority that counts.
//!
//! A certificate is never ordered for a foreign name, for a label that no project has, or for a domain that DNS does not prove. Handshakes
//! share a pending order; a refused name has a backoff; new certificates of projects are counted by the week, those of domains by the
//! hour. The installation's own hosts are ordered at the start, domains once they are served, and every certificate is renewed when a
//! third of its validity is left. No handshake orders for a domain.

mod domains;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::domains::DomainWalk;
use super::budget::{IssuanceBudget, IssuanceRefusal, NameOwner, NameProof, OrderAttempt};
use super::domains::ServedDomains;
use super::names::{NameKind, Names};
use super::pair::CertificatePair;
use super::served::ServedCertificates;
use super::store::AuthorityDirectory;
use super::validity::ValidityPeriod;
use crate::config::{DividedCap, DividedCapPart};
use svc_base::clock::Clock;

/// Time for which a handshake waits for its certificate.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);
/// Most orders at once.
const MAX_ORDERS: usize = 4;
/// Most pending names, including those that wait for a free order.
const MAX_PENDING_NAMES: usize = 64;

pub(super) trait CertificateAuthority: fmt::Debug + Send + Sync {
    /// Issues a certificate for a name by one order; returns the key and the chain, in PEM.
    fn issue<'a>(
        &'a self,
        name: &'a str,
        proof: NameProof,
    ) -> BoxFuture<'a, Result<String, IssuanceRefusal>>;
}

/// Finds the owner of the project that has a label, or by which a domain is active, if there is one.
pub type FindOwnerFn =
    Arc<dyn Fn(String) -> BoxFuture<'static, anyhow::Result<Option<NameOwner>>> + Send + Sync>;

/// Names that an authority is asked for, as others know them.
pub struct CertifiedNames {
    /// Look-up by the label of a project.
    pub find_label_owner: FindOwnerFn,
    /// Look-up by a domain that DNS proves now.
    pub find_domain_owner: FindOwnerFn,
    /// Domains that are served.
    pub domains: Arc<ServedDomains>,
    /// Domains whose stored certificates are kept by a start, whether they are served or not.
    pub kept_domains: HashSet<String>,
    /// Whether plain HTTP is listened to, by which an authority may ask for a domain.
    pub has_http: bool,
}

impl CertifiedNames {
    /// Returns no names, for a server that asks no authority.
    pub fn none() -> Self {
        let nobody: FindOwnerFn = Arc::new(|_| Box::pin(async { Ok(None) }));
        Self {
            find_label_owner: Arc::clone(&nobody),
            find_domain_owner: nobody,
            domains: Arc::default(),
            kept_domains: HashSet::new(),
            has_http: false,
        }
    }
}

/// Standing of a name.
#[derive(Debug)]
enum NameStanding {
    /// A certificate may be ordered; a new one is counted in a budget.
    Eligible(OrderBudget),
    /// None is ordered now, and one that is there is served on: DNS does not prove the domain, or a look-up failed.
    Suspended,
    /// The name is not ours.
    Foreign,
}

/// Budget that a new certificate is counted in.
#[derive(Clone, Debug)]
enum OrderBudget {
    /// None, as for renewals and for hosts of the installation.
    Uncounted,
    /// The week's certificates of projects, and of their owner.
    Label(NameOwner),
    /// The hour's orders for domains, and of their owner.
    Domain(NameOwner),
}

/// Orders and renews the certificates of an authority.
pub(super) struct CertificateIssuance {
    names: Names,
    served: Arc<ServedCertificates>,
    /// Files of the installation's own names, and the budget.
    store: AuthorityDirectory,
    /// Files of domains.
    domain_store: AuthorityDirectory,
    authority: Box<dyn CertificateAuthority>,
    find_label_owner: FindOwnerFn,
    find_domain_owner: FindOwnerFn,
    domains: Arc<ServedDomains>,
    has_http: bool,
    clock: Clock,
    /// New certificates of projects, by the week.
    per_week: DividedCap,
    /// New orders for domains, by the hour.
    per_hour: DividedCap,
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
    /// Last walk over the domains without a certificate; `None` if they are to be looked at anew.
    walk: Option<DomainWalk>,
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
    pub(super) certified: CertifiedNames,
    pub(super) clock: Clock,
    pub(super) per_week: DividedCap,
    pub(super) per_hour: DividedCap,
}

impl CertificateIssuance {
    /// Opens the stored state. Blocks.
    ///
    /// # Errors
    /// The disk's, and files that are damaged.
    pub(super) fn open(parts: IssuanceDependencies) -> anyhow::Result<Self> {
        let budget: Option<IssuanceBudget> = parts.store.budget().context("opening data/tls")?;
        let domain_store = parts.store.for_domains().context("opening data/tls")?;
        let issuance = Self {
            names: parts.names,
            served: parts.served,
            store: parts.store,
            domain_store,
            authority: parts.authority,
            find_label_owner: parts.certified.find_label_owner,
            find_domain_owner: parts.certified.find_domain_owner,
            domains: parts.certified.domains,
            has_http: parts.certified.has_http,
            clock: parts.clock,
            per_week: parts.per_week,
            per_hour: parts.per_hour,
            orders: Semaphore::new(MAX_ORDERS),
            state: Mutex::new(IssuanceState {
                budget: budget.unwrap_or_default(),
                ..IssuanceState::default()
            }),
            tasks: Mutex::new(Some(JoinSet::new())),
            writing: tokio::sync::Mutex::default(),
        };
        issuance.serve_own().context("opening data/tls")?;
        let kept = &parts.certified.kept_domains;
        issuance.open_domains(kept).context("opening data/tls")?;
        Ok(issuance)
    }

    /// Serves the stored certificates of the installation's own names. Settings may have changed: those of other names are kept, so that
    /// they are there when the settings are put right.
    fn serve_own(&self) -> std::io::Result<()> {
        let stored = self.store.pairs()?.into_iter();
        let own = stored.filter(|(name, _)| self.names.classify(name).is_some());
        self.served.serve_all(&own.collect());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, IssuanceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a name belongs to the installation, or is a domain that is served.
    fn is_ours(&self, name: &str) -> bool {
        self.names.classify(name).is_some() || self.domains.contains(name)
    }

    /// Waits for a certificate for the name of a handshake, if it may have one; returns after a timeout at the latest.
    pub(super) async fn ensure_certificate(self: &Arc<Self>, name: &str) {
        if self.served.has(name) || !self.is_ours(name) {
            return;
        }
        let pending = self.state().pending.get(name).cloned();
        let pending = match pending {
            Some(pending) => Some(pending),
            // Domains are ordered by the refresh. The look-up of a label costs a query, so names in backoff are skipped.
            None if self.names.classify(name).is_none() || self.is_name_backing_off(name) => None,
            None => match self.standing(name).await {
                NameStanding::Eligible(budget) => self.start_order(name, budget),
                NameStanding::Suspended | NameStanding::Foreign => None,
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
        self.remove_ended_domains().await;
        self.order_for_domains().await;
        let is_due = |name: &str, validity: &ValidityPeriod| {
            validity.renewal_time() <= now || !self.is_ours(name)
        };
        for name in self.served.list(is_due) {
            if self.is_ours(&name) && self.is_name_backing_off(&name) {
                continue;
            }
            match self.standing(&name).await {
                NameStanding::Eligible(_) => {
                    self.start_order(&name, OrderBudget::Uncounted);
                }
                NameStanding::Suspended => {}
                NameStanding::Foreign => self.remove_certificate(&name).await,
            }
        }
    }

    fn is_name_backing_off(&self, name: &str) -> bool {
        let now = self.clock.now();
        self.state().budget.blocked_until(name, now).is_some()
    }

    /// Looks up whether a name may have a certificate.
    async fn standing(&self, name: &str) -> NameStanding {
        let found = match self.names.classify(name) {
            Some(NameKind::Fixed) => return NameStanding::Eligible(OrderBudget::Uncounted),
            Some(NameKind::Label(label)) => (self.find_label_owner)(label.to_owned()).await,
            None if self.domains.contains(name) => (self.find_domain_owner)(name.to_owned()).await,
            None => return NameStanding::Foreign,
        };
        let is_domain = self.names.classify(name).is_none();
        match found {
            Ok(Some(owner)) if is_domain => NameStanding::Eligible(OrderBudget::Domain(owner)),
            Ok(Some(owner)) => NameStanding::Eligible(OrderBudget::Label(owner)),
            Ok(None) if is_domain => NameStanding::Suspended,
            Ok(None) => NameStanding::Foreign,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(name, error, "whether a project has a name is not known");
                NameStanding::Suspended
            }
        }
    }

    /// Starts an order, unless one is pending, too many are, or the name has a certificate that is not due; returns a receiver that closes
    /// with the order. A new certificate is counted in its budget.
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
        let validity = self.served.validity(name);
        if state.pending.len() >= MAX_PENDING_NAMES
            || validity.is_some_and(|validity| now < validity.renewal_time())
            || state.budget.blocked_until(name, now).is_some()
            || !self.spend(&mut state, name, counted)
        {
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

    /// Spends one order of a budget; returns whether there was one.
    fn spend(&self, state: &mut IssuanceState, name: &str, counted: OrderBudget) -> bool {
        let now = self.clock.now();
        let spent = match counted {
            OrderBudget::Uncounted => return true,
            OrderBudget::Domain(owner) => {
                let spent = state.budget.spend_for_domain(&self.per_hour, &owner, now);
                return spent.is_ok();
            }
            OrderBudget::Label(owner) => {
                let spent = state.budget.spend_for_label(&self.per_week, &owner, now);
                spent.err()
            }
        };
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

    /// Returns the directory of the file of a name.
    fn store_of(&self, name: &str) -> &AuthorityDirectory {
        match self.names.classify(name) {
            Some(_) => &self.store,
            None => &self.domain_store,
        }
    }

    async fn remove_certificate(&self, name: &str) {
        self.served.remove(name);
        let (store, owned) = (self.store_of(name).clone(), name.to_owned());
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
        // A domain may have ended while the order waited, or another order may have met a rate limit.
        if !self.is_ours(name) || self.is_name_backing_off(name) {
            return;
        }
        // Stored before the order: a crash must not refill the budget.
        self.save_budget().await;
        let attempt = self.next_attempt(name);
        let kept = match self.authority.issue(name, attempt.proof).await {
            Ok(pem) => self.store_certificate(name, pem).await,
            Err(why) => Err(why),
        };
        match kept {
            Ok(pair) => self.accept(name, &pair).await,
            Err(why) => self.record_failure(name, attempt, &why),
        }
        self.save_budget().await;
    }

    /// Chooses the challenge of an order. Something in front of a domain may end handshakes, so plain HTTP may prove it, too.
    fn next_attempt(&self, name: &str) -> OrderAttempt {
        if !self.has_http || self.names.classify(name).is_some() {
            return OrderAttempt {
                proof: NameProof::Handshake,
                other: None,
            };
        }
        let proof = self.state().budget.next_proof(name);
        OrderAttempt {
            proof,
            other: Some(proof.other()),
        }
    }

    /// Serves a certificate that was issued.
    async fn accept(&self, name: &str, pair: &CertificatePair) {
        let (now, validity) = (self.clock.now(), pair.validity);
        self.served.serve(name, pair);
        self.domains.record_issued(name, validity.ends);
        let is_due = validity.renewal_time() <= now;
        self.state().budget.record_success(name, is_due, now);
        tracing::info!(name, ends = %validity.ends, "a certificate was issued");
        // The domain or the project may have ended meanwhile.
        if matches!(self.standing(name).await, NameStanding::Foreign) {
            self.remove_certificate(name).await;
        }
    }

    fn record_failure(&self, name: &str, attempt: OrderAttempt, why: &IssuanceRefusal) {
        let now = self.clock.now();
        let mut state = self.state();
        let again = state.budget.record_failure(name, attempt, why, now);
        let reason = state.budget.reason(name).filter(|_| now < again);
        drop(state);
        match reason {
            Some(reason) => {
                tracing::error!(name, error = %why, %again, "no certificate was issued");
                self.domains.record_refusal(name, reason);
            }
            None => tracing::info!(name, error = %why, "the other challenge is tried"),
        }
    }

    async fn store_certificate(
        &self,
        name: &str,
        pem: String,
    ) -> Result<CertificatePair, IssuanceRefusal> {
        let (store, name) = (self.store_of(name).clone(), name.to_owned());
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
        let mut state = self.issuance.state();
        state.pending.remove(&self.name);
        state.walk = None;
    }
}

#[cfg(test)]
mod tests;
