//! Budget of requests to an authority: a number of new certificates for projects a week, and a backoff after a failure.
//!
//! It survives restarts: the authority's own limits do, and a server that restarts in a loop would exhaust them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::config::{DividedCap, DividedCapPart};
use svc_base::clock::Timestamp;

const MINUTE: i64 = 60 * 1_000;
const HOUR: i64 = 60 * MINUTE;
const WEEK: i64 = 7 * 24 * HOUR;
/// New orders for domains in an hour.
const DOMAIN_ORDERS_PER_HOUR: u64 = 30;
/// Backoff after a refused name, doubled by every further refusal: four attempts in the first hour, where Let's Encrypt allows five.
const FIRST_BACKOFF: i64 = 5 * MINUTE;
/// The longest backoff.
const MAX_BACKOFF: i64 = 6 * 60 * MINUTE;
/// Backoff after an authority was not reached, which costs nothing there.
const UNREACHED_BACKOFF: i64 = MINUTE;
/// Backoff of all names after an authority's rate limit.
const RATE_LIMIT_BACKOFF: i64 = 60 * MINUTE;
/// Pause after a certificate was issued, so that one that is due at once, as with a wrong clock, is not ordered again and again.
const REISSUE_INTERVAL: i64 = 24 * 60 * MINUTE;
/// Most names whose backoffs are stored.
const MAX_BACKOFFS: usize = 1_000;

/// Why a certificate was not issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IssuanceRefusal {
    /// The authority was not reached, or an error of ours came before the request.
    #[error("the authority was not reached: {0}")]
    Unreached(String),
    /// The authority refused the name.
    #[error("the authority refused: {0}")]
    Refused(String),
    /// The authority's rate limit was reached.
    #[error("the authority was asked too often: {0}")]
    Busy(String),
}

/// Owner of a project's label; new certificates are counted by owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelOwner {
    /// Name of the principal that owns the project.
    pub principal: String,
    /// Whether the principal is on a free plan and was not created by the operator.
    pub is_free_tier: bool,
}

/// Spent certificates, and the backoffs of names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IssuanceBudget {
    /// Time at which everything spent will have refilled.
    spent_until: Timestamp,
    /// Time at which the spending of unproven owners will have refilled.
    #[serde(default = "epoch")]
    strangers_until: Timestamp,
    /// Time at which a principal's spending will have refilled.
    #[serde(default)]
    owners_until: HashMap<String, Timestamp>,
    /// Time at which all orders for domains will have refilled.
    #[serde(default = "epoch")]
    domains_until: Timestamp,
    /// Time until which no certificate is ordered, after a rate limit.
    #[serde(default)]
    busy_until: Option<Timestamp>,
    /// Backoffs by name.
    #[serde(default)]
    rests: HashMap<String, NameBackoff>,
}

/// Backoff of a name.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct NameBackoff {
    /// Refusals since the last certificate.
    times: u32,
    /// Time until which no certificate is ordered.
    until: Timestamp,
}

impl Default for IssuanceBudget {
    fn default() -> Self {
        Self {
            spent_until: epoch(),
            strangers_until: epoch(),
            owners_until: HashMap::new(),
            domains_until: epoch(),
            busy_until: None,
            rests: HashMap::new(),
        }
    }
}

impl IssuanceBudget {
    /// Returns the time until which a name is not ordered; `None` if it may be.
    pub(super) fn blocked_until(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let own = self.rests.get(name).map(|rest| rest.until);
        own.into_iter()
            .chain(self.busy_until)
            .max()
            .filter(|until| now < *until)
    }

    /// Spends one of a week's new certificates, which refill evenly.
    ///
    /// # Errors
    /// The exhausted part: the whole, the part of unproven owners, or the owner's.
    pub(super) fn spend(
        &mut self,
        per_week: &DividedCap,
        owner: &LabelOwner,
        now: Timestamp,
    ) -> Result<(), DividedCapPart> {
        self.owners_until.retain(|_, until| now < *until);
        let own = self.owners_until.get(&owner.principal);
        let own = own.copied().unwrap_or_else(epoch);
        let all = spend_one(self.spent_until, (per_week.whole, WEEK), now)
            .ok_or(DividedCapPart::Whole)?;
        let strangers = match owner.is_free_tier {
            true => spend_one(self.strangers_until, (per_week.strangers, WEEK), now)
                .ok_or(DividedCapPart::Strangers)?,
            false => self.strangers_until,
        };
        let own = spend_one(own, (per_week.per_owner, WEEK), now).ok_or(DividedCapPart::Owner)?;
        self.spent_until = all;
        self.strangers_until = strangers;
        self.owners_until.insert(owner.principal.clone(), own);
        Ok(())
    }

