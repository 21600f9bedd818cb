//! The threads that tenants' statements run on: short work in turn, long work in fair shares.
//!
//! In both lanes workspaces take turns, piece by piece, and within each its databases; none ever holds more than its share of
//! the threads. So a tenant who floods or loops delays only himself, however many databases he has, and a flood of calls on one page
//! leaves a share to the others of its workspace. Long work has few threads, of low priority.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::fair_queue::{FairQueue, Job, JobOwner, ThreadShare};
use svc_base::sync::lock;
use svc_base::threads::{Threads, lower_priority};

/// Threads for short work; most of their time they wait for the disk.
const SHORT_THREADS: usize = 8;
/// How many of them a workspace may hold, and a database of it.
const SHORT_SHARE: ThreadShare = ThreadShare {
    workspace: 4,
    database: 2,
};
/// The fewest threads for long work: so many that a workspace's share is more than one of its databases may hold.
const LONG_THREADS: usize = 4;

/// The lanes of an installation. The last handle to go finishes what is queued and joins the threads.
pub(super) struct Lanes {
    short: Arc<LaneQueue>,
    long: Arc<LaneQueue>,
    threads: Threads,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").finish_non_exhaustive()
    }
}

/// Queue from which threads take their work.
struct LaneQueue {
    state: Mutex<LaneState>,
    changed: Condvar,
}

struct LaneState {
    work: FairQueue,
    /// How many threads wait for work.
    idle: usize,
    closed: bool,
}

impl LaneQueue {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(LaneState {
                work: FairQueue::default(),
                idle: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        lock(&self.state)
    }

    /// Works until the queue is closed and empty; nobody holds more threads than its share.
    fn run_worker(&self, share: ThreadShare) {
        let mut done = None;
        while let Some((owner, job)) = self.next_job(share, done) {
            run_job(job);
            done = Some(owner);
        }
    }

    /// The next piece of work, once there is some, for a thread that has `done` a piece of somebody's.
    fn next_job(&self, share: ThreadShare, done: Option<JobOwner>) -> Option<(JobOwner, Job)> {
        let mut state = self.lock();
        if let Some(owner) = done {
            state.work.finish(owner);
        }
        loop {
            if let Some(job) = state.work.take(share) {
                // A thread that takes work sees to it that what is left is taken, too: so a thread that goes on by itself,
                // which is most often all that is to be done, wakes nobody for nothing.
                if state.idle > 0 && state.work.has_work(share) {
                    self.changed.notify_one();
                }
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn push(&self, owner: JobOwner, job: Job, first: bool) -> bool {
        let mut state = self.lock();
        let added = state.work.push(owner, job, first);
        if state.idle > 0 {
            self.changed.notify_one();
        }
        added
    }

    /// Adds work at the end of a piece of work of this queue, whose thread looks for more right away.
    fn push_without_wakeup(&self, owner: JobOwner, job: Job) {
        self.lock().work.push(owner, job, true);
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

impl Lanes {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has none to give.
    pub(super) fn start() -> std::io::Result<Self> {
        let mut lanes = Self {
            short: LaneQueue::new(),
            long: LaneQueue::new(),
            threads: Threads::default(),
        };
        for number in 0..SHORT_THREADS {
            let (name, queue) = (format!("sql-short-{number}"), Arc::clone(&lanes.short));
            let work = move || queue.run_worker(SHORT_SHARE);
            lanes.threads.start(name, None, work)?;
        }
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let long_threads = processors.max(LONG_THREADS);
        let share = ThreadShare::for_long_work(long_threads);
        for number in 0..long_threads {
            let (name, queue) = (format!("sql-long-{number}"), Arc::clone(&lanes.long));
            let work = move || {
                lower_priority();
                queue.run_worker(share);
            };
            lanes.threads.start(name, None, work)?;
        }
        Ok(lanes)
    }

    /// Queues short work of a database; returns false when too much of it waits already.
    pub(super) fn queue_short(&self, owner: JobOwner, job: Job) -> bool {
        self.short.push(owner, job, false)
    }

    /// Queues what a database must have done soon, of which there is one piece at a time: before its other short work.
    pub(super) fn queue_urgent(&self, owner: JobOwner, job: Job) {
        self.short.push(owner, job, true);
    }

    /// Queues work at the end of a piece of short work.
    pub(super) fn queue_urgent_after_short(&self, owner: JobOwner, job: Job) {
        self.short.push_without_wakeup(owner, job);
    }

    /// Queues long work of a database; returns false when too much of it waits already.
    pub(super) fn queue_long(&self, owner: JobOwner, job: Job) -> bool {
        self.long.push(owner, job, false)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.short.close();
        self.long.close();
    }
}

/// Runs a job; one that panics is answered by the drop of its channel, and its thread goes on.
fn run_job(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("work on a tenant's database panicked");
    }
}
