//! Verdicts over histories that are drawn, in every order.

mod random;

use super::*;
use crate::stripe::{Charge, Invoice, InvoicePayment, Refund, Subscription};

const SESSION: &str = "session";

fn terms() -> SessionTerms {
    SessionTerms {
        id: SESSION.into(),
        provider_id: Some("cs".into()),
        amount: 500,
        currency: "eur".into(),
    }
}

fn at(seconds: i64, fact: Fact) -> Event {
    Event {
        id: String::new(),
        kind: String::new(),
        at: Timestamp(seconds * 1000),
        fact,
    }
}

fn subject(text: &str) -> Option<Subject> {
    Some(Subject::Session(text.into()))
}

fn checkout(outcome: CheckoutOutcome) -> Checkout {
    Checkout {
        id: "cs".into(),
        subject: subject(SESSION),
        reference: None,
        outcome,
        amount: Some(500),
        currency: Some("eur".into()),
        payment: Some("pi".into()),
        subscription: None,
        invoice: None,
        customer: None,
        email: Some("ada@example.com".into()),
    }
}

fn monthly(outcome: CheckoutOutcome) -> Fact {
    Fact::Checkout(Checkout {
        payment: None,
        subscription: Some("sub".into()),
        invoice: Some("in_1".into()),
        ..checkout(outcome)
    })
}

fn subscription(status: &str, deleted: bool) -> Fact {
    Fact::Subscription(Subscription {
        id: "sub".into(),
        subject: None,
        status: status.into(),
        deleted,
        customer: None,
    })
}

fn invoice(number: u32, paid: bool) -> Fact {
    invoice_of(number, paid, Some(&[500]), Some("eur"))
}

fn invoice_of(number: u32, paid: bool, totals: Option<&[i64]>, currency: Option<&str>) -> Fact {
    Fact::Invoice(Invoice {
        id: format!("in_{number}"),
        subscription: Some("sub".into()),
        subject: None,
        paid,
        totals: totals.map(<[i64]>::to_vec),
        currency: currency.map(str::to_owned),
        payments: Vec::new(),
    })
}

fn dispute(payment: &str) -> Fact {
    Fact::Dispute {
        charge: Some(format!("ch_of_{payment}")),
        payment: Some(payment.into()),
    }
}

fn invoice_payment(number: u32) -> Fact {
    Fact::InvoicePayment(InvoicePayment {
        invoice: format!("in_{number}"),
        payment: format!("pi_{number}"),
    })
}

fn charge(payment: &str, returned: bool) -> Fact {
    Fact::Charge(Charge {
        id: format!("ch_of_{payment}"),
        subject: None,
        payment: Some(payment.into()),
        invoice: None,
        returned,
    })
}

fn failed_refund(payment: &str) -> Fact {
    Fact::Refund(Refund {
        id: format!("re_of_{payment}"),
        charge: None,
        payment: Some(payment.into()),
        failed: true,
    })
}

/// Calls `check` with every order of `events`.
fn permute(events: &mut [Event], from: usize, check: &mut impl FnMut(&[Event])) {
    if from == events.len() {
        return check(events);
    }
    for other in from..events.len() {
        events.swap(from, other);
        permute(events, from + 1, check);
        events.swap(from, other);
    }
}

#[track_caller]
fn always(events: &[Event], expected: Status) {
    let mut events = events.to_vec();
    permute(&mut events, 0, &mut |events| {
        assert_eq!(verdict(&terms(), events).status, expected, "{events:#?}");
    });
}

#[test]
fn the_first_that_matches_wins_in_every_order() {
    use CheckoutOutcome::{Expired, Failed, Paid, Pending};
    use Status as S;
    let one = |outcome| Fact::Checkout(checkout(outcome));
    let cases: Vec<(Vec<Event>, S)> = vec![
        (vec![], S::Open),
        (vec![at(1, one(Pending))], S::Open),
        (vec![at(1, one(Paid))], S::Paid),
        (vec![at(1, one(Pending)), at(9, one(Paid))], S::Paid),
        (vec![at(1, one(Pending)), at(9, one(Failed))], S::Failed),
        (vec![at(1, one(Expired))], S::Canceled),
        // What is paid stays paid, whatever else is said of the same checkout.
        (
            vec![at(1, one(Paid)), at(9, one(Failed)), at(9, one(Expired))],
            S::Paid,
        ),
        (vec![at(1, one(Paid)), at(5, charge("pi", false))], S::Paid),
        (
            vec![
                at(1, one(Paid)),
                at(5, charge("pi", false)),
                at(7, charge("pi", true)),
            ],
            S::Refunded,
        ),
        // The full return is told before the partial one and before the payment.
        (
            vec![
                at(1, charge("pi", true)),
                at(9, one(Paid)),
                at(9, charge("pi", false)),
            ],
            S::Refunded,
        ),
        (
            vec![at(1, one(Paid)), at(5, charge("pi_other", true))],
            S::Paid,
        ),
        // A return that fails is none; the one after it is.
        (
            vec![
                at(1, one(Paid)),
                at(5, charge("pi", true)),
                at(6, failed_refund("pi")),
            ],
            S::Paid,
        ),
        (
            vec![
                at(1, one(Paid)),
                at(5, charge("pi", true)),
                at(6, failed_refund("pi")),
                at(7, charge("pi", true)),
            ],
            S::Refunded,
        ),
        (vec![at(1, monthly(Paid)), at(1, invoice(1, true))], S::Paid),
        (
            vec![
                at(1, monthly(Paid)),
                at(9, invoice(2, false)),
                at(9, subscription("past_due", false)),
            ],
            S::Paid,
        ),
        (
            vec![at(1, monthly(Paid)), at(9, subscription("unpaid", false))],
            S::Canceled,
        ),
        (
            vec![
                at(1, monthly(Paid)),
                at(9, subscription("unpaid", false)),
                at(10, subscription("active", false)),
            ],
            S::Paid,
        ),
        // Of two in one second the end wins.
        (
            vec![
                at(1, monthly(Paid)),
                at(9, subscription("canceled", false)),
                at(9, subscription("active", false)),
            ],
            S::Canceled,
        ),
        // Deleted is deleted, whatever comes later.
        (
            vec![
                at(1, monthly(Paid)),
                at(5, subscription("canceled", true)),
                at(9, subscription("active", false)),
            ],
            S::Canceled,
        ),
        // The return of an earlier month leaves the latest paid,
        (
            vec![
                at(1, monthly(Paid)),
                at(1, invoice_payment(1)),
                at(9, invoice(2, true)),
                at(9, invoice_payment(2)),
                at(12, charge("pi_1", true)),
            ],
            S::Paid,
        ),
        // and that of the latest does not.
        (
            vec![
                at(1, monthly(Paid)),
                at(9, invoice(2, true)),
                at(9, invoice_payment(2)),
                at(12, charge("pi_2", true)),
            ],
            S::Refunded,
        ),
        // A month that was not paid is no latest month.
        (
            vec![
                at(1, monthly(Paid)),
                at(1, invoice_payment(1)),
                at(9, invoice(2, false)),
                at(12, charge("pi_1", true)),
            ],
            S::Refunded,
        ),
    ];
    for (events, expected) in cases {
        always(&events, expected);
    }
}

