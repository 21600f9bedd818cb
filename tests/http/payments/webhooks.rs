//! Webhooks and their effect: verdicts, recognition, and the events that are kept.

use http::header;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;

use super::PaymentsFixture;
use super::fake_stripe::{charge, checkout, event};
use crate::owner::text;

#[tokio::test]
async fn who_has_paid_is_recognised_by_the_cookie_until_the_money_goes_back() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let first = shop.begin_checkout(&price).await;
    assert_eq!(shop.owned_purchases(&first.cookie).await, [] as [Value; 0]);
    // Coming back from the provider's page proves nothing.
    shop.server
        .get("/shop?checkout=success")
        .header(header::COOKIE, &first.cookie)
        .answer()
        .await
        .expect(200);
    let paid = event(
        "evt_1",
        "checkout.session.completed",
        10,
        &checkout(&first.checkout, "paid"),
    );
    shop.server.advance(5);
    shop.send_accepted_event(&paid).await;
    shop.send_accepted_event(&paid).await;
    assert_eq!(
        shop.owned_purchases(&first.cookie).await,
        [json!({
            "price": price, "status": "paid", "amount": 900, "currency": "eur", "email": "Ada@Example.com",
            "created_at": "2026-11-20T12:00:00.000Z", "matched_by": "cookie",
        })]
    );
    let session = shop.session(&first.session).await;
    assert_eq!(session["email"], "Ada@Example.com");
    assert_eq!(session["updated_at"], "2026-11-20T12:00:05.000Z");

    // Another browser, another frontend's cookie, and a cookie that is too old say nothing.
    assert_eq!(shop.owned_purchases("").await, [] as [Value; 0]);
    shop.owner
        .frontend(&shop.server, &shop.project, "annex")
        .await;
    let annex = shop.server.get("/annex/payments/status");
    let annex = annex.header(header::COOKIE, &first.cookie);
    assert_eq!(
        svc_tests::ReadAnswer::answer(annex).await.json(),
        json!({ "payments": [] })
    );
    let app = shop.server.server().app();
    let annex = app.serving.page("annex").await.unwrap().id;
    let value = first.cookie.split_once('=').unwrap().1;
    let renamed = shop.server.get("/annex/payments/status");
    let renamed = renamed.header(header::COOKIE, format!("svc_checkout_{annex}={value}"));
    assert_eq!(
        svc_tests::ReadAnswer::answer(renamed).await.json(),
        json!({ "payments": [] })
    );

    // A later purchase of the same is not touched by the first one's return.
    shop.server.advance(100);
    let second = shop.begin_checkout_with_cookie(&price, &first.cookie).await;
    shop.send_accepted_event(&event(
        "evt_2",
        "checkout.session.completed",
        20,
        &checkout(&second.checkout, "paid"),
    ))
    .await;
    assert_eq!(shop.owned_purchases(&first.cookie).await.len(), 2);
    shop.send_accepted_event(&event(
        "evt_3",
        "charge.refunded",
        30,
        &charge(&first.checkout, 300),
    ))
    .await;
    assert_eq!(
        shop.owned_purchases(&first.cookie).await.len(),
        2,
        "a part is not all"
    );
    shop.send_accepted_event(&event(
        "evt_4",
        "charge.dispute.created",
        31,
        &json!({ "id": "dp_1", "charge": format!("ch_of_{}", first.checkout) }),
    ))
    .await;
    assert_eq!(
        shop.owned_purchases(&first.cookie).await.len(),
        2,
        "a dispute is not lost"
    );
    shop.send_accepted_event(&event(
        "evt_5",
        "charge.refunded",
        32,
        &charge(&first.checkout, 900),
    ))
    .await;
    assert_eq!(shop.owned_purchases(&first.cookie).await.len(), 1);
    assert_eq!(shop.verdict(&first.session).await, "refunded");
    assert_eq!(shop.verdict(&second.session).await, "paid");

    // Thirty days after the last checkout the cookie is forgotten here, too.
    shop.server.advance(30 * 24 * 3600 + 1);
    assert_eq!(shop.owned_purchases(&first.cookie).await, [] as [Value; 0]);
}

#[tokio::test]
async fn every_kind_of_event_is_taken_in_and_counts_for_what_it_says() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    for (kind, payment_status, expected) in [
        ("checkout.session.completed", "paid", "paid"),
        ("checkout.session.completed", "unpaid", "open"),
        ("checkout.session.completed", "no_payment_required", "open"),
        ("checkout.session.async_payment_succeeded", "paid", "paid"),
        ("checkout.session.async_payment_failed", "unpaid", "failed"),
        ("checkout.session.expired", "unpaid", "canceled"),
        ("checkout.session.renamed", "paid", "open"),
    ] {
        let bought = shop.begin_checkout(&price).await;
        let id = format!("evt_{}_{kind}", bought.checkout);
        shop.send_accepted_event(&event(
            &id,
            kind,
            1,
            &checkout(&bought.checkout, payment_status),
        ))
        .await;
        assert_eq!(
            shop.verdict(&bought.session).await,
            expected,
            "{kind} {payment_status}"
        );
    }
    // Types that nothing depends on are answered, whatever they hold.
    shop.send_accepted_event(&event("evt_x", "balance.available", 1, &Value::Null))
        .await;
    shop.send_accepted_event(&event("evt_y", "customer.created", 1, &json!({ "id": 7 })))
        .await;
}

