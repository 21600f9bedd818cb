//! The watchdog: it looks at the statements that run in lanes, and interrupts those whose time is over.
//!
//! A statement looks at its deadline by itself every so many steps of SQLite's machine, but steps can be long. The watchdog
//! needs no steps: what it interrupts ends at the next place where SQLite looks. Its thread sleeps for good while nothing runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use svc_base::sync::lock;

/// How often the watchdog looks.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);
/// How many looks in a row find nothing that runs before the thread goes to sleep.
const QUIET_ROUNDS: u32 = 50;

/// Something to look at.
pub(super) trait Interruptible: Send + Sync {
    /// Interrupts what has run for too long.
    fn interrupt_if_late(&self);
}

/// A handle to an installation's watchdog, or to none. Its thread ends with the last handle.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchdog(Option<Arc<WatchdogState>>);

struct WatchdogState {
    watched: Mutex<Vec<Weak<dyn Interruptible>>>,
    /// How many statements run.
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
    /// When the system has none to give.
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

    /// Looks at something for as long as it lives.
    pub(super) fn add(&self, new: Weak<dyn Interruptible>) {
        if let Some(shared) = &self.0 {
            let mut watched = shared.watched();
            watched.retain(|old| old.strong_count() > 0);
            watched.push(new);
        }
    }

    /// Notes that a statement runs, and wakes the thread if it sleeps.
    pub(super) fn begin(&self) {
        if let Some(shared) = &self.0 {
            shared.running.fetch_add(1, Ordering::SeqCst);
            if shared.asleep.swap(false, Ordering::SeqCst) {
                shared.wake();
            }
        }
    }

    /// Notes that a statement has ended.
    pub(super) fn end(&self) {
        if let Some(shared) = &self.0 {
            shared.running.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl WatchdogState {
    fn watched(&self) -> MutexGuard<'_, Vec<Weak<dyn Interruptible>>> {
        lock(&self.watched)
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Whether the thread may sleep until it is woken: from here on the begin of a statement wakes it.
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
        let watched: Vec<Arc<dyn Interruptible>> = if quiet == 0 {
            shared.watched().iter().filter_map(Weak::upgrade).collect()
        } else {
            Vec::new()
        };
        watched.iter().for_each(|one| one.interrupt_if_late());
        let sleeps = quiet >= QUIET_ROUNDS && shared.try_sleep();
        // Nothing is held while it waits, so that the last handle can go.
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

    impl Interruptible for Late {
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
            watchdog.begin();
            looks.recv().unwrap();
            looks.recv().unwrap();
            watchdog.end();
        }
        let gone = Arc::downgrade(shared);
        drop(watchdog);
        while gone.upgrade().is_some() {
            thread::sleep(WATCH_INTERVAL);
        }
    }
}
