//! A ledger in memory with faults, for tests: a primary with one standby that a test stops, and answers that it loses.

pub(crate) mod requests;
pub(crate) mod store;
mod visits;

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use svc_base::ids::DeploymentId;
use svc_base::positions::{CommitPosition, Entry};
use svc_base::sync;
use uuid::Uuid;

use self::requests::Rules;
use self::store::{Refusal, Store, TransactionNumber, View};
use crate::types::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, FoundEntry, KeptBases, Ledger,
    LedgerError, Node, NodeState, Place, RunId,
};

/// A ledger in memory. Clones share it, as nodes share a server.
#[derive(Clone, Debug, Default)]
pub struct MemoryLedger(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    /// Id of the installation, which the standby has at once.
    installation: Option<Uuid>,
    store: Store,
    rules: Rules,
    /// Whether the standby is stopped.
    standby_stopped: bool,
    /// Whether the primary does not wait for the standby as it must.
    unsynced: bool,
    /// Whether the primary cannot be reached.
    unreachable: bool,
    /// Number of the next transactions whose answers are lost.
    answers_to_lose: u32,
    /// Tasks that wait for a lock or for the standby.
    waiting: Vec<Waker>,
}

impl Shared {
    /// Has all tasks look again.
    fn wake(&mut self) {
        for waker in mem::take(&mut self.waiting) {
            waker.wake();
        }
    }

    /// Brings everything to the standby, if it goes.
    fn replicate(&mut self) {
        if !self.standby_stopped {
            self.store.replicate(usize::MAX);
        }
    }
}

/// A transaction that waits. If its caller goes away, the wait is cut.
struct PendingTransaction<'a> {
    ledger: &'a MemoryLedger,
    number: TransactionNumber,
}

impl Drop for PendingTransaction<'_> {
    fn drop(&mut self) {
        let mut shared = self.ledger.shared();
        shared.store.cut(self.number);
        shared.wake();
    }
}

fn lost() -> LedgerError {
    LedgerError::Unknown("the connection has ended".to_owned())
}

