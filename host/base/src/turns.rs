//! Turns of queued work: its caller may give up until it has begun, and its worker begins it unless the caller has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Stopwatch;

/// Whether queued work has begun, agreed between who waits and who works.
#[derive(Debug)]
pub struct Turn {
    state: AtomicU8,
    queued: Stopwatch,
}

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Turn {
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
    pub fn begin(&self) -> bool {
        self.leave_for(BEGUN)
    }

    /// Waits again, as if it had not begun, unless it has been queued for longer than that; its caller no longer gives up by itself then.
    pub fn wait_again(&self, longest: Duration) -> bool {
        let waits = self.queued.elapsed() < longest;
        if waits {
            self.state.store(WAITING, Ordering::Relaxed);
        }
        waits
    }

    /// Gives up, unless it has begun.
    pub fn give_up(&self) -> bool {
        self.leave_for(GIVEN_UP)
    }

    /// Whether its caller has given up: it never begins.
    pub fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Relaxed) == GIVEN_UP
    }

    /// How long ago it was queued, in seconds.
    pub fn queued_seconds(&self) -> f64 {
        self.queued.seconds()
    }

    fn leave_for(&self, state: u8) -> bool {
        self.state
            .compare_exchange(WAITING, state, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// Gives a turn up when its caller goes away: what has not begun is nobody's any more.
struct GiveUp<'t>(&'t Turn);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Waits for the answer of queued work; for its beginning, only so long. `None` where it was given up or dropped: nothing was done.
pub async fn answer_of<T>(
    mut answered: oneshot::Receiver<T>,
    turn: &Turn,
    longest: Duration,
) -> Option<T> {
    let _given_up = GiveUp(turn);
    match tokio::time::timeout(longest, &mut answered).await {
        Ok(answer) => answer.ok(),
        Err(_) if turn.give_up() => None,
        Err(_) => answered.await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_waits_again_can_be_given_up_while_there_is_time() {
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
        let turn = Turn::new();
        assert!(turn.begin() && !turn.give_up());
        assert!(turn.wait_again(long) && turn.begin());
        assert!(turn.wait_again(long) && turn.give_up() && turn.is_given_up());
        assert!(!turn.begin(), "its caller has gone");
        let late = Turn::new();
        assert!(late.begin() && !late.wait_again(none));
        assert!(
            !late.begin() && !late.is_given_up(),
            "it has begun for good"
        );
    }
}
