//! The provider `dev`: a payment from its page to its end, through the same receiver over HTTP.

use http::header;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::with_form;
use crate::owner::{Owner, text};
use crate::svc;

/// A project with a page and a price, on a server under `--dev`.
struct DevPaymentsFixture {
    server: TestServer,
    owner: Owner,
    project: String,
}

impl DevPaymentsFixture {
    async fn start() -> Self {
        let builder = TestServer::builder().settings(|settings| settings.dev = true);
        let server = builder.start().await;
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "Shop").await;
        owner.frontend(&server, &project, "shop").await;
        Self {
            server,
            owner,
            project,
        }
    }

    /// Begins a checkout; returns the session and the address of the page.
    async fn begin_checkout(&self, recurring: bool) -> (String, String) {
        let price = json!({ "product_name": "Handbook", "label": "PDF", "amount": 1250, "currency": "eur", "recurring": recurring });
        let path = format!("/{}/payments/catalog", self.project);
        let price = self
            .owner
            .post(&self.server, &path, &price)
            .await
            .expect(201);
        let body = json!({ "price": price.json()["id"], "return_to": "/shop#thanks" });
        let begun = self.server.json("/shop/payments/checkout", &body);
        let begun = begun
            .header(header::ACCEPT, "application/json")
            .answer()
            .await;
        let begun = begun.expect(200).json();
        let url = text(&begun["url"]);
        let path = format!("/{}", url.splitn(4, '/').nth(3).unwrap());
        (text(&begun["session_id"]), path)
    }

    async fn submit_outcome(&self, page: &str, outcome: &str) -> String {
        let shown = self.server.get(page).answer().await.expect(200);
        for words in ["no money moves", "12.50 EUR", "Pay", "Fail", "Cancel"] {
            assert!(shown.html().contains(words), "{words}");
        }
        // One of the three is what the page is for.
        let buttons = shown.html().matches("<button").count();
        let plain = shown.html().matches("<button class=\"plain\"").count();
        assert_eq!((buttons, plain), (3, 2));
        let fields = [("outcome", outcome), ("email", "ada@example.com")];
        let chosen = with_form(self.server.post(page), &fields)
            .answer()
            .await
            .expect(303);
        self.server
            .get(page)
            .answer()
            .await
            .problem(404, "not_found");
        chosen.header("location").unwrap().to_owned()
    }

    async fn session(&self, id: &str) -> Value {
        let path = format!("/{}/payments/sessions", self.project);
        let list = self.owner.get(&self.server, &path).await.expect(200).json();
        let all = list["sessions"].as_array().unwrap().clone();
        all.into_iter().find(|session| session["id"] == id).unwrap()
    }

    async fn run_payment_command(&self, deed: &str, session: &str) -> Value {
        let command = ["dev", "payment", deed, session, "--json"];
        self.server.command(&svc(), &command).await.json()
    }
}

#[tokio::test]
async fn a_payment_is_tried_out_from_its_page_to_its_return() {
    let trial = DevPaymentsFixture::start().await;
    let (session, page) = trial.begin_checkout(false).await;
    let next = trial.submit_outcome(&page, "pay").await;
    assert!(next.ends_with("/shop?checkout=success#thanks"), "{next}");
    let paid = trial.session(&session).await;
    assert_eq!(
        (&paid["status"], &paid["email"]),
        (&json!("paid"), &json!("ada@example.com"))
    );
    trial.run_payment_command("dispute", &session).await;
    assert_eq!(trial.session(&session).await["status"], "paid");
    let told = trial.run_payment_command("refund", &session).await;
    assert_eq!(told["events"], json!(["charge.refunded"]));
    assert_eq!(trial.session(&session).await["status"], "refunded");
    let refused = ["dev", "payment", "renew", session.as_str()];
    assert!(!trial.server.command(&svc(), &refused).await.success);

    for (outcome, status) in [("fail", "failed"), ("cancel", "canceled")] {
        let (session, page) = trial.begin_checkout(false).await;
        let next = trial.submit_outcome(&page, outcome).await;
        assert!(next.ends_with("/shop?checkout=canceled#thanks"), "{next}");
        assert_eq!(trial.session(&session).await["status"], status);
    }
}

#[tokio::test]
async fn a_subscription_is_tried_out_with_its_months_even_after_a_restart() {
    let trial = DevPaymentsFixture::start().await;
    let (session, page) = trial.begin_checkout(true).await;
    let shown = trial.server.get(&page).answer().await.expect(200);
    assert!(shown.html().contains("every month"), "{}", shown.html());
    trial.submit_outcome(&page, "pay").await;
    assert_eq!(trial.session(&session).await["status"], "paid");
    let DevPaymentsFixture {
        server,
        owner,
        project,
    } = trial;
    let server = server.restart().await;
    let trial = DevPaymentsFixture {
        server,
        owner,
        project,
    };
    let told = trial.run_payment_command("renew", &session).await;
    let expected = [
        "invoice.paid",
        "invoice_payment.paid",
        "customer.subscription.updated",
    ];
    assert_eq!(told["events"], json!(expected));
    assert_eq!(trial.session(&session).await["status"], "paid");
    trial.run_payment_command("cancel", &session).await;
    assert_eq!(trial.session(&session).await["status"], "canceled");
    trial.run_payment_command("refund", &session).await;
    assert_eq!(trial.session(&session).await["status"], "refunded");
}

#[tokio::test]
async fn only_the_command_acts_and_only_under_dev() {
    let trial = DevPaymentsFixture::start().await;
    let (session, page) = trial.begin_checkout(false).await;
    trial.submit_outcome(&page, "pay").await;
    let path = format!("/_svc/dev/payments/{session}/refund");
    trial
        .server
        .post(&path)
        .answer()
        .await
        .problem(400, "invalid_request");
    let unknown = trial
        .server
        .post("/_svc/dev/payments/none/refund")
        .header("svc-dev", "1");
    unknown.answer().await.problem(404, "not_found");
    let call = trial.server.post("/_svc/dev/stripe/v1/checkout/sessions");
    let call = with_form(call, &[("mode", "payment")]);
    assert_eq!(call.answer().await.status, 401, "its key is its server's");
    assert_eq!(trial.session(&session).await["status"], "paid");
    // A page that is not on this machine has no stand-in.
    let public = TestServer::builder().settings(|settings| {
        settings.dev = true;
        settings.base_url = Some("https://example.com".parse().unwrap());
    });
    let public = public.start().await;
    let page = public.get("/_svc/dev/pay/cs_dev_1").answer().await;
    assert_eq!(page.status, 404);
}
