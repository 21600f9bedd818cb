//! The times at which domains are checked by themselves, as pure functions.

use svc_base::clock::Timestamp;

const MINUTE: i64 = 60 * 1_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Checks of a pending domain, after it was added; then it is checked by the hour.
const FIRST_CHECKS: [i64; 4] = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR];
/// Time after which a pending domain ends.
const PENDING_LIFETIME: i64 = 7 * DAY;
/// Time after which a domain whose proof is gone is served no more.
const GRACE: i64 = 72 * HOUR;
/// Time between two checks of a domain whose proof is gone.
const FAILING_INTERVAL: i64 = HOUR;
/// Time between two checks of an active domain.
const ACTIVE_INTERVAL: i64 = DAY;

/// Returns the next check of a domain that is pending since a time; `None` once it ends.
pub(super) fn next_of_pending(since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let passed = now.0.saturating_sub(since.0).max(0);
    if passed >= PENDING_LIFETIME {
        return None;
    }
    let first = FIRST_CHECKS.into_iter().find(|at| *at > passed);
    let at = first.unwrap_or((passed / HOUR + 1) * HOUR);
    Some(Timestamp(since.0.saturating_add(at)))
}

/// Returns the next check of an active domain.
pub(super) fn next_of_active(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_add(ACTIVE_INTERVAL))
}

/// Returns the next check of a domain whose proof is gone since a time.
pub(super) fn next_of_failing(since: Timestamp, now: Timestamp) -> Timestamp {
    let next = now.0.saturating_add(FAILING_INTERVAL);
    let end = since.0.saturating_add(GRACE);
    Timestamp(if now.0 < end { next.min(end) } else { next })
}

/// Whether a domain whose proof is gone since a time is lost.
pub(super) fn is_lost(since: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(since.0) >= GRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_795_176_000_000);

    fn after(millis: i64) -> Timestamp {
        Timestamp(START.0 + millis)
    }

    #[test]
    fn a_pending_domain_is_checked_ever_more_seldom_and_ends() {
        for (passed, next) in [
            (-5 * MINUTE, Some(MINUTE)),
            (0, Some(MINUTE)),
            (MINUTE - 1, Some(MINUTE)),
            (MINUTE, Some(5 * MINUTE)),
            (4 * MINUTE, Some(5 * MINUTE)),
            (5 * MINUTE, Some(15 * MINUTE)),
            (15 * MINUTE, Some(HOUR)),
            (HOUR, Some(2 * HOUR)),
            (2 * HOUR + 1, Some(3 * HOUR)),
            (7 * DAY - 1, Some(7 * DAY)),
            (7 * DAY, None),
            (30 * DAY, None),
        ] {
            let found = next_of_pending(START, after(passed));
            assert_eq!(found, next.map(after), "{passed}");
        }
    }

    #[test]
    fn a_missing_proof_is_looked_for_until_the_domain_is_lost() {
        for (passed, next, lost) in [
            (0, HOUR, false),
            (HOUR, 2 * HOUR, false),
            (71 * HOUR + 1, 72 * HOUR, false),
            (72 * HOUR - 1, 72 * HOUR, false),
            (72 * HOUR, 73 * HOUR, true),
            (90 * HOUR, 91 * HOUR, true),
        ] {
            assert_eq!(
                next_of_failing(START, after(passed)),
                after(next),
                "{passed}"
            );
            assert_eq!(is_lost(START, after(passed)), lost, "{passed}");
        }
        assert_eq!(next_of_active(START), after(DAY));
    }
}
