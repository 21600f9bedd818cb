//! The watchdog: interrupts statements in lanes whose time is over.
//!
//! A statement checks its deadline every few instructions, but one instruction can take long. The watchdog interrupts it then, and
//! it ends at SQLite's next check. The thread sleeps while no statement runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use svc_base::sync::lock;

/// Time between two rounds of the watchdog.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);
/// Rounds without a running statement, after which the thread goes to sleep.
const QUIET_ROUNDS: u32 = 50;

/// Target of the watchdog.
pub(super) trait WatchdogTarget: Send + Sync {
    /// Interrupts a statement that is past its deadline.
    fn interrupt_if_late(&self);
}

/// Handle to an installation's watchdog, or to none. The thread ends with the last handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchdog(Option<Arc<WatchdogState>>);

struct WatchdogState {
    watched: Mutex<Vec<Weak<dyn WatchdogTarget>>>,
    /// Number of running statements.
    running: AtomicUsize,
    /// Whether the thread sleeps until it is woken.
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl std::fmt::Debug for WatchdogState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl Watchdog {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(WatchdogState {
            watched: Mutex::default(),
            running: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let watching = Arc::downgrade(&shared);
        let thread = thread::Builder::new()
            .name("sql-watchdog".into())
            .spawn(move || run_watchdog(&watching))?;
        shared.thread.get_or_init(|| thread.thread().clone());
        Ok(Self(Some(shared)))
    }

    /// Watches a target for as long as it lives.
    pub(super) fn add(&self, new: Weak<dyn WatchdogTarget>) {
        if let Some(shared) = &self.0 {
            let mut watched = shared.watched();
            watched.retain(|old| old.strong_count() > 0);
            watched.push(new);
        }
    }

    /// Notes that a statement starts, and wakes the thread if it sleeps.
    pub(super) fn statement_started(&self) {
        if let Some(shared) = &self.0 {
            shared.running.fetch_add(1, Ordering::SeqCst);
            if shared.asleep.swap(false, Ordering::SeqCst) {
                shared.wake();
            }
        }
    }

    /// Notes that a statement has ended.
    pub(super) fn statement_ended(&self) {
        if let Some(shared) = &self.0 {
            shared.running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl WatchdogState {
    fn watched(&self) -> MutexGuard<'_, Vec<Weak<dyn WatchdogTarget>>> {
        lock(&self.watched)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Whether the thread may sleep. From here on, the start of a statement wakes it.
    fn try_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        self.running.load(Ordering::SeqCst) == 0 || !self.asleep.swap(false, Ordering::SeqCst)
    }
}

impl Drop for WatchdogState {
    fn drop(&mut self) {
        self.wake();
    }
}

fn run_watchdog(watching: &Weak<WatchdogState>) {
    let mut quiet = 0;
    while let Some(shared) = watching.upgrade() {
        quiet = if shared.running.load(Ordering::SeqCst) == 0 {
            quiet + 1
        } else {
            0
        };
        let watched: Vec<Arc<dyn WatchdogTarget>> = if quiet == 0 {
            shared.watched().iter().filter_map(Weak::upgrade).collect()
        } else {
            Vec::new()
        };
        watched.iter().for_each(|one| one.interrupt_if_late());
        let sleeps = quiet >= QUIET_ROUNDS && shared.try_sleep();
        // Nothing is held while the thread waits, so that the last handle can be dropped.
        drop(watched);
        drop(shared);
        if sleeps {
            quiet = 0;
            thread::park();
        } else {
            thread::sleep(WATCH_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Late(Mutex<Sender<()>>);

    impl WatchdogTarget for Late {
        fn interrupt_if_late(&self) {
            let _ = self.0.lock().unwrap().send(());
        }
    }

    #[test]
    fn it_sleeps_while_nothing_runs_and_wakes_for_what_does() {
        let watchdog = Watchdog::start().unwrap();
        let (looked, looks) = channel();
        let late = Arc::new(Late(Mutex::new(looked)));
        let weak: Weak<Late> = Arc::downgrade(&late);
        watchdog.add(weak);
        let shared = watchdog.0.as_ref().unwrap();
        for _ in 0..2 {
            while !shared.asleep.load(Ordering::SeqCst) {
                thread::sleep(WATCH_INTERVAL);
            }
            while looks.try_recv().is_ok() {}
            watchdog.statement_started();
            looks.recv().unwrap();
            looks.recv().unwrap();
            watchdog.statement_ended();
        }
        let gone = Arc::downgrade(shared);
        drop(watchdog);
        while gone.upgrade().is_some() {
            thread::sleep(WATCH_INTERVAL);
        }
    }
}
