//! Meter of a running statement: time and temporary space, looked at every so many steps of SQLite's machine.
//!
//! Steps can be long. So the watchdog looks at the deadlines of lanes too, and interrupts what is past its own; functions of
//! our own look at each call; and between two places where SQLite looks, no program takes longer than its [cost] allows.
//!
//! [cost]: super::cost

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, ffi};

use super::watchdog::{Interruptible, Watchdog};
use svc_base::Stopwatch;
use svc_base::sync::lock;

/// Steps of SQLite's machine between two looks of a statement that is watched closely.
pub(super) const STEPS_PER_CHECK: i32 = 32;
/// How many times as many steps are between two looks of a statement in a lane, at which the watchdog looks as well: the clock
/// would cost a scan a tenth of its speed.
const LANE_CHECK_FACTOR: u32 = 32;
/// How often a running statement's writes are looked at, from the first time on. What it writes before is little.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The most that one statement may write to temporary files, in bytes: an endless CTE with `ORDER BY` writes
/// hundreds of megabytes a second.
const MAX_TEMPORARY_BYTES: u64 = 64 << 20;
/// File in which the system counts what the calling thread has written.
const THREAD_IO_FILE: &str = "/proc/thread-self/io";

/// Budget that a statement was stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    /// The time was over.
    Time,
    /// It filled its temporary space.
    Space,
}

/// The meter of a connection.
#[derive(Debug)]
pub(super) struct StatementMeter(Arc<MeterState>);

struct MeterState {
    clock: Stopwatch,
    /// Held while a statement begins or ends, and while the watchdog interrupts: so it never interrupts the next.
    interrupt_lock: Mutex<()>,
    interrupt: InterruptHandle,
    /// In nanoseconds of `clock`, like the next.
    deadline: AtomicU64,
    next_space_check: AtomicU64,
    /// Bytes that the thread had written at the first look; `NOTHING` before.
    written_before: AtomicU64,
    stop_reason: AtomicU8,
    /// Whether every call of SQLite's looks at the clock.
    closely: AtomicBool,
    /// How many calls pass before the next look.
    skipped_checks: AtomicU32,
    watchdog: Watchdog,
}

const NOT_MEASURED: u64 = u64::MAX;
const NO_DEADLINE: u64 = u64::MAX;

const RUNNING: u8 = 0;
const OUT_OF_TIME: u8 = 1;
const OUT_OF_SPACE: u8 = 2;

/// How closely a statement is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchMode {
    /// Every few steps, and by nobody else: it runs on a thread that others wait for.
    Closely,
    /// Every thousand steps, and by the watchdog.
    InLane,
}

impl StatementMeter {
    /// Installs a meter on a connection; nothing is stopped until [`StatementMeter::start`].
    pub(super) fn install(
        connection: &mut Connection,
        watchdog: &Watchdog,
    ) -> rusqlite::Result<Self> {
        let state = Arc::new(MeterState {
            clock: Stopwatch::start(),
            interrupt_lock: Mutex::default(),
            interrupt: connection.get_interrupt_handle(),
            deadline: AtomicU64::new(NO_DEADLINE),
            next_space_check: AtomicU64::new(0),
            written_before: AtomicU64::new(NOT_MEASURED),
            stop_reason: AtomicU8::new(RUNNING),
            closely: AtomicBool::new(false),
            skipped_checks: AtomicU32::new(0),
            watchdog: watchdog.clone(),
        });
        let stepping = Arc::clone(&state);
        connection.progress_handler(STEPS_PER_CHECK, Some(move || stepping.should_stop()))?;
        let watched: Weak<MeterState> = Arc::downgrade(&state);
        watchdog.add(watched);
        Ok(Self(state))
    }

    /// Begins to measure a statement that may run for `budget`.
    pub(super) fn start(&self, budget: Duration, watch: WatchMode) {
        let state = &self.0;
        {
            let _turn = state.lock_interrupt();
            let now = state.clock.elapsed();
            state.stop_reason.store(RUNNING, Ordering::Relaxed);
            state.written_before.store(NOT_MEASURED, Ordering::Relaxed);
            state
                .next_space_check
                .store(nanos(now + SPACE_CHECK_INTERVAL), Ordering::Relaxed);
            let closely = watch == WatchMode::Closely;
            state.closely.store(closely, Ordering::Relaxed);
            let end = nanos(now.saturating_add(budget));
            state.deadline.store(end, Ordering::Relaxed);
        }
        if watch == WatchMode::InLane {
            state.watchdog.begin();
        }
    }

