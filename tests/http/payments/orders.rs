//! Convergence: whatever the order in which events arrive, the same is said everywhere.

use serde_json::{Value, json};

use super::fake_stripe::{charge, checkout, event};
use super::{PaymentsFixture, StartedCheckout};
use crate::owner::text;
use crate::svc;

/// A generator that a test can repeat.
struct ShuffleRng(u64);

impl ShuffleRng {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % most as u64).unwrap()
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for place in (1..all.len()).rev() {
            all.swap(place, self.below(place + 1));
        }
    }
}

/// The events of a purchase that was paid late, partly returned, then wholly.
fn one_time_events(id: &str) -> Vec<(&'static str, i64, Value)> {
    vec![
        ("checkout.session.completed", 1, checkout(id, "unpaid")),
        (
            "checkout.session.async_payment_succeeded",
            9,
            checkout(id, "paid"),
        ),
        ("charge.refunded", 10, charge(id, 300)),
        ("charge.refunded", 11, charge(id, 900)),
    ]
}

/// The events of a subscription with renewals, an invoice of another amount, a dispute, dunning and its end.
fn subscription_events(id: &str) -> Vec<(&'static str, i64, Value)> {
    let mut paid = checkout(id, "paid");
    paid["payment_intent"] = Value::Null;
    paid["subscription"] = json!(format!("sub_{id}"));
    paid["invoice"] = json!(format!("in_{id}_1"));
    let subscription =
        |status: &str| json!({ "id": format!("sub_{id}"), "status": status, "metadata": {} });
    let invoice_amounts = |number: u32, amount: i64| {
        json!({ "id": format!("in_{id}_{number}"), "currency": "eur", "total": amount, "amount_due": amount, "amount_paid": amount,
            "parent": { "subscription_details": { "subscription": format!("sub_{id}") } } })
    };
    let invoice = |number: u32| invoice_amounts(number, 900);
    let by = |number: u32| {
        json!({ "id": format!("inpay_{id}_{number}"), "invoice": format!("in_{id}_{number}"),
            "payment": { "type": "payment_intent", "payment_intent": format!("pi_{id}_{number}") } })
    };
    let mut all = vec![
        ("checkout.session.completed", 1, paid),
        ("customer.subscription.created", 1, subscription("active")),
    ];
    for number in 1..=7 {
        let at = i64::from(number) * 10;
        all.push(("invoice.paid", at, invoice(number)));
        all.push(("invoice_payment.paid", at, by(number)));
        all.push(("customer.subscription.updated", at, subscription("active")));
    }
    // One at another amount, and a quarrel.
    all.push(("invoice.paid", 75, invoice_amounts(8, 70)));
    let dispute = json!({ "id": format!("dp_{id}"), "payment_intent": format!("pi_{id}_2") });
    all.push(("charge.dispute.created", 30, dispute.clone()));
    all.push(("charge.dispute.closed", 84, dispute));
    all.push(("invoice.payment_failed", 85, invoice(9)));
    all.push((
        "customer.subscription.updated",
        85,
        subscription("past_due"),
    ));
    let returned = json!({ "id": format!("ch_{id}_3"), "amount": 900, "amount_refunded": 900, "refunded": true,
        "payment_intent": format!("pi_{id}_3") });
    all.push(("charge.refunded", 86, returned));
    all.push(("customer.subscription.updated", 90, subscription("unpaid")));
    all
}

/// Sends the events of a purchase in an order, some of them twice.
async fn send_in_order(
    shop: &PaymentsFixture,
    bought: &StartedCheckout,
    events: &[(&str, i64, Value)],
    order: &[usize],
) {
    for (step, number) in order.iter().enumerate() {
        let (kind, at, object) = &events[*number];
        let id = format!("evt_{}_{number}", bought.checkout);
        let event = event(&id, kind, *at, object);
        shop.send_accepted_event(&event).await;
        if step % 3 == 0 {
            shop.send_accepted_event(&event).await;
        }
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..=shorter.len() {
            let mut longer = shorter.clone();
            longer.insert(place, count - 1);
            all.push(longer);
        }
    }
    all
}

#[tokio::test]
async fn every_order_comes_to_the_same_everywhere_and_so_does_deriving_anew() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let mut expected = Vec::new();
    // All of a purchase, and the same without its return.
    for order in permutations(4) {
        let bought = shop.begin_checkout(&price).await;
        send_in_order(&shop, &bought, &one_time_events(&bought.checkout), &order).await;
        expected.push((bought, "refunded"));
    }
    for order in permutations(3) {
        let bought = shop.begin_checkout(&price).await;
        send_in_order(&shop, &bought, &one_time_events(&bought.checkout), &order).await;
        expected.push((bought, "paid"));
    }
    let monthly_price = shop.add_price(json!({ "recurring": true })).await;
    let mut dice = ShuffleRng(7);
    for _ in 0..8 {
        let bought = shop.begin_checkout(&monthly_price).await;
        let events = subscription_events(&bought.checkout);
        assert_eq!(events.len(), 30);
        let mut order: Vec<usize> = (0..events.len()).collect();
        dice.shuffle(&mut order);
        send_in_order(&shop, &bought, &events, &order).await;
        expected.push((bought, "canceled"));
    }
    for (bought, status) in &expected {
        assert_eq!(shop.verdict(&bought.session).await, *status);
        let has = usize::from(*status == "paid");
        assert_eq!(shop.owned_purchases(&bought.cookie).await.len(), has);
    }
    let rows = shop.wait_for_mirrored_rows().await;
    assert_eq!(rows.len(), expected.len());

    let rebuilt = ["payments", "rebuild", &shop.project, "--json"];
    let rebuilt = shop.server.command(&svc(), &rebuilt).await.json();
    assert_eq!(
        rebuilt,
        json!({ "project": shop.project, "sessions": expected.len(), "changed": 0 })
    );
    assert_eq!(shop.wait_for_mirrored_rows().await, rows);

    let events = ["payments", "events", "shop-acme", "--json"];
    let events = shop.server.command(&svc(), &events).await.json();
    let events = events["events"].as_array().unwrap();
    assert_eq!(events.len(), 24 * 4 + 6 * 3 + 8 * 30);
    let first = &events[0];
    assert_eq!(text(&first["session"]), expected[0].0.session);
}