impl MemoryLedger {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        sync::lock(&self.0)
    }

    /// Stops the standby: what is written waits from then on.
    pub fn stop_standby(&self) {
        self.shared().standby_stopped = true;
    }

    /// Starts the standby again, which gets everything that it lacks.
    pub fn start_standby(&self) {
        let mut shared = self.shared();
        shared.standby_stopped = false;
        shared.replicate();
        shared.wake();
    }

    /// Says whether the primary waits for its standby as it must. If not, it refuses to append.
    pub fn set_unsynced(&self, unsynced: bool) {
        self.shared().unsynced = unsynced;
    }

    /// Says whether the primary can be reached.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.shared().unreachable = unreachable;
    }

    /// Loses the answers to the next requests that write: each is done, and the standby gets it if it goes.
    pub fn lose_answers(&self, requests: u32) {
        self.shared().answers_to_lose = requests;
    }

    /// Lets the standby go on in place of the primary. What the standby lacks is gone, and who waits learns nothing.
    pub fn fail_over(&self) {
        let mut shared = self.shared();
        shared.store.fail_over();
        shared.wake();
    }

    /// Runs a request as soon as nothing it needs is locked.
    async fn begin<T>(
        &self,
        appends: bool,
        request: impl Fn(Rules, &mut View<'_>) -> Result<T, Refusal>,
    ) -> Result<(T, Option<PendingTransaction<'_>>), LedgerError> {
        let begun = poll_fn(|context| {
            let mut shared = self.shared();
            if shared.unreachable {
                let why = "the server does not answer".to_owned();
                return Poll::Ready(Err(LedgerError::Unavailable(why)));
            }
            if appends && shared.unsynced {
                return Poll::Ready(Err(LedgerError::Unsynced));
            }
            let rules = shared.rules;
            match shared.store.transact(|view| request(rules, view)) {
                Ok((answer, number)) => {
                    shared.replicate();
                    Poll::Ready(Ok((answer, number)))
                }
                Err(Refusal::Error(error)) => Poll::Ready(Err(error)),
                Err(Refusal::Locked) => {
                    shared.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        let (answer, number) = begun.await?;
        let wait = number.map(|number| PendingTransaction {
            ledger: self,
            number,
        });
        Ok((answer, wait))
    }

    /// Runs a request, and waits until the standby has what it wrote.
    async fn request<T>(
        &self,
        appends: bool,
        request: impl Fn(Rules, &mut View<'_>) -> Result<T, Refusal>,
    ) -> Result<T, LedgerError> {
        let (answer, wait) = self.begin(appends, request).await?;
        let Some(wait) = wait else {
            return Ok(answer);
        };
        let acknowledged = poll_fn(|context| {
            let mut shared = self.shared();
            if shared.answers_to_lose > 0 {
                shared.answers_to_lose -= 1;
                return Poll::Ready(false);
            }
            // Only a failover ends the wait of somebody who is there.
            if !shared.store.waits(wait.number) {
                return Poll::Ready(false);
            }
            if shared.store.acknowledge(wait.number) {
                return Poll::Ready(true);
            }
            shared.waiting.push(context.waker().clone());
            Poll::Pending
        });
        match acknowledged.await {
            true => Ok(answer),
            false => Err(lost()),
        }
    }
}

impl Ledger for MemoryLedger {
    async fn found(&self, installation: Uuid) -> Result<bool, LedgerError> {
        let mut shared = self.shared();
        let is_new = shared.installation.is_none();
        shared.installation.get_or_insert(installation);
        Ok(is_new)
    }

    async fn installation(&self) -> Result<Option<Uuid>, LedgerError> {
        Ok(self.shared().installation)
    }

    async fn join(&self, node: &Node) -> Result<(), LedgerError> {
        self.request(false, |_, view| requests::join(view, node))
            .await
    }

    async fn beat(&self, run: RunId) -> Result<Vec<NodeState>, LedgerError> {
        self.request(false, |_, view| requests::beat(view, run))
            .await
    }

    async fn append(&self, run: RunId, entries: &[DatabaseEntry]) -> Result<(), LedgerError> {
        self.request(true, |rules, view| {
            requests::append(rules, view, run, entries)
        })
        .await
    }

    async fn find(
        &self,
        run: RunId,
        at: &[(DatabaseName, CommitPosition)],
    ) -> Result<Vec<Option<FoundEntry>>, LedgerError> {
        self.request(false, |rules, view| requests::find(rules, view, run, at))
            .await
    }

    async fn bury(
        &self,
        run: RunId,
        dead: RunId,
        seen: Option<BeatCount>,
    ) -> Result<bool, LedgerError> {
        self.request(false, |rules, view| {
            requests::bury(rules, view, run, dead, seen)
        })
        .await
    }

    async fn note_serving(&self, run: RunId) -> Result<(), LedgerError> {
        self.request(false, |_, view| requests::note_serving(view, run))
            .await
    }

    async fn remove_node(&self, run: RunId, name: &str) -> Result<bool, LedgerError> {
        self.request(false, |_, view| requests::remove_node(view, run, name))
            .await
    }

    async fn claim(&self, run: RunId, database: DatabaseName) -> Result<ClaimOutcome, LedgerError> {
        self.request(false, |rules, view| {
            requests::claim(rules, view, run, database)
        })
        .await
    }

    async fn release(&self, place: Place) -> Result<(), LedgerError> {
        self.request(false, |_, view| requests::release(view, place))
            .await
    }

    async fn places(&self) -> Result<Vec<Place>, LedgerError> {
        self.request(false, |_, view| Ok(requests::places(view)))
            .await
    }

    async fn tail(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
        after: CommitPosition,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, LedgerError> {
        self.request(false, |rules, view| {
            requests::tail(rules, view, reader, database, after, max_bytes)
        })
        .await
    }

    async fn bases(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
    ) -> Result<Vec<Base>, LedgerError> {
        self.request(false, |_, view| requests::bases(view, reader, database))
            .await
    }

    async fn add_base(&self, run: RunId, base: &Base) -> Result<(), LedgerError> {
        self.request(false, |_, view| requests::add_base(view, run, base))
            .await
    }

    async fn trim(
        &self,
        run: RunId,
        database: DatabaseName,
        kept: KeptBases,
    ) -> Result<u64, LedgerError> {
        self.request(false, |_, view| requests::trim(view, run, database, kept))
            .await
    }

    async fn forget(&self, run: RunId, database: DatabaseName) -> Result<(), LedgerError> {
        self.request(false, |_, view| requests::forget(view, run, database))
            .await
    }

    async fn add_visits(
        &self,
        run: RunId,
        flush: Uuid,
        counts: &[(DeploymentId, u64)],
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        self.request(true, |_, view| visits::add(view, run, flush, counts))
            .await
    }

    async fn visits(
        &self,
        reader: Option<RunId>,
        after: Option<DeploymentId>,
        most: usize,
    ) -> Result<Vec<(DeploymentId, u64)>, LedgerError> {
        self.request(false, |_, view| visits::after(view, reader, after, most))
            .await
    }

    async fn forget_visits(&self, run: RunId, gone: &[DeploymentId]) -> Result<(), LedgerError> {
        self.request(false, |_, view| visits::forget(view, run, gone))
            .await
    }
}
