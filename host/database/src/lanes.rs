//! The threads on which tenants' statements run: a lane for short work and a lane for long work.
//!
//! In both lanes workspaces take turns, and within each workspace its databases. None ever holds more than its share of the
//! threads. So a tenant who floods or loops delays only himself, however many databases he has, and a flood of calls on one page
//! leaves threads to the other databases of its workspace. Long work has few threads, of low priority.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::fair_queue::{JobOwner, LaneJob, ThreadLimits, WorkspaceFairQueue};
use svc_base::sync::lock;
use svc_base::threads::{WorkerThreads, lower_priority};

/// Threads for short work, which mostly wait for the disk.
const SHORT_THREADS: usize = 8;
/// Threads for short work that one workspace, and one database of it, may hold.
const SHORT_SHARE: ThreadLimits = ThreadLimits {
    workspace: 4,
    database: 2,
};
/// The fewest threads for long work: enough that a workspace may hold more than one of its databases may.
const LONG_THREADS: usize = 4;

/// The lanes of an installation. Dropping the last handle finishes the queued jobs and joins the threads.
pub(super) struct Lanes {
    short: Arc<LaneQueue>,
    long: Arc<LaneQueue>,
    threads: WorkerThreads,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").finish_non_exhaustive()
    }
}

/// Queue from which the threads of a lane take jobs.
struct LaneQueue {
    state: Mutex<LaneState>,
    changed: Condvar,
}

struct LaneState {
    work: WorkspaceFairQueue,
    /// Number of threads that wait for work.
    idle: usize,
    closed: bool,
}

impl LaneQueue {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(LaneState {
                work: WorkspaceFairQueue::default(),
                idle: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        lock(&self.state)
    }

    /// Runs jobs until the queue is closed and empty.
    fn run_worker(&self, share: ThreadLimits) {
        let mut done = None;
        while let Some((owner, job)) = self.next_job(share, done) {
            run_job(job);
            done = Some(owner);
        }
    }

    /// Waits for the next job. `done` is the owner of the job that the thread has just finished.
    fn next_job(&self, share: ThreadLimits, done: Option<JobOwner>) -> Option<(JobOwner, LaneJob)> {
        let mut state = self.lock();
        if let Some(owner) = done {
            state.work.finish(owner);
        }
        loop {
            if let Some(job) = state.work.take(share) {
                // Each thread that takes a job wakes another one if more jobs can run. So a thread that can do all work alone
                // wakes none.
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

    fn push(&self, owner: JobOwner, job: LaneJob, first: bool) -> bool {
        let mut state = self.lock();
        let added = state.work.push(owner, job, first);
        if state.idle > 0 {
            self.changed.notify_one();
        }
        added
    }

    /// Adds a job at the end of another job of this queue. No thread needs waking, because this one looks for more work at once.
    fn push_urgent_at_job_end(&self, owner: JobOwner, job: LaneJob) {
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
    /// When the system refuses a thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let mut lanes = Self {
            short: LaneQueue::new(),
            long: LaneQueue::new(),
            threads: WorkerThreads::default(),
        };
        for number in 0..SHORT_THREADS {
            let (name, queue) = (format!("sql-short-{number}"), Arc::clone(&lanes.short));
            let work = move || queue.run_worker(SHORT_SHARE);
            lanes.threads.start(name, None, work)?;
        }
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let long_threads = processors.max(LONG_THREADS);
        let share = ThreadLimits::for_long_work(long_threads);
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

    /// Queues short work of a database; returns false if too much of it waits already.
    pub(super) fn queue_short(&self, owner: JobOwner, job: LaneJob) -> bool {
        self.short.push(owner, job, false)
    }

    /// Queues short work of a database, before its other short work. A database queues one such job at a time.
    pub(super) fn queue_urgent(&self, owner: JobOwner, job: LaneJob) {
        self.short.push(owner, job, true);
    }

    /// Queues urgent work at the end of a short job.
    pub(super) fn queue_urgent_after_short(&self, owner: JobOwner, job: LaneJob) {
        self.short.push_urgent_at_job_end(owner, job);
    }

    /// Queues long work of a database; returns false if too much of it waits already.
    pub(super) fn queue_long(&self, owner: JobOwner, job: LaneJob) -> bool {
        self.long.push(owner, job, false)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.short.close();
        self.long.close();
    }
}

/// Runs a job. If it panics, the drop of its channel answers its caller, and the thread goes on.
fn run_job(job: LaneJob) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("work on a tenant's database panicked");
    }
}
