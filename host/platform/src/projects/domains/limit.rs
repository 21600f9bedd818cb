//! Limit of the checks that owners ask for: so many an hour, for a domain of a project.
//!
//! It counts for the project and the name together: whoever adds the name of another to a project spends none of the other's checks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Checks of a domain in an hour.
const CHECKS_PER_HOUR: usize = 10;
const HOUR_MS: i64 = 60 * 60 * 1_000;
/// Most domains whose checks are remembered; beyond it, those of an hour ago are forgotten.
const MAX_DOMAINS: usize = 10_000;

/// Checks of the last hour.
#[derive(Debug, Default)]
pub(super) struct CheckLimit(Mutex<HashMap<(ProjectId, String), VecDeque<Timestamp>>>);

impl CheckLimit {
    /// Counts a check.
    ///
    /// # Errors
    /// The time until the next one is allowed, in seconds.
    pub(super) fn take(&self, project: ProjectId, name: &str, now: Timestamp) -> Result<(), i64> {
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |at: &Timestamp| now.0.saturating_sub(at.0) >= HOUR_MS;
        if checks.len() >= MAX_DOMAINS {
            checks.retain(|_, times| times.back().is_some_and(|at| !is_old(at)));
        }
        let times = checks.entry((project, name.to_owned())).or_default();
        while times.front().is_some_and(is_old) {
            times.pop_front();
        }
        match times.front() {
            Some(first) if times.len() >= CHECKS_PER_HOUR => {
                let wait = first.0.saturating_add(HOUR_MS).saturating_sub(now.0);
                Err(wait.max(0) / 1_000 + 1)
            }
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    #[test]
    fn so_many_checks_an_hour_are_allowed() {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let [one, other] = [0, 1].map(|_| ProjectId::new(&clock, &random).unwrap());
        let limit = CheckLimit::default();
        for second in 0..10 {
            let at = Timestamp(second * 1_000);
            assert_eq!(limit.take(one, "www.shop.com", at), Ok(()));
        }
        let at = Timestamp(10_000);
        assert_eq!(limit.take(one, "www.shop.com", at), Err(3_591));
        assert_eq!(limit.take(one, "shop.com", at), Ok(()));
        assert_eq!(limit.take(other, "www.shop.com", at), Ok(()));
        assert_eq!(limit.take(one, "www.shop.com", Timestamp(HOUR_MS)), Ok(()));
        let at = Timestamp(HOUR_MS + 1);
        assert_eq!(limit.take(one, "www.shop.com", at), Err(1));
    }
}
