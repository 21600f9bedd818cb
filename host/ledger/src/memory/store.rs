//! Rows of a primary with one standby. A transaction is done at once, and waits until the standby has it; as long as it waits, others
//! see what was there before, and what it has written is locked.
//!
//! A wait may be cut: then others see a transaction that the standby does not have yet.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use svc_base::ids::DeploymentId;
use svc_base::positions::{CommitPosition, Entry};
use uuid::Uuid;

use crate::types::{Base, DatabaseName, LedgerError, NodeState, Place, RunId};

/// Key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A flush of views.
    Flush(Uuid),
    /// Views of a deployment.
    Visits(DeploymentId),
    /// A run.
    Node(RunId),
    /// The place of a database.
    Place(DatabaseName),
    /// A commit.
    Commit(DatabaseName, CommitPosition),
    /// A base.
    Base(DatabaseName, CommitPosition),
}

/// A row.
#[derive(Clone, Debug)]
pub(crate) enum Row {
    /// A flush of views, which was added.
    Flush,
    /// Views of a deployment.
    Visits(DeploymentId, u64),
    /// A run.
    Node(NodeState),
    /// The place of a database.
    Place(Place),
    /// A commit, with the run that appended it.
    Commit(RunId, Entry),
    /// A base.
    Base(Base),
}

/// A change of a row, `None` if it is deleted.
type Change = (Key, Option<Row>);

/// Number of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransactionNumber(u64);

#[derive(Debug)]
struct Transaction {
    number: TransactionNumber,
    /// Rows as they were before it.
    before: Vec<Change>,
    /// Whether its caller still waits for the standby.
    waits: bool,
}

/// Reason why a request does not go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A transaction that waits has locked a row: it goes on later.
    Locked,
    /// The ledger refuses it.
    Error(LedgerError),
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        Self::Error(error)
    }
}

/// The primary, and how far its standby is behind.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// Rows of the primary, those that wait included.
    rows: BTreeMap<Key, Row>,
    /// Transactions that the standby lacks or that wait, the oldest first.
    log: VecDeque<Transaction>,
    /// Number of transactions of the log that the standby has: the oldest ones.
    replicated: usize,
    /// Number of the newest transaction.
    newest: u64,
}

impl Store {
    /// Runs a request in a transaction. The transaction waits from then on, if it has written something.
    pub(crate) fn transact<T>(
        &mut self,
        request: impl FnOnce(&mut View<'_>) -> Result<T, Refusal>,
    ) -> Result<(T, Option<TransactionNumber>), Refusal> {
        let mut view = View {
            store: self,
            changes: Vec::new(),
        };
        let answer = request(&mut view)?;
        let changes = view.changes;
        if changes.is_empty() {
            return Ok((answer, None));
        }
        self.newest += 1;
        let number = TransactionNumber(self.newest);
        let mut before = Vec::with_capacity(changes.len());
        for (key, row) in changes {
            let old = match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
            before.push((key, old));
        }
        self.log.push_back(Transaction {
            number,
            before,
            waits: true,
        });
        Ok((answer, Some(number)))
    }

    /// Number of transactions that the standby lacks.
    pub(crate) fn unreplicated(&self) -> usize {
        self.log.len() - self.replicated
    }

    /// Brings the next transactions to the standby.
    pub(crate) fn replicate(&mut self, transactions: usize) {
        self.replicated += transactions.min(self.unreplicated());
        self.forget();
    }

    /// Ends the wait of a transaction that the standby has, and returns whether it has it.
    pub(crate) fn acknowledge(&mut self, number: TransactionNumber) -> bool {
        let at = self.log.iter().position(|done| done.number == number);
        let has = at.is_some_and(|at| at < self.replicated);
        if has {
            self.cut(number);
        }
        has
    }

    /// Ends the wait of a transaction, whatever the standby has: its caller does not learn how it went.
    pub(crate) fn cut(&mut self, number: TransactionNumber) {
        let mut log = self.log.iter_mut();
        if let Some(done) = log.find(|done| done.number == number) {
            done.waits = false;
        }
        self.forget();
    }

    /// Whether a transaction is part of the primary's log and waits.
    pub(crate) fn waits(&self, number: TransactionNumber) -> bool {
        let mut log = self.log.iter();
        log.any(|done| done.number == number && done.waits)
    }

    /// Lets the standby go on in place of the primary: what it lacks is gone, and nobody waits any more.
    pub(crate) fn fail_over(&mut self) {
        while self.log.len() > self.replicated {
            let lost = self.log.pop_back().map(|lost| lost.before);
            for (key, row) in lost.into_iter().flatten().rev() {
                match row {
                    Some(row) => self.rows.insert(key, row),
                    None => self.rows.remove(&key),
                };
            }
        }
        self.log.clear();
        self.replicated = 0;
    }

    /// Forgets transactions that the standby has and that nobody waits for.
    fn forget(&mut self) {
        while self.replicated > 0 && self.log.pop_front_if(|oldest| !oldest.waits).is_some() {
            self.replicated -= 1;
        }
    }

    /// Row as it was before the transaction that waits and has changed it, if there is one.
    fn replaced(&self, key: &Key) -> Option<Option<&Row>> {
        let waiting = self.log.iter().filter(|done| done.waits);
        let mut changes = waiting.flat_map(|done| &done.before);
        let change = changes.find(|(changed, _)| changed == key);
        change.map(|(_, row)| row.as_ref())
    }

    /// Returns a row as everybody sees it.
    pub(crate) fn get(&self, key: &Key) -> Option<&Row> {
        match self.replaced(key) {
            Some(before) => before,
            None => self.rows.get(key),
        }
    }

    /// Returns the rows between two keys as everybody sees them, in their order.
    pub(crate) fn range(&self, keys: RangeInclusive<Key>) -> Vec<&Row> {
        let mut found: BTreeMap<Key, Option<&Row>> = self
            .rows
            .range(keys.clone())
            .map(|(key, row)| (*key, Some(row)))
            .collect();
        for done in self.log.iter().filter(|done| done.waits) {
            for (key, row) in &done.before {
                if keys.contains(key) {
                    found.insert(*key, row.as_ref());
                }
            }
        }
        found.into_values().flatten().collect()
    }
}

/// Rows as a transaction sees them, with what it has changed.
pub(crate) struct View<'a> {
    store: &'a Store,
    changes: Vec<Change>,
}

