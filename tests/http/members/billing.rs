//! Plans: bought at the provider, begun and ended by its webhooks alone.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use svc_tests::{Answer, TestServer};

use super::fake_billing::{FakeBilling, send_webhook};
use super::{MembersFixture, User, WORKSPACES_PATH};
use crate::owner::{Owner, text};
use crate::svc;

/// A fixture that sells plans, with a workspace and its owner.
struct BillingFixture {
    fixture: MembersFixture,
    till: FakeBilling,
    alice: User,
    id: String,
}

impl BillingFixture {
    async fn start() -> Self {
        let till = FakeBilling::start().await;
        let settings = till.settings();
        let builder = TestServer::builder().settings(|all| all.stripe = Some(settings));
        let fixture = MembersFixture::with_settings(builder, |_| ()).await;
        let alice = fixture.user("alice").await;
        let id = alice.workspace(&fixture, "acme").await;
        Self {
            fixture,
            till,
            alice,
            id,
        }
    }

    async fn send_request(&self, who: &Owner, page: &str) -> Answer {
        let path = format!("{WORKSPACES_PATH}/acme/billing/{page}");
        who.send_request(&self.fixture.server, Method::POST, &path, None)
            .await
    }

    async fn current_plan(&self) -> String {
        let detail = self
            .alice
            .get(&self.fixture, &format!("{WORKSPACES_PATH}/acme"))
            .await;
        text(&detail.expect(200).json()["plan"])
    }

    /// Sends the provider's event of a paid checkout.
    async fn send_checkout_paid(&self, event: &str, subscription: &str) {
        let object = json!({
            "id": "cs_1", "object": "checkout.session", "mode": "subscription", "payment_status": "paid",
            "status": "complete", "client_reference_id": self.id, "metadata": { "svc_workspace": self.id },
            "subscription": subscription, "customer": "cus_1", "amount_total": 900, "currency": "usd",
        });
        let kind = "checkout.session.completed";
        send_webhook(&self.fixture.server, kind, event, 1, object)
            .await
            .expect(200);
    }

    /// Sends the provider's event about a subscription.
    async fn send_subscription_status(&self, event: &str, kind: &str, status: &str, after: i64) {
        let object = json!({
            "id": "sub_1", "object": "subscription", "status": status, "customer": "cus_1",
            "metadata": { "svc_workspace": self.id },
        });
        let kind = format!("customer.subscription.{kind}");
        send_webhook(&self.fixture.server, &kind, event, after, object)
            .await
            .expect(200);
    }

    async fn delete(&self) -> Answer {
        self.alice
            .delete(&self.fixture, &format!("{WORKSPACES_PATH}/acme"))
            .await
    }
}

#[tokio::test]
async fn without_a_provider_nothing_is_sold() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    for page in ["checkout", "portal"] {
        let path = format!("{WORKSPACES_PATH}/acme/billing/{page}");
        let answer = alice.send(&fixture, Method::POST, &path, json!({})).await;
        answer.problem(503, "payments_unconfigured");
    }
}

