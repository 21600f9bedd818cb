//! Cancellation of queued work: the caller may cancel it until a worker has started it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Stopwatch;

/// State of a piece of queued work, shared by the caller that waits and the worker.
#[derive(Debug)]
pub struct QueuedWorkState {
    state: AtomicU8,
    queued: Stopwatch,
}

const WAITING: u8 = 0;
const STARTED: u8 = 1;
const CANCELLED: u8 = 2;

impl QueuedWorkState {
    /// Records that work was queued now.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(WAITING),
            queued: Stopwatch::start(),
        })
    }

    /// Marks the work as started; `false` if the caller has cancelled it.
    #[must_use]
    pub fn start(&self) -> bool {
        self.leave_queue(STARTED)
    }

    /// Returns started work to the queue, unless it was queued longer than `longest` ago. Returns whether it waits again.
    pub fn requeue(&self, longest: Duration) -> bool {
        let waits = self.queued.elapsed() < longest;
        if waits {
            self.state.store(WAITING, Ordering::Relaxed);
        }
        waits
    }

    /// Cancels the work; `false` if it was started already.
    pub fn cancel(&self) -> bool {
        self.leave_queue(CANCELLED)
    }

    /// Whether the caller has cancelled the work: it never starts then.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CANCELLED
    }

    /// Returns the seconds since the work was queued.
    pub fn queued_seconds(&self) -> f64 {
        self.queued.seconds()
    }

    fn leave_queue(&self, state: u8) -> bool {
        self.state
            .compare_exchange(WAITING, state, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// Cancels queued work when the future that waits for it is dropped.
struct CancelOnDrop<'t>(&'t QueuedWorkState);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Waits for the result of queued work, but at most `longest` for its start. `None` if it was cancelled or dropped: then nothing
/// was done.
pub async fn wait_for_result<T>(
    mut answered: oneshot::Receiver<T>,
    work_state: &QueuedWorkState,
    longest: Duration,
) -> Option<T> {
    let _cancel = CancelOnDrop(work_state);
    match tokio::time::timeout(longest, &mut answered).await {
        Ok(answer) => answer.ok(),
        Err(_) if work_state.cancel() => None,
        Err(_) => answered.await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_waits_again_can_be_given_up_while_there_is_time() {
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
        let work_state = QueuedWorkState::new();
        assert!(work_state.start() && !work_state.cancel());
        assert!(work_state.requeue(long) && work_state.start());
        assert!(work_state.requeue(long) && work_state.cancel() && work_state.is_cancelled());
        assert!(!work_state.start(), "its caller has gone");
        let late = QueuedWorkState::new();
        assert!(late.start() && !late.requeue(none));
        assert!(
            !late.start() && !late.is_cancelled(),
            "it has begun for good"
        );
    }
}
