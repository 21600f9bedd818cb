//! Checkouts: what the provider is asked, what the visitor gets, and what happens when either fails.

use http::header;
use serde_json::{Value, json};
use svc::payments::model::{MAX_BUYER_SESSIONS, SESSION_LIMIT_SECONDS};
use svc_tests::{ReadAnswer, TestServer};

use super::fake_stripe::{FakeAnswer, checkout, event};
use super::{PaymentsFixture, copy_sessions, with_form};
use crate::owner::{Owner, text};

#[tokio::test]
async fn a_visitor_is_sent_to_the_providers_page() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({ "description": "All of it" })).await;
    let begun = shop
        .server
        .json("/shop/payments/checkout", &json!({ "price": price }));
    let begun = begun.answer().await.expect(303);
    assert_eq!(
        begun.header("location"),
        Some("http://127.0.0.1:9/pay/cs_test_1")
    );
    assert_eq!(begun.header("cache-control"), Some("private, no-store"));
    assert_eq!(begun.header("access-control-allow-origin"), None);
    let cookie = begun.header("set-cookie").unwrap();
    let app = shop.server.server().app();
    let page = app.serving.page("shop").await.unwrap().id;
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    let (name, value) = pair.split_once('=').unwrap();
    assert_eq!(name, format!("svc_checkout_{page}"));
    assert!(value.len() > 40, "{value}");
    let mut attributes: Vec<&str> = attributes.split("; ").collect();
    attributes.sort_unstable();
    assert_eq!(
        attributes,
        ["HttpOnly", "Max-Age=2592000", "Path=/shop", "SameSite=Lax"]
    );

    let session = shop.sessions().await.remove(0);
    let id = text(&session["id"]);
    assert_eq!(
        session,
        json!({
            "id": id, "price": price, "price_label": "PDF", "amount": 900, "currency": "eur", "recurring": false,
            "status": "open", "user_id": null, "email": null,
            "created_at": "2026-11-20T12:00:00.000Z", "updated_at": "2026-11-20T12:00:00.000Z",
        })
    );
    let call = shop.provider.calls().remove(0);
    assert_eq!(call.path, "/v1/checkout/sessions");
    assert_eq!(call.headers["authorization"], "Bearer sk_test_of_tests");
    assert_eq!(call.headers["stripe-version"], svc::stripe::API_VERSION);
    assert_eq!(
        call.headers["content-type"],
        "application/x-www-form-urlencoded"
    );
    assert!(
        call.headers["idempotency-key"]
            .to_str()
            .unwrap()
            .contains(&id)
    );
    let port = shop.server.address().port();
    let back = format!("http://127.0.0.1:{port}/shop?checkout");
    let expected = json!({
        "mode": "payment",
        "success_url": format!("{back}=success"),
        "cancel_url": format!("{back}=canceled"),
        "client_reference_id": id,
        "metadata[svc_session]": id,
        "payment_intent_data[metadata][svc_session]": id,
        "line_items[0][quantity]": "1",
        "line_items[0][price_data][currency]": "eur",
        "line_items[0][price_data][unit_amount]": "900",
        "line_items[0][price_data][product_data][name]": "Handbook",
        "line_items[0][price_data][product_data][description]": "PDF · All of it",
        "adaptive_pricing[enabled]": "false",
    });
    assert_eq!(serde_json::to_value(&call.form).unwrap(), expected);
}

#[tokio::test]
async fn a_form_a_subscription_and_an_address_to_come_back_to() {
    let shop = PaymentsFixture::start().await;
    let price = shop
        .add_price(json!({ "recurring": true, "amount": 500, "currency": "isk" }))
        .await;
    let fields = [
        ("price", price.as_str()),
        ("return_to", "/shop/read?page=2#end"),
    ];
    let host = format!("shop-acme.localhost:{}", shop.server.address().port());
    let begun = with_form(shop.server.post("/shop/payments/checkout"), &fields);
    let begun = begun
        .header(header::HOST, &host)
        .header(header::ORIGIN, format!("http://{host}"))
        .answer()
        .await
        .expect(303);
    assert!(begun.header("set-cookie").is_some());
    let sent = shop.provider.calls().remove(0).form;
    for (name, value) in [
        ("mode", "subscription"),
        ("line_items[0][price_data][recurring][interval]", "month"),
        // Amount in this currency's smallest unit.
        ("line_items[0][price_data][unit_amount]", "50000"),
        (
            "success_url",
            &format!("http://{host}/shop/read?page=2&checkout=success#end"),
        ),
        (
            "cancel_url",
            &format!("http://{host}/shop/read?page=2&checkout=canceled#end"),
        ),
    ] {
        assert_eq!(sent[name], value, "{name}");
    }
    assert!(sent.contains_key("subscription_data[metadata][svc_session]"));
    assert!(
        !sent
            .keys()
            .any(|name| name.starts_with("payment_intent_data"))
    );
}

