//! Statistics of one guest since it was loaded: for the operators' status, and for comparing two guests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::engine::CallFailure;
use super::metrics::CallUsage;

/// Two significant digits are enough for choosing a budget.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Counts the calls of one guest.
#[derive(Debug)]
pub(super) struct CallTally(Mutex<TallyCounts>);

#[derive(Debug)]
struct TallyCounts {
    traps: u64,
    exhausted: u64,
    total: CallTotals,
    fuel: Histogram<u64>,
    memory: Histogram<u64>,
    microseconds: Histogram<u64>,
}

/// Sums over all calls of a guest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct CallTotals {
    /// Calls that have ended.
    pub calls: u64,
    /// Fuel of the calls.
    pub fuel: u64,
    /// Time of the calls.
    pub microseconds: u64,
}

/// Percentiles of a number over calls.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CallPercentiles {
    /// Median over the calls.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum over the calls.
    pub max: u64,
}

/// Usage of a guest since it was loaded.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct GuestUsage {
    /// Number of finished calls.
    pub calls: u64,
    /// Calls that failed by a fault of the guest.
    pub traps: u64,
    /// Calls that ran out of a budget.
    pub exhausted: u64,
    /// Units of work.
    pub fuel: CallPercentiles,
    /// Bytes of memory.
    pub memory_bytes: CallPercentiles,
    /// Time from instantiation to result.
    pub microseconds: CallPercentiles,
}

impl CallTally {
    /// Creates empty statistics.
    ///
    /// # Errors
    /// Never in practice: the precision is a valid constant.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(Mutex::new(TallyCounts {
            traps: 0,
            exhausted: 0,
            total: CallTotals::default(),
            fuel: Histogram::new(SIGNIFICANT_DIGITS)?,
            memory: Histogram::new(SIGNIFICANT_DIGITS)?,
            microseconds: Histogram::new(SIGNIFICANT_DIGITS)?,
        })))
    }

    /// Counts a finished call.
    pub(super) fn count<T>(&self, outcome: &Result<T, CallFailure>, used: &CallUsage) {
        let mut counts = self.lock();
        match outcome {
            // A call that its caller abandoned is no fault of the guest.
            Ok(_) | Err(CallFailure::Abandoned) => {}
            Err(CallFailure::Budget(_)) => counts.exhausted += 1,
            Err(CallFailure::Broken(_)) => counts.traps += 1,
        }
        let microseconds = u64::try_from(used.duration.as_micros()).unwrap_or(u64::MAX);
        counts.total.calls += 1;
        counts.total.fuel = counts.total.fuel.saturating_add(used.fuel);
        counts.total.microseconds = counts.total.microseconds.saturating_add(microseconds);
        // The histograms resize themselves; a value that cannot be recorded is dropped.
        let _ = counts.fuel.record(used.fuel);
        let _ = counts.memory.record(used.memory_bytes());
        let _ = counts.microseconds.record(microseconds);
    }

    /// Counts a result that the host rejected, after a call that ended well.
    pub(super) fn count_rejected(&self) {
        self.lock().traps += 1;
    }

    pub(super) fn usage(&self) -> GuestUsage {
        let counts = self.lock();
        GuestUsage {
            calls: counts.total.calls,
            traps: counts.traps,
            exhausted: counts.exhausted,
            fuel: percentiles(&counts.fuel),
            memory_bytes: percentiles(&counts.memory),
            microseconds: percentiles(&counts.microseconds),
        }
    }

    pub(super) fn total(&self) -> CallTotals {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, TallyCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn percentiles(numbers: &Histogram<u64>) -> CallPercentiles {
    CallPercentiles {
        p50: numbers.value_at_quantile(0.5),
        p90: numbers.value_at_quantile(0.9),
        p99: numbers.value_at_quantile(0.99),
        max: numbers.max(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::BudgetKind;

    #[test]
    fn calls_are_counted_and_their_numbers_spread() {
        let tally = CallTally::new().unwrap();
        assert_eq!(tally.usage(), GuestUsage::default());
        for number in 1..=100_u64 {
            let used = CallUsage {
                fuel: number * 1_000_000,
                memory: 65_536,
                duration: Duration::from_micros(number),
                ..CallUsage::default()
            };
            let outcome = match number {
                100 => Err(CallFailure::Budget(BudgetKind::Fuel)),
                99 => Err(CallFailure::Broken(anyhow::anyhow!("trap"))),
                _ => Ok(()),
            };
            tally.count(&outcome, &used);
        }
        tally.count_rejected();
        let usage = tally.usage();
        assert_eq!((usage.calls, usage.traps, usage.exhausted), (100, 2, 1));
        let near = |found: u64, exact: u64| found.abs_diff(exact) * 100 <= exact;
        assert!(near(usage.fuel.p50, 50_000_000), "{usage:?}");
        assert!(near(usage.fuel.p99, 99_000_000), "{usage:?}");
        assert!(near(usage.fuel.max, 100_000_000), "{usage:?}");
        assert!(near(usage.memory_bytes.p50, 65_536), "{usage:?}");
        assert_eq!(tally.total().fuel, 5050 * 1_000_000);
        assert_eq!(tally.total().microseconds, 5050);
    }
}
