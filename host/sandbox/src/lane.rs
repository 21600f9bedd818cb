//! Lanes: thread pools for blocking work. One renders pages; another runs short work that must not wait for pages.
//!
//! The threads have a low priority, so that such work never slows down page views. Flows share them fairly (`fair_queue.rs`), and
//! one thread of each lane serves owners alone. A job that cannot start soon is refused, and a running job gets a stop signal when
//! its caller goes away.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

use super::fair_queue::{FairQueue, FairQueueSettings, FlowOrder, ServedFlows};
use super::metrics::{LaneLabels, Metrics};
use svc_base::Stopwatch;
use svc_base::flow::CallerFlow;
use svc_base::threads::{NICENESS, WorkerThreads, lower_priority_to};
use svc_base::work_state::{QueuedWorkState, wait_for_result};

/// Stack size of a thread: a guest's stack lies on it, below the host's own frames.
const THREAD_STACK_BYTES: usize = 4 << 20;
/// Maximum of waiting jobs of one class in a lane.
const MAX_WAITING_JOBS: usize = 512;
/// Longest wait for a thread; then the job is refused.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Niceness of threads that owners and passwords wait for: they run before the threads that render pages, and after those that
/// serve page views.
const OWNER_NICENESS: i32 = NICENESS / 2;

/// Settings of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneConfig {
    /// Name in metrics and in the names of the threads.
    pub(super) name: &'static str,
    /// Number of threads that serve everybody, at least one. One more serves owners.
    pub(super) threads: usize,
    /// Niceness of the threads that serve everybody, relative to the process.
    pub(super) niceness: i32,
    /// Order of the flows.
    pub(super) order: FlowOrder,
    /// Maximum of waiting jobs of one class; further ones are refused at once.
    pub(super) waiting: usize,
    /// Longest wait for a thread; then the job is refused.
    pub(super) wait: Duration,
}

impl LaneConfig {
    /// Returns the settings of the lane for pages: rendering, compressing, editing.
    pub(super) const fn pages(threads: usize) -> Self {
        Self {
            name: "pages",
            threads,
            niceness: NICENESS,
            order: FlowOrder::ByClass,
            waiting: MAX_WAITING_JOBS,
            wait: MAX_WAIT,
        }
    }

    /// Returns the settings of the lane for short work: judging SQL, hashing passwords.
    pub(super) const fn checks(threads: usize) -> Self {
        Self {
            name: "checks",
            niceness: OWNER_NICENESS,
            order: FlowOrder::ByUsage,
            ..Self::pages(threads)
        }
    }
}

/// No thread was free in time; the job was not run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no worker thread was free in time")]
pub struct LaneBusy;

/// Tells a running job that its caller no longer waits.
#[derive(Clone, Debug, Default)]
pub struct JobCancellation(Arc<AtomicBool>);

impl JobCancellation {
    /// Whether the job may stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Threads with a fair queue. Dropping a lane refuses waiting jobs, finishes running ones, and joins the threads.
#[derive(Debug)]
pub struct Lane {
    shared: Arc<LaneShared>,
    threads: WorkerThreads,
    wait: Duration,
}

impl Lane {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The operating system refuses a thread.
    pub(super) fn start(config: LaneConfig, metrics: Metrics) -> anyhow::Result<Self> {
        let threads = config.threads.max(1);
        let bounds = FairQueueSettings {
            threads,
            waiting: config.waiting,
            order: config.order,
        };
        let shared = Arc::new(LaneShared {
            name: config.name,
            state: Mutex::new(LaneState {
                queue: FairQueue::new(bounds),
                closed: false,
            }),
            changed: Condvar::new(),
            metrics,
        });
        let mut lane = Self {
            shared,
            threads: WorkerThreads::default(),
            wait: config.wait,
        };
        for number in 0..threads {
            let name = format!("svc-{}-{number}", config.name);
            lane.start_thread(name, ServedFlows::All, config.niceness)?;
        }
        let name = format!("svc-{}-own", config.name);
        lane.start_thread(
            name,
            ServedFlows::Owners,
            config.niceness.min(OWNER_NICENESS),
        )?;
        Ok(lane)
    }

    fn start_thread(
        &mut self,
        name: String,
        serves: ServedFlows,
        niceness: i32,
    ) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.shared);
        let work = move || {
            lower_priority_to(niceness);
            shared.run_jobs(serves);
        };
        let started = self.threads.start(name, Some(THREAD_STACK_BYTES), work);
        started.context("cannot start a worker thread")
    }

    /// Runs `job` on one of the threads, as part of the task's flow, and returns its result.
    ///
    /// If the returned future is dropped, a waiting job is removed, and a running one gets the stop signal. A panic of the job
    /// continues in the caller; the thread survives.
    ///
    /// # Errors
    ///
    /// [`LaneBusy`] if too many jobs wait, no thread was free in time, or the lane is being dropped. The job was not run then.
    pub async fn run<T, F>(&self, job: F) -> Result<T, LaneBusy>
    where
        F: FnOnce(&JobCancellation) -> T + Send + 'static,
        T: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
        let stop = JobCancellation::default();
        let seen = stop.clone();
        let run = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| job(&seen)));
            // A dropped receiver means that the caller has gone.
            let _ = sender.send(outcome);
        });
        let handle = self.shared.enqueue(CallerFlow::current(), stop, run)?;
        match wait_for_result(receiver, &handle.work_state, self.wait).await {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(LaneBusy),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.shared.lock();
            state.closed = true;
            state.queue.drain()
        };
        self.shared.changed.notify_all();
        drop(waiting);
    }
}

