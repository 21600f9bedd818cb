//! Issuance of certificates to names: the rules between handshakes of strangers and an authority that counts.
//!
//! A name that is not ours is never asked for, nor is a label that no project has. What is under way is waited for, not asked for twice;
//! what was refused rests; new certificates of projects are counted by the week. Hosts of the installation's own are asked for at the
//! start, and every certificate again when a third of its time is left.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::budget::{Budget, LabelOwner, Refusal};
use super::names::{NameKind, Names};
use super::pair::CertificatePair;
use super::served::ServedCertificates;
use super::store::Store;
use crate::config::{Cap, CapPart};
use svc_base::clock::Clock;

/// How long a handshake waits for its certificate.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);
/// Orders that are made at once.
const MAX_ORDERS: usize = 4;
/// The most names that are under way, those included that wait for their turn.
const MAX_PENDING_NAMES: usize = 64;

/// An issuer of certificates.
pub(super) trait Authority: fmt::Debug + Send + Sync {
    /// Has one issued for a name: the key and the chain, in PEM.
    fn issue<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, Refusal>>;
}

/// Tells who owns the project of a label, if there is one.
pub type FindOwner =
    Arc<dyn Fn(String) -> BoxFuture<'static, anyhow::Result<Option<LabelOwner>>> + Send + Sync>;

/// Name that may have a certificate.
enum EligibleName {
    /// A host of the installation.
    Fixed,
    /// The label of a project.
    Label(LabelOwner),
}

/// The certificates that an authority issues for us.
pub(super) struct Issuance {
    names: Names,
    served: Arc<ServedCertificates>,
    store: Store,
    authority: Box<dyn Authority>,
    find_owner: FindOwner,
    clock: Clock,
    /// New certificates of projects, by the week.
    per_week: Cap,
    orders: Semaphore,
    state: Mutex<State>,
    /// Tasks that ask; `None` once nothing is asked for any more.
    tasks: Mutex<Option<JoinSet<()>>>,
    /// Held by who writes down what was spent, so that the last to write is the last to have looked.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    budget: Budget,
    /// Names that are asked for; each ends when its sender is dropped.
    pending: HashMap<String, watch::Receiver<()>>,
    /// Part of the week's certificates that was spent at the last look.
    spent: Option<CapPart>,
}

impl fmt::Debug for Issuance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuance").field(&self.authority).finish()
    }
}

/// Parts of an issuance.
pub(super) struct IssuanceParts {
    pub(super) names: Names,
    pub(super) served: Arc<ServedCertificates>,
    pub(super) store: Store,
    pub(super) authority: Box<dyn Authority>,
    pub(super) find_owner: FindOwner,
    pub(super) clock: Clock,
    pub(super) per_week: Cap,
}

impl EligibleName {
    /// The owner by whom a new certificate is counted.
    fn owner(self) -> Option<LabelOwner> {
        match self {
            Self::Fixed => None,
            Self::Label(owner) => Some(owner),
        }
    }
}

