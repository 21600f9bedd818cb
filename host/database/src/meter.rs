//! What a running statement has used: time and temporary space, looked at every thousand steps of SQLite's machine.
//!
//! Steps can be long: a row that is matched against a long pattern is a few steps and a second. So a watchdog looks at
//! the deadlines too, and interrupts what is past its own; SQLite notices that before its next row.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle};

use svc_base::Stopwatch;

/// Steps of SQLite's machine between two looks: some tens of microseconds.
const STEPS: i32 = 1000;
/// How often a running statement's writes are looked at, from the first time on. What it writes before is little.
const LOOK: Duration = Duration::from_millis(10);
/// The most that one statement may write to temporary files, in bytes: an endless CTE with `ORDER BY` writes
/// hundreds of megabytes a second.
const SPACE: u64 = 64 << 20;
/// What the system says that the calling thread has written.
const WRITTEN: &str = "/proc/thread-self/io";

/// What a statement was stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// Its time was over.
    Time,
    /// It filled its temporary space.
    Space,
}

/// The meter of a connection.
#[derive(Debug)]
pub(super) struct Meter(Arc<State>);

struct State {
    clock: Stopwatch,
    /// Held while a statement begins or ends, and while the watchdog interrupts: so it never interrupts the next.
    turn: Mutex<()>,
    interrupt: InterruptHandle,
    /// In nanoseconds of `clock`, like the next.
    deadline: AtomicU64,
    next_look: AtomicU64,
    /// What the thread had written at the first look, in bytes; `NOTHING` before.
    written_before: AtomicU64,
    stopped: AtomicU8,
}

const NOTHING: u64 = u64::MAX;
const NEVER: u64 = u64::MAX;

const RUNNING: u8 = 0;
const OUT_OF_TIME: u8 = 1;
const OUT_OF_SPACE: u8 = 2;

impl Meter {
    /// Installs a meter on a connection; nothing is stopped until [`Meter::start`].
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let state = Arc::new(State {
            clock: Stopwatch::start(),
            turn: Mutex::default(),
            interrupt: connection.get_interrupt_handle(),
            deadline: AtomicU64::new(NEVER),
            next_look: AtomicU64::new(0),
            written_before: AtomicU64::new(NOTHING),
            stopped: AtomicU8::new(RUNNING),
        });
        let watched = Arc::clone(&state);
        connection.progress_handler(STEPS, Some(move || watched.exceeded()))?;
        watch(&state);
        Ok(Self(state))
    }

    /// Begins to measure a statement that may run for `budget`.
    pub(super) fn start(&self, budget: Duration) {
        let state = &self.0;
        let _turn = state.turn();
        let now = state.clock.elapsed();
        state.stopped.store(RUNNING, Ordering::Relaxed);
        state.written_before.store(NOTHING, Ordering::Relaxed);
        state.next_look.store(nanos(now + LOOK), Ordering::Relaxed);
        let end = nanos(now.saturating_add(budget));
        state.deadline.store(end, Ordering::Relaxed);
    }

    /// Ends measuring; answers what the statement was stopped for.
    pub(super) fn stop(&self) -> Option<Exceeded> {
        let _turn = self.0.turn();
        self.0.deadline.store(NEVER, Ordering::Relaxed);
        match self.0.stopped.load(Ordering::Relaxed) {
            OUT_OF_TIME => Some(Exceeded::Time),
            OUT_OF_SPACE => Some(Exceeded::Space),
            _ => None,
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// How often the watchdog looks.
const WATCH: Duration = Duration::from_millis(10);

/// The meters of all connections.
static WATCHED: Mutex<Vec<Weak<State>>> = Mutex::new(Vec::new());

/// Has the watchdog look at a meter for as long as it lives.
fn watch(state: &Arc<State>) {
    static STARTED: Once = Once::new();
    WATCHED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Arc::downgrade(state));
    STARTED.call_once(|| {
        let started = thread::Builder::new()
            .name("sql-watchdog".into())
            .spawn(|| {
                loop {
                    thread::sleep(WATCH);
                    look_at_all();
                }
            });
        if let Err(error) = started {
            tracing::error!(%error, "statements are stopped by their steps alone");
        }
    });
}

fn look_at_all() {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.retain(|state| match state.upgrade() {
        Some(state) => {
            state.interrupt_if_late();
            true
        }
        None => false,
    });
}

impl State {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn interrupt_if_late(&self) {
        if nanos(self.clock.elapsed()) < self.deadline.load(Ordering::Relaxed) {
            return;
        }
        let _turn = self.turn();
        if nanos(self.clock.elapsed()) >= self.deadline.load(Ordering::Relaxed) {
            self.stopped.store(OUT_OF_TIME, Ordering::Relaxed);
            self.interrupt.interrupt();
        }
    }

    fn exceeded(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline == NEVER {
            return false;
        }
        let now = self.clock.elapsed();
        let stopped = if nanos(now) >= deadline {
            OUT_OF_TIME
        } else if self.is_out_of_space(now) {
            OUT_OF_SPACE
        } else {
            return false;
        };
        self.stopped.store(stopped, Ordering::Relaxed);
        true
    }

    /// A statement runs on one thread, which does nothing else meanwhile: what that writes are its temporary files, and
    /// for a write a few megabytes of the log besides.
    fn is_out_of_space(&self, now: Duration) -> bool {
        if nanos(now) < self.next_look.load(Ordering::Relaxed) {
            return false;
        }
        self.next_look.store(nanos(now + LOOK), Ordering::Relaxed);
        // A system that does not say leaves the time as the only bound.
        let Some(written) = written() else {
            return false;
        };
        match self.written_before.load(Ordering::Relaxed) {
            NOTHING => {
                self.written_before.store(written, Ordering::Relaxed);
                false
            }
            before => written.saturating_sub(before) > SPACE,
        }
    }
}

/// How many bytes the calling thread has written since it began.
fn written() -> Option<u64> {
    let text = std::fs::read_to_string(WRITTEN).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}
