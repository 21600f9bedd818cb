//! The live queries of one backend: who listens to which, and when each is evaluated again.
//!
//! A commit marks the queries that read one of its tables; one task evaluates those that are marked, few at once and each so
//! many times a second at most, and offers the answer to all who listen. A query that is marked while it is evaluated is
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
use svc_database::{StatementTables, ChangedTables};

/// How much of the answers of a backend is kept for who comes later, in bytes.
const MOST_KEPT: usize = 4 << 20;
/// A longer answer is not kept.
const LONGEST_KEPT: usize = 256 << 10;

/// The queries of a backend.
#[derive(Debug)]
pub(super) struct Board {
    backend: BackendId,
    /// Between two evaluations of a query.
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
    /// The next query's number.
    next: u64,
    /// Marked queries, by when they are due.
    agenda: BTreeSet<(Duration, u64)>,
    /// The query that is being evaluated and has taken long before: there is one at most, so that others have their turn.
    heavy: Option<u64>,
    /// Bytes of answers that are kept.
    kept: usize,
    /// How many connections may still ask for something.
    listeners: usize,
}

/// Changes since somebody last looked.
#[derive(Debug, Default)]
struct News {
    touched: ChangedTables,
    asked: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    query: Arc<Query>,
    subscribers: Vec<Subscriber>,
    /// The tables of its answer; `None` if it may be any.
    tables: Option<Arc<StatementTables>>,
    /// The last answer, if it is the newest and short enough to be kept.
    kept: Option<Answer>,
    /// When it was last evaluated.
    began: Option<Duration>,
    /// Whether that took long.
    is_heavy: bool,
    turn: Turn,
    /// Tables that changed during an evaluation: the tables of the new answer are known only with it.
    meanwhile: ChangedTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing has changed.
    Rests,
    /// It is on the agenda.
    Due(Duration),
    /// It is being evaluated; whether that must be done once more.
    Runs { again: bool },
}

/// An evaluation that takes longer than this is a heavy one.
const HEAVY: Duration = Duration::from_millis(20);
/// How long a query waits that found the database busy.
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

    /// Notes what a commit may have changed. Whoever commits waits for this, so it is no more than that.
    pub(super) fn touch(&self, touched: ChangedTables) {
        self.news().touched.merge(touched);
        self.wake.notify_one();
    }

    /// Asks for the newest answer of a query on behalf of one who is behind.
    pub(super) fn ask(&self, query: u64) {
        self.news().asked.insert(query);
        self.wake.notify_one();
    }

    /// Waits until something has happened.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Whether a query is being served.
    pub(super) fn serves(&self, query: &Query) -> bool {
        self.state().by_key.contains_key(&query.key())
    }

    /// Has a subscriber listen to a query.
    pub(super) fn join(&self, query: Query, subscriber: &Subscriber, now: Duration) {
        // What a commit has changed before it was answered is known before whoever was answered gets here.
        self.take_news(now);
        let mut state = self.state();
        let key = query.key();
        let is_own = query.visitor.is_some();
        let known = state.by_key.get(&key).copied();
        let number = known.unwrap_or_else(|| state.add(key, query));
        if !subscriber.joins(number, is_own) {
            // It has ended meanwhile.
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

    /// Lets a subscriber go.
    pub(super) fn leave(&self, query: u64, listener: &Listener, number: u64) {
        let mut state = self.state();
        if let Some(entry) = state.queries.get_mut(&query) {
            entry.subscribers.retain(|one| !one.is(listener, number));
            state.drop_if_unused(query);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Marks what has changed, and gives what was asked for.
    pub(super) fn take_news(&self, now: Duration) {
        let News { touched, asked } = std::mem::take(&mut *self.news());
        if touched.is_empty() && asked.is_empty() {
            return;
        }
        let mut state = self.state();
        let mut concerned = Vec::new();
        for (number, entry) in &mut state.queries {
            if matches!(entry.turn, Turn::Runs { .. }) {
                entry.meanwhile.merge(touched.clone());
            } else if touched.affects(entry.tables.as_deref()) {
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

    /// The next query to evaluate, if one is due.
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

    /// How long it is until a query is due, if one will be.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let state = self.state();
        state.next().map(|(due, _)| due.saturating_sub(now))
    }

    /// Tells who listens to a query what its evaluation came to; returns who must join anew.
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
                again |= meanwhile.affects(tables.as_deref());
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

    /// Notes that a connection may ask for something.
    pub(super) fn attach(&self) {
        self.state().listeners += 1;
    }

    /// Notes that a connection is gone.
    pub(super) fn detach(&self) {
        self.state().listeners -= 1;
        self.wake.notify_one();
    }

    /// Whether nobody asks for anything any more.
    pub(super) fn is_unused(&self) -> bool {
        self.state().listeners == 0
    }

    /// How many queries and subscriptions there are.
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
            meanwhile: ChangedTables::default(),
        };
        self.by_key.insert(key, self.next);
        self.queries.insert(self.next, entry);
        self.next
    }

    /// The next query of the agenda that may be evaluated beside those that are, and when it is due.
    fn next(&self) -> Option<(Duration, u64)> {
        let is_heavy = |number: &u64| self.queries.get(number).is_some_and(|entry| entry.is_heavy);
        let mut agenda = self.agenda.iter();
        let next = agenda.find(|(_, number)| self.heavy.is_none() || !is_heavy(number));
        next.copied()
    }

    /// Has a query evaluated as soon as it may be.
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

    /// Keeps an answer in place of the one before, if there is room.
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
