//! Budget of requests to an authority: new certificates for projects by the week, those for domains by the hour, and a backoff after a
//! failure.
//!
//! It survives restarts: the authority's own limits do, and a server that restarts in a loop would exhaust them.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::config::{DividedCap, DividedCapPart};
use svc_base::clock::Timestamp;

const MINUTE: i64 = 60 * 1_000;
const HOUR: i64 = 60 * MINUTE;
const WEEK: i64 = 7 * 24 * HOUR;
/// New orders for domains in an hour.
pub(super) const DOMAIN_ORDERS_PER_HOUR: u64 = 30;
/// Backoff after a refused name, doubled by every further refusal: with two challenges at first there are five attempts in the first hour,
/// as many as Let's Encrypt allows.
const FIRST_BACKOFF: i64 = 5 * MINUTE;
/// The longest backoff after a refusal.
const MAX_BACKOFF: i64 = 6 * HOUR;
/// Backoff after an authority was not reached, which costs nothing there.
const UNREACHED_BACKOFF: i64 = MINUTE;
/// Backoff after an authority's rate limit that does not say when it ends, and the longest of one that does.
const RATE_LIMIT_BACKOFF: i64 = HOUR;
const MAX_RATE_LIMIT_BACKOFF: i64 = WEEK;
/// Pause after a certificate was issued that is due at once, as with a wrong clock, so that it is not ordered again and again.
const REISSUE_INTERVAL: i64 = 24 * HOUR;
/// Most backoffs that are stored.
const MAX_BACKOFFS: usize = 1_000;

/// Why a certificate was not issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IssuanceRefusal {
    /// The authority was not reached, or an error of ours came before the request.
    #[error("the authority was not reached: {0}")]
    Unreached(String),
    /// The authority refused the name, whatever the challenge.
    #[error("the authority refused: {0}")]
    Refused(String),
    /// The challenge failed; another one may succeed.
    #[error("the authority refused: {0}")]
    Unproven(String),
    /// The authority's rate limit was reached.
    #[error("the authority was asked too often: {0}")]
    Busy(RateLimit),
}

/// Rate limit of an authority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub(super) struct RateLimit {
    /// Reason that the authority gave.
    pub(super) detail: String,
    /// Seconds after which it may be asked again, if it says so.
    pub(super) wait_seconds: Option<u64>,
    /// Whether it bounds everything that this server asks for, rather than some names.
    pub(super) is_for_all: bool,
}

/// Challenge by which an authority is shown that a name leads here.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(super) enum NameProof {
    /// A handshake, `tls-alpn-01`.
    #[default]
    Handshake,
    /// A request of plain HTTP, `http-01`.
    Http,
}

/// Challenges of one order: the one that it is proven by, and the one that is left if that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderAttempt {
    pub(super) proof: NameProof,
    pub(super) other: Option<NameProof>,
}

/// Owner of the project that has a label or a domain; new certificates are counted by owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameOwner {
    /// Name of the principal that owns the project.
    pub principal: String,
    /// Whether the principal is on a free plan and was not created by the operator.
    pub is_free_tier: bool,
}

/// Spent orders, and the backoffs of names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct IssuanceBudget {
    /// Spent certificates of projects' labels.
    #[serde(flatten)]
    labels: CapSpending,
    /// Spent orders for domains.
    #[serde(default)]
    domains: CapSpending,
    /// Time until which no certificate is ordered, after a rate limit.
    #[serde(default)]
    busy_until: Option<Timestamp>,
    /// Backoffs by name; a registered domain with all names below it has a key that begins with `*.`.
    #[serde(default)]
    rests: HashMap<String, NameBackoff>,
}

/// Spending of a divided cap that refills evenly.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CapSpending {
    /// Time at which everything spent will have refilled.
    #[serde(default = "epoch")]
    spent_until: Timestamp,
    /// Time at which the spending of unproven owners will have refilled.
    #[serde(default = "epoch")]
    strangers_until: Timestamp,
    /// Time at which a principal's spending will have refilled.
    #[serde(default)]
    owners_until: HashMap<String, Timestamp>,
}

/// Backoff of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NameBackoff {
    /// Refusals since the last certificate.
    times: u32,
    /// Time until which no certificate is ordered.
    until: Timestamp,
    /// Challenge of the next order.
    #[serde(default)]
    proof: NameProof,
    /// Reasons of the last failures, by challenge.
    #[serde(default)]
    reasons: BTreeMap<NameProof, String>,
}

