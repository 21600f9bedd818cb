//! The end of a project: what its visitors pay for ends at the provider, too.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, until};
use tempfile::TempDir;

use super::Shop;
use super::provider::{self, Call, Manner, Provider, checkout, event};
use crate::account::text;
use crate::svc;

/// Calls that end something.
fn ends(provider: &Provider) -> Vec<Call> {
    let calls = provider.calls().into_iter();
    calls
        .filter(|call| call.path != "/v1/checkout/sessions")
        .collect()
}

async fn ended(provider: &Provider, count: usize) -> Vec<Call> {
    let enough = async || (ends(provider).len() >= count).then(|| ends(provider));
    until("the provider to be told", enough).await
}

/// A paid checkout of a subscription.
fn subscribed(id: &str) -> Value {
    let mut paid = checkout(id, "paid");
    paid["payment_intent"] = Value::Null;
    paid["subscription"] = json!(format!("sub_{id}"));
    paid
}

impl Shop {
    async fn end(&self) {
        let project = format!("/{}", self.project);
        self.owner.delete(&self.server, &project).await.expect(204);
    }

    /// Waits until nothing is to be told, and looks again at a later time.
    async fn later(&self) {
        let app = self.server.server().app();
        let settled = async || {
            let left = app.control.read(|c| {
                let sql = "SELECT count(*) FROM payment_endings WHERE due_at IS NOT NULL";
                c.query_row(sql, [], |row| row.get::<_, i64>(0))
            });
            (left.await.unwrap() == 0).then_some(())
        };
        until("the provider to have been told of all", settled).await;
        self.server.advance(24 * 3600);
        app.payments.send_cancellations().await.unwrap();
    }
}

