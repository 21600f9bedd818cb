//! The threads that tenants' statements run on: short work in turn, long work in fair shares.
//!
//! In both lanes workspaces take turns, piece by piece, and within each its databases; none ever holds more than its share of
//! the threads. So a tenant who floods or loops delays only himself, however many databases he has, and whoever floods one page
//! with calls leaves a share to the others of its workspace. Long work has few threads, of low priority.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::ids::{BackendId, WorkspaceId};

/// Threads for short work; most of their time they wait for the disk.
const SHORT_THREADS: usize = 8;
/// How many of them a workspace may hold, and a database of it.
const SHORT_SHARE: Share = Share {
    workspace: 4,
    database: 2,
};
/// How much nicer than the rest of the process the threads of long work are.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// How many pieces of work of one database may wait in a lane.
const WAITING: usize = 256;

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) workspace: Option<WorkspaceId>,
    pub(super) database: BackendId,
}

/// How many threads of a lane one may hold.
#[derive(Clone, Copy, Debug)]
struct Share {
    workspace: usize,
    database: usize,
}

impl Share {
    /// Of a lane for long work: half of the threads, and half of that.
    fn of_long(threads: usize) -> Self {
        Self {
            workspace: (threads / 2).max(1),
            database: (threads / 4).max(1),
        }
    }
}

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

    /// Works until the queue is closed and empty; nobody holds more threads than its share.
    fn work(&self, share: Share) {
        let mut done = None;
        while let Some((owner, job)) = self.next(share, done) {
            perform(job);
            done = Some(owner);
        }
    }

    /// The next piece of work, once there is some, for a thread that has `done` a piece of somebody's.
    fn next(&self, share: Share, done: Option<Owner>) -> Option<(Owner, Job)> {
        let mut state = self.lock();
        if let Some(owner) = done {
            state.work.done(owner);
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

    fn add(&self, owner: Owner, job: Job, first: bool) -> bool {
        let mut state = self.lock();
        let added = state.work.add(owner, job, first);
        if state.idle > 0 {
            self.changed.notify_one();
        }
        added
    }

    /// Adds work at the end of a piece of work of this queue, whose thread looks for more right away.
    fn add_at_end(&self, owner: Owner, job: Job) {
        self.lock().work.add(owner, job, true);
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Whose turn it is in a lane: a workspace's, or that of a database which is known to be nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Workspace(WorkspaceId),
    Database(BackendId),
}

impl Owner {
    fn holder(&self) -> Holder {
        self.workspace
            .map_or(Holder::Database(self.database), Holder::Workspace)
    }
}

/// Work by workspace, taken in turn.
#[derive(Default)]
struct Shares {
    by_holder: HashMap<Holder, Line>,
    /// Those whose work waits.
    turns: VecDeque<Holder>,
}

/// The work of a workspace, by database.
#[derive(Default)]
struct Line {
    waiting: HashMap<BackendId, VecDeque<(Owner, Job)>>,
    running: HashMap<BackendId, usize>,
    /// Databases whose work waits.
    turns: VecDeque<BackendId>,
}

impl Line {
    fn holds(&self) -> usize {
        self.running.values().sum()
    }

    /// The place of the database whose turn it is and that has not got its share already.
    fn place(&self, share: Share) -> Option<usize> {
        if self.holds() >= share.workspace {
            return None;
        }
        let free = |id: &BackendId| self.running.get(id).is_none_or(|n| *n < share.database);
        self.turns.iter().position(free)
    }

    /// The next job of the database whose turn it is.
    fn take(&mut self, share: Share) -> Option<(Owner, Job)> {
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
        Some(job)
    }
}

impl Shares {
    /// Adds work of a database, unless too much of it waits; what comes first is always taken in.
    fn add(&mut self, owner: Owner, job: Job, first: bool) -> bool {
        let holder = owner.holder();
        let line = self.by_holder.entry(holder).or_default();
        let queue = line.waiting.entry(owner.database).or_default();
        if queue.len() >= WAITING && !first {
            return false;
        }
        if line.turns.is_empty() {
            self.turns.push_back(holder);
        }
        if queue.is_empty() {
            line.turns.push_back(owner.database);
        }
        if first {
            queue.push_front((owner, job));
        } else {
            queue.push_back((owner, job));
        }
        true
    }

    /// The place of the workspace whose turn it is and that may take work.
    fn place(&self, share: Share) -> Option<usize> {
        let may = |holder: &Holder| {
            let line = self.by_holder.get(holder);
            line.is_some_and(|line| line.place(share).is_some())
        };
        self.turns.iter().position(may)
    }

    /// Whether there is work to take.
    fn has_some(&self, share: Share) -> bool {
        self.place(share).is_some()
    }

    /// The next job of the workspace whose turn it is.
    fn take(&mut self, share: Share) -> Option<(Owner, Job)> {
        let place = self.place(share)?;
        let holder = self.turns.remove(place)?;
        let line = self.by_holder.get_mut(&holder)?;
        let job = line.take(share)?;
        if !line.turns.is_empty() {
            self.turns.push_back(holder);
        }
        Some(job)
    }

    fn done(&mut self, owner: Owner) {
        let holder = owner.holder();
        let Some(line) = self.by_holder.get_mut(&holder) else {
            return;
        };
        if let Some(running) = line.running.get_mut(&owner.database) {
            *running -= 1;
            if *running == 0 {
                line.running.remove(&owner.database);
            }
        }
        if line.running.is_empty() && line.waiting.is_empty() {
            self.by_holder.remove(&holder);
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
        let share = Share::of_long(long_threads);
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
    pub(super) fn short(&self, owner: Owner, job: Job) -> bool {
        self.short.add(owner, job, false)
    }

    /// Queues what a database must have done soon, of which there is one piece at a time: before its other short work.
    pub(super) fn soon(&self, owner: Owner, job: Job) {
        self.short.add(owner, job, true);
    }

    /// The same, at the end of a piece of short work.
    pub(super) fn soon_after_short(&self, owner: Owner, job: Job) {
        self.short.add_at_end(owner, job);
    }

    /// Queues long work of a database; answers false when too much of it waits already.
    pub(super) fn long(&self, owner: Owner, job: Job) -> bool {
        self.long.add(owner, job, false)
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

/// Makes the calling thread nicer, where a thread has a priority of its own.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // Unprivileged processes may always be nicer; where they may not, fairness is all that suffers.
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Elsewhere it would be the process's.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::random::Random;

    const ONE: Share = Share {
        workspace: 2,
        database: 1,
    };

    fn owners<const N: usize>() -> [Owner; N] {
        let clock = Clock::manual(Timestamp(0));
        let random = Random::system();
        [(); N].map(|()| Owner {
            workspace: Some(WorkspaceId::new(&clock, &random).unwrap()),
            database: BackendId::new(&clock, &random).unwrap(),
        })
    }

    fn add(shares: &mut Shares, owner: Owner) -> bool {
        shares.add(owner, Box::new(|| {}), false)
    }

    fn taken(shares: &mut Shares) -> Option<Owner> {
        shares.take(ONE).map(|(owner, _)| owner)
    }

    #[test]
    fn shares_are_taken_in_turn_and_bounded() {
        let [greedy, modest] = owners();
        let mut shares = Shares::default();
        for _ in 0..WAITING {
            assert!(add(&mut shares, greedy));
        }
        assert!(!add(&mut shares, greedy));
        assert!(add(&mut shares, modest));
        assert_eq!(taken(&mut shares), Some(greedy));
        assert_eq!(taken(&mut shares), Some(modest));
        assert_eq!(taken(&mut shares), None);
        shares.done(greedy);
        assert_eq!(taken(&mut shares), Some(greedy));
    }

    #[test]
    fn a_workspace_holds_its_share_however_many_databases_it_has() {
        let [one, two, three, other] = owners();
        let same = |owner: Owner| Owner {
            workspace: one.workspace,
            ..owner
        };
        let (two, three) = (same(two), same(three));
        let mut shares = Shares::default();
        for owner in [one, one, two, three, other] {
            assert!(add(&mut shares, owner));
        }
        assert_eq!(taken(&mut shares), Some(one));
        assert_eq!(taken(&mut shares), Some(other));
        // One database has its share, and the next of its workspace follows.
        assert_eq!(taken(&mut shares), Some(two));
        // The workspace has its share.
        assert_eq!(taken(&mut shares), None);
        shares.done(two);
        assert_eq!(taken(&mut shares), Some(three));
        shares.done(one);
        assert_eq!(taken(&mut shares), Some(one));
        for owner in [one, three, other] {
            shares.done(owner);
        }
        assert!(shares.by_holder.is_empty() && shares.turns.is_empty());
    }

    #[test]
    fn what_nobody_owns_is_a_holder_of_its_own() {
        let [one, two] = owners().map(|owner| Owner {
            workspace: None,
            ..owner
        });
        let mut shares = Shares::default();
        assert!(add(&mut shares, one) && add(&mut shares, two));
        assert_eq!(taken(&mut shares), Some(one));
        assert_eq!(taken(&mut shares), Some(two));
    }
}
