//! Rate limit of a socket: a token bucket that continues below zero, so that a client that keeps sending is detected.

use std::time::Duration;

/// Minimum burst of a socket.
const MIN_BURST: u64 = 20;
/// Units of a token, so that the bucket refills evenly: one unit per nanosecond and message a second.
const UNITS_PER_TOKEN: i128 = 1_000_000_000;

/// Token bucket of a socket.
#[derive(Debug)]
pub(super) struct SocketRateMeter {
    per_second: i128,
    /// Capacity in units; the level may be as far below zero.
    full: i128,
    left: i128,
    at: Duration,
}

/// Decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameDecision {
    /// The frame is accepted.
    Accepted,
    /// The frame is refused.
    Refused,
    /// The rate was exceeded for too long, so the socket is closed.
    Sustained,
}

impl SocketRateMeter {
    /// Creates a full bucket.
    pub(super) fn new(per_second: u64, now: Duration) -> Self {
        let full = i128::from(per_second.saturating_mul(2).max(MIN_BURST)) * UNITS_PER_TOKEN;
        Self {
            per_second: per_second.into(),
            full,
            left: full,
            at: now,
        }
    }

    /// Counts a frame, accepted or not.
    pub(super) fn count(&mut self, now: Duration) -> FrameDecision {
        let passed = now.saturating_sub(self.at).as_nanos();
        self.at = now;
        let refilled = i128::try_from(passed)
            .unwrap_or(i128::MAX)
            .saturating_mul(self.per_second);
        self.left = self.left.saturating_add(refilled).min(self.full) - UNITS_PER_TOKEN;
        if self.left >= 0 {
            FrameDecision::Accepted
        } else if self.left >= -self.full {
            FrameDecision::Refused
        } else {
            FrameDecision::Sustained
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_are_fine_for_ever() {
        let mut meter = SocketRateMeter::new(10, Duration::ZERO);
        for n in 0..10_000 {
            assert_eq!(
                meter.count(Duration::from_millis(n * 100)),
                FrameDecision::Accepted
            );
        }
    }

    #[test]
    fn a_flood_is_taken_then_refused_then_ended() {
        let mut meter = SocketRateMeter::new(10, Duration::ZERO);
        for expected in [FrameDecision::Accepted, FrameDecision::Refused] {
            for _ in 0..20 {
                assert_eq!(meter.count(Duration::ZERO), expected);
            }
        }
        assert_eq!(meter.count(Duration::ZERO), FrameDecision::Sustained);
    }

    #[test]
    fn who_pauses_may_go_on() {
        let mut meter = SocketRateMeter::new(10, Duration::ZERO);
        for _ in 0..30 {
            meter.count(Duration::ZERO);
        }
        // At ten below zero: a second later there is one token, then none.
        let later = Duration::from_millis(1_100);
        assert_eq!(meter.count(later), FrameDecision::Accepted);
        assert_eq!(meter.count(later), FrameDecision::Refused);
    }

    #[test]
    fn a_little_too_much_is_ended_in_time() {
        let mut meter = SocketRateMeter::new(10, Duration::ZERO);
        let draws = (0..).map(|n| meter.count(Duration::from_millis(n * 66)));
        let until = draws
            .take_while(|draw| *draw != FrameDecision::Sustained)
            .count();
        // Fifteen a second lose five of forty tokens each second.
        assert!((110..130).contains(&until), "{until}");
    }
}