#[tokio::test]
async fn what_cannot_be_bought_says_why() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let inactive = shop.add_price(json!({ "label": "Print" })).await;
    let path = format!("/{}/payments/catalog/{inactive}", shop.project);
    shop.owner.delete(&shop.server, &path).await.expect(200);
    let other = shop.owner.project(&shop.server, "Other").await;
    let tea = json!({ "product_name": "Tea", "label": "Pot", "amount": 300, "currency": "eur" });
    let path = format!("/{other}/payments/catalog");
    let foreign = shop
        .owner
        .post(&shop.server, &path, &tea)
        .await
        .expect(201)
        .json();
    for (body, status, code) in [
        (json!({ "price": inactive }), 409, "price_inactive"),
        (json!({ "price": foreign["id"] }), 404, "not_found"),
        (json!({ "price": "price_none" }), 404, "not_found"),
        (json!({}), 400, "invalid_request"),
        (
            json!({ "price": price, "amount": 1 }),
            400,
            "invalid_request",
        ),
        (
            json!({ "price": price, "return_to": "/other" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "price": price, "return_to": "https://evil.example/" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "price": price, "return_to": "//evil.example" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "price": price, "return_to": "/shop/../other" }),
            400,
            "invalid_request",
        ),
    ] {
        shop.send_request(&body, "").await.problem(status, code);
    }
    for (name, value) in [("origin", "https://evil.example"), ("origin", "null")] {
        let post = shop
            .server
            .json("/shop/payments/checkout", &json!({ "price": price }));
        let refused = post.header(name, value).answer().await;
        refused.problem(403, "origin_refused");
        let post = with_form(
            shop.server.post("/shop/payments/checkout"),
            &[("price", &price)],
        );
        let refused = post.header(name, value).answer().await;
        refused.problem(403, "origin_refused");
        assert_eq!(refused.header("set-cookie"), None);
    }
    let share = shop
        .server
        .publish_slug(&json!({ "content": "# Hi", "type": "markdown" }))
        .await;
    for slug in [share.as_str(), "nowhere"] {
        let path = format!("/{slug}/payments/checkout");
        let post = shop.server.json(&path, &json!({ "price": price }));
        post.answer().await.problem(404, "not_found");
        let status = shop.server.get(&format!("/{slug}/payments/status"));
        status.answer().await.problem(404, "not_found");
    }
    assert!(shop.provider.calls().is_empty(), "nobody was asked");
    assert!(shop.sessions().await.is_empty(), "nothing was begun");
}

#[tokio::test]
async fn without_a_provider_nothing_can_be_bought() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    owner.frontend(&server, &project, "shop").await;
    let post = server.json("/shop/payments/checkout", &json!({ "price": "price_x" }));
    let refused = post.answer().await;
    refused.problem(503, "payments_unconfigured");
    assert_eq!(refused.header("retry-after"), Some("60"));
    let hook = server.post("/_svc/webhooks/stripe").body("{}");
    hook.answer().await.problem(503, "payments_unconfigured");
    let status = server
        .get("/shop/payments/status")
        .answer()
        .await
        .expect(200);
    assert_eq!(status.json(), json!({ "payments": [] }));
    let page = server.get("/_svc/dev/pay/cs_dev_1").answer().await;
    assert_eq!(page.status, 404, "no stand-in without --dev");
}

