//! The live queries of one backend: who listens to which, and when each is evaluated again.
//!
//! A commit marks the queries that read one of its tables; one task evaluates those that are marked, few at once and each so
//! many times a second at most, and offers the answer to all who listen. A query that is marked while it is evaluated is
//! evaluated once more, so the last change always arrives.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::budget::AnswerBudget;
use super::listener::Listener;
use super::query::{Answer, Outcome, Query, QueryKey};
use super::subscriber::Subscriber;
use crate::backends::calls::WatchedAnswer;
use svc_base::ids::BackendId;
use svc_database::{ChangedTables, StatementTables};

/// How much of the answers of a backend is kept for who comes later, in bytes.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// A longer answer is not kept.
const MAX_CACHED_ANSWER_BYTES: usize = 256 << 10;

/// The queries of a backend.
#[derive(Debug)]
pub(super) struct Board {
    backend: BackendId,
    /// Between two evaluations of a query.
    interval: Duration,
    state: Mutex<State>,
    pending_changes: Mutex<PendingChanges>,
    wake: Notify,
    budget: AnswerBudget,
}

#[derive(Debug, Default)]
struct State {
    queries: HashMap<u64, QueryEntry>,
    by_key: HashMap<QueryKey, u64>,
    /// The next query's number.
    next: u64,
    /// Marked queries, by when they are due.
    agenda: BTreeSet<(Duration, u64)>,
    /// The query that is being evaluated and has taken long before: there is one at most, so that others have their turn.
    running_slow: Option<u64>,
    /// Bytes of answers that are kept.
    cached: usize,
    /// How many connections may still ask for something.
    listeners: usize,
}

/// Changes since somebody last looked.
#[derive(Debug, Default)]
struct PendingChanges {
    touched: ChangedTables,
    requested: BTreeSet<u64>,
}

#[derive(Debug)]
struct QueryEntry {
    key: QueryKey,
    query: Arc<Query>,
    subscribers: Vec<Subscriber>,
    /// The tables of its answer; `None` if it may be any.
    tables: Option<Arc<StatementTables>>,
    /// The last answer, if it is the newest and short enough to be kept.
    cached: Option<Answer>,
    /// When it was last evaluated.
    began: Option<Duration>,
    /// Whether that took long.
    is_slow: bool,
    schedule: Schedule,
    /// Tables that changed during an evaluation: the tables of the new answer are known only with it.
    meanwhile: ChangedTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schedule {
    /// Nothing has changed.
    Idle,
    /// It is on the agenda.
    Due(Duration),
    /// It is being evaluated; whether that must be done once more.
    Running { again: bool },
}

/// An evaluation that takes longer than this is a heavy one.
const SLOW_EVALUATION: Duration = Duration::from_millis(20);
/// How long a query waits that found the database busy.
const BUSY_DELAY: Duration = Duration::from_millis(500);

impl Board {
    pub(super) fn new(backend: BackendId, per_second: u64, budget: AnswerBudget) -> Self {
        let per_second = u32::try_from(per_second.max(1)).unwrap_or(u32::MAX);
        Self {
            backend,
            interval: Duration::from_secs(1) / per_second,
            state: Mutex::default(),
            pending_changes: Mutex::default(),
            wake: Notify::new(),
            budget,
        }
    }

    pub(super) fn backend(&self) -> BackendId {
        self.backend
    }

