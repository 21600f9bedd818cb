//! What a running statement has used: time and temporary space, looked at every thousand steps of SQLite's machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ffi};

use crate::sandbox::Stopwatch;

/// Steps of SQLite's machine between two looks: some tens of microseconds.
const STEPS: i32 = 1000;
/// The most that one statement may write to temporary files, in bytes: an endless CTE with `ORDER BY` writes
/// hundreds of megabytes a second.
const SPACE: u64 = 64 << 20;

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

#[derive(Debug)]
struct State {
    clock: Stopwatch,
    /// In nanoseconds of `clock`.
    deadline: AtomicU64,
    /// What temporary files had taken when the statement began, and whether to look at that; in bytes.
    spilled_before: AtomicU64,
    stopped: AtomicU8,
}

const RUNNING: u8 = 0;
const OUT_OF_TIME: u8 = 1;
const OUT_OF_SPACE: u8 = 2;

impl Meter {
    /// Installs a meter on a connection; nothing is stopped until [`Meter::start`].
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let state = Arc::new(State {
            clock: Stopwatch::start(),
            deadline: AtomicU64::new(u64::MAX),
            spilled_before: AtomicU64::new(0),
            stopped: AtomicU8::new(RUNNING),
        });
        let (watched, handle) = (Arc::clone(&state), Handle::of(connection));
        connection.progress_handler(STEPS, Some(move || watched.exceeded(&handle)))?;
        Ok(Self(state))
    }

    /// Begins to measure a statement that may run for `budget`.
    pub(super) fn start(&self, connection: &Connection, budget: Duration) {
        let state = &self.0;
        let spilled = Handle::of(connection).spilled();
        state.spilled_before.store(spilled, Ordering::Relaxed);
        state.stopped.store(RUNNING, Ordering::Relaxed);
        let end = state.clock.elapsed().saturating_add(budget);
        state.deadline.store(nanos(end), Ordering::Relaxed);
    }

    /// Ends measuring; answers what the statement was stopped for.
    pub(super) fn stop(&self) -> Option<Exceeded> {
        self.0.deadline.store(u64::MAX, Ordering::Relaxed);
        match self.0.stopped.load(Ordering::Relaxed) {
            OUT_OF_TIME => Some(Exceeded::Time),
            OUT_OF_SPACE => Some(Exceeded::Space),
            _ => None,
        }
    }
}

impl State {
    fn exceeded(&self, handle: &Handle) -> bool {
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline == u64::MAX {
            return false;
        }
        let spilled = handle.spilled();
        let before = self.spilled_before.load(Ordering::Relaxed);
        let stopped = if nanos(self.clock.elapsed()) >= deadline {
            OUT_OF_TIME
        } else if spilled.saturating_sub(before) > SPACE {
            OUT_OF_SPACE
        } else {
            return false;
        };
        self.stopped.store(stopped, Ordering::Relaxed);
        true
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX - 1)
}

/// SQLite's own handle of a connection, for the one number that rusqlite does not offer.
struct Handle(*mut ffi::sqlite3);

#[allow(
    unsafe_code,
    reason = "the handle is used on the connection's thread alone: its progress handler, or beside a borrow of it"
)]
// SAFETY: the pointer is only ever used while the connection is being used by the same thread.
unsafe impl Send for Handle {}

impl Handle {
    #[allow(
        unsafe_code,
        reason = "the pointer lives as long as the connection, which owns whoever holds it"
    )]
    fn of(connection: &Connection) -> Self {
        // SAFETY: nothing closes the connection or changes its settings through this pointer.
        Self(unsafe { connection.handle() })
    }

    /// How many bytes the connection has written to temporary files so far.
    #[allow(unsafe_code, reason = "rusqlite has no call for sqlite3_db_status")]
    fn spilled(&self) -> u64 {
        let (mut current, mut highest) = (0, 0);
        // SAFETY: the handle is open, and both pointers are to integers that outlive the call.
        let code = unsafe {
            ffi::sqlite3_db_status(
                self.0,
                ffi::SQLITE_DBSTATUS_TEMPBUF_SPILL,
                &raw mut current,
                &raw mut highest,
                0,
            )
        };
        // The counter is an int, which wraps after 2 GB: the difference to the start is taken from what it shows.
        if code == ffi::SQLITE_OK {
            u64::from(current.cast_unsigned())
        } else {
            0
        }
    }
}
