//! Budget of an authority's favours: so many new certificates of projects a week, and nothing for a while after it refused.
//!
//! It is remembered over restarts: an authority counts on, and a server that starts again and again would spend what it allows.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;

const MINUTE: i64 = 60 * 1_000;
const WEEK: i64 = 7 * 24 * 60 * MINUTE;
/// The rest after an authority refused a name, which doubles with every further refusal: four in the first hour, where Let's Encrypt
/// allows five.
const REST: i64 = 5 * MINUTE;
/// The longest rest.
const LONGEST: i64 = 6 * 60 * MINUTE;
/// The rest where an authority was not reached, which costs nothing there.
const PAUSE: i64 = MINUTE;
/// The rest of all names when an authority says that it was asked too often.
const BUSY: i64 = 60 * MINUTE;
/// The rest after a certificate was issued: one that would be due at once, as where a clock is wrong, is not asked for again and again.
const ISSUED: i64 = 24 * 60 * MINUTE;
/// The most names whose rests are remembered.
const REMEMBERED: usize = 1_000;

/// Why a certificate was not issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// The authority was not reached, or something here failed before it was asked.
    #[error("the authority was not reached: {0}")]
    Unreached(String),
    /// It refused.
    #[error("the authority refused: {0}")]
    Refused(String),
    /// It was asked too often.
    #[error("the authority was asked too often: {0}")]
    Busy(String),
}

/// Counts of what was asked for, and the rests that follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Budget {
    /// When everything spent has come back.
    spent_until: Timestamp,
    /// Until when nothing is asked for.
    #[serde(default)]
    busy_until: Option<Timestamp>,
    /// Names that rest.
    #[serde(default)]
    rests: HashMap<String, Rest>,
}

/// A name that rests.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rest {
    /// How often it was refused since it was last issued.
    times: u32,
    /// Until when it is not asked for.
    until: Timestamp,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            spent_until: Timestamp(0),
            busy_until: None,
            rests: HashMap::new(),
        }
    }
}

impl Budget {
    /// Until when a name is not asked for; `None` if it may be.
    pub(super) fn rests_until(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let own = self.rests.get(name).map(|rest| rest.until);
        own.into_iter()
            .chain(self.busy_until)
            .max()
            .filter(|until| now < *until)
    }

    /// Takes one of `per_week` new certificates, which come back evenly over a week; answers whether there was one.
    pub(super) fn spend(&mut self, per_week: u32, now: Timestamp) -> bool {
        let each = WEEK / i64::from(per_week.max(1));
        let until = self.spent_until.max(now).0.saturating_add(each);
        let is_there = until.saturating_sub(now.0) <= WEEK;
        if is_there {
            self.spent_until = Timestamp(until);
        }
        is_there
    }

    /// Remembers that a name was issued.
    pub(super) fn issued(&mut self, name: &str, now: Timestamp) {
        let until = Timestamp(now.0.saturating_add(ISSUED));
        self.remember(name, Rest { times: 0, until }, now);
    }

    /// Remembers that a name was not issued; answers until when it rests.
    pub(super) fn not_issued(&mut self, name: &str, why: &Refusal, now: Timestamp) -> Timestamp {
        let later = |millis: i64| Timestamp(now.0.saturating_add(millis));
        let times = self.rests.get(name).map_or(0, |rest| rest.times);
        let (times, until) = match why {
            Refusal::Unreached(_) => (times, later(PAUSE)),
            Refusal::Refused(_) => {
                let rest = REST.saturating_mul(1 << times.min(16));
                (times.saturating_add(1), later(rest.min(LONGEST)))
            }
            Refusal::Busy(_) => {
                self.busy_until = Some(later(BUSY));
                (times, later(BUSY))
            }
        };
        self.remember(name, Rest { times, until }, now);
        until
    }

