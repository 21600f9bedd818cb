//! How much a socket may send: a bucket of tokens that goes on below zero, so that whoever goes on sending is found out.

use std::time::Duration;

/// The least that a socket may send at once.
const MIN_BURST: u64 = 20;
/// Parts of a token, so that it refills evenly: one each nanosecond and message a second.
const UNITS_PER_TOKEN: i128 = 1_000_000_000;

/// Budget that is left to a socket.
#[derive(Debug)]
pub(super) struct Meter {
    per_second: i128,
    /// Full, in parts of a token; the bucket goes as far below zero.
    full: i128,
    left: i128,
    at: Duration,
}

/// Decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeterDecision {
    /// It is taken.
    AcceptedUpgrade,
    /// It is one too many for now.
    Refused,
    /// There were too many for too long.
    Sustained,
}

impl Meter {
    /// A full bucket.
    pub(super) fn new(per_second: u64, now: Duration) -> Self {
        let full = i128::from(per_second.saturating_mul(2).max(MIN_BURST)) * UNITS_PER_TOKEN;
        Self {
            per_second: per_second.into(),
            full,
            left: full,
            at: now,
        }
    }

    /// Counts a frame, whatever becomes of it.
    pub(super) fn count(&mut self, now: Duration) -> MeterDecision {
        let passed = now.saturating_sub(self.at).as_nanos();
        self.at = now;
        let refilled = i128::try_from(passed)
            .unwrap_or(i128::MAX)
            .saturating_mul(self.per_second);
        self.left = self.left.saturating_add(refilled).min(self.full) - UNITS_PER_TOKEN;
        if self.left >= 0 {
            MeterDecision::AcceptedUpgrade
        } else if self.left >= -self.full {
            MeterDecision::Refused
        } else {
            MeterDecision::Sustained
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_are_fine_for_ever() {
        let mut meter = Meter::new(10, Duration::ZERO);
        for n in 0..10_000 {
            assert_eq!(
                meter.count(Duration::from_millis(n * 100)),
                MeterDecision::AcceptedUpgrade
            );
        }
    }

    #[test]
    fn a_flood_is_taken_then_refused_then_ended() {
        let mut meter = Meter::new(10, Duration::ZERO);
        for expected in [MeterDecision::AcceptedUpgrade, MeterDecision::Refused] {
            for _ in 0..20 {
                assert_eq!(meter.count(Duration::ZERO), expected);
            }
        }
        assert_eq!(meter.count(Duration::ZERO), MeterDecision::Sustained);
    }

    #[test]
    fn who_pauses_may_go_on() {
        let mut meter = Meter::new(10, Duration::ZERO);
        for _ in 0..30 {
            meter.count(Duration::ZERO);
        }
        // Ten below zero: a second later there is one token, then none.
        let later = Duration::from_millis(1_100);
        assert_eq!(meter.count(later), MeterDecision::AcceptedUpgrade);
        assert_eq!(meter.count(later), MeterDecision::Refused);
    }

    #[test]
    fn a_little_too_much_is_ended_in_time() {
        let mut meter = Meter::new(10, Duration::ZERO);
        let draws = (0..).map(|n| meter.count(Duration::from_millis(n * 66)));
        let until = draws
            .take_while(|draw| *draw != MeterDecision::Sustained)
            .count();
        // Fifteen a second lose five tokens a second of forty.
        assert!((110..130).contains(&until), "{until}");
    }
}