struct LaneShared {
    name: &'static str,
    state: Mutex<LaneState>,
    changed: Condvar,
    metrics: Metrics,
}

struct LaneState {
    queue: FairQueue<QueuedLaneJob>,
    closed: bool,
}

struct QueuedLaneJob {
    work_state: Arc<QueuedWorkState>,
    run: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for LaneShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaneShared")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl LaneShared {
    fn lock(&self) -> MutexGuard<'_, LaneState> {
        // No code panics while it holds the lock, and the queue is consistent after each operation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn labels(&self, flow: &CallerFlow) -> LaneLabels {
        LaneLabels {
            lane: self.name,
            class: flow.class().as_str(),
        }
    }

    fn enqueue(
        &self,
        flow: CallerFlow,
        stop: JobCancellation,
        run: Box<dyn FnOnce() + Send>,
    ) -> Result<JobHandle<'_>, LaneBusy> {
        let labels = self.labels(&flow);
        let work_state = QueuedWorkState::new();
        let job = QueuedLaneJob {
            work_state: Arc::clone(&work_state),
            run,
        };
        let mut state = self.lock();
        let added = match state.closed {
            true => None,
            false => state.queue.add(flow.clone(), job),
        };
        self.update_waiting_gauge(&state, &flow);
        drop(state);
        let Some(number) = added else {
            self.metrics.refused.get_or_create(&labels).inc();
            return Err(LaneBusy);
        };
        // All threads are woken: not every thread serves this flow.
        self.changed.notify_all();
        Ok(JobHandle {
            shared: self,
            flow,
            number,
            work_state,
            stop,
        })
    }

    fn run_jobs(&self, serves: ServedFlows) {
        let mut done = None;
        while let Some((flow, job)) = self.next_job(serves, done.take()) {
            let stopwatch = Stopwatch::start();
            if job.work_state.start() {
                let labels = self.labels(&flow);
                let running = self.metrics.running.get_or_create_owned(&labels);
                running.inc();
                let wait = self.metrics.queue_wait.get_or_create_owned(&labels);
                wait.observe(job.work_state.queued_seconds());
                (job.run)();
                running.dec();
            }
            done = Some((flow, stopwatch.elapsed()));
        }
    }

    /// Returns the next job; `None` if the lane is being dropped. `done` is the job that the thread has just finished.
    fn next_job(
        &self,
        serves: ServedFlows,
        done: Option<(CallerFlow, Duration)>,
    ) -> Option<(CallerFlow, QueuedLaneJob)> {
        let mut state = self.lock();
        if let Some((flow, held)) = done {
            state.queue.release_thread(serves, &flow, held);
            if !state.queue.is_empty() {
                // The flow may start another job, on any thread.
                self.changed.notify_all();
            }
        }
        loop {
            if let Some((flow, job)) = state.queue.take(serves) {
                self.update_waiting_gauge(&state, &flow);
                return Some((flow, job));
            }
            if state.closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn update_waiting_gauge(&self, state: &LaneState, flow: &CallerFlow) {
        let waiting = i64::try_from(state.queue.waiting(flow.class())).unwrap_or(i64::MAX);
        let gauge = self.metrics.waiting.get_or_create_owned(&self.labels(flow));
        gauge.set(waiting);
    }
}

/// A caller's hold on its job: dropping it removes the job from the queue, or tells it to stop.
struct JobHandle<'a> {
    shared: &'a LaneShared,
    flow: CallerFlow,
    number: u64,
    work_state: Arc<QueuedWorkState>,
    stop: JobCancellation,
}

