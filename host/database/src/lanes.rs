//! The threads that tenants' statements run on: short work in turn, long work in fair shares.
//!
//! In both lanes databases take turns, piece by piece, and none ever holds more than its share of the threads, so that
//! a tenant who floods or loops delays only himself. Long work has few threads, of low priority.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use svc_base::ids::BackendId;

/// Threads for short work; most of their time they wait for the disk.
const SHORT_THREADS: usize = 8;
/// How many of them one database may hold.
const SHORT_SHARE: usize = 2;
/// How much nicer than the rest of the process the threads of long work are.
const NICENESS: i32 = 10;
/// How many pieces of work of one database may wait in a lane.
const WAITING: usize = 256;

/// A piece of work.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The lanes of an installation. The last handle to go finishes what is queued and joins the threads.
pub(super) struct Lanes {
    short: Arc<Queue>,
    long: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").finish_non_exhaustive()
    }
}

/// What threads take their work from.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    work: Shares,
    /// How many threads wait for work.
    idle: usize,
    closed: bool,
}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                work: Shares::default(),
                idle: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the queue is closed and empty; no database holds more threads than its share.
    fn work(&self, share: usize) {
        let mut done = None;
        while let Some((id, job)) = self.next(share, done) {
            perform(job);
            done = Some(id);
        }
    }

    /// The next piece of work, once there is some, for a thread that has `done` a piece of a database's.
    fn next(&self, share: usize, done: Option<BackendId>) -> Option<(BackendId, Job)> {
        let mut state = self.lock();
        if let Some(id) = done {
            state.work.done(id);
        }
        loop {
            if let Some(job) = state.work.take(share) {
                // Whoever takes work sees to it that what is left is taken, too: so a thread that goes on by itself,
                // which is most often all that is to be done, wakes nobody for nothing.
                if state.idle > 0 && state.work.has_some(share) {
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

    fn add(&self, id: BackendId, job: Job, first: bool) -> bool {
        let mut state = self.lock();
        let added = state.work.add(id, job, first);
        if state.idle > 0 {
            self.changed.notify_one();
        }
        added
    }

    /// Adds work at the end of a piece of work of this queue, whose thread looks for more right away.
    fn add_at_end(&self, id: BackendId, job: Job) {
        self.lock().work.add(id, job, true);
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Work by database, taken in turn.
#[derive(Default)]
struct Shares {
    waiting: HashMap<BackendId, VecDeque<Job>>,
    running: HashMap<BackendId, usize>,
    turns: VecDeque<BackendId>,
}

impl Shares {
    /// Adds work of a database, unless too much of it waits; what comes first is always taken in.
    fn add(&mut self, id: BackendId, job: Job, first: bool) -> bool {
        let queue = self.waiting.entry(id).or_default();
        if queue.len() >= WAITING && !first {
            return false;
        }
        if queue.is_empty() {
            self.turns.push_back(id);
        }
        if first {
            queue.push_front(job);
        } else {
            queue.push_back(job);
        }
        true
    }

    /// The place of the database whose turn it is and that has not got its share already.
    fn place(&self, share: usize) -> Option<usize> {
        let free = |id: &BackendId| self.running.get(id).is_none_or(|n| *n < share);
        self.turns.iter().position(free)
    }

    /// Whether there is work to take.
    fn has_some(&self, share: usize) -> bool {
        self.place(share).is_some()
    }

    /// The next job of the database whose turn it is.
    fn take(&mut self, share: usize) -> Option<(BackendId, Job)> {
        let place = self.place(share)?;
        let id = self.turns.remove(place)?;
        let queue = self.waiting.get_mut(&id)?;
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&id);
        } else {
            self.turns.push_back(id);
        }
        *self.running.entry(id).or_default() += 1;
        Some((id, job))
    }

    fn done(&mut self, id: BackendId) {
        if let Some(running) = self.running.get_mut(&id) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&id);
            }
        }
    }
}

impl Lanes {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has none to give.
    pub(super) fn start() -> std::io::Result<Self> {
        let (short, long) = (Queue::new(), Queue::new());
        let mut threads = Vec::new();
        for number in 0..SHORT_THREADS {
            let queue: Arc<Queue> = Arc::clone(&short);
            threads.push(spawn(format!("sql-short-{number}"), move || {
                queue.work(SHORT_SHARE);
            })?);
        }
        let long_threads = thread::available_parallelism().map_or(2, |n| n.get().max(2));
        let share = long_threads / 2;
        for number in 0..long_threads {
            let queue: Arc<Queue> = Arc::clone(&long);
            threads.push(spawn(format!("sql-long-{number}"), move || {
                lower_priority();
                queue.work(share);
            })?);
        }
        Ok(Self {
            short,
            long,
            threads,
        })
    }

    /// Queues short work of a database; answers false when too much of it waits already.
    pub(super) fn short(&self, id: BackendId, job: Job) -> bool {
        self.short.add(id, job, false)
    }

    /// Queues what a database must have done soon, of which there is one piece at a time: before its other short work.
    pub(super) fn soon(&self, id: BackendId, job: Job) {
        self.short.add(id, job, true);
    }

    /// The same, at the end of a piece of short work.
    pub(super) fn soon_after_short(&self, id: BackendId, job: Job) {
        self.short.add_at_end(id, job);
    }

    /// Queues long work of a database; answers false when too much of it waits already.
    pub(super) fn long(&self, id: BackendId, job: Job) -> bool {
        self.long.add(id, job, false)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.short.close();
        self.long.close();
        let me = thread::current().id();
        for thread in self.threads.drain(..) {
            // The last handle may be dropped by one of the threads, which cannot wait for itself.
            if thread.thread().id() != me {
                // A thread that panicked has said so.
                let _ = thread.join();
            }
        }
    }
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name).spawn(work)
}

/// Runs a job; one that panics is answered by the drop of its channel, and its thread goes on.
fn perform(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("work on a tenant's database panicked");
    }
}

fn lower_priority() {
    // Unprivileged processes may always be nicer; where they may not, fairness is all that suffers.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    #[test]
    fn shares_are_taken_in_turn_and_bounded() {
        let clock = Clock::manual(Timestamp(0));
        let id = || BackendId::new(&clock, &Random::system()).unwrap();
        let (greedy, modest) = (id(), id());
        let mut shares = Shares::default();
        for _ in 0..WAITING {
            assert!(shares.add(greedy, Box::new(|| {}), false));
        }
        assert!(!shares.add(greedy, Box::new(|| {}), false));
        assert!(shares.add(modest, Box::new(|| {}), false));
        assert_eq!(shares.take(1).unwrap().0, greedy);
        assert_eq!(shares.take(1).unwrap().0, modest);
        assert!(shares.take(1).is_none());
        shares.done(greedy);
        assert_eq!(shares.take(1).unwrap().0, greedy);
    }
}
