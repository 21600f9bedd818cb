//! Examples of the description, recorded: what people do with their workspaces.

use http::Method;
use serde_json::{Value, json};
use svc_tests::TestServer;

use crate::members::{FakeBilling, MembersFixture, User, send_webhook};
use crate::openapi_recorded::{BASE_URL, Examples};
use crate::owner::text;

const ALL: &str = "/api/v1/workspaces";

/// A house, its owner, and what was recorded.
struct PeopleRecorder {
    fixture: MembersFixture,
    alice: User,
    examples: Examples,
    /// Names in the examples in place of random ones.
    names: Vec<(String, String)>,
}

impl PeopleRecorder {
    fn record(&mut self, operation: &str, part: &'static str, name: &str, value: &Value) {
        let examples = self.examples.entry(operation.to_owned()).or_default();
        let known = examples.entry(part).or_default();
        known.insert(name.to_owned(), value.clone());
    }

    /// Records what is asked, if something is, and what is answered.
    async fn send_request(
        &mut self,
        (operation, name): (&str, &str),
        (method, path): (Method, &str),
        body: Option<Value>,
    ) -> Value {
        self.fixture.server.advance(7);
        let asked =
            self.alice
                .owner
                .send_request(&self.fixture.server, method, path, body.as_ref());
        let answer = asked.await;
        assert!(answer.status < 300, "{path}: {}", answer.text());
        if let Some(body) = body {
            self.record(operation, "request", name, &body);
        }
        let answer = answer.json();
        self.record(operation, "answer", name, &answer);
        answer
    }

    async fn record_workspace(&mut self) {
        let (get, post, patch) = (Method::GET, Method::POST, Method::PATCH);
        let body = json!({ "display_name": "Acme Inc." });
        let made = ("create_workspace", "workspace");
        let id = self
            .send_request(made, (post.clone(), ALL), Some(body))
            .await["id"]
            .clone();
        let bob = self.fixture.user("jo").await;
        self.names
            .push((bob.id.clone(), "usr_7k2m9xq4w8t3z5b6c2d9fg".to_owned()));
        let members = format!("{ALL}/acme-inc/members");
        let body = json!({ "user_id": bob.id, "role": "viewer" });
        self.send_request(
            ("add_member", "member"),
            (post.clone(), &members),
            Some(body),
        )
        .await;
        let body = json!({ "role": "editor" });
        let path = format!("{members}/{}", bob.id);
        self.send_request(("set_role", "editor"), (patch.clone(), &path), Some(body))
            .await;
        self.send_request(("list_members", "members"), (get.clone(), &members), None)
            .await;
        let path = format!("{ALL}/acme-inc");
        let body = json!({ "display_name": "Acme" });
        self.send_request(("update_workspace", "name"), (patch, &path), Some(body))
            .await;
        self.send_request(("get_workspace", "workspace"), (get.clone(), &path), None)
            .await;
        self.send_request(("list_workspaces", "workspaces"), (get.clone(), ALL), None)
            .await;
        self.send_request(("get_me", "user"), (get.clone(), "/api/v1/me"), None)
            .await;
        let keys = format!("{path}/keys");
        let body = json!({ "role": "viewer", "expires_in": 86_400, "note": "Reads our figures" });
        let made = self
            .send_request(("create_key", "viewer"), (post.clone(), &keys), Some(body))
            .await;
        let (key, stable) = (text(&made["key_id"]), "7k2m9xq4");
        let secret = "0q8Rx".repeat(9);
        let credential = format!("svc_{stable}_{}_4cKd2Z", &secret[..43]);
        self.names.push((text(&made["credential"]), credential));
        self.names.push((key, stable.to_owned()));
        self.send_request(("list_keys", "keys"), (get, &keys), None)
            .await;
        let none = Some(json!({}));
        let path = format!("{ALL}/acme-inc/billing");
        let checkout = format!("{path}/checkout");
        self.send_request(
            ("buy_plan", "checkout"),
            (post.clone(), &checkout),
            none.clone(),
        )
        .await;
        let paid = json!({
            "id": "cs_1", "payment_status": "paid", "subscription": "sub_1", "customer": "cus_1",
            "metadata": { "svc_workspace": id },
        });
        let kind = "checkout.session.completed";
        send_webhook(&self.fixture.server, kind, "evt_1", 1, paid)
            .await
            .expect(200);
        let portal = format!("{path}/portal");
        self.send_request(("manage_plan", "portal"), (post, &portal), none)
            .await;
        let audit = format!("{ALL}/acme-inc/audit?limit=2");
        let listed = self
            .send_request(("list_audit", "newest"), (Method::GET, &audit), None)
            .await;
        for (number, entry) in (11..).zip(listed["entries"].as_array().unwrap()) {
            let request = text(&entry["request_id"]);
            self.names
                .push((request, format!("5f0c2a11-000000{number}")));
        }
    }

    async fn record_metadata(&mut self) {
        let get = Method::GET;
        for (operation, path) in [
            ("get_protected_resource", ""),
            ("get_protected_tools", "/mcp"),
        ] {
            let path = format!("/.well-known/oauth-protected-resource{path}");
            self.send_request((operation, "issuer"), (get.clone(), &path), None)
                .await;
        }
    }
}

/// Walks a server; returns what it was asked and what it answered, and what stands in place of what is random in it.
pub(crate) async fn record_examples() -> (Examples, Vec<(String, String)>) {
    let till = FakeBilling::start().await;
    let stripe = till.settings();
    let builder = TestServer::builder().settings(|settings| {
        settings.base_url = Some(BASE_URL.parse().unwrap());
        settings.stripe = Some(stripe);
    });
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    let alice = fixture.user("alice").await;
    let names = vec![
        (alice.id.clone(), "usr_4w8t3z5b6c2d9fg7k2m9xq".to_owned()),
        (
            fixture.issuer.url().to_owned(),
            "https://accounts.example.com".to_owned(),
        ),
    ];
    let mut recorder = PeopleRecorder {
        fixture,
        alice,
        examples: Examples::new(),
        names,
    };
    recorder.record_workspace().await;
    recorder.record_metadata().await;
    (recorder.examples, recorder.names)
}
