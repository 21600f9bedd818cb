//! The end of a project: what its visitors pay for ends at the provider, too.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, wait_until};
use tempfile::TempDir;

use super::PaymentsFixture;
use super::fake_stripe::{self, Call, FakeAnswer, FakeStripe, checkout, event};
use crate::owner::text;
use crate::svc;

/// Recorded calls that end a subscription or a checkout.
fn end_calls(provider: &FakeStripe) -> Vec<Call> {
    let calls = provider.calls().into_iter();
    calls
        .filter(|call| call.path != "/v1/checkout/sessions")
        .collect()
}

async fn wait_for_end_calls(provider: &FakeStripe, count: usize) -> Vec<Call> {
    let enough = async || (end_calls(provider).len() >= count).then(|| end_calls(provider));
    wait_until("the provider to be told", enough).await
}

/// A paid checkout of a subscription.
fn subscription_checkout(id: &str) -> Value {
    let mut paid = checkout(id, "paid");
    paid["payment_intent"] = Value::Null;
    paid["subscription"] = json!(format!("sub_{id}"));
    paid
}

impl PaymentsFixture {
    async fn end_project(&self) {
        let project = format!("/{}", self.project);
        self.owner.delete(&self.server, &project).await.expect(204);
    }

    /// Waits until the queue of calls is empty, and runs it again at a later time.
    async fn retry_later(&self) {
        let app = self.server.server().app();
        let settled = async || {
            let left = app.control.read(|c| {
                let sql = "SELECT count(*) FROM payment_endings WHERE due_at IS NOT NULL";
                c.query_row(sql, [], |row| row.get::<_, i64>(0))
            });
            (left.await.unwrap() == 0).then_some(())
        };
        wait_until("the provider to have been told of all", settled).await;
        self.server.advance(24 * 3600);
        app.payments.send_cancellations().await.unwrap();
    }
}