#[tokio::test]
async fn what_visitors_pay_for_ends_with_its_project() {
    let shop = Shop::open().await;
    let once = shop.price(json!({})).await;
    let monthly = shop.price(json!({ "recurring": true })).await;
    let paid = shop.buy(&once).await;
    let living = shop.buy(&monthly).await;
    let past = shop.buy(&monthly).await;
    let over = shop.buy(&monthly).await;
    let open = shop.buy(&once).await;
    let completed = "checkout.session.completed";
    let status = |id: &str, status: &str| json!({ "id": format!("sub_{id}"), "status": status, "metadata": {} });
    for (number, (kind, object)) in [
        (completed, checkout(&paid.checkout, "paid")),
        (completed, subscribed(&living.checkout)),
        (completed, subscribed(&past.checkout)),
        (
            "customer.subscription.updated",
            status(&past.checkout, "past_due"),
        ),
        (completed, subscribed(&over.checkout)),
        (
            "customer.subscription.deleted",
            status(&over.checkout, "canceled"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("evt_{number}");
        shop.tell(&event(&name, kind, 1, &object)).await;
    }
    shop.end().await;

    let calls = ended(&shop.provider, 3).await;
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
        assert_eq!(call.headers["stripe-version"], svc::stripe::VERSION);
    }
    // Nothing is left to tell, and what the provider still says is nobody's.
    let gone = status("cs_test_2", "canceled");
    let gone = event("evt_end", "customer.subscription.deleted", 9, &gone);
    shop.tell(&gone).await;
    shop.later().await;
    assert_eq!(ends(&shop.provider).len(), 3);
}

#[tokio::test]
async fn a_provider_that_is_away_is_told_again_and_one_that_has_nothing_is_not() {
    let shop = Shop::open().await;
    let monthly = shop.price(json!({ "recurring": true })).await;
    let bought = shop.buy(&monthly).await;
    let paid = subscribed(&bought.checkout);
    let paid = event("evt_1", "checkout.session.completed", 1, &paid);
    shop.tell(&paid).await;
    let missing =
        json!({ "error": { "type": "invalid_request_error", "code": "resource_missing" } });
    for manner in [
        Manner::Say(500, Value::Null),
        Manner::Say(401, Value::Null),
        Manner::Say(404, missing),
    ] {
        shop.provider.next(manner);
    }
    shop.end().await;
    let mut keys = Vec::new();
    for attempt in 1..=3 {
        // The time of the next is known only once the one before has failed: until then the clock goes on.
        let calls = until("the provider to be told", async || {
            let calls = ends(&shop.provider);
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
    shop.later().await;
    let told = ends(&shop.provider).len();
    assert_eq!(told, 3, "what the provider does not have has ended");
}

#[tokio::test]
async fn a_checkout_that_is_over_is_left_alone() {
    let shop = Shop::open().await;
    let price = shop.price(json!({})).await;
    let bought = shop.buy(&price).await;
    let complete = json!({ "error": { "type": "invalid_request_error", "message": "Only sessions that are open can be expired." } });
    shop.provider.next(Manner::Say(400, complete));
    shop.end().await;
    let calls = ended(&shop.provider, 1).await;
    let path = format!("/v1/checkout/sessions/{}/expire", bought.checkout);
    assert_eq!(calls[0].path, path);
    shop.later().await;
    assert_eq!(ends(&shop.provider).len(), 1);
}

#[tokio::test]
async fn what_is_paid_after_the_end_ends_too() {
    let shop = Shop::open().await;
    let monthly = shop.price(json!({ "recurring": true })).await;
    let bought = shop.buy(&monthly).await;
    shop.end().await;
    // The visitor was quicker than the call that closes the page.
    ended(&shop.provider, 1).await;
    let paid = subscribed(&bought.checkout);
    let updated =
        json!({ "id": format!("sub_{}", bought.checkout), "status": "active", "metadata": {} });
    for (name, kind, object) in [
        ("evt_1", "checkout.session.completed", &paid),
        ("evt_1", "checkout.session.completed", &paid),
        ("evt_2", "customer.subscription.updated", &updated),
    ] {
        shop.tell(&event(name, kind, 1, object)).await;
    }
    let calls = ended(&shop.provider, 2).await;
    let path = format!("/v1/subscriptions/sub_{}", bought.checkout);
    assert_eq!(calls[1].path, path);
    // What the provider says of it afterwards leads to nothing.
    shop.tell(&event(
        "evt_3",
        "customer.subscription.updated",
        2,
        &updated,
    ))
    .await;
    shop.later().await;
    assert_eq!(ends(&shop.provider).len(), 2);
    // A checkout of somebody else's is none of ours to end.
    let other = subscribed("cs_of_nobody");
    shop.tell(&event("evt_4", "checkout.session.completed", 2, &other))
        .await;
    shop.later().await;
    assert_eq!(ends(&shop.provider).len(), 2);
}

/// A process of the server, asked as an owner.
struct House {
    process: Process,
    credential: String,
}

impl House {
    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let url = self.process.url(&format!("/api/v1/projects{path}"));
        let request = self.process.client().request(method, url);
        let request = request.bearer_auth(&self.credential).json(&body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
    }

    /// Sells a subscription; answers the project.
    async fn sell(&self) -> String {
        let project = self.ask(Method::POST, "", json!({ "name": "Shop" })).await;
        let project = format!("/{}", text(&project["id"]));
        let price = json!({ "product_name": "Handbook", "label": "Monthly", "amount": 900, "currency": "eur", "recurring": true });
        let catalog = format!("{project}/payments/catalog");
        let price = self.ask(Method::POST, &catalog, price).await;
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "shop" });
        let frontends = format!("{project}/frontends");
        self.ask(Method::POST, &frontends, page).await;
        let begin = self
            .process
            .client()
            .post(self.process.url("/shop/payments/checkout"));
        let begun = begin.header("accept", "application/json");
        let begun = begun.json(&json!({ "price": price["id"] })).send().await;
        assert_eq!(begun.unwrap().status().as_u16(), 200);
        let paid = subscribed("cs_test_1");
        let body = event("evt_1", "checkout.session.completed", 1, &paid).to_string();
        let now = svc_base::clock::Clock::system().now();
        let signature = svc::stripe::sign(provider::SECRET, body.as_bytes(), now);
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
    let provider = Provider::start().await;
    let place = TempDir::new().unwrap();
    let (config, data) = (place.path().join("svc.toml"), place.path().join("data"));
    std::fs::write(&config, provider.file()).unwrap();
    std::fs::create_dir(&data).unwrap();
    let arguments = ["--config", config.to_str().unwrap()];
    let create = ["namespace", "create", "acme", "--json"];
    let made = svc().run(&data, &create).await.json();
    let house = House {
        credential: text(&made["credential"]),
        process: svc().serve(&data, &arguments).await,
    };
    let project = house.sell().await;
    // The provider has the call, and its answer comes to nobody.
    provider.next(Manner::Hang);
    house.ask(Method::DELETE, &project, json!({})).await;
    ended(&provider, 1).await;
    house.process.kill().await;
    let process = svc().serve(&data, &arguments).await;
    let calls = ended(&provider, 2).await;
    assert_eq!(calls[0].path, "/v1/subscriptions/sub_cs_test_1");
    assert_eq!(calls[0].path, calls[1].path);
    let key = |call: &Call| call.headers["idempotency-key"].clone();
    assert_eq!(key(&calls[0]), key(&calls[1]), "the same, once");
    process.kill().await;
}