    pub(super) fn budget(&self) -> &AnswerBudget {
        &self.budget
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_changes(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a commit may have changed. Whoever commits waits for this, so it is no more than that.
    pub(super) fn touch(&self, touched: ChangedTables) {
        self.pending_changes().touched.merge(touched);
        self.wake.notify_one();
    }

    /// Asks for the newest answer of a query on behalf of one who is behind.
    pub(super) fn request_latest(&self, query: u64) {
        self.pending_changes().requested.insert(query);
        self.wake.notify_one();
    }

    /// Waits until something has happened.
    pub(super) async fn wait_for_change(&self) {
        self.wake.notified().await;
    }

    /// Whether a query is being served.
    pub(super) fn has_query(&self, query: &Query) -> bool {
        self.state().by_key.contains_key(&query.key())
    }

    /// Has a subscriber listen to a query.
    pub(super) fn join(&self, query: Query, subscriber: &Subscriber, now: Duration) {
        // What a commit has changed before it was answered is known before whoever was answered gets here.
        self.apply_changes(now);
        let mut state = self.state();
        let key = query.key();
        let is_own = query.visitor.is_some();
        let known = state.by_key.get(&key).copied();
        let number = known.unwrap_or_else(|| state.add(key, query));
        if !subscriber.set_query(number, is_own) {
            // It has ended meanwhile.
            state.drop_if_unused(number);
            return;
        }
        let Some(entry) = state.queries.get_mut(&number) else {
            return;
        };
        entry.subscribers.push(subscriber.clone());
        match (&entry.cached, entry.schedule) {
            (Some(answer), Schedule::Idle) => subscriber.offer(answer),
            _ => state.mark(number, now, self.interval),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Lets a subscriber go.
    pub(super) fn leave(&self, query: u64, listener: &Listener, number: u64) {
        let mut state = self.state();
        if let Some(entry) = state.queries.get_mut(&query) {
            entry
                .subscribers
                .retain(|one| !one.is_subscription(listener, number));
            state.drop_if_unused(query);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Marks what has changed, and gives what was asked for.
    pub(super) fn apply_changes(&self, now: Duration) {
        let PendingChanges { touched, requested } = std::mem::take(&mut *self.pending_changes());
        if touched.is_empty() && requested.is_empty() {
            return;
        }
        let mut state = self.state();
        let mut concerned = Vec::new();
        for (number, entry) in &mut state.queries {
            if matches!(entry.schedule, Schedule::Running { .. }) {
                entry.meanwhile.merge(touched.clone());
            } else if touched.affects(entry.tables.as_deref()) {
                concerned.push(*number);
            }
        }
        for number in concerned {
            state.mark(number, now, self.interval);
        }
        for number in requested {
            let Some(entry) = state.queries.get(&number) else {
                continue;
            };
            match (&entry.cached, entry.schedule) {
                (Some(answer), Schedule::Idle) => {
                    entry.subscribers.iter().for_each(|one| one.offer(answer));
                }
                _ => state.mark(number, now, self.interval),
            }
        }
    }

    /// The next query to evaluate, if one is due.
    pub(super) fn start_next(&self, now: Duration) -> Option<(u64, Arc<Query>)> {
        let mut state = self.state();
        let (due, number) = state.next().filter(|(due, _)| *due <= now)?;
        state.agenda.remove(&(due, number));
        let entry = state.queries.get_mut(&number)?;
        entry.schedule = Schedule::Running { again: false };
        entry.began = Some(now);
        let (query, is_slow) = (Arc::clone(&entry.query), entry.is_slow);
        if is_slow {
            state.running_slow = Some(number);
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
        state
            .running_slow
            .take_if(|running_slow| *running_slow == number);
        let Some(entry) = state.queries.get_mut(&number) else {
            return Vec::new();
        };
        entry.is_slow = entry
            .began
            .is_some_and(|began| now.saturating_sub(began) > SLOW_EVALUATION);
        let mut again = entry.schedule == Schedule::Running { again: true };
        let meanwhile = std::mem::take(&mut entry.meanwhile);
        entry.schedule = Schedule::Idle;
        let mut leaving = Vec::new();
        match outcome {
            Outcome::Answered(seen) => {
                let WatchedAnswer {
                    json,
                    digest,
                    tables,
                } = seen;
                again |= meanwhile.affects(tables.as_deref());
                entry.tables = tables;
                let json = self.budget.count(json);
                let answer = Answer { json, digest };
                entry.subscribers.iter().for_each(|one| one.offer(&answer));
                state.cache_answer(number, answer);
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
                state.schedule_at(number, now + BUSY_DELAY);
            }
            Outcome::IdentityChanged => leaving = std::mem::take(&mut entry.subscribers),
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
    fn add(&mut self, key: QueryKey, query: Query) -> u64 {
        self.next += 1;
        let entry = QueryEntry {
            key,
            query: Arc::new(query),
            subscribers: Vec::new(),
            tables: None,
            cached: None,
            began: None,
            is_slow: false,
            schedule: Schedule::Idle,
            meanwhile: ChangedTables::default(),
        };
        self.by_key.insert(key, self.next);
        self.queries.insert(self.next, entry);
        self.next
    }

    /// The next query of the agenda that may be evaluated beside those that are, and when it is due.
    fn next(&self) -> Option<(Duration, u64)> {
        let is_slow = |number: &u64| self.queries.get(number).is_some_and(|entry| entry.is_slow);
        let mut agenda = self.agenda.iter();
        let next = agenda.find(|(_, number)| self.running_slow.is_none() || !is_slow(number));
        next.copied()
    }

    /// Has a query evaluated as soon as it may be.
    fn mark(&mut self, number: u64, now: Duration, interval: Duration) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        match &mut entry.schedule {
            Schedule::Due(_) => {}
            Schedule::Running { again } => *again = true,
            Schedule::Idle => {
                let due = entry.began.map_or(now, |began| (began + interval).max(now));
                self.schedule_at(number, due);
            }
        }
    }

    fn schedule_at(&mut self, number: u64, due: Duration) {
        if let Some(entry) = self.queries.get_mut(&number) {
            entry.schedule = Schedule::Due(due);
            self.agenda.insert((due, number));
        }
    }

    /// Keeps an answer in place of the one before, if there is room.
    fn cache_answer(&mut self, number: u64, answer: Answer) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        let bytes = |cached: &Option<Answer>| cached.as_ref().map_or(0, |cached| cached.json.len());
        self.cached -= bytes(&entry.cached);
        let fits = answer.json.len() <= MAX_CACHED_ANSWER_BYTES
            && self.cached + answer.json.len() <= MAX_CACHED_BYTES;
        entry.cached = fits.then_some(answer);
        self.cached += bytes(&entry.cached);
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
            self.cached -= entry.cached.map_or(0, |cached| cached.json.len());
            if let Schedule::Due(due) = entry.schedule {
                self.agenda.remove(&(due, number));
            }
        }
    }
}