#[tokio::test]
async fn what_visitors_pay_for_ends_with_its_project() {
    let shop = PaymentsFixture::start().await;
    let once = shop.add_price(json!({})).await;
    let monthly = shop.add_price(json!({ "recurring": true })).await;
    let paid = shop.begin_checkout(&once).await;
    let living = shop.begin_checkout(&monthly).await;
    let past = shop.begin_checkout(&monthly).await;
    let over = shop.begin_checkout(&monthly).await;
    let open = shop.begin_checkout(&once).await;
    let completed = "checkout.session.completed";
    let status = |id: &str, status: &str| json!({ "id": format!("sub_{id}"), "status": status, "metadata": {} });
    for (number, (kind, object)) in [
        (completed, checkout(&paid.checkout, "paid")),
        (completed, subscription_checkout(&living.checkout)),
        (completed, subscription_checkout(&past.checkout)),
        (
            "customer.subscription.updated",
            status(&past.checkout, "past_due"),
        ),
        (completed, subscription_checkout(&over.checkout)),
        (
            "customer.subscription.deleted",
            status(&over.checkout, "canceled"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("evt_{number}");
        shop.send_accepted_event(&event(&name, kind, 1, &object))
            .await;
    }
    shop.end_project().await;

    let calls = wait_for_end_calls(&shop.provider, 3).await;
    let told: BTreeMap<&str, &BTreeMap<String, String>> =
        calls.iter().map(|call| (&*call.path, &call.form)).collect();
    let at_close = BTreeMap::from([("cancel_at_period_end".to_owned(), "true".to_owned())]);
    let nothing = BTreeMap::new();
    let subscription = |id: &str| format!("/v1/subscriptions/sub_{id}");
    let (living, past) = (subscription(&living.checkout), subscription(&past.checkout));
    let expire = format!("/v1/checkout/sessions/{}/expire", open.checkout);
    let expected = [
        (&*expire, &nothing),
        (&*living, &at_close),
        (&*past, &at_close),
    ];
    assert_eq!(told, BTreeMap::from(expected));
    for call in &calls {
        assert_eq!(call.headers["stripe-version"], svc::stripe::API_VERSION);
    }
    // Nothing is left to tell, and what the provider still says is nobody's.
    let gone = status("cs_test_2", "canceled");
    let gone = event("evt_end", "customer.subscription.deleted", 9, &gone);
    shop.send_accepted_event(&gone).await;
    shop.retry_later().await;
    assert_eq!(end_calls(&shop.provider).len(), 3);
}

#[tokio::test]
async fn a_provider_that_is_away_is_told_again_and_one_that_has_nothing_is_not() {
    let shop = PaymentsFixture::start().await;
    let monthly = shop.add_price(json!({ "recurring": true })).await;
    let bought = shop.begin_checkout(&monthly).await;
    let paid = subscription_checkout(&bought.checkout);
    let paid = event("evt_1", "checkout.session.completed", 1, &paid);
    shop.send_accepted_event(&paid).await;
    let missing =
        json!({ "error": { "type": "invalid_request_error", "code": "resource_missing" } });
    for manner in [
        FakeAnswer::Respond(500, Value::Null),
        FakeAnswer::Respond(401, Value::Null),
        FakeAnswer::Respond(404, missing),
    ] {
        shop.provider.set_next_answer(manner);
    }
    shop.end_project().await;
    let mut keys = Vec::new();
    for attempt in 1..=3 {
        // The time of the next is known only once the one before has failed: until then the clock goes on.
        let calls = wait_until("the provider to be told", async || {
            let calls = end_calls(&shop.provider);
            if calls.len() < attempt {
                shop.server.advance(10);
            }
            (calls.len() >= attempt).then_some(calls)
        });
        let calls = calls.await;
        assert_eq!(calls.len(), attempt);
        keys.push(calls[attempt - 1].headers["idempotency-key"].clone());
    }
    keys.dedup();
    assert_eq!(keys.len(), 3, "the same key is answered with the failure");
    shop.retry_later().await;
    let told = end_calls(&shop.provider).len();
    assert_eq!(told, 3, "what the provider does not have has ended");
}

#[tokio::test]
async fn a_checkout_that_is_over_is_left_alone() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let bought = shop.begin_checkout(&price).await;
    let complete = json!({ "error": { "type": "invalid_request_error", "message": "Only sessions that are open can be expired." } });
    shop.provider
        .set_next_answer(FakeAnswer::Respond(400, complete));
    shop.end_project().await;
    let calls = wait_for_end_calls(&shop.provider, 1).await;
    let path = format!("/v1/checkout/sessions/{}/expire", bought.checkout);
    assert_eq!(calls[0].path, path);
    shop.retry_later().await;
    assert_eq!(end_calls(&shop.provider).len(), 1);
}

#[tokio::test]
async fn what_is_paid_after_the_end_ends_too() {
    let shop = PaymentsFixture::start().await;
    let monthly = shop.add_price(json!({ "recurring": true })).await;
    let bought = shop.begin_checkout(&monthly).await;
    shop.end_project().await;
    // The visitor was quicker than the call that closes the page.
    wait_for_end_calls(&shop.provider, 1).await;
    let paid = subscription_checkout(&bought.checkout);
    let updated =
        json!({ "id": format!("sub_{}", bought.checkout), "status": "active", "metadata": {} });
    for (name, kind, object) in [
        ("evt_1", "checkout.session.completed", &paid),
        ("evt_1", "checkout.session.completed", &paid),
        ("evt_2", "customer.subscription.updated", &updated),
    ] {
        shop.send_accepted_event(&event(name, kind, 1, object))
            .await;
    }
    let calls = wait_for_end_calls(&shop.provider, 2).await;
    let path = format!("/v1/subscriptions/sub_{}", bought.checkout);
    assert_eq!(calls[1].path, path);
    // Later events of the provider change nothing.
    shop.send_accepted_event(&event(
        "evt_3",
        "customer.subscription.updated",
        2,
        &updated,
    ))
    .await;
    shop.retry_later().await;
    assert_eq!(end_calls(&shop.provider).len(), 2);
    // A foreign checkout is never ended.
    let other = subscription_checkout("cs_of_nobody");
    shop.send_accepted_event(&event("evt_4", "checkout.session.completed", 2, &other))
        .await;
    shop.retry_later().await;
    assert_eq!(end_calls(&shop.provider).len(), 2);
}

#[tokio::test]
async fn a_checkout_that_the_provider_makes_after_the_end_is_refused_and_ends() {
    let shop = PaymentsFixture::start().await;
    let monthly = shop.add_price(json!({ "recurring": true })).await;
    let delayed = shop.provider.delay_next_answer();
    let end = async {
        shop.provider.wait_for_call(&delayed).await;
        shop.end_project().await;
        let app = shop.server.server().app();
        let removed = async || {
            let left = app.control.read(|c| {
                let sql = "SELECT (SELECT count(*) FROM payment_sessions) + (SELECT count(*) FROM payment_prices)";
                c.query_row(sql, [], |row| row.get::<_, i64>(0))
            });
            (left.await.unwrap() == 0).then_some(())
        };
        wait_until("the sessions to be removed", removed).await;
        delayed.send();
    };
    let click = json!({ "price": monthly });
    let (refused, ()) = tokio::join!(shop.send_request(&click, ""), end);
    refused.problem(404, "not_found");
    assert_eq!(refused.header("set-cookie"), None);
    let calls = wait_for_end_calls(&shop.provider, 1).await;
    assert_eq!(calls[0].path, "/v1/checkout/sessions/cs_test_1/expire");
    let app = shop.server.server().app();
    let mirrors = app.control.read(|c| {
        let sql = "SELECT count(*) FROM payment_mirrors";
        c.query_row(sql, [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(mirrors.await.unwrap(), 0);
    // A payment that was quicker ends, too.
    let paid = subscription_checkout("cs_test_1");
    let paid = event("evt_1", "checkout.session.completed", 1, &paid);
    shop.send_accepted_event(&paid).await;
    let calls = wait_for_end_calls(&shop.provider, 2).await;
    assert_eq!(calls[1].path, "/v1/subscriptions/sub_cs_test_1");
}

/// A server process, and the credential of its owner.
struct SellerProcess {
    process: Process,
    credential: String,
}

impl SellerProcess {
    async fn send_request(&self, method: Method, path: &str, body: Value) -> Value {
        let url = self.process.url(&format!("/api/v1/projects{path}"));
        let request = self.process.client().request(method, url);
        let request = request.bearer_auth(&self.credential).json(&body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
    }

    /// Sells a subscription; answers the project.
    async fn sell(&self) -> String {
        let project = self
            .send_request(Method::POST, "", json!({ "name": "Shop" }))
            .await;
        let project = format!("/{}", text(&project["id"]));
        let price = json!({ "product_name": "Handbook", "label": "Monthly", "amount": 900, "currency": "eur", "recurring": true });
        let catalog = format!("{project}/payments/catalog");
        let price = self.send_request(Method::POST, &catalog, price).await;
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "shop" });
        let frontends = format!("{project}/frontends");
        self.send_request(Method::POST, &frontends, page).await;
        let begin = self
            .process
            .client()
            .post(self.process.url("/shop/payments/checkout"));
        let begun = begin.header("accept", "application/json");
        let begun = begun.json(&json!({ "price": price["id"] })).send().await;
        assert_eq!(begun.unwrap().status().as_u16(), 200);
        let paid = subscription_checkout("cs_test_1");
        let body = event("evt_1", "checkout.session.completed", 1, &paid).to_string();
        let now = svc_base::clock::Clock::system().now();
        let signature = svc::stripe::sign(fake_stripe::SECRET, body.as_bytes(), now);
        let hook = self
            .process
            .client()
            .post(self.process.url("/_svc/webhooks/stripe"));
        let hook = hook.header("stripe-signature", signature).body(body);
        assert_eq!(hook.send().await.unwrap().status().as_u16(), 200);
        project
    }
}

#[tokio::test]
async fn death_forgets_nothing_that_is_to_end() {
    let provider = FakeStripe::start().await;
    let place = TempDir::new().unwrap();
    let (config, data) = (place.path().join("svc.toml"), place.path().join("data"));
    std::fs::write(&config, provider.settings_file()).unwrap();
    std::fs::create_dir(&data).unwrap();
    let arguments = ["--config", config.to_str().unwrap()];
    let create = ["namespace", "create", "acme", "--json"];
    let made = svc().run(&data, &create).await.json();
    let fixture = SellerProcess {
        credential: text(&made["credential"]),
        process: svc().serve(&data, &arguments).await,
    };
    let project = fixture.sell().await;
    // The provider has the call, and its answer comes to nobody.
    provider.set_next_answer(FakeAnswer::Hang);
    fixture
        .send_request(Method::DELETE, &project, json!({}))
        .await;
    wait_for_end_calls(&provider, 1).await;
    fixture.process.kill().await;
    let process = svc().serve(&data, &arguments).await;
    let calls = wait_for_end_calls(&provider, 2).await;
    assert_eq!(calls[0].path, "/v1/subscriptions/sub_cs_test_1");
    assert_eq!(calls[0].path, calls[1].path);
    let key = |call: &Call| call.headers["idempotency-key"].clone();
    assert_eq!(key(&calls[0]), key(&calls[1]), "the same, once");
    process.kill().await;
}
