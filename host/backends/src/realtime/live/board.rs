//! The live queries of one backend: their subscribers, and when each query is evaluated again.
//!
//! A commit marks the queries that read one of its tables. One task evaluates the marked queries, few at once and each at most
//! so many times a second, and offers the answer to all subscribers. A query that is marked during its evaluation is
//! evaluated once more, so the last change always arrives.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::budget::AnswerBudget;
use super::listener::LiveConnection;
use super::query::{EvaluationOutcome, LiveQuery, LiveQueryAnswer, LiveQueryKey};
use super::subscriber::QuerySubscriber;
use crate::backends::BackendError;
use svc_base::ids::BackendId;
use svc_database::{ChangedTables, StatementTables};

/// Maximum size of all cached answers of a backend, in bytes.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// Maximum size of a cached answer, in bytes.
const MAX_CACHED_ANSWER_BYTES: usize = 256 << 10;

/// Live queries of a backend.
#[derive(Debug)]
pub(super) struct LiveQueryBoard {
    backend: BackendId,
    /// Least time between two evaluations of a query.
    interval: Duration,
    state: Mutex<LiveQueryBoardState>,
    pending_changes: Mutex<PendingChanges>,
    wake: Notify,
    budget: AnswerBudget,
}

#[derive(Debug, Default)]
struct LiveQueryBoardState {
    queries: HashMap<u64, BoardQueryEntry>,
    by_key: HashMap<LiveQueryKey, u64>,
    /// Number of the latest query.
    next: u64,
    /// Marked queries, by their due time.
    agenda: BTreeSet<(Duration, u64)>,
    /// The slow query that is being evaluated. Only one runs at a time, so that the other queries are not delayed.
    running_slow: Option<u64>,
    /// Size of all cached answers, in bytes.
    cached: usize,
    /// Number of connections that may subscribe.
    listeners: usize,
}

/// Changes that are not applied to the queries yet.
#[derive(Debug, Default)]
struct PendingChanges {
    touched: ChangedTables,
    requested: BTreeSet<u64>,
}

#[derive(Debug)]
struct BoardQueryEntry {
    key: LiveQueryKey,
    query: Arc<LiveQuery>,
    subscribers: Vec<QuerySubscriber>,
    /// Tables of the answer; `None` means any table.
    tables: Option<Arc<StatementTables>>,
    /// The latest answer, if it is current and small enough to be cached.
    cached: Option<LiveQueryAnswer>,
    /// Start of the latest evaluation.
    began: Option<Duration>,
    /// Whether the latest evaluation was slow.
    is_slow: bool,
    schedule: EvaluationSchedule,
    /// Tables that changed during an evaluation, kept until the tables of the new answer are known.
    meanwhile: ChangedTables,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvaluationSchedule {
    /// Nothing has changed.
    Idle,
    /// The query is on the agenda.
    Due(Duration),
    /// The query is being evaluated; `again` means that it must be evaluated once more.
    Running { again: bool },
}

/// An evaluation that takes longer is slow.
const SLOW_EVALUATION: Duration = Duration::from_millis(20);
/// Delay of a query after the database was busy.
const BUSY_DELAY: Duration = Duration::from_millis(500);

impl LiveQueryBoard {
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

    fn state(&self) -> MutexGuard<'_, LiveQueryBoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending_changes(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending_changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the tables that a commit may have changed. The committing thread waits for this, so it does nothing more.
    pub(super) fn touch(&self, touched: ChangedTables) {
        self.pending_changes().touched.merge(touched);
        self.wake.notify_one();
    }

    /// Requests the latest answer of a query, for a subscriber that is behind.
    pub(super) fn request_latest(&self, query: u64) {
        self.pending_changes().requested.insert(query);
        self.wake.notify_one();
    }

    /// Waits for a change.
    pub(super) async fn wait_for_change(&self) {
        self.wake.notified().await;
    }

    /// Whether a query has subscribers.
    pub(super) fn has_query(&self, query: &LiveQuery) -> bool {
        self.state().by_key.contains_key(&query.key())
    }

