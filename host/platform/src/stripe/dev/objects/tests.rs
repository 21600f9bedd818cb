//! Records webhooks of the provider `dev`, which the official library of the real one reads in `tests/stripe`.

use super::*;
use crate::stripe::sign;

const SECRET: &str = "whsec_of_the_recorded_events";
/// 2026-11-20T12:00:00Z, the time of all recorded webhooks.
const NOW: Timestamp = Timestamp(1_795_176_000_000);

fn bought(recurring: bool, month: u32) -> SimulatedPurchase {
    SimulatedPurchase {
        id: format!("cs_dev_{}", if recurring { "monthly" } else { "once" }),
        subject: (
            "svc_session",
            "01a1ff0b-0540-7000-8000-000000000001".to_owned(),
        ),
        name: "Handbook".to_owned(),
        amount: 900,
        currency: "eur".to_owned(),
        recurring,
        interval: None,
        month,
        email: Some("ada@example.com".to_owned()),
        success_url: "http://localhost:8080/shop?checkout=success".to_owned(),
        cancel_url: "http://localhost:8080/shop?checkout=canceled".to_owned(),
        made_at: NOW,
    }
}

/// Returns every step, of a purchase and of a subscription's first and second month.
fn events() -> Vec<(&'static str, Value)> {
    use PaymentStep::*;
    let once = [Paid, Pending, Failed, Expired, Refunded, Disputed];
    let monthly = [
        Paid,
        Pending,
        Failed,
        Expired,
        Subscribed,
        Invoiced,
        InvoicePaid,
        Renewed,
        Ended,
        Refunded,
        Disputed,
    ];
    let next = [Invoiced, InvoicePaid, Refunded];
    let once = once.map(|step| (bought(false, 1), step)).to_vec();
    let monthly = monthly.map(|step| (bought(true, 1), step)).to_vec();
    let next = next.map(|step| (bought(true, 2), step)).to_vec();
    let all = [once, monthly, next].concat().into_iter().enumerate();
    all.map(|(number, (bought, step))| {
        webhook_event(&bought, step, &format!("evt_dev_{number}"), NOW)
    })
    .collect()
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a file of the tests is compared, and made anew where that is asked for"
)]
fn what_is_recorded_is_what_is_sent() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/stripe/dev-events.json"
    );
    let signed = events().into_iter().map(|(kind, event)| {
        let body = event.to_string();
        let signature = sign(SECRET, body.as_bytes(), NOW);
        json!({ "type": kind, "body": body, "signature": signature })
    });
    let signed: Vec<Value> = signed.collect();
    let recorded = json!({ "secret": SECRET, "at": NOW.0 / 1000, "events": signed });
    let fresh = format!("{recorded:#}\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(
        kept, fresh,
        "dev-events.json is stale: run this with UPDATE_GOLDEN=1 if the provider `dev` is right"
    );
}
