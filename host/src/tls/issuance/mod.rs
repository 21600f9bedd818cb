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
use super::names::{Name, Names};
use super::pair::Pair;
use super::shelf::Shelf;
use super::store::Store;
use crate::config::{Cap, Part};
use svc_base::clock::Clock;

/// How long a handshake waits for its certificate.
const PATIENCE: Duration = Duration::from_secs(30);
/// Orders that are made at once.
const ORDERS: usize = 4;
/// The most names that are under way, those included that wait for their turn.
const UNDER_WAY: usize = 64;

/// An issuer of certificates.
pub(super) trait Authority: fmt::Debug + Send + Sync {
    /// Has one issued for a name: the key and the chain, in PEM.
    fn issue<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, Refusal>>;
}

/// Tells who owns the project of a label, if there is one.
pub type FindOwner =
    Arc<dyn Fn(String) -> BoxFuture<'static, anyhow::Result<Option<LabelOwner>>> + Send + Sync>;

/// Name that may have a certificate.
enum Known {
    /// A host of the installation.
    Fixed,
    /// The label of a project.
    Label(LabelOwner),
}

/// The certificates that an authority issues for us.
pub(super) struct Issuance {
    names: Names,
    shelf: Arc<Shelf>,
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
    under_way: HashMap<String, watch::Receiver<()>>,
    /// Part of the week's certificates that was spent at the last look.
    spent: Option<Part>,
}

impl fmt::Debug for Issuance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuance").field(&self.authority).finish()
    }
}

/// Parts of an issuance.
pub(super) struct Parts {
    pub(super) names: Names,
    pub(super) shelf: Arc<Shelf>,
    pub(super) store: Store,
    pub(super) authority: Box<dyn Authority>,
    pub(super) find_owner: FindOwner,
    pub(super) clock: Clock,
    pub(super) per_week: Cap,
}

impl Known {
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
    pub(super) fn open(parts: Parts) -> anyhow::Result<Self> {
        let budget = parts.store.budget().context("opening data/tls")?;
        let pairs = parts.store.pairs().context("opening data/tls")?;
        for (name, pair) in pairs {
            // Names change with the settings: what is not ours any more is not served.
            if parts.names.of(&name).is_some() {
                parts.shelf.put(&name, &pair);
            }
        }
        let budget = budget.unwrap_or_default();
        Ok(Self {
            names: parts.names,
            shelf: parts.shelf,
            store: parts.store,
            authority: parts.authority,
            find_owner: parts.find_owner,
            clock: parts.clock,
            per_week: parts.per_week,
            orders: Semaphore::new(ORDERS),
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
    pub(super) async fn see_to(self: &Arc<Self>, name: &str) {
        if self.shelf.has(name) {
            return;
        }
        let Some(kind) = self.names.of(name) else {
            return;
        };
        let under_way = self.state().under_way.get(name).cloned();
        let under_way = match under_way {
            Some(under_way) => Some(under_way),
            // Looking up is for those alone for whom something may follow.
            None if self.is_resting(name) => None,
            None => match self.look_up(kind).await {
                Some(known) if !self.shelf.has(name) => self.begin(name, known.owner()),
                _ => None,
            },
        };
        if let Some(mut ended) = under_way {
            // It ends by an error: nothing is ever sent.
            let _ = tokio::time::timeout(PATIENCE, ended.changed()).await;
        }
    }

    /// Asks for what is missing or will soon end, and forgets what nobody needs any more.
    pub(super) async fn renew(self: &Arc<Self>) {
        let now = self.clock.now();
        for name in self.names.fixed() {
            if !self.shelf.has(name) && !self.is_resting(name) {
                self.begin(name, None);
            }
        }
        for (name, validity) in self.shelf.names() {
            let Some(kind) = self.names.of(&name) else {
                continue;
            };
            if now < validity.renewal() || self.is_resting(&name) {
                continue;
            }
            if self.look_up(kind).await.is_some() {
                self.begin(&name, None);
            } else {
                self.forget(&name).await;
            }
        }
    }

    fn is_resting(&self, name: &str) -> bool {
        let now = self.clock.now();
        self.state().budget.rests_until(name, now).is_some()
    }

    /// Looks whether a name may have a certificate.
    async fn look_up(&self, name: Name<'_>) -> Option<Known> {
        let Name::Label(label) = name else {
            return Some(Known::Fixed);
        };
        match (self.find_owner)(label.to_owned()).await {
            Ok(owner) => owner.map(Known::Label),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "whether a project has a label is not known");
                None
            }
        }
    }

    /// Begins to ask for a name, unless that is under way or there is no room; returns what ends with the order. A new
    /// certificate of a project is counted by its owner.
    fn begin(
        self: &Arc<Self>,
        name: &str,
        counted: Option<LabelOwner>,
    ) -> Option<watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(under_way) = state.under_way.get(name) {
            return Some(under_way.clone());
        }
        // Once more: another handshake may have ended meanwhile.
        let now = self.clock.now();
        if state.under_way.len() >= UNDER_WAY || state.budget.rests_until(name, now).is_some() {
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
        state.under_way.insert(name.to_owned(), ended.clone());
        let way = Way {
            name: name.to_owned(),
            issuance: Arc::clone(self),
            _end: end,
        };
        drop(state);
        let mut tasks = self.tasks();
        let tasks = tasks.as_mut()?;
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { way.go().await });
        Some(ended)
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops asking. What is under way is asked for by the next server.
    pub(super) async fn end(&self) {
        let tasks = self.tasks().take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    async fn forget(&self, name: &str) {
        self.shelf.remove(name);
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
        self.write_down().await;
        let kept = match self.authority.issue(name).await {
            Ok(pem) => self.keep(name, pem).await,
            Err(why) => Err(why),
        };
        match kept {
            Ok(pair) => {
                let ends = pair.validity.ends;
                self.shelf.put(name, &pair);
                self.state().budget.issued(name, self.clock.now());
                tracing::info!(name, %ends, "a certificate was issued");
            }
            Err(why) => {
                let now = self.clock.now();
                let again = self.state().budget.not_issued(name, &why, now);
                tracing::error!(name, error = %why, %again, "no certificate was issued");
            }
        }
        self.write_down().await;
    }

    async fn keep(&self, name: &str, pem: String) -> Result<Pair, Refusal> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let kept = tokio::task::spawn_blocking(move || {
            let pair = Pair::read(pem.as_bytes(), pem.as_bytes())?;
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

    async fn write_down(&self) {
        let _turn = self.writing.lock().await;
        let (store, budget) = (self.store.clone(), self.state().budget.clone());
        let written = tokio::task::spawn_blocking(move || store.put_budget(&budget)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::error!("what was asked of the authority is not written down");
        }
    }
}

/// A name that is asked for; whoever waits is told when this is dropped, however that comes.
struct Way {
    name: String,
    issuance: Arc<Issuance>,
    _end: watch::Sender<()>,
}

impl Way {
    async fn go(self) {
        self.issuance.issue(&self.name).await;
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.issuance.state().under_way.remove(&self.name);
    }
}

#[cfg(test)]
mod tests;