    /// Spends one of an hour's orders for domains, which refill evenly; returns whether there was one.
    pub(super) fn spend_for_domain(&mut self, now: Timestamp) -> bool {
        let spent = spend_one(self.domains_until, (DOMAIN_ORDERS_PER_HOUR, HOUR), now);
        self.domains_until = spent.unwrap_or(self.domains_until);
        spent.is_some()
    }

    /// Records an issued certificate.
    pub(super) fn record_success(&mut self, name: &str, now: Timestamp) {
        let until = Timestamp(now.0.saturating_add(REISSUE_INTERVAL));
        self.keep_backoff(name, NameBackoff { times: 0, until }, now);
    }

    /// Records a failure; returns the end of the name's backoff.
    pub(super) fn record_failure(
        &mut self,
        name: &str,
        why: &IssuanceRefusal,
        now: Timestamp,
    ) -> Timestamp {
        let later = |millis: i64| Timestamp(now.0.saturating_add(millis));
        let times = self.rests.get(name).map_or(0, |rest| rest.times);
        let (times, until) = match why {
            IssuanceRefusal::Unreached(_) => (times, later(UNREACHED_BACKOFF)),
            IssuanceRefusal::Refused(_) => {
                let rest = FIRST_BACKOFF.saturating_mul(1 << times.min(16));
                (times.saturating_add(1), later(rest.min(MAX_BACKOFF)))
            }
            IssuanceRefusal::Busy(_) => {
                self.busy_until = Some(later(RATE_LIMIT_BACKOFF));
                (times, later(RATE_LIMIT_BACKOFF))
            }
        };
        self.keep_backoff(name, NameBackoff { times, until }, now);
        until
    }

    fn keep_backoff(&mut self, name: &str, rest: NameBackoff, now: Timestamp) {
        self.rests
            .retain(|_, rest| now.0 < rest.until.0.saturating_add(MAX_BACKOFF));
        if self.rests.len() < MAX_BACKOFFS || self.rests.contains_key(name) {
            self.rests.insert(name.to_owned(), rest);
        }
    }
}

/// The earliest time.
fn epoch() -> Timestamp {
    Timestamp(0)
}