    fn remember(&mut self, name: &str, rest: Rest, now: Timestamp) {
        self.rests
            .retain(|_, rest| now.0 < rest.until.0.saturating_add(LONGEST));
        if self.rests.len() < REMEMBERED || self.rests.contains_key(name) {
            self.rests.insert(name.to_owned(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;

    const START: Timestamp = Timestamp(1_795_176_000_000);

    fn minutes(clock: &Clock, minutes: u64) -> Timestamp {
        clock.advance(std::time::Duration::from_secs(60 * minutes));
        clock.now()
    }

    #[test]
    fn a_weeks_certificates_come_back_evenly() {
        let clock = Clock::manual(START);
        let mut budget = Budget::default();
        for _ in 0..40 {
            assert!(budget.spend(40, clock.now()));
        }
        assert!(!budget.spend(40, clock.now()));
        // A fortieth of a week is 252 minutes.
        assert!(!budget.spend(40, minutes(&clock, 251)));
        assert!(budget.spend(40, minutes(&clock, 1)));
        assert!(!budget.spend(40, clock.now()));
        let mut again: Budget =
            serde_json::from_slice(&serde_json::to_vec(&budget).unwrap()).unwrap();
        assert!(!again.spend(40, clock.now()), "a restart brings none back");
        let later = minutes(&clock, 7 * 24 * 60);
        let spent = std::iter::repeat_with(|| budget.spend(40, later));
        assert_eq!(spent.take_while(|is_there| *is_there).count(), 40);
    }

    #[test]
    fn a_budget_is_written_down_and_read_whatever_it_is() {
        let mut budget = Budget::default();
        for spent in [0, 1, 40] {
            for _ in 0..spent {
                budget.spend(40, START);
            }
            let text = serde_json::to_string(&budget).unwrap();
            let read: Budget = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }

    #[test]
    fn a_refused_name_rests_longer_each_time() {
        let clock = Clock::manual(START);
        let mut budget = Budget::default();
        let why = Refusal::Refused("no such address".into());
        for rest in [5, 10, 20, 40, 80, 160, 320, 360, 360] {
            assert_eq!(budget.rests_until("a.example", clock.now()), None);
            let until = budget.not_issued("a.example", &why, clock.now());
            assert_eq!(until, clock.now().plus_seconds(rest * 60));
            assert_eq!(budget.rests_until("a.example", clock.now()), Some(until));
            assert_eq!(budget.rests_until("b.example", clock.now()), None);
            minutes(&clock, u64::try_from(rest).unwrap());
        }
        budget.issued("a.example", clock.now());
        let day = clock.now().plus_seconds(24 * 60 * 60);
        assert_eq!(budget.rests_until("a.example", clock.now()), Some(day));
        let until = budget.not_issued("a.example", &why, clock.now());
        assert_eq!(until, clock.now().plus_seconds(300));
    }

    #[test]
    fn an_authority_that_is_not_reached_is_asked_again_soon_and_a_busy_one_for_nothing() {
        let clock = Clock::manual(START);
        let mut budget = Budget::default();
        for _ in 0..3 {
            let why = Refusal::Unreached("no answer in time".into());
            let until = budget.not_issued("a.example", &why, clock.now());
            assert_eq!(until, clock.now().plus_seconds(60));
            minutes(&clock, 1);
        }
        let why = Refusal::Busy("too many certificates".into());
        budget.not_issued("a.example", &why, clock.now());
        assert!(budget.rests_until("b.example", clock.now()).is_some());
        assert!(
            budget
                .rests_until("b.example", minutes(&clock, 60))
                .is_none()
        );
    }

    #[test]
    fn so_many_names_are_remembered() {
        let mut budget = Budget::default();
        let why = Refusal::Refused(String::new());
        for number in 0..2 * REMEMBERED {
            budget.not_issued(&format!("{number}.example"), &why, START);
        }
        assert_eq!(budget.rests.len(), REMEMBERED);
        let later = Timestamp(START.0 + REST + LONGEST);
        budget.not_issued("other.example", &why, later);
        assert_eq!(budget.rests.len(), 1, "what rests no more is forgotten");
    }
}