impl Issuance {
    /// Goes on where the last server stopped. Blocks.
    ///
    /// # Errors
    /// The disk's, and files that are damaged.
    pub(super) fn open(parts: IssuanceParts) -> anyhow::Result<Self> {
        let budget = parts.store.budget().context("opening data/tls")?;
        let pairs = parts.store.pairs().context("opening data/tls")?;
        for (name, pair) in pairs {
            // Names change with the settings: what is not ours any more is not served.
            if parts.names.classify(&name).is_some() {
                parts.served.serve(&name, &pair);
            }
        }
        let budget = budget.unwrap_or_default();
        Ok(Self {
            names: parts.names,
            served: parts.served,
            store: parts.store,
            authority: parts.authority,
            find_owner: parts.find_owner,
            clock: parts.clock,
            per_week: parts.per_week,
            orders: Semaphore::new(MAX_ORDERS),
            state: Mutex::new(State {
                budget,
                ..State::default()
            }),
            tasks: Mutex::new(Some(JoinSet::new())),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to a certificate for the name of a handshake, if it may have one; returns when it is there or will not be in time.
    pub(super) async fn ensure_certificate(self: &Arc<Self>, name: &str) {
        if self.served.has(name) {
            return;
        }
        let Some(kind) = self.names.classify(name) else {
            return;
        };
        let pending = self.state().pending.get(name).cloned();
        let pending = match pending {
            Some(pending) => Some(pending),
            // Looking up is for those alone for whom something may follow.
            None if self.is_resting(name) => None,
            None => match self.check_eligibility(kind).await {
                Some(known) if !self.served.has(name) => self.start_order(name, known.owner()),
                _ => None,
            },
        };
        if let Some(mut ended) = pending {
            // It ends by an error: nothing is ever sent.
            let _ = tokio::time::timeout(HANDSHAKE_WAIT, ended.changed()).await;
        }
    }

    /// Asks for what is missing or will soon end, and forgets what nobody needs any more.
    pub(super) async fn renew(self: &Arc<Self>) {
        let now = self.clock.now();
        for name in self.names.fixed() {
            if !self.served.has(name) && !self.is_resting(name) {
                self.start_order(name, None);
            }
        }
        for (name, validity) in self.served.names() {
            let Some(kind) = self.names.classify(&name) else {
                continue;
            };
            if now < validity.renewal_time() || self.is_resting(&name) {
                continue;
            }
            if self.check_eligibility(kind).await.is_some() {
                self.start_order(&name, None);
            } else {
                self.remove_certificate(&name).await;
            }
        }
    }

    fn is_resting(&self, name: &str) -> bool {
        let now = self.clock.now();
        self.state().budget.blocked_until(name, now).is_some()
    }

    /// Looks whether a name may have a certificate.
    async fn check_eligibility(&self, name: NameKind<'_>) -> Option<EligibleName> {
        let NameKind::Label(label) = name else {
            return Some(EligibleName::Fixed);
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

    /// Begins to ask for a name, unless that is under way or there is no room; returns what ends with the order. A new
    /// certificate of a project is counted by its owner.
    fn start_order(
        self: &Arc<Self>,
        name: &str,
        counted: Option<LabelOwner>,
    ) -> Option<watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(pending) = state.pending.get(name) {
            return Some(pending.clone());
        }
        // Once more: another handshake may have ended meanwhile.
        let now = self.clock.now();
        if state.pending.len() >= MAX_PENDING_NAMES
            || state.budget.blocked_until(name, now).is_some()
        {
            return None;
        }
        if let Some(owner) = counted {
            let spent = state.budget.spend(&self.per_week, &owner, now).err();
            let was_spent = std::mem::replace(&mut state.spent, spent);
            if let Some(part) = spent {
                if was_spent != Some(part) {
                    tracing::warn!(
                        name,
                        per_week = self.per_week.whole,
                        part = part.as_str(),
                        "this part of the week's certificates for projects is spent: they come back one by one (acme.projects_per_week)"
                    );
                }
                return None;
            }
        }
        let (end, ended) = watch::channel(());
        state.pending.insert(name.to_owned(), ended.clone());
        let order = Order {
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

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops asking. What is under way is asked for by the next server.
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

    /// Has a certificate issued, keeps it, and serves it.
    async fn issue(&self, name: &str) {
        let Ok(_turn) = self.orders.acquire().await else {
            return;
        };
        // Before anything is asked for: a crash must not bring back what was spent.
        self.save_budget().await;
        let kept = match self.authority.issue(name).await {
            Ok(pem) => self.store_certificate(name, pem).await,
            Err(why) => Err(why),
        };
        match kept {
            Ok(pair) => {
                let ends = pair.validity.ends;
                self.served.serve(name, &pair);
                self.state().budget.record_success(name, self.clock.now());
                tracing::info!(name, %ends, "a certificate was issued");
            }
            Err(why) => {
                let now = self.clock.now();
                let again = self.state().budget.record_failure(name, &why, now);
                tracing::error!(name, error = %why, %again, "no certificate was issued");
            }
        }
        self.save_budget().await;
    }

    async fn store_certificate(&self, name: &str, pem: String) -> Result<CertificatePair, Refusal> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let kept = tokio::task::spawn_blocking(move || {
            let pair = CertificatePair::read(pem.as_bytes(), pem.as_bytes())?;
            store.put(&name, &pem)?;
            anyhow::Ok(pair)
        });
        // It counts as refused: asking again at once would cost another certificate.
        match kept.await {
            Ok(Ok(pair)) => Ok(pair),
            Ok(Err(error)) => Err(Refusal::Refused(format!("keeping it: {error:#}"))),
            Err(error) => Err(Refusal::Refused(format!("keeping it: {error}"))),
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

/// A name that is asked for; whoever waits is told when this is dropped, however that comes.
struct Order {
    name: String,
    issuance: Arc<Issuance>,
    _end: watch::Sender<()>,
}

impl Order {
    async fn run(self) {
        self.issuance.issue(&self.name).await;
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        self.issuance.state().pending.remove(&self.name);
    }
}

#[cfg(test)]
mod tests;
