//! How long a statement takes, remembered between its calls, so that it runs where it delays nobody.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// What runs on the thread of the request itself is done within this.
pub(super) const INLINE: Duration = Duration::from_millis(1);
/// What runs beside others' short work, or in a group with others' writes, is done within this.
pub(super) const SHORT: Duration = Duration::from_millis(20);
/// How many short runs it takes until a statement that was long is believed again.
const DOUBT: i32 = 32;

/// Where a statement runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Here and now: it has been quick every time.
    Inline,
    /// Among short work: nothing is known of it.
    Short,
    /// Among long work: it has been long.
    Long,
}

/// What is known of a statement.
#[derive(Debug, Default)]
pub struct Pace(AtomicI32);

/// The values of [`Pace`]: above zero it is quick, below zero it is in doubt for as many runs.
const UNKNOWN: i32 = 0;
const QUICK: i32 = 1;

impl Pace {
    /// Where it runs next.
    pub(super) fn lane(&self) -> Lane {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => Lane::Short,
            known if known > UNKNOWN => Lane::Inline,
            _ => Lane::Long,
        }
    }

    /// Notes how long a run took.
    pub(super) fn took(&self, time: Duration) {
        let known = self.0.load(Ordering::Relaxed);
        let now = if time > SHORT {
            -DOUBT
        } else if known < UNKNOWN {
            known + 1
        } else if time <= INLINE {
            QUICK
        } else {
            UNKNOWN
        };
        if now != known {
            // Two runs that end at once may both write: either is right about the statement.
            self.0.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that a run did not end within a lane's time.
    pub(super) fn too_long(&self) {
        self.0.store(-DOUBT, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_earns_its_lane() {
        let pace = Pace::default();
        assert_eq!(pace.lane(), Lane::Short);
        pace.took(Duration::from_micros(50));
        assert_eq!(pace.lane(), Lane::Inline);
        pace.too_long();
        for _ in 0..DOUBT {
            assert_eq!(pace.lane(), Lane::Long);
            pace.took(Duration::from_micros(50));
        }
        assert_eq!(pace.lane(), Lane::Short);
        pace.took(Duration::from_millis(5));
        assert_eq!(pace.lane(), Lane::Short);
        pace.took(Duration::from_secs(1));
        assert_eq!(pace.lane(), Lane::Long);
    }
}