#[tokio::test]
async fn a_double_click_is_one_purchase_and_a_later_one_another() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let first = shop.begin_checkout(&price).await;
    // The browser has its cookie by now; two clicks at once.
    let (second, third) = tokio::join!(
        shop.begin_checkout_with_cookie(&price, &first.cookie),
        shop.begin_checkout_with_cookie(&price, &first.cookie)
    );
    for again in [&second, &third] {
        assert_eq!((&again.session, &again.url), (&first.session, &first.url));
        assert_eq!(again.cookie, first.cookie);
    }
    assert_eq!(shop.provider.calls().len(), 1);
    // Another browser, another price, a later day and a forged cookie are other purchases.
    let other = shop.add_price(json!({ "label": "Print" })).await;
    let name = first.cookie.split('=').next().unwrap();
    let made_up = format!("{name}=made-up");
    let stranger = shop.begin_checkout_with_cookie(&price, &made_up).await;
    assert_ne!(stranger.cookie, made_up);
    shop.begin_checkout(&price).await;
    shop.begin_checkout_with_cookie(&other, &first.cookie).await;
    let elsewhere = json!({ "price": price, "return_to": "/shop/thanks" });
    let elsewhere = shop
        .send_request(&elsewhere, &first.cookie)
        .await
        .expect(200);
    assert_ne!(text(&elsewhere.json()["session_id"]), first.session);
    shop.server.advance(61);
    let later = shop.begin_checkout_with_cookie(&price, &first.cookie).await;
    assert_ne!(later.session, first.session);
    assert_eq!(
        later.cookie, first.cookie,
        "all of a visitor's purchases stay together"
    );
    assert_eq!(shop.sessions().await.len(), 6);
    // A click does not lead to a paid session, nor to one whose hosted page is closed.
    let bought = shop.begin_checkout_with_cookie(&other, &later.cookie).await;
    shop.send_accepted_event(&event(
        "evt_1",
        "checkout.session.completed",
        1,
        &checkout(&bought.checkout, "paid"),
    ))
    .await;
    let again = shop.begin_checkout_with_cookie(&other, &later.cookie).await;
    assert_ne!(again.session, bought.session);
    shop.send_accepted_event(&event(
        "evt_2",
        "checkout.session.expired",
        2,
        &checkout(&again.checkout, "unpaid"),
    ))
    .await;
    let anew = shop.begin_checkout_with_cookie(&other, &later.cookie).await;
    assert!(anew.session != again.session && anew.session != bought.session);
}

#[tokio::test]
async fn a_provider_that_refuses_fails_or_lies_grants_nothing() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let body = json!({ "price": price });
    let small = json!({ "error": { "type": "invalid_request_error", "code": "amount_too_small", "message": "Amount must be at least 50 cents" } });
    for status in [400, 402] {
        shop.provider
            .set_next_answer(FakeAnswer::Respond(status, small.clone()));
        let problem = shop
            .send_request(&body, "")
            .await
            .problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("at least 50 cents"), "{detail}");
    }
    let key = json!({ "error": { "message": "Invalid API Key provided: sk_test_of_tests" } });
    for (manner, kept) in [
        (FakeAnswer::Respond(401, key), false),
        (FakeAnswer::Respond(429, Value::Null), false),
        (FakeAnswer::Respond(302, Value::Null), false),
        (FakeAnswer::Respond(409, Value::Null), true),
        (FakeAnswer::Respond(500, Value::Null), true),
        (FakeAnswer::Respond(200, json!({})), true),
        (
            FakeAnswer::Respond(200, json!({ "id": "cs_x", "url": "javascript:alert(1)" })),
            true,
        ),
        (
            FakeAnswer::Respond(200, json!({ "id": "", "url": "https://pay.example" })),
            true,
        ),
        (
            FakeAnswer::Respond(200, json!({ "id": 7, "url": "https://pay.example" })),
            true,
        ),
        (FakeAnswer::Endless, true),
    ] {
        let before = shop.sessions().await.len();
        shop.provider.set_next_answer(manner.clone());
        let refused = shop.send_request(&body, "").await;
        let problem = refused.problem(503, "provider_unavailable");
        assert_eq!(refused.header("retry-after"), Some("60"));
        assert!(!problem.to_string().contains("sk_test"), "{problem}");
        assert_eq!(refused.header("set-cookie"), None);
        // A checkout that may exist stays known, as open; one that certainly does not is forgotten.
        let sessions = shop.sessions().await;
        assert_eq!(sessions.len() - before, usize::from(kept), "{manner:?}");
        assert!(sessions.iter().all(|one| one["status"] == "open"));
    }
    // The owner's list and the project's table agree.
    assert_eq!(shop.wait_for_mirrored_rows().await.len(), 7);
}

