//! The threads that tenants' statements run on: short work in turn, long work in fair shares.
//!
//! A database is in the short lane's queue at most once, and gives the thread up after each piece of work, so that
//! one with much to do waits its turn behind the others. Long work has few threads of low priority; one database
//! never holds more than its share of them, so that a tenant who floods or loops delays only himself.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::ids::BackendId;

/// Threads for short work; most of their time they wait for the disk.
const SHORT_THREADS: usize = 8;
/// How much nicer than the rest of the process the threads of long work are.
const NICENESS: i32 = 10;
/// How many pieces of long work of one database may wait.
const WAITING: usize = 256;

/// A piece of work.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The lanes of an installation. The last handle to go finishes what is queued and joins the threads.
pub(super) struct Lanes {
    short: Arc<Queue<VecDeque<Job>>>,
    long: Arc<Queue<Shares>>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").finish_non_exhaustive()
    }
}

/// What threads take their work from.
struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    work: T,
    closed: bool,
}

impl<T: Default> Queue<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                work: T::default(),
                closed: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of work, once there is some; `None` when the queue is closed and empty.
    fn next<J>(&self, mut take: impl FnMut(&mut T) -> Option<J>) -> Option<J> {
        let mut state = self.lock();
        loop {
            if let Some(job) = take(&mut state.work) {
                return Some(job);
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

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Long work by database, taken in turn.
#[derive(Default)]
struct Shares {
    waiting: HashMap<BackendId, VecDeque<Job>>,
    running: HashMap<BackendId, usize>,
    turns: VecDeque<BackendId>,
}

impl Shares {
    fn add(&mut self, id: BackendId, job: Job) -> bool {
        let queue = self.waiting.entry(id).or_default();
        if queue.len() >= WAITING {
            return false;
        }
        if queue.is_empty() {
            self.turns.push_back(id);
        }
        queue.push_back(job);
        true
    }

    /// The next job of the database whose turn it is and that has not got its share already.
    fn take(&mut self, share: usize) -> Option<(BackendId, Job)> {
        let free = |id: &BackendId| self.running.get(id).is_none_or(|n| *n < share);
        let place = self.turns.iter().position(free)?;
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
            let queue: Arc<Queue<VecDeque<Job>>> = Arc::clone(&short);
            threads.push(spawn(format!("sql-short-{number}"), move || {
                while let Some(job) = queue.next(VecDeque::pop_front) {
                    perform(job);
                }
            })?);
        }
        let long_threads = thread::available_parallelism().map_or(2, |n| n.get().max(2));
        let share = long_threads / 2;
        for number in 0..long_threads {
            let queue: Arc<Queue<Shares>> = Arc::clone(&long);
            threads.push(spawn(format!("sql-long-{number}"), move || {
                lower_priority();
                while let Some((id, job)) = queue.next(|shares| shares.take(share)) {
                    perform(job);
                    queue.lock().work.done(id);
                    // Another thread may wait for just this database's share.
                    queue.changed.notify_one();
                }
            })?);
        }
        Ok(Self {
            short,
            long,
            threads,
        })
    }

    /// Queues short work.
    pub(super) fn short(&self, job: Job) {
        self.short.lock().work.push_back(job);
        self.short.changed.notify_one();
    }

    /// Queues long work of a database; answers false when too much of it waits already.
    pub(super) fn long(&self, id: BackendId, job: Job) -> bool {
        let added = self.long.lock().work.add(id, job);
        self.long.changed.notify_one();
        added
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
    use crate::clock::{Clock, Timestamp};
    use crate::random::Random;

    #[test]
    fn shares_are_taken_in_turn_and_bounded() {
        let clock = Clock::manual(Timestamp(0));
        let id = || BackendId::new(&clock, &Random::system()).unwrap();
        let (greedy, modest) = (id(), id());
        let mut shares = Shares::default();
        for _ in 0..WAITING {
            assert!(shares.add(greedy, Box::new(|| {})));
        }
        assert!(!shares.add(greedy, Box::new(|| {})));
        assert!(shares.add(modest, Box::new(|| {})));
        assert_eq!(shares.take(1).unwrap().0, greedy);
        assert_eq!(shares.take(1).unwrap().0, modest);
        assert!(shares.take(1).is_none());
        shares.done(greedy);
        assert_eq!(shares.take(1).unwrap().0, greedy);
    }
}
