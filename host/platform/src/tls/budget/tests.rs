//! Tests of the budget: parts, backoffs, and files of before.

use super::*;
use crate::config::Limits;
use svc_base::clock::Clock;

fn cap(per_week: u64) -> DividedCap {
    Limits::default().divide_cap("projects_per_week", per_week)
}

fn owner(name: &str, is_free_tier: bool) -> NameOwner {
    NameOwner {
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
    let mut spend =
        |at: Timestamp| budget.spend_for_label(&cap(40), &owner(&at.to_string(), false), at);
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
    let kept = again.spend_for_label(&cap(40), &owner("a", false), clock.now());
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
        let spent = std::iter::repeat_with(|| budget.spend_for_label(&cap(100), &owner, at));
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
    assert_eq!(
        budget.labels.owners_until.len(),
        1,
        "what came back is forgotten"
    );
}

#[test]
fn so_many_orders_an_hour_are_for_domains_and_nobody_takes_all() {
    let clock = Clock::manual(START);
    let mut budget = IssuanceBudget::default();
    let per_hour = cap(DOMAIN_ORDERS_PER_HOUR);
    let mut spend = |name: &str, is_free_tier: bool, at| {
        let owner = owner(name, is_free_tier);
        let spent = std::iter::repeat_with(|| budget.spend_for_domain(&per_hour, &owner, at));
        spent.take_while(Result::is_ok).count()
    };
    assert_eq!(spend("a", true, clock.now()), 15);
    assert_eq!(spend("b", true, clock.now()), 9, "the rest is kept");
    assert_eq!(spend("pays", false, clock.now()), 6);
    assert_eq!(spend("pays", false, minutes(&clock, 1)), 0);
    assert_eq!(spend("pays", false, minutes(&clock, 1)), 1);
    assert_eq!(spend("pays", false, minutes(&clock, 60)), 15);
    assert!(budget.has_domain_order(&per_hour, clock.now()));
    assert_eq!(
        budget.labels.spent_until,
        epoch(),
        "projects have a budget of their own"
    );
}

#[test]
fn a_budget_from_before_is_read() {
    for text in [
        r#"{"spent_until":"2026-11-20T12:00:00.000Z"}"#,
        r#"{"spent_until":"2026-11-20T12:00:00.000Z","strangers_until":"2026-11-20T12:00:00.000Z","owners_until":{},"domains_until":"2026-11-20T12:00:00.000Z","busy_until":null,"rests":{"a.example":{"times":3,"until":"2026-11-20T12:10:00.000Z"}}}"#,
    ] {
        let mut budget: IssuanceBudget = serde_json::from_str(text).unwrap();
        let until = Timestamp::parse("2026-11-20T12:00:00Z").unwrap();
        assert_eq!(budget.labels.spent_until, until);
        let rests = budget.blocked_until("a.example", until).is_some();
        assert_eq!(rests, text.contains("rests"));
        assert_eq!(budget.reason("a.example"), None);
        let spent = budget.spend_for_label(&cap(40), &owner("a", true), START);
        assert_eq!(spent, Ok(()));
    }
}

#[test]
fn a_budget_is_written_down_and_read_whatever_it_is() {
    let mut budget = IssuanceBudget::default();
    for spent in [0, 1, 40] {
        for number in 0..spent {
            let owner = owner(&number.to_string(), false);
            let _ = budget.spend_for_label(&cap(40), &owner, START);
        }
        let text = serde_json::to_string(&budget).unwrap();
        let read: IssuanceBudget = serde_json::from_str(&text).unwrap();
        assert_eq!(
            serde_json::to_value(&read).unwrap(),
            serde_json::to_value(&budget).unwrap()
        );
    }
}

/// An order that has one challenge.
const ALONE: OrderAttempt = OrderAttempt {
    proof: NameProof::Handshake,
    other: None,
};

fn limit(wait_seconds: Option<u64>, is_for_all: bool) -> IssuanceRefusal {
    IssuanceRefusal::Busy(RateLimit {
        detail: "too many certificates".into(),
        wait_seconds,
        is_for_all,
    })
}

#[test]
fn a_refused_name_rests_longer_each_time() {
    let clock = Clock::manual(START);
    let mut budget = IssuanceBudget::default();
    let why = IssuanceRefusal::Refused("no such address".into());
    for rest in [5, 10, 20, 40, 80, 160, 320, 360, 360] {
        assert_eq!(budget.blocked_until("a.example", clock.now()), None);
        let until = budget.record_failure("a.example", ALONE, &why, clock.now());
        assert_eq!(until, clock.now().plus_seconds(rest * 60));
        assert_eq!(budget.blocked_until("a.example", clock.now()), Some(until));
        assert_eq!(budget.blocked_until("b.example", clock.now()), None);
        let reason = budget.reason("a.example").unwrap();
        assert!(reason.contains("no such address"), "{reason}");
        minutes(&clock, u64::try_from(rest).unwrap());
    }
    budget.record_success("a.example", false, clock.now());
    assert_eq!(budget.blocked_until("a.example", clock.now()), None);
    assert!(budget.rests.is_empty(), "a success is not kept");
    let until = budget.record_failure("a.example", ALONE, &why, clock.now());
    assert_eq!(until, clock.now().plus_seconds(300));
    budget.record_success("a.example", true, clock.now());
    let day = clock.now().plus_seconds(24 * 60 * 60);
    assert_eq!(budget.blocked_until("a.example", clock.now()), Some(day));
}

#[test]
fn challenges_take_turns_and_only_where_the_challenge_failed() {
    let clock = Clock::manual(START);
    let mut budget = IssuanceBudget::default();
    let why = IssuanceRefusal::Unproven("no connection".into());
    let name = "www.shop.com";
    let mut tried = Vec::new();
    for rest in [0, 5, 10, 20] {
        let proof = budget.next_proof(name);
        tried.push(proof);
        let other = Some(proof.other());
        let attempt = OrderAttempt { proof, other };
        let until = budget.record_failure(name, attempt, &why, clock.now());
        assert_eq!(until, clock.now().plus_seconds(rest * 60));
        minutes(&clock, u64::try_from(rest).unwrap());
    }
    let (handshake, http) = (NameProof::Handshake, NameProof::Http);
    assert_eq!(tried, [handshake, http, handshake, http]);
    let reason = budget.reason(name).unwrap();
    assert!(reason.contains("tls-alpn-01") && reason.contains("http-01"));
    let policy = IssuanceRefusal::Refused("CAA forbids it".into());
    let attempt = OrderAttempt {
        proof: handshake,
        other: Some(http),
    };
    let until = budget.record_failure(name, attempt, &policy, clock.now());
    assert_eq!(until, clock.now().plus_seconds(40 * 60));
    assert_eq!(budget.next_proof(name), handshake);
    let reason = budget.reason(name).unwrap();
    assert_eq!(reason, "the authority refused: CAA forbids it");
}

#[test]
fn an_authority_that_is_not_reached_is_asked_again_soon() {
    let clock = Clock::manual(START);
    let mut budget = IssuanceBudget::default();
    for _ in 0..3 {
        let why = IssuanceRefusal::Unreached("no answer in time".into());
        let until = budget.record_failure("a.example", ALONE, &why, clock.now());
        assert_eq!(until, clock.now().plus_seconds(60));
        minutes(&clock, 1);
    }
}

#[test]
fn a_rate_limit_stops_the_names_that_share_it() {
    let clock = Clock::manual(START);
    let mut budget = IssuanceBudget::default();
    let rests = |budget: &IssuanceBudget, name: &str, at| {
        let until = budget.blocked_until(name, at);
        until.map(|until| (until.0 - at.0) / MINUTE)
    };
    budget.record_failure("n1.evil.com", ALONE, &limit(None, false), START);
    for (name, expected) in [
        ("n1.evil.com", Some(60)),
        ("n2.evil.com", Some(60)),
        ("evil.com", Some(60)),
        ("www.shop.com", None),
        ("one-acme.pages.example.com", None),
    ] {
        assert_eq!(rests(&budget, name, START), expected, "{name}");
    }
    assert!(budget.reason("n2.evil.com").unwrap().contains("too many"));
    let told = limit(Some(2 * 60 * 60), false);
    budget.record_failure("a.shop.co.uk", ALONE, &told, START);
    assert_eq!(rests(&budget, "b.shop.co.uk", START), Some(120));
    assert_eq!(rests(&budget, "b.other.co.uk", START), None);
    budget.record_failure("www.shop.com", ALONE, &limit(Some(600), true), START);
    assert_eq!(
        rests(&budget, "one-acme.pages.example.com", START),
        Some(10)
    );
    let later = minutes(&clock, 10);
    assert_eq!(rests(&budget, "one-acme.pages.example.com", later), None);
    let long = limit(Some(u64::MAX), false);
    budget.record_failure("a.long.com", ALONE, &long, START);
    assert_eq!(rests(&budget, "a.long.com", START), Some(60));
}

#[test]
fn so_many_names_are_remembered_and_the_newest_among_them() {
    let mut budget = IssuanceBudget::default();
    let why = IssuanceRefusal::Refused(String::new());
    let mut last = String::new();
    for number in 0..2 * MAX_BACKOFFS {
        last = format!("{number}.example");
        let at = START.plus_seconds(i64::try_from(number).unwrap() / 100);
        budget.record_failure(&last, ALONE, &why, at);
    }
    assert_eq!(budget.rests.len(), MAX_BACKOFFS);
    assert!(budget.blocked_until(&last, START).is_some());
    let later = START.plus_seconds((FIRST_BACKOFF + MAX_BACKOFF) / 1_000 + 60);
    budget.record_failure("other.example", ALONE, &why, later);
    assert_eq!(budget.rests.len(), 1, "what rests no more is forgotten");
}
