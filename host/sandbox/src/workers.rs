//! A fixed number of threads for work that occupies one: guests, compression, password hashes.
//!
//! They run at a low priority, so that a flood of such work never starves page views, and a job that cannot
//! start soon is refused rather than kept: its caller has gone or would wait in vain.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

use super::metrics::Metrics;
use svc_base::threads::{Threads, lower_priority};
use svc_base::turns::{Turn, answer_of};

/// A guest's stack lies on the thread that calls it, below the host's own frames.
const STACK_BYTES: usize = 4 << 20;

/// Settings of a pool of threads.
#[derive(Clone, Copy, Debug)]
pub struct WorkersConfig {
    /// How many threads; at least one is started.
    pub threads: usize,
    /// How many jobs may wait for a thread; one more is refused at once.
    pub queue: usize,
    /// How long a job waits for a thread before it is refused.
    pub wait: Duration,
}

impl WorkersConfig {
    /// A pool of `threads` threads with the house's waiting room: 128 jobs, 5 s.
    #[must_use]
    pub const fn with_threads(threads: usize) -> Self {
        Self {
            threads,
            queue: 128,
            wait: Duration::from_secs(5),
        }
    }
}

/// No thread was free in time; the job has not run and never will.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no worker thread was free in time")]
pub struct Busy;

/// A pool of threads. Dropping it refuses what waits, finishes what runs, and joins the threads.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    threads: Threads,
    wait: Duration,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The operating system refuses a thread.
    pub fn start(config: WorkersConfig, metrics: Metrics) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            arrived: Condvar::new(),
            capacity: config.queue,
            metrics,
        });
        let mut workers = Self {
            shared,
            threads: Threads::default(),
            wait: config.wait,
        };
        for number in 0..config.threads.max(1) {
            let (name, shared) = (format!("svc-work-{number}"), workers.shared.clone());
            let started = workers
                .threads
                .start(name, Some(STACK_BYTES), move || shared.work());
            started.context("cannot start a worker thread")?;
        }
        Ok(workers)
    }

    /// Runs `job` on one of the threads and answers what it returns.
    ///
    /// A caller that stops waiting takes its job with it if it has not started; a job that has started runs to its end.
    /// A panic in the job is the caller's, as if it had called the job itself; the thread survives it.
    ///
    /// # Errors
    ///
    /// [`Busy`] when the queue is full, when no thread was free in time, or when the pool is being dropped. The job
    /// does not run then.
    pub async fn run<T, F>(&self, job: F) -> Result<T, Busy>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
        let ticket = self.shared.enqueue(Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(job));
            // A caller that has gone misses nothing.
            let _ = sender.send(outcome);
        }))?;
        match answer_of(receiver, &ticket.turn, self.wait).await {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(Busy),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.shared.lock();
            state.closed = true;
            std::mem::take(&mut state.jobs)
        };
        self.shared.arrived.notify_all();
        drop(waiting);
    }
}

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    capacity: usize,
    metrics: Metrics,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