    /// Adds a subscriber to a query.
    pub(super) fn join(&self, query: LiveQuery, subscriber: &QuerySubscriber, now: Duration) {
        // Commits that were acknowledged before this call must be seen.
        self.apply_changes(now);
        let mut state = self.state();
        let key = query.key();
        let is_own = query.visitor.is_some();
        let known = state.by_key.get(&key).copied();
        let number = known.unwrap_or_else(|| state.add(key, query));
        if !subscriber.set_query(number, is_own) {
            // The subscription has ended meanwhile.
            state.drop_if_unused(number);
            return;
        }
        if is_own && subscriber.listener.visitor().is_none() {
            // The visitor has signed out since the query was made.
            state.drop_if_unused(number);
            drop(state);
            subscriber.fail(Arc::new(BackendError::IdentityRequired.into()));
            return;
        }
        let Some(entry) = state.queries.get_mut(&number) else {
            return;
        };
        entry.subscribers.push(subscriber.clone());
        match (&entry.cached, entry.schedule) {
            (Some(answer), EvaluationSchedule::Idle) => subscriber.offer_answer(answer),
            _ => state.schedule_evaluation(number, now, self.interval),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Removes a subscriber from a query.
    pub(super) fn leave(&self, query: u64, listener: &LiveConnection, number: u64) {
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

    /// Marks the queries that a change affects, and sends the requested answers.
    pub(super) fn apply_changes(&self, now: Duration) {
        let PendingChanges { touched, requested } = std::mem::take(&mut *self.pending_changes());
        if touched.is_empty() && requested.is_empty() {
            return;
        }
        let mut state = self.state();
        let mut concerned = Vec::new();
        for (number, entry) in &mut state.queries {
            if matches!(entry.schedule, EvaluationSchedule::Running { .. }) {
                entry.meanwhile.merge(touched.clone());
            } else if touched.affects(entry.tables.as_deref()) {
                concerned.push(*number);
            }
        }
        for number in concerned {
            state.schedule_evaluation(number, now, self.interval);
        }
        for number in requested {
            let Some(entry) = state.queries.get(&number) else {
                continue;
            };
            match (&entry.cached, entry.schedule) {
                (Some(answer), EvaluationSchedule::Idle) => {
                    entry
                        .subscribers
                        .iter()
                        .for_each(|one| one.offer_answer(answer));
                }
                _ => state.schedule_evaluation(number, now, self.interval),
            }
        }
    }

    /// Starts the next query that is due, if any.
    pub(super) fn start_next(&self, now: Duration) -> Option<(u64, Arc<LiveQuery>)> {
        let mut state = self.state();
        let (due, number) = state.next().filter(|(due, _)| *due <= now)?;
        state.agenda.remove(&(due, number));
        let entry = state.queries.get_mut(&number)?;
        entry.schedule = EvaluationSchedule::Running { again: false };
        entry.began = Some(now);
        let (query, is_slow) = (Arc::clone(&entry.query), entry.is_slow);
        if is_slow {
            state.running_slow = Some(number);
        }
        Some((number, query))
    }

    /// Returns the time until a query is due, if any is on the agenda.
    pub(super) fn next_due(&self, now: Duration) -> Option<Duration> {
        let state = self.state();
        state.next().map(|(due, _)| due.saturating_sub(now))
    }

    /// Delivers the outcome of an evaluation to the subscribers; returns the subscribers that must join again.
    pub(super) fn finish(
        &self,
        number: u64,
        outcome: EvaluationOutcome,
        now: Duration,
    ) -> Vec<QuerySubscriber> {
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
        let mut again = entry.schedule == EvaluationSchedule::Running { again: true };
        let meanwhile = std::mem::take(&mut entry.meanwhile);
        entry.schedule = EvaluationSchedule::Idle;
        let mut leaving = Vec::new();
        match outcome {
            EvaluationOutcome::Answered(seen) => {
                again |= meanwhile.affects(seen.tables.as_deref());
                entry.tables = seen.tables;
                let answer = LiveQueryAnswer {
                    json: self.budget.count(seen.json),
                    digest: seen.digest,
                    rows: seen.rows,
                };
                entry
                    .subscribers
                    .iter()
                    .for_each(|one| one.offer_answer(&answer));
                state.cache_answer(number, answer);
            }
            EvaluationOutcome::Failed(error) => {
                for one in std::mem::take(&mut entry.subscribers) {
                    one.fail(Arc::clone(&error));
                }
            }
            EvaluationOutcome::Busy(error) => {
                entry.subscribers.retain(|one| {
                    let is_new = one.is_new();
                    if is_new {
                        one.fail(Arc::clone(&error));
                    }
                    !is_new
                });
                state.schedule_at(number, now + BUSY_DELAY);
            }
            EvaluationOutcome::IdentityChanged => leaving = std::mem::take(&mut entry.subscribers),
        }
        state.drop_if_unused(number);
        if again {
            state.schedule_evaluation(number, now, self.interval);
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

impl LiveQueryBoardState {
    fn add(&mut self, key: LiveQueryKey, query: LiveQuery) -> u64 {
        self.next += 1;
        let entry = BoardQueryEntry {
            key,
            query: Arc::new(query),
            subscribers: Vec::new(),
            tables: None,
            cached: None,
            began: None,
            is_slow: false,
            schedule: EvaluationSchedule::Idle,
            meanwhile: ChangedTables::default(),
        };
        self.by_key.insert(key, self.next);
        self.queries.insert(self.next, entry);
        self.next
    }

    /// Returns the next query of the agenda that may run beside the running ones, with its due time.
    fn next(&self) -> Option<(Duration, u64)> {
        let is_slow = |number: &u64| self.queries.get(number).is_some_and(|entry| entry.is_slow);
        let mut agenda = self.agenda.iter();
        let next = agenda.find(|(_, number)| self.running_slow.is_none() || !is_slow(number));
        next.copied()
    }

    /// Schedules the evaluation of a query as early as the interval allows.
    fn schedule_evaluation(&mut self, number: u64, now: Duration, interval: Duration) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        match &mut entry.schedule {
            EvaluationSchedule::Due(_) => {}
            EvaluationSchedule::Running { again } => *again = true,
            EvaluationSchedule::Idle => {
                let due = entry.began.map_or(now, |began| (began + interval).max(now));
                self.schedule_at(number, due);
            }
        }
    }

    fn schedule_at(&mut self, number: u64, due: Duration) {
        if let Some(entry) = self.queries.get_mut(&number) {
            entry.schedule = EvaluationSchedule::Due(due);
            self.agenda.insert((due, number));
        }
    }

    /// Replaces the cached answer of a query, if there is room.
    fn cache_answer(&mut self, number: u64, answer: LiveQueryAnswer) {
        let Some(entry) = self.queries.get_mut(&number) else {
            return;
        };
        let bytes = |cached: &Option<LiveQueryAnswer>| {
            cached.as_ref().map_or(0, |cached| cached.json.len())
        };
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
            if let EvaluationSchedule::Due(due) = entry.schedule {
                self.agenda.remove(&(due, number));
            }
        }
    }
}