#[tokio::test]
async fn a_session_of_a_provider_that_fell_silent_can_be_paid_and_is_known() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let known = shop
        .begin_checkout(&shop.add_price(json!({ "label": "Print" })).await)
        .await;
    shop.provider.set_next_answer(FakeAnswer::Hang);
    let click = json!({ "price": price });
    let asked = shop.send_request(&click, &known.cookie).await;
    asked.problem(503, "provider_unavailable");
    let silent = shop.provider.calls().pop().unwrap();
    let session = silent.form["client_reference_id"].clone();
    // Repeating the click sends the same key, so the provider answers with the first checkout.
    let again = shop.begin_checkout_with_cookie(&price, &known.cookie).await;
    assert_eq!(again.session, session);
    let call = shop.provider.calls().pop().unwrap();
    assert_eq!(
        call.headers["idempotency-key"],
        silent.headers["idempotency-key"]
    );

    // One whose answer never came is known by what only we write into it.
    shop.server.advance(61);
    shop.provider
        .set_next_answer(FakeAnswer::Respond(500, Value::Null));
    let click = json!({ "price": price });
    let asked = shop.send_request(&click, &known.cookie).await;
    asked.problem(503, "provider_unavailable");
    let lost = shop.provider.calls().pop().unwrap();
    let session = lost.form["client_reference_id"].clone();
    let mut paid = checkout("cs_unknown", "paid");
    paid["metadata"] = json!({ "svc_session": session });
    shop.send_accepted_event(&event("evt_1", "checkout.session.completed", 1, &paid))
        .await;
    assert_eq!(shop.verdict(&session).await, "paid");
    assert_eq!(shop.owned_purchases(&known.cookie).await.len(), 1);
}

#[tokio::test]
async fn many_checkouts_of_a_client_are_too_many() {
    let limits = TestServer::builder().limits(|limits| {
        limits.checkout_burst = 2;
        limits.checkout_per_minute = 1;
    });
    let shop = PaymentsFixture::with_builder(limits).await;
    let price = shop.add_price(json!({})).await;
    shop.begin_checkout(&price).await;
    let last = shop
        .send_request(&json!({ "price": price }), "")
        .await
        .expect(200);
    assert!(last.header("ratelimit-policy").is_some());
    let refused = shop.send_request(&json!({ "price": price }), "").await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(shop.provider.calls().len(), 2);
}

#[tokio::test]
async fn a_browser_begins_a_bounded_number_of_checkouts_a_day() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let first = shop.begin_checkout(&price).await;
    copy_sessions(&shop.server, MAX_BUYER_SESSIONS - 1).await;
    let other = json!({ "price": price, "return_to": "/shop/other" });
    let refused = shop.send_request(&other, &first.cookie).await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(refused.header("set-cookie"), None);
    assert_eq!(shop.provider.calls().len(), 1, "nobody was asked");
    // A second click on the same button begins nothing, and another browser has begun nothing.
    let again = shop.begin_checkout_with_cookie(&price, &first.cookie).await;
    assert_eq!(again.session, first.session);
    shop.begin_checkout(&price).await;
    shop.server.advance(SESSION_LIMIT_SECONDS.unsigned_abs());
    shop.send_request(&other, &first.cookie).await.expect(200);
}

#[tokio::test]
async fn a_recurring_price_is_paid_every_month_or_every_year() {
    let shop = PaymentsFixture::start().await;
    for (terms, paid, told) in [
        (json!({ "recurring": true }), "month", None),
        (
            json!({ "recurring": true, "interval": "month" }),
            "month",
            None,
        ),
        (
            json!({ "recurring": true, "interval": "year" }),
            "year",
            Some("year"),
        ),
    ] {
        let price = shop.add_price(terms).await;
        let begun = with_form(
            shop.server.post("/shop/payments/checkout"),
            &[("price", price.as_str())],
        );
        begun.answer().await.expect(303);
        let sent = shop.provider.calls().pop().unwrap().form;
        assert_eq!(sent["line_items[0][price_data][recurring][interval]"], paid);
        let catalog = shop.server.get("/shop/payments/catalog").answer().await;
        let prices = catalog.expect(200).json()["prices"].clone();
        let offer = prices.as_array().unwrap().iter();
        let offer = offer.clone().find(|offer| offer["id"] == *price).unwrap();
        assert_eq!(offer["recurring"], true);
        assert_eq!(offer.get("interval").and_then(Value::as_str), told);
    }
    let path = format!("/{}/payments/catalog", shop.project);
    for interval in [json!("year"), json!("week"), json!(1)] {
        let price = json!({
            "product_name": "Club", "label": "x", "amount": 1, "currency": "eur", "interval": interval,
        });
        let refused = shop.owner.post(&shop.server, &path, &price).await;
        let problem = refused.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains("interval"), "{problem}");
    }
}
