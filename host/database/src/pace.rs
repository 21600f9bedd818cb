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
pub struct Pace {
    known: AtomicI32,
    /// Whether a single step of it may be long, so that no short deadline would be kept.
    has_long_steps: bool,
}

/// What one row can take long with, and no deadline interrupts.
const LONG_STEPS: [&str; 4] = ["like", "glob", "instr", "replace"];

/// The values of [`Pace`]: above zero it is quick, below zero it is in doubt for as many runs.
const UNKNOWN: i32 = 0;
const QUICK: i32 = 1;

impl Pace {
    /// What is known of a statement from its text: finding a word in a literal costs only speed.
    pub fn of(sql: &str) -> Self {
        let mut words = sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_long = |word: &str| {
            LONG_STEPS
                .iter()
                .any(|long| word.eq_ignore_ascii_case(long))
        };
        Self {
            known: AtomicI32::new(UNKNOWN),
            has_long_steps: words.any(is_long),
        }
    }

    /// Where it runs next.
    pub(super) fn lane(&self) -> Lane {
        if self.has_long_steps {
            return Lane::Long;
        }
        match self.known.load(Ordering::Relaxed) {
            UNKNOWN => Lane::Short,
            known if known > UNKNOWN => Lane::Inline,
            _ => Lane::Long,
        }
    }

    /// Notes how long a run took.
    pub(super) fn took(&self, time: Duration) {
        let known = self.known.load(Ordering::Relaxed);
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
            self.known.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that a run did not end within a lane's time.
    pub(super) fn too_long(&self) {
        self.known.store(-DOUBT, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_long_with_a_row_never_runs_among_short_work() {
        for long in [
            "SELECT a LIKE b",
            "SELECT Replace (a, b, c)",
            "SELECT instr(a,b)",
        ] {
            let pace = Pace::of(long);
            pace.took(Duration::from_micros(50));
            assert_eq!(pace.lane(), Lane::Long, "{long}");
        }
        assert_eq!(Pace::of("SELECT likes FROM a").lane(), Lane::Short);
    }

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
