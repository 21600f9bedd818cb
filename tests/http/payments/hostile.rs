//! Webhooks that are not the provider's, or not of now, or not about what they seem: nothing is granted.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::PaymentsFixture;
use super::fake_stripe::{self, OLD_SECRET, SECRET, checkout, event};

#[tokio::test]
async fn only_the_provider_is_believed_and_only_for_a_while() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    let body = event(
        "evt_1",
        "checkout.session.completed",
        1,
        &checkout(&bought.checkout, "paid"),
    );
    let body = body.to_string();
    let now = shop.server.server().app().clock.now();
    let sign = |secret: &str, seconds: i64| {
        svc::stripe::sign(secret, body.as_bytes(), now.plus_seconds(seconds))
    };
    let good = sign(SECRET, 0);
    let (time, tag) = good.split_once(",v1=").unwrap();
    let send = async |signature: Option<String>, body: &str| {
        let mut post = shop
            .server
            .post("/_svc/webhooks/stripe")
            .body(body.to_owned());
        if let Some(signature) = signature {
            post = post.header("stripe-signature", signature);
        }
        post.answer().await
    };
    for (what, signature) in [
        ("missing", None),
        ("empty", Some(String::new())),
        ("of somebody else's secret", Some(sign("whsec_guessed", 0))),
        ("too old", Some(sign(SECRET, -301))),
        ("of a time to come", Some(sign(SECRET, 301))),
        ("of another time", Some(format!("t=1,v1={tag}"))),
        ("of an older scheme", Some(format!("{time},v0={tag}"))),
        ("without a time", Some(format!("v1={tag}"))),
        ("cut", Some(good[..good.len() - 1].to_owned())),
        ("of no text", Some("t=1,v1=\u{7f}".replace('\u{7f}', "zz"))),
    ] {
        let refused = send(signature, &body).await;
        assert_eq!(refused.status, 400, "{what}");
        refused.problem(400, "invalid_request");
    }
    let changed = body.replace("900", "901");
    send(Some(good.clone()), &changed)
        .await
        .problem(400, "invalid_request");
    assert_eq!(shop.verdict(&bought.session).await, "open");

    // While secrets are changed the old one counts, and any of several signatures.
    let several = format!("{time},v1={},v1={tag}", "0".repeat(64));
    send(Some(several), &body).await.expect(200);
    send(Some(sign(OLD_SECRET, -300)), &body).await.expect(200);
    assert_eq!(shop.verdict(&bought.session).await, "paid");
}

#[tokio::test]
async fn what_is_signed_and_no_event_is_refused() {
    let shop = PaymentsFixture::start().await;
    let now = shop.server.server().app().clock.now();
    for body in [
        "",
        "[]",
        "{}",
        "{\"id\":\"evt_1\"}",
        "{\"id\":\"\",\"type\":\"charge.refunded\",\"created\":1}",
        "{\"id\":\"evt_1\",\"type\":\"charge.refunded\",\"created\":\"now\"}",
        "{\"id\":\"evt_1\",\"type\":\"charge.refunded\",\"created\":9223372036854775807}",
        "{\"id\":\"evt_1\",\"type\":\"charge.refunded\",\"created\":1,\"data\":{\"object\":{}}}",
        "\u{0}\u{1}",
    ] {
        let refused = fake_stripe::send_webhook(&shop.server, body.to_owned(), SECRET, now).await;
        refused.problem(400, "invalid_request");
    }
    let large = format!("{{\"id\":\"{}\"}}", "x".repeat(256 << 10));
    let refused = fake_stripe::send_webhook(&shop.server, large, SECRET, now).await;
    refused.problem(413, "payload_too_large");
}

