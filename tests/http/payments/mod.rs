//! Payments: the catalog, checkouts, and the effects of the provider's webhooks.

mod amounts;
mod catalog;
mod checkout;
pub(crate) mod crashes;
mod dev;
mod endings;
mod fresh_cookies;
mod hostile;
mod keys;
mod mirror;
mod orders;
mod recognition;
mod recorded;
mod webhooks;

use http::header;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use svc::config::StripeSettings;
pub(crate) use svc_tests::fake_stripe;
use svc_tests::{Answer, Builder, ReadAnswer, TestServer, wait_until};

use crate::owner::{Owner, text};
use fake_stripe::FakeStripe;

/// A project with a page, a backend and a price, at a provider that records its requests.
pub(crate) struct PaymentsFixture {
    pub(crate) server: TestServer,
    pub(crate) provider: FakeStripe,
    pub(crate) owner: Owner,
    pub(crate) project: String,
}

impl PaymentsFixture {
    pub(crate) async fn start() -> Self {
        Self::with_builder(TestServer::builder()).await
    }

    pub(crate) async fn with_builder(builder: Builder) -> Self {
        Self::with_settings(builder, |_| ()).await
    }

    /// Opens a shop with other settings of the provider.
    pub(crate) async fn with_settings(
        builder: Builder,
        change: impl FnOnce(&mut StripeSettings),
    ) -> Self {
        let provider = FakeStripe::start().await;
        let mut settings = provider.settings();
        change(&mut settings);
        let builder = builder.settings(|all| all.stripe = Some(settings));
        let server = builder.start().await;
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "Shop").await;
        let ddl = json!({ "ddl": "CREATE TABLE notes (text)" });
        owner
            .post(&server, &format!("/{project}/backend"), &ddl)
            .await
            .expect(201);
        owner.frontend(&server, &project, "shop").await;
        Self {
            server,
            provider,
            owner,
            project,
        }
    }

    /// Adds a price; returns its id.
    pub(crate) async fn add_price(&self, change: Value) -> String {
        let mut body =
            json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        let path = format!("/{}/payments/catalog", self.project);
        let made = self.owner.post(&self.server, &path, &body).await;
        text(&made.expect(201).json()["id"])
    }

    /// Asks for a checkout, with cookies.
    pub(crate) async fn send_request(&self, body: &Value, cookie: &str) -> Answer {
        self.server
            .json("/shop/payments/checkout", body)
            .header(header::ACCEPT, "application/json")
            .header(header::COOKIE, cookie)
            .answer()
            .await
    }

    /// Begins a checkout of a new visitor.
    pub(crate) async fn begin_checkout(&self, price: &str) -> StartedCheckout {
        self.begin_checkout_with_cookie(price, "").await
    }

    /// Begins a checkout of a visitor with a cookie.
    pub(crate) async fn begin_checkout_with_cookie(
        &self,
        price: &str,
        cookie: &str,
    ) -> StartedCheckout {
        let answer = self
            .send_request(&json!({ "price": price }), cookie)
            .await
            .expect(200);
        let begun = answer.json();
        let cookie = answer.header("set-cookie").unwrap();
        StartedCheckout {
            session: text(&begun["session_id"]),
            url: text(&begun["url"]),
            checkout: text(&begun["url"]).rsplit('/').next().unwrap().to_owned(),
            cookie: cookie.split(';').next().unwrap().to_owned(),
        }
    }

    /// Requests the purchases of a visitor.
    pub(crate) async fn owned_purchases(&self, cookie: &str) -> Vec<Value> {
        let status = self.server.get("/shop/payments/status");
        let status = status.header(header::COOKIE, cookie).answer().await;
        let status = status.expect(200).json();
        status["payments"].as_array().unwrap().clone()
    }

    /// The latest sessions.
    pub(crate) async fn sessions(&self) -> Vec<Value> {
        let path = format!("/{}/payments/sessions?limit=1000", self.project);
        let list = self.owner.get(&self.server, &path).await.expect(200).json();
        list["sessions"].as_array().unwrap().clone()
    }

    /// A session as its owner sees it.
    pub(crate) async fn session(&self, id: &str) -> Value {
        let all = self.sessions().await;
        let found = all.into_iter().find(|session| session["id"] == id);
        found.unwrap_or_else(|| panic!("there is no session {id}"))
    }

    pub(crate) async fn verdict(&self, id: &str) -> String {
        text(&self.session(id).await["status"])
    }

    /// Sends an event, signed; returns the answer.
    pub(crate) async fn send(&self, event: &Value) -> Answer {
        let now = self.server.server().app().clock.now();
        fake_stripe::send_webhook(&self.server, event.to_string(), fake_stripe::SECRET, now).await
    }

    /// Sends an event that is taken in.
    pub(crate) async fn send_accepted_event(&self, event: &Value) {
        let answer = self.send(event).await.expect(200);
        assert_eq!(answer.json(), json!({ "received": true }));
    }

    /// The rows of the project's own table, by session.
    pub(crate) async fn rows(&self) -> Vec<Value> {
        let sql = "SELECT * FROM svc_payments ORDER BY session_id";
        let answer = self
            .owner
            .request(&self.server, http::Method::POST, "/shop/api/query")
            .json(&json!({ "sql": sql }))
            .answer()
            .await;
        answer.expect(200).json()["rows"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Waits until the table matches the sessions.
    pub(crate) async fn wait_for_mirrored_rows(&self) -> Vec<Value> {
        let same = async || {
            let mut expected: Vec<Value> = self.sessions().await.iter().map(payment_row).collect();
            expected.sort_by_key(|row| text(&row["session_id"]));
            let rows = self.rows().await;
            (rows == expected).then_some(rows)
        };
        wait_until("svc_payments to have what the sessions say", same).await
    }
}

/// Copies every session so many times, each as of another page of the frontend.
pub(crate) async fn copy_sessions(server: &TestServer, times: u32) {
    let app = server.server().app();
    let copied = app.control.write(move |tx| {
        tx.execute(
            "WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ?1)
             INSERT INTO payment_sessions
                (id, project_id, deployment_id, price_id, price_label, amount, currency, recurring, return_to,
                 user_id, cookie_sha256, status, created_at, updated_at, host_cookie, change)
             SELECT substr(id, 1, 24) || printf('%012x', n), project_id, deployment_id, price_id, price_label, amount,
                 currency, recurring, return_to || '?page=' || n, user_id, cookie_sha256, status, created_at,
                 updated_at, host_cookie, change
             FROM payment_sessions, copies",
            [times],
        )?;
        Ok::<_, svc::control::Error>(())
    });
    copied.await.unwrap();
}

/// A request with a form, as a browser sends it.
pub(crate) fn with_form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let url = reqwest::Url::parse_with_params("http://x/", fields).unwrap();
    let kind = "application/x-www-form-urlencoded";
    request
        .header(header::CONTENT_TYPE, kind)
        .body(url.query().unwrap_or_default().to_owned())
}

/// A session as a row of `svc_payments`.
fn payment_row(session: &Value) -> Value {
    json!({
        "session_id": session["id"], "price_id": session["price"], "price_label": session["price_label"],
        "amount": session["amount"], "currency": session["currency"], "user_id": session["user_id"],
        "email": session["email"], "status": session["status"], "created_at": session["created_at"],
    })
}

/// A checkout that was begun.
#[derive(Clone, Debug)]
pub(crate) struct StartedCheckout {
    pub(crate) session: String,
    pub(crate) url: String,
    /// Provider's id of the checkout.
    pub(crate) checkout: String,
    /// The cookie to send.
    pub(crate) cookie: String,
}
