//! Meter of a running statement: its time and its temporary space, checked every few instructions of SQLite.
//!
//! One instruction can take long. So the watchdog also checks the deadlines of statements in lanes, our own functions check at
//! each call, and between two checks of SQLite no program takes longer than its [cost] allows.
//!
//! [cost]: super::cost

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, ffi};

use super::watchdog::{Watchdog, WatchdogTarget};
use svc_base::Stopwatch;
use svc_base::sync::lock;

/// Instructions of SQLite between two checks of a closely watched statement.
pub(super) const STEPS_PER_CHECK: i32 = 32;
/// Factor by which a statement in a lane is checked less often, since the watchdog checks it as well: reading the clock more often
/// would slow a scan by a tenth.
const LANE_CHECK_FACTOR: u32 = 32;
/// Time between two checks of temporary space. The first check comes after this time, when little is written.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The most bytes of temporary files of one statement: an endless CTE with `ORDER BY` writes hundreds of megabytes a second.
const MAX_TEMPORARY_BYTES: u64 = 64 << 20;
/// File in which the system counts the bytes written by the calling thread.
const THREAD_IO_FILE: &str = "/proc/thread-self/io";

/// Limit for which a statement was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    /// The time limit.
    Time,
    /// The limit of temporary space.
    Space,
}

/// The meter of a connection.
#[derive(Debug)]
pub(super) struct StatementMeter(Arc<MeterState>);

struct MeterState {
    clock: Stopwatch,
    /// Held while a statement starts or ends, and while the watchdog interrupts, so that it never interrupts the next statement.
    interrupt_lock: Mutex<()>,
    interrupt: InterruptHandle,
    /// In nanoseconds of `clock`, like `next_space_check`.
    deadline: AtomicU64,
    next_space_check: AtomicU64,
    /// Bytes that the thread had written at the first check; `NOT_MEASURED` before it.
    written_before: AtomicU64,
    stop_reason: AtomicU8,
    /// Whether every call of the progress handler checks the clock.
    closely: AtomicBool,
    /// Calls of the progress handler since the last check.
    skipped_checks: AtomicU32,
    watchdog: Watchdog,
}

const NOT_MEASURED: u64 = u64::MAX;
const NO_DEADLINE: u64 = u64::MAX;

const RUNNING: u8 = 0;
const OUT_OF_TIME: u8 = 1;
const OUT_OF_SPACE: u8 = 2;

/// Frequency of the checks of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitCheckFrequency {
    /// Every 32 instructions, without the watchdog: the statement runs on the thread of a request.
    Closely,
    /// Every 1024 instructions, and by the watchdog.
    InLane,
}

impl StatementMeter {
    /// Installs a meter on a connection. It stops nothing before [`StatementMeter::start`].
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

    /// Starts to meter a statement that may run for `budget`.
    pub(super) fn start(&self, budget: Duration, watch: LimitCheckFrequency) {
        let state = &self.0;
        {
            let _turn = state.lock_interrupt();
            let now = state.clock.elapsed();
            state.stop_reason.store(RUNNING, Ordering::Relaxed);
            state.written_before.store(NOT_MEASURED, Ordering::Relaxed);
            state
                .next_space_check
                .store(nanos(now + SPACE_CHECK_INTERVAL), Ordering::Relaxed);
            let closely = watch == LimitCheckFrequency::Closely;
            state.closely.store(closely, Ordering::Relaxed);
            let end = nanos(now.saturating_add(budget));
            state.deadline.store(end, Ordering::Relaxed);
        }
        if watch == LimitCheckFrequency::InLane {
            state.watchdog.statement_started();
        }
    }

    /// Ends metering; returns the limit for which the statement was stopped.
    pub(super) fn stop(&self) -> Option<ExceededLimit> {
        let state = &self.0;
        if !state.closely.load(Ordering::Relaxed) {
            state.watchdog.statement_ended();
        }
        let _turn = state.lock_interrupt();
        state.deadline.store(NO_DEADLINE, Ordering::Relaxed);
        match state.stop_reason.load(Ordering::Relaxed) {
            OUT_OF_TIME => Some(ExceededLimit::Time),
            OUT_OF_SPACE => Some(ExceededLimit::Space),
            _ => None,
        }
    }

    /// Handle to the deadline of the running statement.
    pub(super) fn deadline(&self) -> StatementDeadline {
        StatementDeadline(Arc::clone(&self.0))
    }
}

/// Deadline of the running statement, for functions to check: SQLite does not interrupt a function.
#[derive(Clone, Debug)]
pub(super) struct StatementDeadline(Arc<MeterState>);

impl StatementDeadline {
    /// Fails if the deadline has passed.
    ///
    /// # Errors
    /// SQLite's error for an interruption.
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

    /// Starts work that checks the deadline every few kilobytes.
    ///
    /// # Errors
    /// SQLite's error for an interruption, if the deadline has passed.
    pub(super) fn begin_work(&self) -> rusqlite::Result<FunctionWorkMeter<'_>> {
        self.check()?;
        Ok(FunctionWorkMeter {
            deadline: self,
            left: BYTES_PER_CHECK,
        })
    }
}

/// Bytes of work between two checks: some tens of microseconds.
const BYTES_PER_CHECK: usize = 16 << 10;

/// Work of a function, which checks the deadline now and then.
#[derive(Debug)]
pub(super) struct FunctionWorkMeter<'d> {
    deadline: &'d StatementDeadline,
    left: usize,
}

impl FunctionWorkMeter<'_> {
    /// Counts bytes that are about to be processed, and checks the deadline if it is time.
    ///
    /// # Errors
    /// SQLite's error for an interruption, once the deadline has passed.
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

impl WatchdogTarget for MeterState {
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

    /// Whether this call of the progress handler goes without a check.
    fn skips_check(&self) -> bool {
        if self.closely.load(Ordering::Relaxed) {
            return false;
        }
        // Only the thread that runs the statement counts.
        let passed = self.skipped_checks.load(Ordering::Relaxed) + 1;
        let looks = passed >= LANE_CHECK_FACTOR;
        self.skipped_checks
            .store(if looks { 0 } else { passed }, Ordering::Relaxed);
        !looks
    }

    /// Whether the statement has filled its temporary space. Its thread does nothing else meanwhile, so what the thread writes are
    /// temporary files, and for a write a few megabytes of the log.
    fn is_out_of_space(&self, now: Duration) -> bool {
        if nanos(now) < self.next_space_check.load(Ordering::Relaxed) {
            return false;
        }
        self.next_space_check
            .store(nanos(now + SPACE_CHECK_INTERVAL), Ordering::Relaxed);
        // If the system does not tell, the time is the only limit.
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

/// Bytes that the calling thread has written since it started.
fn thread_written_bytes() -> Option<u64> {
    let text = std::fs::read_to_string(THREAD_IO_FILE).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    line.parse().ok()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NO_DEADLINE - 1)
}