/// Spends one of `most`, which refill evenly over a period; returns the new time of full refill, or `None` if all are spent.
fn spend_one(until: Timestamp, (most, period): (u64, i64), now: Timestamp) -> Option<Timestamp> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let each = period.checked_div(most)?;
    let until = until.max(now).0.saturating_add(each);
    (until.saturating_sub(now.0) <= period).then_some(Timestamp(until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use svc_base::clock::Clock;

    fn cap(per_week: u64) -> DividedCap {
        Limits::default().divide_cap("projects_per_week", per_week)
    }

    fn owner(name: &str, is_free_tier: bool) -> LabelOwner {
        LabelOwner {
            principal: name.to_owned(),
            is_free_tier,
        }
    }

    const START: Timestamp = Timestamp(1_795_176_000_000);

    fn minutes(clock: &Clock, minutes: u64) -> Timestamp {
        clock.advance(std::time::Duration::from_secs(60 * minutes));
        clock.now()
    }

    #[test]
    fn a_weeks_certificates_come_back_evenly() {
        let clock = Clock::manual(START);
        let mut budget = IssuanceBudget::default();
        // As many owners as certificates, so that none passes a part.
        let mut spend = |at: Timestamp| budget.spend(&cap(40), &owner(&at.to_string(), false), at);
        let mut last = clock.now();
        for _ in 0..40 {
            last = Timestamp(last.0 + 1);
            spend(last).unwrap();
        }
        assert_eq!(spend(last), Err(DividedCapPart::Whole));
        // A fortieth of a week is 252 minutes.
        assert_eq!(spend(minutes(&clock, 251)), Err(DividedCapPart::Whole));
        spend(minutes(&clock, 2)).unwrap();
        assert_eq!(spend(clock.now()), Err(DividedCapPart::Whole));
        let mut again: IssuanceBudget =
            serde_json::from_slice(&serde_json::to_vec(&budget).unwrap()).unwrap();
        let kept = again.spend(&cap(40), &owner("a", false), clock.now());
        assert_eq!(
            kept,
            Err(DividedCapPart::Whole),
            "a restart brings none back"
        );
    }

    #[test]
    fn an_owner_has_a_part_and_those_who_pay_another() {
        let clock = Clock::manual(START);
        let mut budget = IssuanceBudget::default();
        // Of 100: 50 for each owner, and 80 for all who do not pay.
        let mut spend = |name: &str, is_free_tier: bool, at| {
            let owner = owner(name, is_free_tier);
            let spent = std::iter::repeat_with(|| budget.spend(&cap(100), &owner, at));
            spent.take_while(Result::is_ok).count()
        };
        assert_eq!(spend("a", true, clock.now()), 50);
        assert_eq!(spend("a", true, clock.now()), 0);
        assert_eq!(spend("b", true, clock.now()), 30, "the rest is kept");
        assert_eq!(spend("c", true, clock.now()), 0);
        assert_eq!(spend("pays", false, clock.now()), 20);
        assert_eq!(spend("pays too", false, clock.now()), 0, "all are spent");
        let later = minutes(&clock, 7 * 24 * 60 + 1);
        assert_eq!(spend("c", true, later), 50);
        assert_eq!(budget.owners_until.len(), 1, "what came back is forgotten");
    }

    #[test]
    fn so_many_orders_an_hour_are_for_domains() {
        let clock = Clock::manual(START);
        let mut budget = IssuanceBudget::default();
        let mut spend = |at| {
            let spent = std::iter::repeat_with(|| budget.spend_for_domain(at));
            spent.take_while(|spent| *spent).count()
        };
        assert_eq!(spend(clock.now()), 30);
        assert_eq!(spend(minutes(&clock, 1)), 0);
        assert_eq!(spend(minutes(&clock, 1)), 1);
        assert_eq!(spend(minutes(&clock, 60)), 30);
        assert_eq!(
            budget.spent_until,
            epoch(),
            "projects have a budget of their own"
        );
    }

    #[test]
    fn a_budget_from_before_is_read() {
        let text = r#"{"spent_until":"2026-11-20T12:00:00.000Z"}"#;
        let mut budget: IssuanceBudget = serde_json::from_str(text).unwrap();
        let spent = budget.spend(&cap(40), &owner("a", true), START);
        assert_eq!(spent, Ok(()));
    }

    #[test]
    fn a_budget_is_written_down_and_read_whatever_it_is() {
        let mut budget = IssuanceBudget::default();
        for spent in [0, 1, 40] {
            for number in 0..spent {
                let owner = owner(&number.to_string(), false);
                let _ = budget.spend(&cap(40), &owner, START);
            }
            let text = serde_json::to_string(&budget).unwrap();
            let read: IssuanceBudget = serde_json::from_str(&text).unwrap();
            assert_eq!(
                serde_json::to_value(&read).unwrap(),
                serde_json::to_value(&budget).unwrap()
            );
        }
    }

    #[test]
    fn a_refused_name_rests_longer_each_time() {
        let clock = Clock::manual(START);
        let mut budget = IssuanceBudget::default();
        let why = IssuanceRefusal::Refused("no such address".into());
        for rest in [5, 10, 20, 40, 80, 160, 320, 360, 360] {
            assert_eq!(budget.blocked_until("a.example", clock.now()), None);
            let until = budget.record_failure("a.example", &why, clock.now());
            assert_eq!(until, clock.now().plus_seconds(rest * 60));
            assert_eq!(budget.blocked_until("a.example", clock.now()), Some(until));
            assert_eq!(budget.blocked_until("b.example", clock.now()), None);
            minutes(&clock, u64::try_from(rest).unwrap());
        }
        budget.record_success("a.example", clock.now());
        let day = clock.now().plus_seconds(24 * 60 * 60);
        assert_eq!(budget.blocked_until("a.example", clock.now()), Some(day));
        let until = budget.record_failure("a.example", &why, clock.now());
        assert_eq!(until, clock.now().plus_seconds(300));
    }

    #[test]
    fn an_authority_that_is_not_reached_is_asked_again_soon_and_a_busy_one_for_nothing() {
        let clock = Clock::manual(START);
        let mut budget = IssuanceBudget::default();
        for _ in 0..3 {
            let why = IssuanceRefusal::Unreached("no answer in time".into());
            let until = budget.record_failure("a.example", &why, clock.now());
            assert_eq!(until, clock.now().plus_seconds(60));
            minutes(&clock, 1);
        }
        let why = IssuanceRefusal::Busy("too many certificates".into());
        budget.record_failure("a.example", &why, clock.now());
        assert!(budget.blocked_until("b.example", clock.now()).is_some());
        assert!(
            budget
                .blocked_until("b.example", minutes(&clock, 60))
                .is_none()
        );
    }

    #[test]
    fn so_many_names_are_remembered() {
        let mut budget = IssuanceBudget::default();
        let why = IssuanceRefusal::Refused(String::new());
        for number in 0..2 * MAX_BACKOFFS {
            budget.record_failure(&format!("{number}.example"), &why, START);
        }
        assert_eq!(budget.rests.len(), MAX_BACKOFFS);
        let later = Timestamp(START.0 + FIRST_BACKOFF + MAX_BACKOFF);
        budget.record_failure("other.example", &why, later);
        assert_eq!(budget.rests.len(), 1, "what rests no more is forgotten");
    }
}
