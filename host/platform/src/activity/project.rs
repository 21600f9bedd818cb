//! Counters of a project in memory: of its pages and its actions, for the hour that is now.
//!
//! Whoever serves a page or an action holds its counters, so that a count looks nothing up and takes no lock. The first count of
//! another hour moves the sums of the hour before away; one that runs beside it may be counted for the next hour, and never twice.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::counts::{ActionCounts, HourCounts, TotalCounters};
use super::hour_of;
use super::log::ProjectLog;
use super::times::TimeCounters;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Most actions of a project that are counted apart; further ones are counted in the project's sums alone.
const MAX_ACTIONS: usize = 200;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters and log of a project.
#[derive(Debug)]
pub struct ProjectActivity {
    pub(super) id: ProjectId,
    /// Number of the hour that the counters are of.
    hour: AtomicI64,
    pub(super) totals: TotalCounters,
    pages: Mutex<HashMap<Arc<str>, Arc<PageActivity>>>,
    actions: Mutex<HashMap<Arc<str>, Arc<ActionActivity>>>,
    /// Sums that are not written down, by the hour.
    waiting: Mutex<BTreeMap<i64, HourCounts>>,
    pub(super) log: ProjectLog,
    /// Whether the project has ended, so that nothing of it is written down.
    ended: AtomicBool,
}

/// Counters of a page.
pub struct PageActivity {
    pub(super) project: Arc<ProjectActivity>,
    pub(super) slug: Arc<str>,
    views: AtomicU64,
}

/// Counters of an action.
#[derive(Debug)]
pub struct ActionActivity {
    name: Arc<str>,
    calls: AtomicU64,
    errors: AtomicU64,
    rows: AtomicU64,
    times: TimeCounters,
}

impl fmt::Debug for PageActivity {
    /// Writes the slug alone: the project has its pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PageActivity");
        shown.field("slug", &self.slug).finish_non_exhaustive()
    }
}

impl PageActivity {
    /// Returns the project.
    pub fn project(&self) -> &Arc<ProjectActivity> {
        &self.project
    }

