//! Amounts and currencies: what is paid is compared with the price, in whatever unit the provider counts it.

use serde_json::{Value, json};

use super::fake_stripe::{charge, checkout, event};
use super::{PaymentsFixture, StartedCheckout};

/// An invoice of a subscription, as the provider sends one of the price.
fn invoice(id: &str, subscription: &str) -> Value {
    json!({
        "id": id, "object": "invoice", "status": "paid", "currency": "eur", "amount_due": 900, "amount_paid": 900,
        "subtotal": 900, "subtotal_excluding_tax": 900, "total": 900, "total_excluding_tax": 900,
        "starting_balance": 0, "ending_balance": 0, "billing_reason": "subscription_cycle", "metadata": {},
        "parent": { "type": "subscription_details", "subscription_details": { "subscription": subscription, "metadata": {} } },
    })
}

/// Which payment has paid an invoice.
fn invoice_payment(invoice: &str) -> Value {
    json!({ "id": format!("inpay_{invoice}"), "object": "invoice_payment", "invoice": invoice, "status": "paid",
        "payment": { "type": "payment_intent", "payment_intent": format!("pi_{invoice}") } })
}

/// The charge of an invoice, of which all went back.
fn refunded_charge(invoice: &str) -> Value {
    json!({ "id": format!("ch_{invoice}"), "object": "charge", "amount": 900, "amount_refunded": 900, "refunded": true,
        "currency": "eur", "payment_intent": format!("pi_{invoice}"), "metadata": {} })
}

/// Amounts of an invoice, all of them one.
fn invoice_amounts(amount: i64) -> Value {
    json!({ "total": amount, "total_excluding_tax": amount, "amount_due": amount, "amount_paid": amount })
}

/// Begins a subscription whose first month is paid.
async fn subscribe(shop: &PaymentsFixture, price: &str) -> StartedCheckout {
    let bought = shop.begin_checkout(price).await;
    let id = &bought.checkout;
    let first = format!("in_{id}");
    let mut paid = checkout(id, "paid");
    for (name, value) in [
        ("mode", json!("subscription")),
        ("payment_intent", Value::Null),
        ("subscription", json!(format!("sub_{id}"))),
        ("invoice", json!(first)),
    ] {
        paid[name] = value;
    }
    for (kind, object) in [
        ("checkout.session.completed", paid),
        ("invoice.paid", invoice(&first, &format!("sub_{id}"))),
        ("invoice_payment.paid", invoice_payment(&first)),
    ] {
        let name = format!("evt_{kind}_{first}");
        shop.send_accepted_event(&event(&name, kind, 1, &object))
            .await;
    }
    assert_eq!(shop.verdict(&bought.session).await, "paid");
    bought
}

#[tokio::test]
async fn an_invoice_of_another_amount_or_currency_gives_nothing_back() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({ "recurring": true })).await;
    for (what, change, expected) in [
        ("the price", json!({}), "paid"),
        ("capitals", json!({ "currency": "EUR" }), "paid"),
        (
            "a tax on top",
            json!({ "total": 1071, "amount_due": 1071, "amount_paid": 1071 }),
            "paid",
        ),
        (
            "a tax within",
            json!({ "total_excluding_tax": 756 }),
            "paid",
        ),
        (
            "credit for a part",
            json!({ "amount_due": 400, "amount_paid": 400, "starting_balance": -500 }),
            "paid",
        ),
        (
            "an older version",
            json!({ "total_excluding_tax": null, "subtotal_excluding_tax": null }),
            "paid",
        ),
        (
            "no amount",
            json!({ "total": null, "total_excluding_tax": null, "amount_due": null, "amount_paid": null }),
            "paid",
        ),
        ("less", invoice_amounts(899), "refunded"),
        ("more", invoice_amounts(901), "refunded"),
        ("nothing", invoice_amounts(0), "refunded"),
        ("a part of it", json!({ "amount_paid": 1 }), "refunded"),
        (
            "less, and nothing else said",
            json!({ "total": null, "total_excluding_tax": null, "amount_due": null, "amount_paid": 899 }),
            "refunded",
        ),
        ("another currency", json!({ "currency": "usd" }), "refunded"),
    ] {
        let bought = subscribe(&shop, &price).await;
        let id = &bought.checkout;
        let send = async |kind: &str, at, object: &Value| {
            let name = format!("evt_{kind}_{at}_{id}");
            shop.send_accepted_event(&event(&name, kind, at, object))
                .await;
            shop.verdict(&bought.session).await
        };
        let first = refunded_charge(&format!("in_{id}"));
        assert_eq!(send("charge.refunded", 5, &first).await, "refunded");
        let next = format!("in_{id}_next");
        let mut odd = invoice(&next, &format!("sub_{id}"));
        for (name, value) in change.as_object().unwrap() {
            odd[name] = value.clone();
        }
        assert_eq!(send("invoice.paid", 9, &odd).await, expected, "{what}");
        let has = usize::from(expected == "paid");
        assert_eq!(
            shop.owned_purchases(&bought.cookie).await.len(),
            has,
            "{what}"
        );
        // What goes back of it is gone, whatever it was for.
        send("invoice_payment.paid", 9, &invoice_payment(&next)).await;
        let back = send("charge.refunded", 10, &refunded_charge(&next)).await;
        assert_eq!(back, "refunded", "{what}");
    }
}

