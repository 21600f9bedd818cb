//! The live queries of one backend: their subscribers, and when each query is evaluated again.
//!
//! A commit marks the queries that read one of its tables. One task evaluates the marked queries, few at once and each at most
//! so many times a second, and offers the answer to all subscribers. A query that is marked during its evaluation is
//! evaluated once more, so the last change always arrives.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::budget::Budget;
use super::listener::Listener;
use super::query::{Answer, Key, Outcome, Query};
use super::subscriber::Subscriber;
use crate::backends::calls::Seen;
use svc_base::ids::BackendId;
use svc_database::{Tables, Touched};

/// Maximum size of all cached answers of a backend, in bytes.
const MOST_KEPT: usize = 4 << 20;
/// Maximum size of a cached answer, in bytes.
const LONGEST_KEPT: usize = 256 << 10;

/// Live queries of a backend.
#[derive(Debug)]
pub(super) struct Board {
    backend: BackendId,
    /// Least time between two evaluations of a query.
    interval: Duration,
    state: Mutex<State>,
    news: Mutex<News>,
    wake: Notify,
    budget: Budget,
}

#[derive(Debug, Default)]
struct State {
    queries: HashMap<u64, Entry>,
    by_key: HashMap<Key, u64>,
    /// Number of the latest query.
    next: u64,
    /// Marked queries, by their due time.
    agenda: BTreeSet<(Duration, u64)>,
    /// The slow query that is being evaluated. Only one runs at a time, so that the other queries are not delayed.
    heavy: Option<u64>,
    /// Size of all cached answers, in bytes.
    kept: usize,
    /// Number of connections that may subscribe.
    listeners: usize,
}

/// Changes that are not applied to the queries yet.
#[derive(Debug, Default)]
struct News {
    touched: Touched,
    asked: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    query: Arc<Query>,
    subscribers: Vec<Subscriber>,
    /// Tables of the answer; `None` means any table.
    tables: Option<Arc<Tables>>,
    /// The latest answer, if it is current and small enough to be cached.
    kept: Option<Answer>,
    /// Start of the latest evaluation.
    began: Option<Duration>,
    /// Whether the latest evaluation was slow.
    is_heavy: bool,
    turn: Turn,
    /// Tables that changed during an evaluation, kept until the tables of the new answer are known.
    meanwhile: Touched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing has changed.
    Rests,
    /// The query is on the agenda.
    Due(Duration),
    /// The query is being evaluated; `again` means that it must be evaluated once more.
    Runs { again: bool },
}

/// An evaluation that takes longer is slow.
const HEAVY: Duration = Duration::from_millis(20);
/// Delay of a query after the database was busy.
const BUSY: Duration = Duration::from_millis(500);

impl Board {
    pub(super) fn new(backend: BackendId, per_second: u64, budget: Budget) -> Self {
        let per_second = u32::try_from(per_second.max(1)).unwrap_or(u32::MAX);
        Self {
            backend,
            interval: Duration::from_secs(1) / per_second,
            state: Mutex::default(),
            news: Mutex::default(),
            wake: Notify::new(),
            budget,
        }
    }

