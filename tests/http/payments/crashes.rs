//! Death at every point of a checkout, of a webhook and of the table that follows: no payment is lost, and none counts twice.

use http::header;
use serde_json::{Value, json};
use svc_tests::{Process, wait_until};
use tempfile::TempDir;

use super::fake_stripe::{FakeStripe, SECRET, checkout, event};
use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Groups of the fault points that are tested here.
pub(crate) const FAULT_GROUPS: [&str; 3] = ["checkout", "webhook", "mirror"];

async fn begin_checkout(process: &Process, price: &str) -> Option<Value> {
    let request = process
        .client()
        .post(process.url("/shop/payments/checkout"));
    let request = request.header(header::ACCEPT, "application/json");
    let answer = request.json(&json!({ "price": price })).send().await.ok()?;
    assert_eq!(answer.status().as_u16(), 200);
    answer.json().await.ok()
}

async fn send_event(process: &Process, event: &Value) -> Option<u16> {
    let body = event.to_string();
    let now = svc_base::clock::Clock::system().now();
    let signature = svc::stripe::sign(SECRET, body.as_bytes(), now);
    let request = process.client().post(process.url("/_svc/webhooks/stripe"));
    let request = request.header("stripe-signature", signature).body(body);
    Some(request.send().await.ok()?.status().as_u16())
}

#[tokio::test]
async fn whatever_the_point_of_death_every_payment_counts_once() {
    let mut seen = 0;
    for point in fault_points()
        .into_iter()
        .filter(|p| FAULT_GROUPS.contains(&fault_group(p)))
    {
        seen += 1;
        let provider = FakeStripe::start().await;
        let data = TempDir::new().unwrap();
        let config = data.path().join("svc.toml");
        let data = data.path().join("data");
        std::fs::write(&config, provider.settings_file()).unwrap();
        let arguments = ["--config", config.to_str().unwrap()];
        let create = ["namespace", "create", "acme", "--json"];
        std::fs::create_dir(&data).unwrap();
        let made = svc().run(&data, &create).await.json();
        let credential = text(&made["credential"]);
        let site = OwnerProcess {
            process: svc().serve(&data, &arguments).await,
            credential: &credential,
        };
        let (_, project) = site.post("", json!({ "name": "Shop" })).await;
        let project = text(&project["id"]);
        let ddl = json!({ "ddl": "CREATE TABLE notes (text)" });
        site.post(&format!("/{project}/backend"), ddl).await;
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "shop" });
        site.post(&format!("/{project}/frontends"), page).await;
        let price =
            json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
        let (_, price) = site
            .post(&format!("/{project}/payments/catalog"), price)
            .await;
        let price = text(&price["id"]);
        site.process.kill().await;

        let dying = svc().serve_to_fault(Some(&point), &data, &arguments).await;
        let begun = begin_checkout(&dying, &price).await;
        // The provider's checkout is paid, whether or not the server knows it.
        let session = match (&begun, provider.calls().last()) {
            (Some(begun), _) => Some(text(&begun["session_id"])),
            (None, Some(call)) => Some(call.form["client_reference_id"].clone()),
            (None, None) => None,
        };
        let mut paid = checkout("cs_test_1", "paid");
        paid["metadata"] = json!({ "svc_session": session });
        let paid = event("evt_1", "checkout.session.completed", 1, &paid);
        if begun.is_some() {
            let _ = send_event(&dying, &paid).await;
        }
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let site = OwnerProcess {
            process: svc().serve(&data, &arguments).await,
            credential: &credential,
        };
        // The provider sends again what was not answered, and perhaps what was.
        assert_eq!(send_event(&site.process, &paid).await, Some(200), "{point}");
        assert_eq!(send_event(&site.process, &paid).await, Some(200), "{point}");
        let (_, list) = site.get(&format!("/{project}/payments/sessions")).await;
        let sessions = list["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{point}: {list}");
        let expected = if session.is_some() { "paid" } else { "open" };
        assert_eq!(sessions[0]["status"], expected, "{point}");
        let told = svc()
            .run(&data, &["payments", "events", &project, "--json"])
            .await;
        let events = told.json()["events"].as_array().unwrap().len();
        assert_eq!(events, usize::from(session.is_some()), "{point}: once");
        let query = site.process.url("/shop/api/query");
        let rows = async || {
            let request = site.process.client().post(&query).bearer_auth(&credential);
            let request = request.json(&json!({ "sql": "SELECT status FROM svc_payments" }));
            let answer: Value = request.send().await.ok()?.json().await.ok()?;
            let expected = match &session {
                Some(_) => json!([{ "status": "paid" }]),
                // It is unknown whether the provider got the request.
                None => json!([{ "status": "open" }]),
            };
            (answer["rows"] == expected).then_some(())
        };
        wait_until("the table to follow", rows).await;
        site.process.kill().await;
    }
    assert_eq!(seen, 9);
}
