//! Timing of a statement, remembered between calls, which chooses the lane where it delays no others.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time limit on the thread of a request.
pub(super) const INLINE_BUDGET: Duration = Duration::from_millis(1);
/// Time limit in the short lane and in a group commit.
pub(super) const SHORT_BUDGET: Duration = Duration::from_millis(20);
/// Time limit in the short lane on a busy machine.
pub(super) const DELAYED_BUDGET: Duration = Duration::from_millis(200);
/// Short runs that a long statement needs until it counts as short again.
const SHORT_RUNS_TO_RECOVER: i32 = 32;

/// Lane in which a statement runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementLane {
    /// On the thread of the request: it has been quick each time.
    Inline,
    /// In the short lane: nothing is known of it.
    Short,
    /// In the long lane: it has been long.
    Long,
}

/// Timing of a statement's earlier runs.
#[derive(Debug, Default)]
pub struct StatementTiming {
    state: AtomicI32,
    /// Number of next runs that skip the thread of the request.
    inline_skips: AtomicI32,
}

/// Values of [`StatementTiming::state`]: above zero the statement is quick; below zero it is long, for as many runs.
const UNKNOWN_TIMING: i32 = 0;
const QUICK_TIMING: i32 = 1;

impl StatementTiming {
    /// Returns the lane of the next run.
    pub(super) fn lane(&self) -> StatementLane {
        match self.state.load(Ordering::Relaxed) {
            UNKNOWN_TIMING => StatementLane::Short,
            state if state > UNKNOWN_TIMING => {
                let inline_skips = self.inline_skips.load(Ordering::Relaxed);
                if inline_skips > 0 {
                    self.inline_skips.store(inline_skips - 1, Ordering::Relaxed);
                    StatementLane::Short
                } else {
                    StatementLane::Inline
                }
            }
            _ => StatementLane::Long,
        }
    }

    /// Records the duration of a run, and its processor time if that was measured. Only processor time makes a statement long: on
    /// a busy machine any run takes long.
    pub(super) fn record_run(&self, time: Duration, worked: Option<Duration>) {
        let state = self.state.load(Ordering::Relaxed);
        let now = if worked.is_some_and(|worked| worked > SHORT_BUDGET) {
            -SHORT_RUNS_TO_RECOVER
        } else if state < UNKNOWN_TIMING {
            state + 1
        } else if time <= INLINE_BUDGET {
            QUICK_TIMING
        } else {
            UNKNOWN_TIMING
        };
        if now != state {
            // If two runs end at once, either value is right.
            self.state.store(now, Ordering::Relaxed);
        }
    }

    /// Records that a run was too heavy for the thread of a request, however quick it is.
    pub(super) fn avoid_inline(&self) {
        self.inline_skips
            .store(SHORT_RUNS_TO_RECOVER, Ordering::Relaxed);
    }

    /// Records that a run exceeded the time limit of its lane.
    pub(super) fn record_too_long(&self) {
        self.state.store(-SHORT_RUNS_TO_RECOVER, Ordering::Relaxed);
    }
}

/// Processor time of the calling thread since it started.
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
        assert_eq!(timing.lane(), StatementLane::Short);
        timing.record_run(little, Some(little));
        assert_eq!(timing.lane(), StatementLane::Inline);
        timing.record_run(late, None);
        assert_eq!(timing.lane(), StatementLane::Short);
        timing.record_run(late, Some(late));
        assert_eq!(timing.lane(), StatementLane::Long);
    }

    #[test]
    fn what_is_set_aside_stays_among_short_work_for_a_while() {
        let timing = StatementTiming::default();
        timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        timing.avoid_inline();
        for _ in 0..SHORT_RUNS_TO_RECOVER {
            assert_eq!(timing.lane(), StatementLane::Short);
            timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        }
        assert_eq!(timing.lane(), StatementLane::Inline);
    }

    #[test]
    fn a_statement_earns_its_lane() {
        let timing = StatementTiming::default();
        assert_eq!(timing.lane(), StatementLane::Short);
        timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        assert_eq!(timing.lane(), StatementLane::Inline);
        timing.record_too_long();
        for _ in 0..SHORT_RUNS_TO_RECOVER {
            assert_eq!(timing.lane(), StatementLane::Long);
            timing.record_run(Duration::from_micros(50), Some(Duration::from_micros(50)));
        }
        assert_eq!(timing.lane(), StatementLane::Short);
        timing.record_run(Duration::from_millis(5), Some(Duration::from_millis(5)));
        assert_eq!(timing.lane(), StatementLane::Short);
        timing.record_run(Duration::from_secs(1), Some(Duration::from_secs(1)));
        assert_eq!(timing.lane(), StatementLane::Long);
    }
}