impl NameProof {
    /// Returns the other challenge.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Handshake => Self::Http,
            Self::Http => Self::Handshake,
        }
    }
}

impl Default for CapSpending {
    fn default() -> Self {
        Self {
            spent_until: epoch(),
            strangers_until: epoch(),
            owners_until: HashMap::new(),
        }
    }
}

impl CapSpending {
    /// Spends one of a period's orders.
    fn spend(
        &mut self,
        (cap, period): (&DividedCap, i64),
        owner: &NameOwner,
        now: Timestamp,
    ) -> Result<(), DividedCapPart> {
        self.owners_until.retain(|_, until| now < *until);
        let own = self.owners_until.get(&owner.principal);
        let own = own.copied().unwrap_or_else(epoch);
        let all =
            spend_one(self.spent_until, (cap.whole, period), now).ok_or(DividedCapPart::Whole)?;
        let strangers = match owner.is_free_tier {
            true => spend_one(self.strangers_until, (cap.strangers, period), now)
                .ok_or(DividedCapPart::Strangers)?,
            false => self.strangers_until,
        };
        let own = spend_one(own, (cap.per_owner, period), now).ok_or(DividedCapPart::Owner)?;
        self.spent_until = all;
        self.strangers_until = strangers;
        self.owners_until.insert(owner.principal.clone(), own);
        Ok(())
    }
}

impl Default for NameBackoff {
    fn default() -> Self {
        Self {
            times: 0,
            until: epoch(),
            proof: NameProof::default(),
            reasons: BTreeMap::new(),
        }
    }
}

impl NameBackoff {
    /// Returns the reasons in words, if any is known.
    fn reason(&self) -> Option<String> {
        let reason = |proof| self.reasons.get(&proof);
        match (reason(NameProof::Handshake), reason(NameProof::Http)) {
            (Some(handshake), Some(http)) => Some(format!(
                "by a handshake (`tls-alpn-01`): {handshake}; by plain HTTP (`http-01`): {http}"
            )),
            (one, other) => one.or(other).cloned(),
        }
    }

    /// Counts a refusal, and chooses the challenge of the next order. One that was not tried yet follows at once.
    fn refuse(&mut self, attempt: OrderAttempt, is_unproven: bool, now: Timestamp) {
        let other = attempt.other.filter(|_| is_unproven);
        self.proof = other.unwrap_or(attempt.proof);
        if other.is_some_and(|other| !self.reasons.contains_key(&other)) {
            self.until = now;
            return;
        }
        let backoff = FIRST_BACKOFF.saturating_mul(1 << self.times.min(16));
        self.until = later(now, backoff.min(MAX_BACKOFF));
        self.times = self.times.saturating_add(1);
    }
}

impl IssuanceBudget {
    /// Returns the time until which a name is not ordered; `None` if it may be.
    pub(super) fn blocked_until(&self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let rests = self.rests_of(name).map(|rest| rest.until);
        rests
            .chain(self.busy_until)
            .max()
            .filter(|until| now < *until)
    }

    /// Returns the reason for which a name was not issued the last time, as far as it is known.
    pub(super) fn reason(&self, name: &str) -> Option<String> {
        self.rests_of(name).find_map(NameBackoff::reason)
    }

    /// Returns the challenge of the next order of a domain.
    pub(super) fn next_proof(&self, name: &str) -> NameProof {
        self.rests
            .get(name)
            .map(|rest| rest.proof)
            .unwrap_or_default()
    }

    /// Returns the backoff of a name and that of its registered domain.
    fn rests_of(&self, name: &str) -> impl Iterator<Item = &NameBackoff> {
        let shared = registered_key(name).and_then(|key| self.rests.get(&key));
        self.rests.get(name).into_iter().chain(shared)
    }

    /// Spends one of a week's new certificates for labels, which refill evenly.
    ///
    /// # Errors
    /// The exhausted part: the whole, the part of unproven owners, or the owner's.
    pub(super) fn spend_for_label(
        &mut self,
        per_week: &DividedCap,
        owner: &NameOwner,
        now: Timestamp,
    ) -> Result<(), DividedCapPart> {
        self.labels.spend((per_week, WEEK), owner, now)
    }