    /// Ends measuring; returns what the statement was stopped for.
    pub(super) fn stop(&self) -> Option<ExceededLimit> {
        let state = &self.0;
        if !state.closely.load(Ordering::Relaxed) {
            state.watchdog.end();
        }
        let _turn = state.lock_interrupt();
        state.deadline.store(NO_DEADLINE, Ordering::Relaxed);
        match state.stop_reason.load(Ordering::Relaxed) {
            OUT_OF_TIME => Some(ExceededLimit::Time),
            OUT_OF_SPACE => Some(ExceededLimit::Space),
            _ => None,
        }
    }

    /// The deadline of whatever statement runs.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline(Arc::clone(&self.0))
    }
}

/// The deadline of the statement that runs on a connection, for functions to look at: SQLite does not interrupt one.
#[derive(Clone, Debug)]
pub(super) struct Deadline(Arc<MeterState>);

impl Deadline {
    /// Fails once the statement's time is over.
    ///
    /// # Errors
    /// SQLite's interruption.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        let state = &self.0;
        let deadline = state.deadline.load(Ordering::Relaxed);
        if deadline == NO_DEADLINE || nanos(state.clock.elapsed()) < deadline {
            return Ok(());
        }
        state.stop_reason.store(OUT_OF_TIME, Ordering::Relaxed);
        let interrupted = ffi::Error {
            code: ErrorCode::OperationInterrupted,
            extended_code: ffi::SQLITE_INTERRUPT,
        };
        Err(Error::SqliteFailure(interrupted, None))
    }

    /// Begins work that looks now and then.
    ///
    /// # Errors
    /// SQLite's interruption, if the time is over already.
    pub(super) fn begin_work(&self) -> rusqlite::Result<WorkBudget<'_>> {
        self.check()?;
        Ok(WorkBudget {
            deadline: self,
            left: BYTES_PER_CHECK,
        })
    }
}

/// How much work is done between two looks, in bytes: some tens of microseconds.
const BYTES_PER_CHECK: usize = 16 << 10;

/// Work of a function.
#[derive(Debug)]
pub(super) struct WorkBudget<'d> {
    deadline: &'d Deadline,
    left: usize,
}

impl WorkBudget<'_> {
    /// Notes that so many bytes are about to be worked on.
    ///
    /// # Errors
    /// SQLite's interruption, once the statement's time is over.
    pub(super) fn spend(&mut self, bytes: usize) -> rusqlite::Result<()> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        self.left = BYTES_PER_CHECK;
        self.deadline.check()
    }
}

impl std::fmt::Debug for MeterState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl Interruptible for MeterState {
    fn interrupt_if_late(&self) {
        if nanos(self.clock.elapsed()) < self.deadline.load(Ordering::Relaxed) {
            return;
        }
        let _turn = self.lock_interrupt();
        if nanos(self.clock.elapsed()) >= self.deadline.load(Ordering::Relaxed) {
            self.stop_reason.store(OUT_OF_TIME, Ordering::Relaxed);
            self.interrupt.interrupt();
        }
    }
}

impl MeterState {
    fn lock_interrupt(&self) -> MutexGuard<'_, ()> {
        lock(&self.interrupt_lock)
    }

    fn should_stop(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline == NO_DEADLINE || self.skips_check() {
            return false;
        }
        let now = self.clock.elapsed();
        let stop_reason = if nanos(now) >= deadline {
            OUT_OF_TIME
        } else if self.is_out_of_space(now) {
            OUT_OF_SPACE
        } else {
            return false;
        };
        self.stop_reason.store(stop_reason, Ordering::Relaxed);
        true
    }

    /// Whether this call of SQLite's is one of those that pass without a look.
    fn skips_check(&self) -> bool {
        if self.closely.load(Ordering::Relaxed) {
            return false;
        }
        // Only the thread that the statement runs on counts.
        let passed = self.skipped_checks.load(Ordering::Relaxed) + 1;
        let looks = passed >= LANE_CHECK_FACTOR;
        self.skipped_checks
            .store(if looks { 0 } else { passed }, Ordering::Relaxed);
        !looks
    }

    /// A statement runs on one thread, which does nothing else meanwhile: what that writes are its temporary files, and
    /// for a write a few megabytes of the log besides.
    fn is_out_of_space(&self, now: Duration) -> bool {
        if nanos(now) < self.next_space_check.load(Ordering::Relaxed) {
            return false;
        }
        self.next_space_check
            .store(nanos(now + SPACE_CHECK_INTERVAL), Ordering::Relaxed);
        // A system that does not say leaves the time as the only bound.
        let Some(written) = thread_written_bytes() else {
            return false;
        };
        match self.written_before.load(Ordering::Relaxed) {
            NOT_MEASURED => {
                self.written_before.store(written, Ordering::Relaxed);
                false
            }
            before => written.saturating_sub(before) > MAX_TEMPORARY_BYTES,
        }
    }
}

/// How many bytes the calling thread has written since it began.
fn thread_written_bytes() -> Option<u64> {
    let text = std::fs::read_to_string(THREAD_IO_FILE).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NO_DEADLINE - 1)
}