#[test]
fn another_amount_or_currency_grants_nothing() {
    for (amount, currency) in [
        (Some(499), Some("eur")),
        (Some(501), Some("eur")),
        (Some(500), Some("usd")),
        (None, Some("eur")),
        (Some(500), None),
    ] {
        let fact = Fact::Checkout(Checkout {
            amount,
            currency: currency.map(str::to_owned),
            ..checkout(CheckoutOutcome::Paid)
        });
        let found = verdict(&terms(), &[at(1, fact)]);
        let nothing = Verdict {
            status: Status::Open,
            email: None,
        };
        assert_eq!(found, nothing, "{amount:?} {currency:?}");
    }
}

#[test]
fn an_invoice_of_another_amount_or_currency_gives_nothing_back() {
    // The first month's money went back; then another invoice was paid.
    for (totals, currency, expected) in [
        (Some(&[500][..]), Some("eur"), Status::Paid),
        // A tax was added; there is no telling; it was kept before totals were.
        (Some(&[595, 500]), Some("eur"), Status::Paid),
        (None, Some("eur"), Status::Paid),
        (None, None, Status::Paid),
        (Some(&[499]), Some("eur"), Status::Refunded),
        (Some(&[50_000]), Some("eur"), Status::Refunded),
        (Some(&[0]), Some("eur"), Status::Refunded),
        (Some(&[]), Some("eur"), Status::Refunded),
        (Some(&[500]), Some("usd"), Status::Refunded),
        (None, Some("usd"), Status::Refunded),
    ] {
        let mut events = vec![
            at(1, monthly(CheckoutOutcome::Paid)),
            at(1, invoice_payment(1)),
            at(5, charge("pi_1", true)),
            at(9, invoice_of(2, true, totals, currency)),
        ];
        always(&events, expected);
        // What was paid with it went back, too.
        events.push(at(9, invoice_payment(2)));
        events.push(at(10, charge("pi_2", true)));
        always(&events, Status::Refunded);
    }
    // An invoice between two months, whose money went back, takes nothing from the month after it.
    let events = [
        at(1, monthly(CheckoutOutcome::Paid)),
        at(5, invoice_of(2, true, Some(&[70]), Some("eur"))),
        at(5, invoice_payment(2)),
        at(6, charge("pi_2", true)),
        at(9, invoice(3, true)),
    ];
    always(&events[..4], Status::Refunded);
    always(&events, Status::Paid);
}

#[test]
fn a_checkout_is_a_sessions_by_its_id_or_by_what_only_we_write() {
    let paid = checkout(CheckoutOutcome::Paid);
    let of = |id: &str, subject: Option<Subject>, reference: Option<&str>| {
        Fact::Checkout(Checkout {
            id: id.into(),
            subject,
            reference: reference.map(str::to_owned),
            ..paid.clone()
        })
    };
    for (fact, known, unknown) in [
        (of("cs", None, None), Status::Paid, Status::Open),
        (
            of("cs_new", subject(SESSION), None),
            Status::Paid,
            Status::Paid,
        ),
        (
            of("cs_new", None, Some(SESSION)),
            Status::Open,
            Status::Paid,
        ),
        (
            of("cs_new", subject("another"), None),
            Status::Open,
            Status::Open,
        ),
        (
            of("cs_new", None, Some("another")),
            Status::Open,
            Status::Open,
        ),
        (of("cs_new", None, None), Status::Open, Status::Open),
    ] {
        let event = [at(1, fact)];
        assert_eq!(verdict(&terms(), &event).status, known, "{event:?}");
        let terms = SessionTerms {
            provider_id: None,
            ..terms()
        };
        assert_eq!(verdict(&terms, &event).status, unknown, "{event:?}");
    }
}