    /// Counts a view.
    pub fn count_view(&self, now: Timestamp) {
        self.project.enter_hour(now);
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message in a room.
    pub fn count_message(&self, now: Timestamp) {
        self.project.enter_hour(now);
        self.project.totals.messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a sign-in.
    pub fn count_sign_in(&self, now: Timestamp) {
        self.project.enter_hour(now);
        self.project.totals.sign_ins.fetch_add(1, Ordering::Relaxed);
    }
}

impl ActionActivity {
    fn new(name: &Arc<str>) -> Self {
        Self {
            name: Arc::clone(name),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            times: TimeCounters::default(),
        }
    }

    /// Returns the name of the action.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Takes the sums. Without a whole call they stay, so that what belongs to one call is never lost between two hours.
    fn take(&self) -> Option<ActionCounts> {
        if self.calls.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut counts = ActionCounts {
            calls: self.calls.swap(0, Ordering::AcqRel),
            errors: self.errors.swap(0, Ordering::Relaxed),
            rows: self.rows.swap(0, Ordering::Relaxed),
            ..ActionCounts::default()
        };
        self.times.drain_into(&mut counts.times);
        Some(counts)
    }
}

impl ProjectActivity {
    pub(super) fn new(id: ProjectId) -> Self {
        Self {
            id,
            hour: AtomicI64::new(0),
            totals: TotalCounters::default(),
            pages: Mutex::default(),
            actions: Mutex::default(),
            waiting: Mutex::default(),
            log: ProjectLog::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Makes the counters those of the hour that is now.
    fn enter_hour(&self, now: Timestamp) {
        let hour = hour_of(now);
        if self.hour.load(Ordering::Relaxed) != hour {
            let mut waiting = lock(&self.waiting);
            let before = self.hour.load(Ordering::Relaxed);
            if before != hour {
                self.move_sums(before, &mut waiting);
                self.hour.store(hour, Ordering::Relaxed);
            }
        }
    }

    /// Counts calls of actions: `action` is `None` for one that is not counted apart.
    pub fn count_call(
        &self,
        action: Option<&ActionActivity>,
        now: Timestamp,
        took: Duration,
        outcome: Result<u64, ()>,
    ) {
        self.enter_hour(now);
        self.totals.calls.fetch_add(1, Ordering::Relaxed);
        let Some(action) = action else { return };
        action.times.count(took);
        match outcome {
            Ok(rows) => action.rows.fetch_add(rows, Ordering::Relaxed),
            Err(()) => action.errors.fetch_add(1, Ordering::Relaxed),
        };
        // Last, because whoever takes the sums leaves those of an action without calls.
        action.calls.fetch_add(1, Ordering::Release);
    }

    /// Counts a checkout that was paid.
    pub fn count_payment(&self, now: Timestamp) {
        self.enter_hour(now);
        self.totals.payments.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was refused or failed.
    pub(super) fn count_failure(&self, now: Timestamp, status: u16) {
        self.enter_hour(now);
        let counter = match status {
            429 => &self.totals.limited,
            _ => &self.totals.errors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters of a page.
    pub(super) fn page(self: &Arc<Self>, slug: &str) -> Arc<PageActivity> {
        let mut pages = lock(&self.pages);
        if let Some(page) = pages.get(slug) {
            return Arc::clone(page);
        }
        let slug: Arc<str> = slug.into();
        let page = Arc::new(PageActivity {
            project: Arc::clone(self),
            slug: Arc::clone(&slug),
            views: AtomicU64::new(0),
        });
        pages.insert(slug, Arc::clone(&page));
        page
    }

    /// Returns the counters of an action that exists, to be held with it; `None` if the project has too many.
    pub fn action(&self, name: &str) -> Option<Arc<ActionActivity>> {
        let mut actions = lock(&self.actions);
        if let Some(action) = actions.get(name) {
            return Some(Arc::clone(action));
        }
        if actions.len() >= MAX_ACTIONS {
            return None;
        }
        let name: Arc<str> = name.into();
        let action = Arc::new(ActionActivity::new(&name));
        actions.insert(name, Arc::clone(&action));
        Some(action)
    }

    /// Moves the sums of `hour` to those that wait to be written down.
    fn move_sums(&self, hour: i64, waiting: &mut BTreeMap<i64, HourCounts>) {
        let mut counts = HourCounts {
            totals: self.totals.take(),
            ..HourCounts::default()
        };
        for (slug, page) in &*lock(&self.pages) {
            let views = page.views.swap(0, Ordering::Relaxed);
            if views > 0 {
                counts.pages.insert(slug.to_string(), views);
            }
        }
        for (name, action) in &*lock(&self.actions) {
            if let Some(taken) = action.take() {
                counts.actions.insert(name.to_string(), taken);
            }
        }
        if !counts.is_empty() {
            waiting.entry(hour).or_default().merge(&counts);
        }
    }

    /// Takes all sums that are not written down.
    pub(super) fn take(&self) -> BTreeMap<i64, HourCounts> {
        let mut waiting = lock(&self.waiting);
        self.move_sums(self.hour.load(Ordering::Relaxed), &mut waiting);
        match self.has_ended() {
            true => BTreeMap::new(),
            false => std::mem::take(&mut waiting),
        }
    }

    /// Returns the sums that are not written down.
    pub(super) fn peek(&self) -> BTreeMap<i64, HourCounts> {
        let mut waiting = lock(&self.waiting);
        self.move_sums(self.hour.load(Ordering::Relaxed), &mut waiting);
        waiting.clone()
    }

    /// Ends the project: nothing of it is written down any more.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        lock(&self.pages).clear();
        lock(&self.actions).clear();
        self.log.end();
    }

    /// Whether the project has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Forgets counters that nobody holds, and returns whether nothing is left of the project. Nobody may get its pages meanwhile.
    pub(super) fn tidy(&self) -> bool {
        let waiting = lock(&self.waiting);
        let mut pages = lock(&self.pages);
        pages.retain(|_, page| {
            Arc::strong_count(page) > 1 || page.views.load(Ordering::Relaxed) > 0
        });
        let mut actions = lock(&self.actions);
        actions.retain(|_, action| {
            Arc::strong_count(action) > 1 || action.calls.load(Ordering::Relaxed) > 0
        });
        waiting.is_empty() && pages.is_empty() && actions.is_empty() && self.log.is_unused()
    }
}
