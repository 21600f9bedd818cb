//! Turns of queued work: its caller may give up until it has begun, and its worker begins it unless the caller has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Stopwatch;

/// Whether queued work has begun, agreed between who waits and who works.
#[derive(Debug)]
pub struct WorkState {
    state: AtomicU8,
    queued: Stopwatch,
}

const WAITING: u8 = 0;
const STARTED: u8 = 1;
const CANCELLED: u8 = 2;

impl WorkState {
    /// Queues work now.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(WAITING),
            queued: Stopwatch::start(),
        })
    }

    /// Begins, unless its caller has given up.
    #[must_use]
    pub fn start(&self) -> bool {
        self.leave_queue(STARTED)
    }

    /// Waits again, as if it had not begun, unless it has been queued for longer than that; its caller no longer gives up by itself then.
    pub fn requeue(&self, longest: Duration) -> bool {
        let waits = self.queued.elapsed() < longest;
        if waits {
            self.state.store(WAITING, Ordering::Relaxed);
        }
        waits
    }

    /// Gives up, unless it has begun.
    pub fn cancel(&self) -> bool {
        self.leave_queue(CANCELLED)
    }

    /// Whether its caller has given up: it never begins.
    pub fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CANCELLED
    }

    /// How long ago it was queued, in seconds.
    pub fn queued_seconds(&self) -> f64 {
        self.queued.seconds()
    }

    fn leave_queue(&self, state: u8) -> bool {
        self.state
            .compare_exchange(WAITING, state, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// Gives a work_state up when its caller goes away: what has not begun is nobody's any more.
struct CancelOnDrop<'t>(&'t WorkState);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Waits for the answer of queued work; for its beginning, only so long. `None` where it was given up or dropped: nothing was done.
pub async fn wait_for_result<T>(
    mut answered: oneshot::Receiver<T>,
    work_state: &WorkState,
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
        let work_state = WorkState::new();
        assert!(work_state.start() && !work_state.cancel());
        assert!(work_state.requeue(long) && work_state.start());
        assert!(work_state.requeue(long) && work_state.cancel() && work_state.is_cancelled());
        assert!(!work_state.start(), "its caller has gone");
        let late = WorkState::new();
        assert!(late.start() && !late.requeue(none));
        assert!(
            !late.start() && !late.is_cancelled(),
            "it has begun for good"
        );
    }
}