#[tokio::test]
async fn a_subscription_lasts_until_it_ends() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({ "recurring": true })).await;
    let bought = shop.begin_checkout(&price).await;
    let mut paid = checkout(&bought.checkout, "paid");
    paid["payment_intent"] = Value::Null;
    paid["subscription"] = json!("sub_1");
    paid["invoice"] = json!("in_1");
    let subscription = |status: &str| json!({ "id": "sub_1", "object": "subscription", "status": status, "metadata": {} });
    let invoice = |id: &str| {
        json!({ "id": id, "object": "invoice", "amount_paid": 900, "currency": "eur",
            "parent": { "type": "subscription_details", "subscription_details": { "subscription": "sub_1" } } })
    };
    let by = |invoice: &str, payment: &str| {
        json!({ "id": format!("inpay_{invoice}"), "invoice": invoice, "status": "paid",
            "payment": { "type": "payment_intent", "payment_intent": payment } })
    };
    let returned = |payment: &str| {
        json!({ "id": format!("ch_{payment}"), "amount": 900, "amount_refunded": 900, "refunded": true,
            "currency": "eur", "payment_intent": payment })
    };
    let steps = [
        (
            "customer.subscription.created",
            1,
            subscription("active"),
            "open",
        ),
        ("invoice.paid", 1, invoice("in_1"), "open"),
        ("checkout.session.completed", 1, paid, "paid"),
        ("invoice_payment.paid", 1, by("in_1", "pi_1"), "paid"),
        ("invoice.payment_failed", 5, invoice("in_2"), "paid"),
        (
            "customer.subscription.updated",
            5,
            subscription("past_due"),
            "paid",
        ),
        ("invoice.paid", 6, invoice("in_2"), "paid"),
        ("invoice_payment.paid", 6, by("in_2", "pi_2"), "paid"),
        (
            "customer.subscription.updated",
            6,
            subscription("active"),
            "paid",
        ),
        // The first month's money goes back, and this one's does not.
        ("charge.refunded", 7, returned("pi_1"), "paid"),
        (
            "customer.subscription.updated",
            9,
            subscription("unpaid"),
            "canceled",
        ),
        (
            "customer.subscription.updated",
            8,
            subscription("active"),
            "canceled",
        ),
        (
            "customer.subscription.updated",
            10,
            subscription("active"),
            "paid",
        ),
        (
            "customer.subscription.deleted",
            11,
            subscription("canceled"),
            "canceled",
        ),
        ("charge.refunded", 12, returned("pi_2"), "refunded"),
    ];
    for (number, (kind, at, object, expected)) in steps.into_iter().enumerate() {
        shop.send_accepted_event(&event(&format!("evt_{number}"), kind, at, &object))
            .await;
        assert_eq!(
            shop.verdict(&bought.session).await,
            expected,
            "{number}: {kind}"
        );
        let has = usize::from(expected == "paid");
        assert_eq!(
            shop.owned_purchases(&bought.cookie).await.len(),
            has,
            "{number}: {kind}"
        );
    }
}

#[tokio::test]
async fn what_comes_before_its_session_is_known_counts_later() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    // The stand-in numbers its checkouts.
    shop.send_accepted_event(&event(
        "evt_2",
        "charge.refunded",
        30,
        &charge("cs_test_1", 900),
    ))
    .await;
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        10,
        &checkout("cs_test_1", "paid"),
    ))
    .await;
    let bought = shop.begin_checkout(&price).await;
    assert_eq!(bought.checkout, "cs_test_1");
    assert_eq!(shop.verdict(&bought.session).await, "refunded");
}

#[tokio::test]
async fn events_of_nobody_are_forgotten_and_those_of_an_ended_project_too() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        10,
        &checkout(&bought.checkout, "paid"),
    ))
    .await;
    shop.send_accepted_event(&event(
        "evt_2",
        "charge.refunded",
        10,
        &charge("cs_of_nobody", 900),
    ))
    .await;
    let app = shop.server.server().app();
    let count = async || {
        let read = app.control.read(|c| {
            c.query_row(
                "SELECT (SELECT count(*) FROM payment_events), (SELECT count(*) FROM payment_references)",
                [],
                |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
            )
        });
        read.await.unwrap()
    };
    assert_eq!(count().await, (2, 4));
    shop.server.advance(91 * 24 * 3600);
    app.payments.delete_old_events().await.unwrap();
    assert_eq!(count().await, (1, 2), "what is somebody's stays");
    let project = format!("/{}", shop.project);
    shop.owner.delete(&shop.server, &project).await.expect(204);
    let empty = async || (count().await == (0, 0)).then_some(());
    svc_tests::wait_until("nothing of the project to be left", empty).await;
    assert_eq!(text(&json!(price)), price);
}