#[tokio::test]
async fn a_month_at_another_amount_takes_nothing_from_who_has_paid() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({ "recurring": true })).await;
    let bought = subscribe(&shop, &price).await;
    let mut coupon = invoice("in_coupon", &format!("sub_{}", bought.checkout));
    for (name, value) in invoice_amounts(450).as_object().unwrap() {
        coupon[name] = value.clone();
    }
    let coupon = event("evt_coupon", "invoice.paid", 9, &coupon);
    shop.send_accepted_event(&coupon).await;
    assert_eq!(shop.verdict(&bought.session).await, "paid");
}

#[tokio::test]
async fn amounts_are_compared_in_the_unit_of_their_currency() {
    let shop = PaymentsFixture::start().await;
    for (currency, ours, theirs, others) in [
        ("jpy", 500, 500, [50_000, 5]),
        ("kwd", 1_230, 1_230, [123, 12_300]),
        ("bhd", 5, 5, [50, 500]),
        ("isk", 500, 50_000, [500, 50_001]),
        ("mga", 500, 5, [500, 50]),
    ] {
        let price = json!({ "amount": ours, "currency": currency, "label": currency });
        let price = shop.add_price(price).await;
        let bought = shop.begin_checkout(&price).await;
        let sent = shop.provider.calls().pop().unwrap().form;
        let field = "line_items[0][price_data][unit_amount]";
        assert_eq!(sent[field], theirs.to_string(), "{currency}");
        let mut paid = checkout(&bought.checkout, "paid");
        paid["currency"] = json!(currency);
        for (amount, expected) in [(others[0], "open"), (others[1], "open"), (theirs, "paid")] {
            paid["amount_total"] = json!(amount);
            let name = format!("evt_{currency}_{amount}");
            let paid = event(&name, "checkout.session.completed", 1, &paid);
            shop.send_accepted_event(&paid).await;
            let verdict = shop.verdict(&bought.session).await;
            assert_eq!(verdict, expected, "{amount} {currency}");
        }
        assert_eq!(shop.session(&bought.session).await["amount"], ours);
    }
}

#[tokio::test]
async fn a_return_of_somebody_elses_payment_is_none_of_this_one() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let (bought, other) = (
        shop.begin_checkout(&price).await,
        shop.begin_checkout(&price).await,
    );
    let send = async |name: &str, kind: &str, object: &Value| {
        shop.send_accepted_event(&event(name, kind, 2, object))
            .await;
    };
    for one in [&bought, &other] {
        let paid = checkout(&one.checkout, "paid");
        let name = format!("evt_{}", one.checkout);
        send(&name, "checkout.session.completed", &paid).await;
    }
    let mut stranger = charge("cs_of_nobody", 900);
    stranger["metadata"] = json!({ "svc_session": "01900000-0000-7000-8000-000000000000" });
    let part = charge(&bought.checkout, 899);
    send("evt_back", "charge.refunded", &stranger).await;
    send("evt_part", "charge.refunded", &part).await;
    assert_eq!(shop.verdict(&bought.session).await, "paid");
    let all = charge(&bought.checkout, 900);
    send("evt_all", "charge.refunded", &all).await;
    assert_eq!(shop.verdict(&bought.session).await, "refunded");
    assert_eq!(shop.verdict(&other.session).await, "paid");
}