    pub(super) fn backend(&self) -> BackendId {
        self.backend
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the tables that a commit may have changed. The committing thread waits for this, so it does nothing more.
    pub(super) fn touch(&self, touched: Touched) {
        self.news().touched.join(touched);
        self.wake.notify_one();
    }

    /// Requests the latest answer of a query, for a subscriber that is behind.
    pub(super) fn ask(&self, query: u64) {
        self.news().asked.insert(query);
        self.wake.notify_one();
    }

    /// Waits for a change.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether a query has subscribers.
    pub(super) fn serves(&self, query: &Query) -> bool {
        self.state().by_key.contains_key(&query.key())
    }

    /// Adds a subscriber to a query.
    pub(super) fn join(&self, query: Query, subscriber: &Subscriber, now: Duration) {
        // Commits that were acknowledged before this call must be seen.
        self.take_news(now);
        let mut state = self.state();
        let key = query.key();
        let is_own = query.visitor.is_some();
        let known = state.by_key.get(&key).copied();
        let number = known.unwrap_or_else(|| state.add(key, query));
        if !subscriber.joins(number, is_own) {
            // The subscription has ended meanwhile.
            state.drop_if_unused(number);
            return;
        }
        let Some(entry) = state.queries.get_mut(&number) else {
            return;
        };
        entry.subscribers.push(subscriber.clone());
        match (&entry.kept, entry.turn) {
            (Some(answer), Turn::Rests) => subscriber.offer(answer),
            _ => state.mark(number, now, self.interval),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Removes a subscriber from a query.
    pub(super) fn leave(&self, query: u64, listener: &Listener, number: u64) {
        let mut state = self.state();
        if let Some(entry) = state.queries.get_mut(&query) {
            entry.subscribers.retain(|one| !one.is(listener, number));
            state.drop_if_unused(query);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Marks the queries that a change affects, and sends the requested answers.
    pub(super) fn take_news(&self, now: Duration) {
        let News { touched, asked } = std::mem::take(&mut *self.news());
        if touched.is_nothing() && asked.is_empty() {
            return;
        }
        let mut state = self.state();
        let mut concerned = Vec::new();
        for (number, entry) in &mut state.queries {
            if matches!(entry.turn, Turn::Runs { .. }) {
                entry.meanwhile.join(touched.clone());
            } else if touched.concerns(entry.tables.as_deref()) {
                concerned.push(*number);
            }
        }
        for number in concerned {
            state.mark(number, now, self.interval);
        }
        for number in asked {
            let Some(entry) = state.queries.get(&number) else {
                continue;
            };
            match (&entry.kept, entry.turn) {
                (Some(answer), Turn::Rests) => {
                    entry.subscribers.iter().for_each(|one| one.offer(answer));
                }
                _ => state.mark(number, now, self.interval),
            }
        }
    }

    /// Starts the next query that is due, if any.
    pub(super) fn begin(&self, now: Duration) -> Option<(u64, Arc<Query>)> {
        let mut state = self.state();
        let (due, number) = state.next().filter(|(due, _)| *due <= now)?;
        state.agenda.remove(&(due, number));
        let entry = state.queries.get_mut(&number)?;
        entry.turn = Turn::Runs { again: false };
        entry.began = Some(now);
        let (query, is_heavy) = (Arc::clone(&entry.query), entry.is_heavy);
        if is_heavy {
            state.heavy = Some(number);
        }
        Some((number, query))
    }

    /// Returns the time until a query is due, if any is on the agenda.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let state = self.state();
        state.next().map(|(due, _)| due.saturating_sub(now))
    }

    /// Delivers the outcome of an evaluation to the subscribers; returns the subscribers that must join again.
    pub(super) fn finish(&self, number: u64, outcome: Outcome, now: Duration) -> Vec<Subscriber> {
        let mut state = self.state();
        state.heavy.take_if(|heavy| *heavy == number);
        let Some(entry) = state.queries.get_mut(&number) else {
            return Vec::new();
        };
        entry.is_heavy = entry
            .began
            .is_some_and(|began| now.saturating_sub(began) > HEAVY);
        let mut again = entry.turn == Turn::Runs { again: true };
        let meanwhile = std::mem::take(&mut entry.meanwhile);
        entry.turn = Turn::Rests;
        let mut leaving = Vec::new();
        match outcome {
            Outcome::Seen(seen) => {
                let Seen {
                    json,
                    digest,
                    tables,
                } = seen;
                again |= meanwhile.concerns(tables.as_deref());
                entry.tables = tables;
                let json = self.budget.count(json);
                let answer = Answer { json, digest };
                entry.subscribers.iter().for_each(|one| one.offer(&answer));
                state.keep(number, answer);
            }
            Outcome::Failed(problem) => {
                for one in std::mem::take(&mut entry.subscribers) {
                    one.fail(Arc::clone(&problem));
                }
            }
            Outcome::Busy(problem) => {
                entry.subscribers.retain(|one| {
                    let is_new = one.is_new();
                    if is_new {
                        one.fail(Arc::clone(&problem));
                    }
                    !is_new
                });
                state.put(number, now + BUSY);
            }
            Outcome::Moved => leaving = std::mem::take(&mut entry.subscribers),
        }
        state.drop_if_unused(number);
        if again {
            state.mark(number, now, self.interval);
        }
        leaving
    }

    /// Counts a connection that may subscribe.
    pub(super) fn attach(&self) {
        self.state().listeners += 1;
    }

    /// Removes a connection from the count.
    pub(super) fn detach(&self) {
        self.state().listeners -= 1;
        self.wake.notify_one();
    }

    /// Whether no connection is left.
    pub(super) fn is_unused(&self) -> bool {
        self.state().listeners == 0
    }

    /// Returns the numbers of queries and of subscriptions.
    pub(super) fn count(&self) -> (usize, usize) {
        let state = self.state();
        let subscribers = state.queries.values().map(|entry| entry.subscribers.len());
        (state.queries.len(), subscribers.sum())
    }
}

impl State {
    fn add(&mut self, key: Key, query: Query) -> u64 {
        self.next += 1;
        let entry = Entry {
            key,
            query: Arc::new(query),
            subscribers: Vec::new(),
            tables: None,
            kept: None,
            began: None,
            is_heavy: false,
            turn: Turn::Rests,
            meanwhile: Touched::default(),
        };
        self.by_key.insert(key, self.next);
        self.queries.insert(self.next, entry);
        self.next
    }

    /// Returns the next query of the agenda that may run beside the running ones, with its due time.
    fn next(&self) -> Option<(Duration, u64)> {
        let is_heavy = |number: &u64| self.queries.get(number).is_some_and(|entry| entry.is_heavy);
        let mut agenda = self.agenda.iter();
        let next = agenda.find(|(_, number)| self.heavy.is_none() || !is_heavy(number));
        next.copied()
    }

    /// Schedules the evaluation of a query as early as the interval allows.
    fn mark(&mut self, number: u64, now: Duration, interval: Duration) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        match &mut entry.turn {
            Turn::Due(_) => {}
            Turn::Runs { again } => *again = true,
            Turn::Rests => {
                let due = entry.began.map_or(now, |began| (began + interval).max(now));
                self.put(number, due);
            }
        }
    }

    fn put(&mut self, number: u64, due: Duration) {
        if let Some(entry) = self.queries.get_mut(&number) {
            entry.turn = Turn::Due(due);
            self.agenda.insert((due, number));
        }
    }

    /// Replaces the cached answer of a query, if there is room.
    fn keep(&mut self, number: u64, answer: Answer) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        let bytes = |kept: &Option<Answer>| kept.as_ref().map_or(0, |kept| kept.json.len());
        self.kept -= bytes(&entry.kept);
        let fits = answer.json.len() <= LONGEST_KEPT && self.kept + answer.json.len() <= MOST_KEPT;
        entry.kept = fits.then_some(answer);
        self.kept += bytes(&entry.kept);
    }

    fn drop_if_unused(&mut self, number: u64) {
        if self
            .queries
            .get(&number)
            .is_none_or(|entry| !entry.subscribers.is_empty())
        {
            return;
        }
        if let Some(entry) = self.queries.remove(&number) {
            self.by_key.remove(&entry.key);
            self.kept -= entry.kept.map_or(0, |kept| kept.json.len());
            if let Turn::Due(due) = entry.turn {
                self.agenda.remove(&(due, number));
            }
        }
    }
}