impl<'a> View<'a> {
    fn changed(&self, key: &Key) -> Option<Option<&Row>> {
        let mut changes = self.changes.iter().rev();
        let change = changes.find(|(changed, _)| changed == key);
        change.map(|(_, row)| row.as_ref())
    }

    /// Returns a row, with what the transaction itself has changed, but without a lock.
    pub(crate) fn get(&self, key: &Key) -> Option<&Row> {
        match self.changed(key) {
            Some(row) => row,
            None => self.store.get(key),
        }
    }

    /// Returns the rows between two keys, without what the transaction itself has changed.
    pub(crate) fn range(&self, keys: RangeInclusive<Key>) -> Vec<&'a Row> {
        self.store.range(keys)
    }

    /// Locks a row and returns it.
    ///
    /// # Errors
    /// A transaction that waits has it.
    pub(crate) fn lock(&self, key: &Key) -> Result<Option<&Row>, Refusal> {
        match self.store.replaced(key) {
            Some(_) => Err(Refusal::Locked),
            None => Ok(self.get(key)),
        }
    }

    /// Changes a row.
    ///
    /// # Errors
    /// A transaction that waits has it.
    pub(crate) fn set(&mut self, key: Key, row: Option<Row>) -> Result<(), Refusal> {
        self.lock(&key)?;
        self.changes.push((key, row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::Place(DatabaseName::Control)
    }

    fn row(epoch: u64) -> Row {
        Row::Place(Place {
            database: DatabaseName::Control,
            run: RunId::from(uuid::Uuid::from_u128(1)),
            epoch: crate::BeatCount(epoch),
        })
    }

    fn epoch(row: Option<&Row>) -> Option<u64> {
        match row {
            Some(Row::Place(place)) => Some(place.epoch.0),
            _ => None,
        }
    }

    fn write(store: &mut Store, value: u64) -> Result<TransactionNumber, Refusal> {
        let written = store.transact(|view| view.set(key(), Some(row(value))));
        written.map(|((), number)| number.unwrap())
    }

    #[test]
    fn what_waits_is_locked_and_not_seen() {
        let mut store = Store::default();
        let first = write(&mut store, 1).unwrap();
        assert_eq!(epoch(store.get(&key())), None);
        assert!(store.range(key()..=key()).is_empty());
        assert_eq!(write(&mut store, 2), Err(Refusal::Locked));
        assert!(!store.acknowledge(first) && store.waits(first));
        store.replicate(1);
        assert!(store.acknowledge(first) && !store.waits(first));
        assert_eq!(epoch(store.get(&key())), Some(1));
        assert_eq!(epoch(store.range(key()..=key()).pop()), Some(1));
    }

    #[test]
    fn what_was_cut_is_seen_and_may_be_lost() {
        let mut store = Store::default();
        let first = write(&mut store, 1).unwrap();
        store.replicate(1);
        assert!(store.acknowledge(first));
        for value in [2, 3] {
            let cut = write(&mut store, value).unwrap();
            store.cut(cut);
            assert_eq!(epoch(store.get(&key())), Some(value));
        }
        assert_eq!(store.unreplicated(), 2);
        store.fail_over();
        assert_eq!(epoch(store.get(&key())), Some(1));
        let kept = write(&mut store, 4).unwrap();
        store.replicate(9);
        store.fail_over();
        assert!(!store.waits(kept));
        assert_eq!(epoch(store.get(&key())), Some(4));
    }
}
