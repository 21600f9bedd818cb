//! Times of calls, counted in buckets whose widths grow with the time: a ninth of it, whatever the time is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bits below the leading one that choose a bucket: eight buckets for each doubling.
const STEP_BITS: u32 = 3;
/// Times below this power of two, in microseconds, share the first bucket.
const FIRST_POWER: u32 = 5;
/// Times from this power of two on, in microseconds, share the last bucket: a call never takes 33 seconds.
const LAST_POWER: u32 = 25;
/// Number of buckets.
const BUCKETS: usize = (((LAST_POWER - FIRST_POWER) << STEP_BITS) + 2) as usize;

/// Returns the bucket of a time.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let power = micros.max(1).ilog2();
    match power {
        ..FIRST_POWER => 0,
        LAST_POWER.. => BUCKETS - 1,
        _ => {
            let step = usize::try_from(micros >> (power - STEP_BITS)).unwrap_or(0);
            let step = step & ((1 << STEP_BITS) - 1);
            1 + ((power - FIRST_POWER) << STEP_BITS) as usize + step
        }
    }
}

/// Returns the middle of a bucket, in milliseconds.
#[allow(clippy::cast_precision_loss, reason = "buckets are small numbers")]
fn middle_ms(bucket: usize) -> f64 {
    let start = |bucket: usize| {
        let place = bucket - 1;
        let (power, step) = (place >> STEP_BITS, place & ((1 << STEP_BITS) - 1));
        let width = 1.0 + step as f64 / f64::from(1 << STEP_BITS);
        width * f64::from(1 << FIRST_POWER) * (power as f64).exp2()
    };
    let micros = match bucket {
        0 => f64::from(1 << FIRST_POWER) / 2.0,
        last if last >= BUCKETS - 1 => start(BUCKETS - 1),
        bucket => f64::midpoint(start(bucket), start(bucket + 1)),
    };
    // Three digits say as much as a bucket does.
    let digits = 10_f64.powf(2.0 - micros.log10().floor());
    (micros * digits).round() / digits / 1000.0
}

/// Buckets that are counted into by many threads.
#[derive(Debug)]
pub(super) struct TimeCounters([AtomicU32; BUCKETS]);

impl Default for TimeCounters {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; BUCKETS])
    }
}

impl TimeCounters {
    /// Counts a time.
    pub(super) fn count(&self, took: Duration) {
        self.0[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// Moves what was counted into `times`.
    pub(super) fn drain_into(&self, times: &mut CallTimes) {
        for (bucket, counter) in self.0.iter().enumerate() {
            // Most are empty, and a load leaves its line to others.
            if counter.load(Ordering::Relaxed) > 0 {
                times.add(bucket, counter.swap(0, Ordering::Relaxed).into());
            }
        }
    }
}

/// Counted times: each bucket that is not empty, with its number of calls, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallTimes(Vec<(u16, u64)>);

impl CallTimes {
    fn add(&mut self, bucket: usize, count: u64) {
        let bucket = u16::try_from(bucket).unwrap_or(u16::MAX);
        match self.0.binary_search_by_key(&bucket, |(there, _)| *there) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (bucket, count)),
        }
    }

    /// Adds the times of another hour.
    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            self.add((*bucket).into(), *count);
        }
    }

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time, in milliseconds, that `percent` of the calls did not pass; `None` without calls.
    pub fn percentile_ms(&self, percent: u64) -> Option<f64> {
        let all: u64 = self.0.iter().map(|(_, count)| count).sum();
        let rank = (all * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = self.0.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.map(|(bucket, _)| middle_ms((*bucket).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_within_a_ninth_of_what_is_told() {
        let mut last = 0;
        for micros in (32..40_000).chain((40_000..30_000_000).step_by(9_973)) {
            let at = bucket(Duration::from_micros(micros));
            assert!(at >= last && at < BUCKETS - 1, "{micros}: {at}");
            last = at;
            let (told, true_ms) = (middle_ms(at), micros as f64 / 1000.0);
            assert!((told / true_ms - 1.0).abs() < 0.08, "{true_ms}: {told}");
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let counters = TimeCounters::default();
        for ms in 1..=100 {
            counters.count(Duration::from_millis(ms));
        }
        let (mut times, mut twice) = (CallTimes::default(), CallTimes::default());
        counters.drain_into(&mut times);
        let kept: CallTimes =
            serde_json::from_str(&serde_json::to_string(&times).unwrap()).unwrap();
        assert_eq!(kept, times);
        twice.merge(&times);
        twice.merge(&kept);
        for (percent, ms) in [(50, 50.0), (95, 95.0), (99, 99.0), (100, 100.0)] {
            for times in [&times, &twice] {
                let found = times.percentile_ms(percent).unwrap();
                assert!((found / ms - 1.0).abs() < 0.08, "{percent}: {found}");
            }
        }
        // They were taken once.
        let mut again = CallTimes::default();
        counters.drain_into(&mut again);
        assert!(again.is_empty() && again.percentile_ms(50).is_none());
    }
}