impl Drop for JobHandle<'_> {
    fn drop(&mut self) {
        self.stop.cancel();
        self.work_state.cancel();
        if self.work_state.is_cancelled() {
            let mut state = self.shared.lock();
            let job = state.queue.remove(&self.flow, self.number);
            self.shared.update_waiting_gauge(&state, &self.flow);
            drop(state);
            // Dropped after the lock, because a job may be large or hold locks.
            drop(job);
            let labels = self.shared.labels(&self.flow);
            self.shared.metrics.refused.get_or_create(&labels).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;
    use std::thread;
    use svc_base::flow::CallerClass;

    fn lane(threads: usize, waiting: usize, wait: Duration) -> Lane {
        let config = LaneConfig {
            waiting,
            wait,
            ..LaneConfig::pages(threads)
        };
        Lane::start(config, Metrics::default()).unwrap()
    }

    fn waiting(lane: &Lane) -> usize {
        lane.shared.lock().queue.waiting(CallerClass::Server)
    }

    /// Occupies the only thread until the sender is used or dropped.
    async fn occupy(lane: &Arc<Lane>) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let (started, start) = oneshot::channel();
        let lane = lane.clone();
        tokio::spawn(async move {
            let job = move |_: &JobCancellation| {
                let _ = started.send(());
                let _ = released.recv();
            };
            let _ = lane.run(job).await;
        });
        start.await.unwrap();
        release
    }

    #[tokio::test]
    async fn a_job_answers_what_it_returns() {
        let lane = lane(2, 4, Duration::from_secs(5));
        assert_eq!(lane.run(|_| 6 * 7).await, Ok(42));
        let name = lane.run(|_| thread::current().name().map(str::to_owned));
        assert!(name.await.unwrap().unwrap().starts_with("svc-pages-"));
    }

    #[tokio::test]
    async fn the_threads_are_nicer_than_the_rest() {
        let lane = lane(1, 4, Duration::from_secs(5));
        let ours = rustix::process::getpriority_process(None).unwrap();
        let theirs = lane.run(|_| rustix::process::getpriority_process(None).unwrap());
        assert_eq!(theirs.await, Ok(NICENESS.max(ours)));
    }

    #[tokio::test]
    async fn a_job_that_cannot_start_in_time_is_refused_and_never_runs() {
        let lane = Arc::new(lane(1, 4, Duration::from_millis(500)));
        let release = occupy(&lane).await;
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        let late = lane.run(move |_| flag.store(true, Ordering::SeqCst));
        assert_eq!(late.await, Err(LaneBusy));
        drop(release);
        assert_eq!(lane.run(|_| 1).await, Ok(1));
        assert!(!ran.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_job_that_has_started_is_waited_for() {
        let lane = lane(1, 4, Duration::from_millis(500));
        let slow = lane.run(|_| {
            thread::sleep(Duration::from_millis(700));
            5
        });
        assert_eq!(slow.await, Ok(5));
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let lane = Arc::new(lane(1, 1, Duration::from_secs(5)));
        let release = occupy(&lane).await;
        let waits = tokio::spawn({
            let lane = lane.clone();
            async move { lane.run(|_| 1).await }
        });
        while waiting(&lane) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lane.run(|_| 2).await, Err(LaneBusy));
        drop(release);
        assert_eq!(waits.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn a_caller_that_goes_takes_its_job_along() {
        let lane = Arc::new(lane(1, 1, Duration::from_secs(5)));
        let release = occupy(&lane).await;
        let gone = tokio::time::timeout(Duration::from_millis(20), lane.run(|_| 1)).await;
        assert!(gone.is_err());
        assert_eq!(waiting(&lane), 0);
        drop(release);
    }

    #[tokio::test]
    async fn a_caller_that_goes_stops_its_job() {
        let lane = Arc::new(lane(1, 1, Duration::from_secs(5)));
        let (started, start) = oneshot::channel();
        let endless = lane.run(|stop| {
            let _ = started.send(());
            while !stop.is_cancelled() {
                thread::yield_now();
            }
        });
        tokio::select! {
            ended = endless => panic!("it ended by itself: {ended:?}"),
            started = start => started.unwrap(),
        }
        assert_eq!(lane.run(|_| 1).await, Ok(1), "its thread is free again");
    }

    #[tokio::test]
    async fn an_owner_has_a_thread_whatever_others_hold() {
        let lane = Arc::new(lane(1, 4, Duration::from_secs(5)));
        let release = occupy(&lane).await;
        let owner = CallerFlow::Owner("usr_1".into());
        assert_eq!(owner.scope(lane.run(|_| 1)).await, Ok(1));
        drop(release);
    }

    #[tokio::test]
    async fn a_panic_is_the_callers_and_the_thread_survives() {
        let lane = Arc::new(lane(1, 4, Duration::from_secs(5)));
        let panicking = lane.clone();
        let failed = tokio::spawn(async move { panicking.run(|_| panic!("on purpose")).await });
        assert!(failed.await.unwrap_err().is_panic());
        assert_eq!(lane.run(|_| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn dropping_the_lane_finishes_what_runs() {
        let done = Arc::new(AtomicBool::new(false));
        let lane = Arc::new(lane(1, 4, Duration::from_secs(5)));
        let (started, start) = oneshot::channel();
        let run = Box::new({
            let done = done.clone();
            move || {
                let _ = started.send(());
                thread::sleep(Duration::from_millis(50));
                done.store(true, Ordering::SeqCst);
            }
        });
        let job = lane
            .shared
            .enqueue(CallerFlow::Server, JobCancellation::default(), run);
        start.await.unwrap();
        drop(job);
        drop(lane);
        assert!(done.load(Ordering::SeqCst));
    }
}