struct Job {
    turn: Arc<Turn>,
    run: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("waiting", &self.lock().jobs.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and the queue is whole between any two of its operations.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, run: Box<dyn FnOnce() + Send>) -> Result<Ticket<'_>, Busy> {
        let mut state = self.lock();
        if state.closed || state.jobs.len() >= self.capacity {
            drop(state);
            self.metrics.refused.inc();
            return Err(Busy);
        }
        let turn = Turn::new();
        state.jobs.push_back(Job {
            turn: Arc::clone(&turn),
            run,
        });
        drop(state);
        self.arrived.notify_one();
        Ok(Ticket { shared: self, turn })
    }

    fn work(&self) {
        lower_priority();
        while let Some(job) = self.next() {
            if job.turn.begin() {
                self.metrics.queue_wait.observe(job.turn.queued_seconds());
                (job.run)();
            }
        }
    }

    /// The next job, or `None` when the pool is being dropped.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state = self
                .arrived
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A caller's hold on its job: dropping it takes the job out of the queue, if it has not begun.
struct Ticket<'a> {
    shared: &'a Shared,
    turn: Arc<Turn>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.turn.give_up();
        if self.turn.is_given_up() {
            let mut state = self.shared.lock();
            let mine = |job: &Job| Arc::ptr_eq(&job.turn, &self.turn);
            let place = state.jobs.iter().position(mine);
            let job = place.and_then(|place| state.jobs.remove(place));
            drop(state);
            // What a job holds may be large, or lock something: it is dropped after the lock.
            drop(job);
            self.shared.metrics.refused.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;
    use std::thread;
    use svc_base::threads::NICENESS;

    fn pool(threads: usize, queue: usize, wait: Duration) -> Workers {
        let config = WorkersConfig {
            threads,
            queue,
            wait,
        };
        Workers::start(config, Metrics::default()).unwrap()
    }

    /// Occupies the only thread until the sender is used or dropped.
    async fn occupy(workers: &Arc<Workers>) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let (started, start) = oneshot::channel();
        let workers = workers.clone();
        tokio::spawn(async move {
            let job = move || {
                let _ = started.send(());
                let _ = released.recv();
            };
            let _ = workers.run(job).await;
        });
        start.await.unwrap();
        release
    }

    #[tokio::test]
    async fn a_job_answers_what_it_returns() {
        let workers = pool(2, 4, Duration::from_secs(5));
        assert_eq!(workers.run(|| 6 * 7).await, Ok(42));
        let name = workers.run(|| thread::current().name().map(str::to_owned));
        assert!(name.await.unwrap().unwrap().starts_with("svc-work-"));
    }

    #[tokio::test]
    async fn the_threads_are_nicer_than_the_rest() {
        let workers = pool(1, 4, Duration::from_secs(5));
        let ours = rustix::process::getpriority_process(None).unwrap();
        let theirs = workers.run(|| rustix::process::getpriority_process(None).unwrap());
        assert_eq!(theirs.await, Ok(NICENESS.max(ours)));
    }

    #[tokio::test]
    async fn a_job_that_cannot_start_in_time_is_refused_and_never_runs() {
        let workers = Arc::new(pool(1, 4, Duration::from_millis(500)));
        let release = occupy(&workers).await;
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        let late = workers.run(move || flag.store(true, Ordering::SeqCst));
        assert_eq!(late.await, Err(Busy));
        drop(release);
        assert_eq!(workers.run(|| 1).await, Ok(1));
        assert!(!ran.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_job_that_has_started_is_waited_for() {
        let workers = pool(1, 4, Duration::from_millis(500));
        let slow = workers.run(|| {
            thread::sleep(Duration::from_millis(700));
            5
        });
        assert_eq!(slow.await, Ok(5));
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let workers = Arc::new(pool(1, 1, Duration::from_secs(5)));
        let release = occupy(&workers).await;
        let waits = tokio::spawn({
            let workers = workers.clone();
            async move { workers.run(|| 1).await }
        });
        while workers.shared.lock().jobs.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(workers.run(|| 2).await, Err(Busy));
        drop(release);
        assert_eq!(waits.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn a_caller_that_goes_takes_its_job_along() {
        let workers = Arc::new(pool(1, 1, Duration::from_secs(5)));
        let release = occupy(&workers).await;
        let gone = tokio::time::timeout(Duration::from_millis(20), workers.run(|| 1)).await;
        assert!(gone.is_err());
        assert!(workers.shared.lock().jobs.is_empty());
        drop(release);
    }

    #[tokio::test]
    async fn a_panic_is_the_callers_and_the_thread_survives() {
        let workers = Arc::new(pool(1, 4, Duration::from_secs(5)));
        let panicking = workers.clone();
        let failed = tokio::spawn(async move { panicking.run(|| panic!("on purpose")).await });
        assert!(failed.await.unwrap_err().is_panic());
        assert_eq!(workers.run(|| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn dropping_the_pool_finishes_what_runs() {
        let done = Arc::new(AtomicBool::new(false));
        let workers = Arc::new(pool(1, 4, Duration::from_secs(5)));
        let (started, start) = oneshot::channel();
        let job = workers.shared.enqueue({
            let done = done.clone();
            Box::new(move || {
                let _ = started.send(());
                thread::sleep(Duration::from_millis(50));
                done.store(true, Ordering::SeqCst);
            })
        });
        start.await.unwrap();
        drop(job);
        drop(workers);
        assert!(done.load(Ordering::SeqCst));
    }
}
