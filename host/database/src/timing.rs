//! How long a statement takes, remembered between its calls, so that it runs where it delays nobody.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time within which work on the thread of the request itself is done.
pub(super) const INLINE_BUDGET: Duration = Duration::from_millis(1);
/// Time within which work is done that runs beside others' short work, or in a group with others' writes.
pub(super) const SHORT_BUDGET: Duration = Duration::from_millis(20);
/// How long what is short may take where others keep its thread from working.
pub(super) const DELAYED_BUDGET: Duration = Duration::from_millis(200);
/// How many short runs it takes until a statement that was long is believed again.
const DOUBT_RUNS: i32 = 32;

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

/// Expected speed of a statement.
#[derive(Debug, Default)]
pub struct StatementTiming {
    state: AtomicI32,
    /// How many runs from now on are not tried on the thread of a request.
    inline_skips: AtomicI32,
}

/// The values of [`StatementTiming`]: above zero it is quick, below zero it is in doubt for as many runs.
const UNKNOWN: i32 = 0;
const QUICK: i32 = 1;

impl StatementTiming {
    /// Where it runs next.
    pub(super) fn lane(&self) -> Lane {
        match self.state.load(Ordering::Relaxed) {
            UNKNOWN => Lane::Short,
            state if state > UNKNOWN => {
                let inline_skips = self.inline_skips.load(Ordering::Relaxed);
                if inline_skips > 0 {
                    self.inline_skips.store(inline_skips - 1, Ordering::Relaxed);
                    Lane::Short
                } else {
                    Lane::Inline
                }
            }
            _ => Lane::Long,
        }
    }

    /// Notes how long a run took, and how long its thread has `worked` for it where that was measured. Only work makes a
    /// statement long: on a busy machine what is short takes its time, too.
    pub(super) fn record_run(&self, time: Duration, worked: Option<Duration>) {
        let state = self.state.load(Ordering::Relaxed);
        let now = if worked.is_some_and(|worked| worked > SHORT_BUDGET) {
            -DOUBT_RUNS
        } else if state < UNKNOWN {
            state + 1
        } else if time <= INLINE_BUDGET {
            QUICK
        } else {
            UNKNOWN
        };
        if now != state {
            // Two runs that end at once may both write: either is right about the statement.
            self.state.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that a run was nothing for the thread of a request, however quick it is.
    pub(super) fn avoid_inline(&self) {
        self.inline_skips.store(DOUBT_RUNS, Ordering::Relaxed);
    }

    /// Notes that a run did not end within a lane's time.
    pub(super) fn record_too_long(&self) {
        self.state.store(-DOUBT_RUNS, Ordering::Relaxed);
    }
}

/// How long the calling thread has been on a processor since it began.
pub(super) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_delay_is_not_long() {
        let timing = StatementTiming::default();
        let (late, little) = (Duration::from_secs(1), Duration::from_micros(50));
        timing.record_run(late, Some(little));
        assert_eq!(timing.lane(), Lane::Short);
        timing.record_run(little, Some(little));
        assert_eq!(timing.lane(), Lane::Inline);
        timing.record_run(late, None);
        assert_eq!(timing.lane(), Lane::Short);
        timing.record_run(late, Some(late));
        assert_eq!(timing.lane(), Lane::Long);
    }

    #[test]
    fn what_is_set_aside_stays_among_short_work_for_a_while() {
        let timing = StatementTiming::default();
        timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        timing.avoid_inline();
        for _ in 0..DOUBT_RUNS {
            assert_eq!(timing.lane(), Lane::Short);
            timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        }
        assert_eq!(timing.lane(), Lane::Inline);
    }

    #[test]
    fn a_statement_earns_its_lane() {
        let timing = StatementTiming::default();
        assert_eq!(timing.lane(), Lane::Short);
        timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        assert_eq!(timing.lane(), Lane::Inline);
        timing.record_too_long();
        for _ in 0..DOUBT_RUNS {
            assert_eq!(timing.lane(), Lane::Long);
            timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        }
        assert_eq!(timing.lane(), Lane::Short);
        timing.record_run(Duration::from_millis(5), Some(Duration::from_millis(5)));
        assert_eq!(timing.lane(), Lane::Short);
        timing.record_run(Duration::from_secs(1), Some(Duration::from_secs(1)));
        assert_eq!(timing.lane(), Lane::Long);
    }
}
