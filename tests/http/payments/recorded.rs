//! Every call of the provider that there is, recorded: `tests/stripe` holds them to the provider's own description.

use std::path::Path;

use serde_json::{Value, json};
use svc::outbound::OutboundClient;
use svc::stripe::{BillingInterval, CheckoutPurchase, NewCheckout, NewPlanCheckout, StripeClient};

use super::fake_stripe::{FakeAnswer, FakeStripe};

fn checkout(recurring: bool) -> NewCheckout {
    let back = |outcome: &str| format!("http://localhost:8080/shop?checkout={outcome}");
    NewCheckout {
        session: "01a1ff0b-0540-7000-8000-000000000001".to_owned(),
        purchase: CheckoutPurchase {
            product: "Handbook".to_owned(),
            description: "PDF · All of it".to_owned(),
            amount: 900,
            currency: "eur".to_owned(),
            interval: recurring.then(BillingInterval::default),
        },
        email: Some("ada@example.com".to_owned()),
        success_url: back("success"),
        cancel_url: back("canceled"),
    }
}

#[tokio::test]
async fn every_call_is_as_it_was_recorded() {
    let provider = FakeStripe::start().await;
    let stripe = StripeClient::new(OutboundClient::new().unwrap(), &provider.settings()).unwrap();
    stripe
        .create_checkout(&checkout(false), "once")
        .await
        .unwrap();
    stripe
        .create_checkout(&checkout(true), "monthly")
        .await
        .unwrap();
    let plan = NewPlanCheckout {
        workspace: "01a1ff0b-0540-7000-8000-000000000002",
        price: "price_1Qpro",
        customer: Some("cus_1"),
        return_url: "http://localhost:8080/",
    };
    stripe.create_plan_checkout(plan, "plan").await.unwrap();
    let back = "http://localhost:8080/";
    stripe.portal("cus_1", back, "portal").await.unwrap();
    stripe.cancel_at_period_end("sub_1", "end").await.unwrap();
    stripe.expire_checkout("cs_1", "expire").await.unwrap();

    let calls = provider.calls().into_iter().map(|call| {
        assert_eq!(call.headers["stripe-version"], svc::stripe::API_VERSION);
        json!({ "key": call.headers["idempotency-key"].to_str().unwrap(), "path": call.path, "form": call.form })
    });
    let calls: Vec<Value> = calls.collect();
    let fresh = json!({ "version": svc::stripe::API_VERSION, "calls": calls });
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("stripe/calls.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, format!("{fresh:#}\n")).unwrap();
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        kept, fresh,
        "calls.json is stale: run this with UPDATE_GOLDEN=1 if the calls are right"
    );
}

#[tokio::test]
async fn an_address_that_the_provider_does_not_take_is_left_to_the_visitor() {
    let provider = FakeStripe::start().await;
    let stripe = StripeClient::new(OutboundClient::new().unwrap(), &provider.settings()).unwrap();
    let error = json!({ "error": { "type": "invalid_request_error", "code": "email_invalid", "param": "customer_email" } });
    provider.set_next_answer(FakeAnswer::Respond(400, error));
    stripe
        .create_checkout(&checkout(false), "once")
        .await
        .unwrap();
    let [with, without] = &provider.calls()[..] else {
        panic!("two calls")
    };
    assert_eq!(with.form["customer_email"], "ada@example.com");
    let mut expected = with.form.clone();
    expected.remove("customer_email");
    assert_eq!(without.form, expected);
    assert_ne!(
        with.headers["idempotency-key"],
        without.headers["idempotency-key"]
    );
}