#[tokio::test]
async fn a_plan_is_bought_at_the_provider_and_begins_by_its_webhook() {
    let shop = BillingFixture::start().await;
    let portal = shop.send_request(&shop.alice.owner, "portal").await;
    portal.problem(409, "no_subscription");
    assert_eq!(shop.till.take_calls(), []);
    let bought = shop
        .send_request(&shop.alice.owner, "checkout")
        .await
        .expect(200);
    assert_eq!(
        bought.json(),
        json!({ "url": "https://pay.example/v1/checkout/sessions" })
    );
    let [call] = &shop.till.take_calls()[..] else {
        panic!("one call")
    };
    assert_eq!(call.path, "/v1/checkout/sessions");
    for field in [
        "mode=subscription".to_owned(),
        "line_items%5B0%5D%5Bprice%5D=price_pro".to_owned(),
        format!("client_reference_id={}", shop.id),
        format!("metadata%5Bsvc_workspace%5D={}", shop.id),
        format!(
            "subscription_data%5Bmetadata%5D%5Bsvc_workspace%5D={}",
            shop.id
        ),
    ] {
        assert!(
            call.form.split('&').any(|one| one == field),
            "{field}: {}",
            call.form
        );
    }
    // To have been there is not to have paid.
    assert_eq!(shop.current_plan().await, "free");
    shop.send_checkout_paid("evt_1", "sub_1").await;
    assert_eq!(shop.current_plan().await, "pro");
    shop.send_checkout_paid("evt_1", "sub_1").await;
    let again = shop.send_request(&shop.alice.owner, "checkout").await;
    again.problem(403, "plan_limit");
    let portal = shop
        .send_request(&shop.alice.owner, "portal")
        .await
        .expect(200);
    assert_eq!(
        portal.json(),
        json!({ "url": "https://pay.example/v1/billing_portal/sessions" })
    );
    let [call] = &shop.till.take_calls()[..] else {
        panic!("one call")
    };
    assert!(call.form.contains("customer=cus_1"), "{}", call.form);
    // While it lives, nobody sets another plan.
    let free = json!({ "plan": "free" });
    let path = format!("{WORKSPACES_PATH}/acme");
    let refused = shop
        .alice
        .send(&shop.fixture, Method::PATCH, &path, free)
        .await;
    refused.problem(403, "plan_limit");
    let ended = shop
        .fixture
        .server
        .command(&svc(), &["namespace", "delete", "acme"])
        .await;
    assert!(
        !ended.success && ended.stderr.contains("subscription"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_subscription_that_ends_leaves_the_projects_and_allows_no_more() {
    let shop = BillingFixture::start().await;
    shop.send_checkout_paid("evt_1", "sub_1").await;
    for name in ["One", "Two"] {
        shop.alice.owner.project(&shop.fixture.server, name).await;
    }
    shop.send_subscription_status("evt_2", "updated", "past_due", 10)
        .await;
    assert_eq!(shop.current_plan().await, "pro");
    shop.send_subscription_status("evt_3", "deleted", "canceled", 20)
        .await;
    assert_eq!(shop.current_plan().await, "free");
    let listed = shop.alice.owner.get(&shop.fixture.server, "").await.json();
    assert_eq!(listed["projects"].as_array().unwrap().len(), 2);
    let more = shop
        .alice
        .owner
        .post(&shop.fixture.server, "", &json!({ "name": "Three" }))
        .await;
    more.problem(403, "plan_limit");
    // A late event changes nothing.
    shop.send_subscription_status("evt_4", "updated", "active", 15)
        .await;
    shop.send_checkout_paid("evt_5", "sub_1").await;
    assert_eq!(shop.current_plan().await, "free");
    // Another one begins again.
    shop.send_request(&shop.alice.owner, "checkout")
        .await
        .expect(200);
    shop.send_checkout_paid("evt_6", "sub_2").await;
    assert_eq!(shop.current_plan().await, "pro");
}

#[tokio::test]
async fn the_order_of_webhooks_does_not_matter() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let shop = BillingFixture::start().await;
        for event in order {
            match event {
                0 => shop.send_checkout_paid("evt_1", "sub_1").await,
                1 => {
                    shop.send_subscription_status("evt_2", "updated", "active", 5)
                        .await;
                }
                _ => {
                    shop.send_subscription_status("evt_3", "updated", "unpaid", 9)
                        .await;
                }
            }
        }
        assert_eq!(shop.current_plan().await, "free", "{order:?}");
        shop.send_subscription_status("evt_4", "updated", "active", 12)
            .await;
        assert_eq!(shop.current_plan().await, "pro", "{order:?}");
    }
}

#[tokio::test]
async fn webhooks_about_what_is_not_ours_change_nothing() {
    let shop = BillingFixture::start().await;
    for (event, workspace) in [
        ("evt_1", json!("01a1fc50-0000-7000-8000-000000000000")),
        ("evt_2", json!("acme")),
        ("evt_3", Value::Null),
    ] {
        let object = json!({
            "id": "cs_9", "payment_status": "paid", "subscription": "sub_9", "customer": "cus_9",
            "metadata": { "svc_workspace": workspace },
        });
        let kind = "checkout.session.completed";
        send_webhook(&shop.fixture.server, kind, event, 1, object)
            .await
            .expect(200);
    }
    assert_eq!(shop.current_plan().await, "free");
    // Another installation's subscriptions are not ours to end.
    shop.fixture
        .server
        .server()
        .app()
        .accounts
        .cancel_orphaned_subscriptions()
        .await
        .unwrap();
    assert_eq!(shop.till.take_calls(), []);
}

#[tokio::test]
async fn a_workspace_ends_after_its_subscription_was_told_to() {
    let shop = BillingFixture::start().await;
    shop.send_checkout_paid("evt_1", "sub_1").await;
    let project = shop
        .alice
        .owner
        .project(&shop.fixture.server, "House")
        .await;
    let down = (StatusCode::INTERNAL_SERVER_ERROR, Value::Null);
    let unwilling = (
        StatusCode::BAD_REQUEST,
        json!({ "type": "invalid_request_error" }),
    );
    for refusal in [down, unwilling] {
        shop.till.set_refusal(Some(refusal));
        shop.delete().await.problem(503, "provider_unavailable");
        // Nothing is destroyed.
        shop.alice
            .owner
            .get(&shop.fixture.server, &format!("/{project}"))
            .await
            .expect(200);
        assert_eq!(shop.current_plan().await, "pro");
    }
    shop.till.set_refusal(None);
    shop.till.take_calls();
    shop.delete().await.expect(204);
    let [call] = &shop.till.take_calls()[..] else {
        panic!("one call")
    };
    assert_eq!(call.path, "/v1/subscriptions/sub_1");
    assert_eq!(call.form, "cancel_at_period_end=true");
    // Later events of the provider are accepted, and the subscription is cancelled once.
    shop.send_subscription_status("evt_2", "updated", "active", 10)
        .await;
    shop.fixture
        .server
        .server()
        .app()
        .accounts
        .cancel_orphaned_subscriptions()
        .await
        .unwrap();
    assert_eq!(shop.till.take_calls(), []);
    shop.send_subscription_status("evt_3", "deleted", "canceled", 20)
        .await;
}

#[tokio::test]
async fn a_subscription_that_the_provider_does_not_have_stops_no_end() {
    let shop = BillingFixture::start().await;
    shop.send_checkout_paid("evt_1", "sub_1").await;
    let missing =
        json!({ "type": "invalid_request_error", "code": "resource_missing", "param": "id" });
    shop.till
        .set_refusal(Some((StatusCode::NOT_FOUND, missing)));
    shop.delete().await.expect(204);
}

#[tokio::test]
async fn what_is_paid_after_the_end_is_ended() {
    let shop = BillingFixture::start().await;
    shop.send_request(&shop.alice.owner, "checkout")
        .await
        .expect(200);
    shop.delete().await.expect(204);
    shop.till.take_calls();
    shop.send_checkout_paid("evt_1", "sub_1").await;
    for _ in 0..2 {
        shop.fixture
            .server
            .server()
            .app()
            .accounts
            .cancel_orphaned_subscriptions()
            .await
            .unwrap();
    }
    let calls = shop.till.take_calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0].path, "/v1/subscriptions/sub_1");
}

#[tokio::test]
async fn only_an_owner_buys() {
    let shop = BillingFixture::start().await;
    let bob = shop.fixture.user("bob").await;
    shop.alice
        .add_member(&shop.fixture, "acme", &bob, "admin")
        .await;
    for page in ["checkout", "portal"] {
        shop.send_request(&bob.owner, page)
            .await
            .problem(403, "forbidden");
    }
    shop.till
        .set_refusal(Some((StatusCode::INTERNAL_SERVER_ERROR, Value::Null)));
    let answer = shop.send_request(&shop.alice.owner, "checkout").await;
    answer.problem(503, "provider_unavailable");
    let body = json!({ "plan": "pro" });
    let path = format!("{WORKSPACES_PATH}/acme/billing/checkout");
    let answer = shop
        .alice
        .send(&shop.fixture, Method::POST, &path, body)
        .await;
    answer.problem(400, "invalid_request");
}
