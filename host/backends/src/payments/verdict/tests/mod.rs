//! Verdicts over histories of events, in every order.

mod random;

use super::*;
use crate::stripe::{ChargeFact, InvoiceFact, InvoicePaymentFact, RefundFact, SubscriptionFact};

const SESSION: &str = "session";

fn terms() -> SessionTerms {
    SessionTerms {
        id: SESSION.into(),
        provider_id: Some("cs".into()),
        amount: 500,
        currency: "eur".into(),
    }
}

fn at(seconds: i64, fact: EventFact) -> VerifiedEvent {
    VerifiedEvent {
        id: String::new(),
        kind: String::new(),
        at: Timestamp(seconds * 1000),
        fact,
    }
}

fn subject(text: &str) -> Option<EventSubject> {
    Some(EventSubject::Session(text.into()))
}

fn checkout(outcome: CheckoutOutcome) -> CheckoutFact {
    CheckoutFact {
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

fn monthly(outcome: CheckoutOutcome) -> EventFact {
    EventFact::Checkout(CheckoutFact {
        payment: None,
        subscription: Some("sub".into()),
        invoice: Some("in_1".into()),
        ..checkout(outcome)
    })
}

fn subscription(status: &str, deleted: bool) -> EventFact {
    EventFact::Subscription(SubscriptionFact {
        id: "sub".into(),
        subject: None,
        status: status.into(),
        deleted,
        customer: None,
    })
}

fn invoice(number: u32, paid: bool) -> EventFact {
    invoice_of(number, paid, Some(&[500]), Some("eur"))
}

fn invoice_of(
    number: u32,
    paid: bool,
    totals: Option<&[i64]>,
    currency: Option<&str>,
) -> EventFact {
    EventFact::Invoice(InvoiceFact {
        id: format!("in_{number}"),
        subscription: Some("sub".into()),
        subject: None,
        paid,
        totals: totals.map(<[i64]>::to_vec),
        currency: currency.map(str::to_owned),
        payments: Vec::new(),
    })
}

fn dispute(payment: &str) -> EventFact {
    EventFact::Dispute {
        charge: Some(format!("ch_of_{payment}")),
        payment: Some(payment.into()),
    }
}

fn invoice_payment(number: u32) -> EventFact {
    EventFact::InvoicePayment(InvoicePaymentFact {
        invoice: format!("in_{number}"),
        payment: format!("pi_{number}"),
    })
}

fn charge(payment: &str, returned: bool) -> EventFact {
    EventFact::Charge(ChargeFact {
        id: format!("ch_of_{payment}"),
        subject: None,
        payment: Some(payment.into()),
        invoice: None,
        returned,
    })
}

fn failed_refund(payment: &str) -> EventFact {
    EventFact::Refund(RefundFact {
        id: format!("re_of_{payment}"),
        charge: None,
        payment: Some(payment.into()),
        failed: true,
    })
}

/// Calls `check` with every order of `events`.
fn permute(events: &mut [VerifiedEvent], from: usize, check: &mut impl FnMut(&[VerifiedEvent])) {
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
fn always(events: &[VerifiedEvent], expected: Status) {
    let mut events = events.to_vec();
    permute(&mut events, 0, &mut |events| {
        assert_eq!(verdict(&terms(), events).status, expected, "{events:#?}");
    });
}

#[test]
fn the_first_that_matches_wins_in_every_order() {
    use CheckoutOutcome::{Expired, Failed, Paid, Pending};
    use Status as S;
    let one = |outcome| EventFact::Checkout(checkout(outcome));
    let cases: Vec<(Vec<VerifiedEvent>, S)> = vec![
        (vec![], S::Open),
        (vec![at(1, one(Pending))], S::Open),
        (vec![at(1, one(Paid))], S::Paid),
        (vec![at(1, one(Pending)), at(9, one(Paid))], S::Paid),
        (vec![at(1, one(Pending)), at(9, one(Failed))], S::Failed),
        (vec![at(1, one(Expired))], S::Canceled),
        // A paid checkout stays paid, whatever other events state.
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
        // The full refund arrives before the partial one and before the payment.
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
        // A failed refund does not count; the next one does.
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
        // Within one second the ending status wins.
        (
            vec![
                at(1, monthly(Paid)),
                at(9, subscription("canceled", false)),
                at(9, subscription("active", false)),
            ],
            S::Canceled,
        ),
        // A deleted subscription stays deleted.
        (
            vec![
                at(1, monthly(Paid)),
                at(5, subscription("canceled", true)),
                at(9, subscription("active", false)),
            ],
            S::Canceled,
        ),
        // The refund of an earlier month leaves the latest one paid,
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
        // but the refund of the latest month does not.
        (
            vec![
                at(1, monthly(Paid)),
                at(9, invoice(2, true)),
                at(9, invoice_payment(2)),
                at(12, charge("pi_2", true)),
            ],
            S::Refunded,
        ),
        // An unpaid month is not the latest month.
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
        let fact = EventFact::Checkout(CheckoutFact {
            amount,
            currency: currency.map(str::to_owned),
            ..checkout(CheckoutOutcome::Paid)
        });
        let found = verdict(&terms(), &[at(1, fact)]);
        let nothing = SessionVerdict {
            status: Status::Open,
            email: None,
        };
        assert_eq!(found, nothing, "{amount:?} {currency:?}");
    }
}

#[test]
fn an_invoice_of_another_amount_or_currency_gives_nothing_back() {
    // The first month was refunded; then another invoice was paid.
    for (totals, currency, expected) in [
        (Some(&[500][..]), Some("eur"), Status::Paid),
        // A tax was added; no total is stated; the event was stored before totals were.
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
        // The payment of that invoice was refunded, too.
        events.push(at(9, invoice_payment(2)));
        events.push(at(10, charge("pi_2", true)));
        always(&events, Status::Refunded);
    }
    // A refunded invoice between two months does not affect the later month.
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
    let of = |id: &str, subject: Option<EventSubject>, reference: Option<&str>| {
        EventFact::Checkout(CheckoutFact {
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