    /// Spends one of an hour's orders for domains, which refill evenly.
    ///
    /// # Errors
    /// The exhausted part, as for labels.
    pub(super) fn spend_for_domain(
        &mut self,
        per_hour: &DividedCap,
        owner: &NameOwner,
        now: Timestamp,
    ) -> Result<(), DividedCapPart> {
        self.domains.spend((per_hour, HOUR), owner, now)
    }

    /// Whether an order for a domain is left in this hour, for some owner.
    pub(super) fn has_domain_order(&self, per_hour: &DividedCap, now: Timestamp) -> bool {
        spend_one(self.domains.spent_until, (per_hour.whole, HOUR), now).is_some()
    }

    /// Records an issued certificate. One that `is_due` for renewal already is ordered again after a pause.
    pub(super) fn record_success(&mut self, name: &str, is_due: bool, now: Timestamp) {
        self.rests.remove(name);
        if is_due {
            let rest = NameBackoff {
                until: later(now, REISSUE_INTERVAL),
                ..NameBackoff::default()
            };
            self.keep_backoff(name, rest, now);
        }
    }

    /// Records a failure; returns the end of the name's backoff.
    pub(super) fn record_failure(
        &mut self,
        name: &str,
        attempt: OrderAttempt,
        why: &IssuanceRefusal,
        now: Timestamp,
    ) -> Timestamp {
        let mut rest = self.rests.get(name).cloned().unwrap_or_default();
        let is_unproven = matches!(why, IssuanceRefusal::Unproven(_));
        // Other failures have one reason, whatever the challenge was.
        if !is_unproven {
            rest.reasons.clear();
        }
        rest.reasons.insert(attempt.proof, why.to_string());
        match why {
            IssuanceRefusal::Unreached(_) => rest.until = later(now, UNREACHED_BACKOFF),
            IssuanceRefusal::Refused(_) | IssuanceRefusal::Unproven(_) => {
                rest.refuse(attempt, is_unproven, now);
            }
            IssuanceRefusal::Busy(limit) => {
                rest.until = later(now, limit.backoff());
                self.record_rate_limit(name, limit, &rest, now);
            }
        }
        let until = rest.until;
        self.keep_backoff(name, rest, now);
        until
    }

    /// Has all names rest that share a rate limit with a name.
    fn record_rate_limit(
        &mut self,
        name: &str,
        limit: &RateLimit,
        rest: &NameBackoff,
        now: Timestamp,
    ) {
        if limit.is_for_all {
            self.busy_until = Some(rest.until);
        } else if let Some(key) = registered_key(name) {
            self.keep_backoff(&key, rest.clone(), now);
        }
    }

    /// Stores a backoff. Where there are too many, the one that ends first is worth the least.
    fn keep_backoff(&mut self, name: &str, rest: NameBackoff, now: Timestamp) {
        self.rests
            .retain(|_, rest| now < later(rest.until, MAX_BACKOFF));
        if self.rests.len() >= MAX_BACKOFFS && !self.rests.contains_key(name) {
            let first = self.rests.iter().min_by_key(|(_, rest)| rest.until);
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                self.rests.remove(&first);
            }
        }
        self.rests.insert(name.to_owned(), rest);
    }
}

impl RateLimit {
    /// Returns how long the names rest that it bounds, in milliseconds.
    fn backoff(&self) -> i64 {
        let told = self
            .wait_seconds
            .and_then(|seconds| i64::try_from(seconds).ok());
        let told = told.map(|seconds| seconds.saturating_mul(1_000));
        told.unwrap_or(RATE_LIMIT_BACKOFF)
            .clamp(MINUTE, MAX_RATE_LIMIT_BACKOFF)
    }
}

/// The earliest time.
fn epoch() -> Timestamp {
    Timestamp(0)
}

fn later(now: Timestamp, millis: i64) -> Timestamp {
    Timestamp(now.0.saturating_add(millis))
}

/// Returns the key for the registered domain of a name and for all names below it.
fn registered_key(name: &str) -> Option<String> {
    psl::domain_str(name).map(|domain| format!("*.{domain}"))
}

/// Spends one of `most`, which refill evenly over a period; returns the new time of full refill, or `None` if all are spent.
fn spend_one(until: Timestamp, (most, period): (u64, i64), now: Timestamp) -> Option<Timestamp> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let each = period.checked_div(most)?;
    let until = until.max(now).0.saturating_add(each);
    (until.saturating_sub(now.0) <= period).then_some(Timestamp(until))
}

#[cfg(test)]
mod tests;