#[tokio::test]
async fn what_has_no_signature_is_refused_before_its_body_is_read() {
    let shop = PaymentsFixture::start().await;
    let server = &shop.server;
    let tag = "0".repeat(64);
    for signature in [
        String::new(),
        "Stripe-Signature: v1=0\r\n".to_owned(),
        format!("Stripe-Signature: t=1,v1={tag}\r\n"),
    ] {
        // The body never comes.
        let head = format!(
            "POST /_svc/webhooks/stripe HTTP/1.1\r\nHost: {}\r\n{signature}Expect: 100-continue\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n",
            server.address()
        );
        let refused = server.raw(head).await;
        let problem = refused.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("Stripe-Signature"), "{detail}");
    }
}

#[tokio::test]
async fn what_is_not_this_purchase_grants_nothing() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    let change = |name: &str, value: Value| {
        let mut object = checkout(&bought.checkout, "paid");
        object[name] = value;
        object
    };
    let mut by_link = checkout("cs_by_link", "paid");
    by_link["payment_link"] = json!("plink_1");
    by_link["client_reference_id"] = json!(bought.session);
    let mut elsewhere = checkout("cs_elsewhere", "paid");
    elsewhere["client_reference_id"] = json!(bought.session);
    let mut other = checkout("cs_other", "paid");
    other["metadata"] = json!({ "svc_session": "01900000-0000-7000-8000-000000000000" });
    for (number, object) in [
        change("amount_total", json!(899)),
        change("amount_total", json!(90_000)),
        change("amount_total", Value::Null),
        change("currency", json!("usd")),
        change("currency", Value::Null),
        // A visitor can choose the reference in a link of the provider.
        by_link,
        elsewhere,
        other,
        checkout("cs_guessed", "paid"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("evt_{number}");
        shop.send_accepted_event(&event(&id, "checkout.session.completed", 1, &object))
            .await;
        assert_eq!(shop.verdict(&bought.session).await, "open", "{object}");
        assert_eq!(shop.owned_purchases(&bought.cookie).await, [] as [Value; 0]);
    }
    // The provider writes currencies in lower case; in upper case they are the same.
    let same = change("currency", json!("EUR"));
    shop.send_accepted_event(&event("evt_good", "checkout.session.completed", 1, &same))
        .await;
    assert_eq!(shop.verdict(&bought.session).await, "paid");
    // Repeating the event with other content changes nothing.
    let again = change("amount_total", json!(1));
    shop.send_accepted_event(&event("evt_good", "checkout.session.expired", 1, &again))
        .await;
    assert_eq!(shop.verdict(&bought.session).await, "paid");
}

#[tokio::test]
async fn the_providers_test_mode_grants_nothing_where_money_moves() {
    for (key, base, livemode, expected) in [
        ("sk_live_1", "https://127.0.0.1:9", json!(false), "open"),
        ("rk_live_1", "https://127.0.0.1:9", json!(false), "open"),
        ("sk_live_1", "https://127.0.0.1:9", json!(true), "paid"),
        ("sk_test_1", "https://127.0.0.1:9", json!(false), "paid"),
        // A stand-in on this machine moves none.
        ("sk_live_1", "http://127.0.0.1:9", json!(false), "paid"),
    ] {
        let shop = PaymentsFixture::with_settings(TestServer::builder(), |stripe| {
            stripe.secret_key = key.to_owned();
            stripe.api_base = base.parse().unwrap();
        })
        .await;
        let price = shop.add_price(json!({})).await;
        // The provider does not answer: the session is recorded, and can still be paid.
        let asked = shop.send_request(&json!({ "price": price }), "").await;
        asked.problem(503, "provider_unavailable");
        let id = shop.sessions().await.remove(0)["id"].clone();
        let mut object = checkout("cs_1", "paid");
        object["metadata"] = json!({ "svc_session": id });
        let mut paid = event("evt_1", "checkout.session.completed", 1, &object);
        paid["livemode"] = livemode.clone();
        shop.send_accepted_event(&paid).await;
        let status = shop.sessions().await.remove(0)["status"].clone();
        assert_eq!(status, expected, "{key} {base} {livemode}");
    }
}
