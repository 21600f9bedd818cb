//! Death while a workspace is deleted or a subscription begins: it is whole or gone, and asking again ends well.

use std::time::{SystemTime, UNIX_EPOCH};

use http::Method;
use serde_json::{Value, json};
use svc_base::clock::Timestamp;
use svc_tests::{AUDIENCE, Answer, Process, ReadAnswer, TokenIssuer, wait_until};
use tempfile::TempDir;

use super::WORKSPACES_PATH;
use super::fake_billing::{FakeBilling, SECRET};
use crate::crashes::{fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds that lead to the points here alone.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["workspace"];

/// An installation that dies and is started again, with those around it that stay.
struct CrashFixture {
    directory: TempDir,
    issuer: TokenIssuer,
    till: FakeBilling,
    token: String,
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

impl CrashFixture {
    async fn new() -> Self {
        let (issuer, till) = (TokenIssuer::start().await, FakeBilling::start().await);
        let directory = TempDir::new().unwrap();
        let stripe = till.settings();
        let config = format!(
            "[oauth]\nissuer = '{}'\naudience = '{AUDIENCE}'\n[stripe]\nsecret_key = '{}'\nwebhook_secret = '{SECRET}'\napi_base = '{}'\nplan_price = 'price_pro'\n",
            issuer.url(),
            stripe.secret_key,
            stripe.api_base
        );
        std::fs::write(directory.path().join("svc.toml"), config).unwrap();
        let claims = issuer.claims_at("alice", now());
        let token = issuer.sign(&claims);
        Self {
            directory,
            issuer,
            till,
            token,
        }
    }

    fn data(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }

    async fn serve(&self, until: Option<&str>) -> Process {
        let config = self.directory.path().join("svc.toml");
        let arguments = ["--config", config.to_str().unwrap()];
        let process = svc().serve_to_fault(until, &self.data(), &arguments).await;
        assert!(!self.issuer.url().is_empty());
        process
    }

    /// A request of the owner's; `None` if the server died instead of answering.
    async fn send_request(
        &self,
        process: &Process,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<(u16, Value)> {
        let request = process.client().request(method, process.url(path));
        let request = request.bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn post(&self, process: &Process, path: &str, body: Value) -> Value {
        let (status, made) = self
            .send_request(process, Method::POST, path, Some(body))
            .await
            .unwrap();
        assert_eq!(status, 201, "{path}: {made}");
        made
    }

    /// Tells the server that the plan was paid; `None` if it died instead of answering.
    async fn send_plan_paid(&self, process: &Process, workspace: &str) -> Option<u16> {
        let event = json!({
            "id": "evt_1", "type": "checkout.session.completed", "created": now(),
            "data": { "object": {
                "id": "cs_1", "payment_status": "paid", "subscription": "sub_1", "customer": "cus_1",
                "metadata": { "svc_workspace": workspace },
            } },
        });
        let body = event.to_string();
        let signature = svc::stripe::sign(SECRET, body.as_bytes(), Timestamp(now() * 1000));
        let request = process.client().post(process.url("/_svc/webhooks/stripe"));
        let request = request.header("stripe-signature", signature).body(body);
        Some(request.send().await.ok()?.status().as_u16())
    }

    /// A workspace with a page and a database.
    async fn create_workspace(&self, process: &Process) -> String {
        let body = json!({ "display_name": "Acme", "slug": "acme" });
        let workspace = text(&self.post(process, WORKSPACES_PATH, body).await["id"]);
        let project = self
            .post(process, "/api/v1/projects", json!({ "name": "House" }))
            .await;
        let project = format!("/api/v1/projects/{}", text(&project["id"]));
        let backend = json!({ "ddl": "CREATE TABLE t (n)" });
        self.post(process, &format!("{project}/backend"), backend)
            .await;
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
        self.post(process, &format!("{project}/frontends"), page)
            .await;
        workspace
    }

    async fn assert_recovered(&self, point: &str) {
        let found = svc().run(&self.data(), &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]), "{point}");
    }
}

async fn page(process: &Process) -> Answer {
    process.client().get(process.url("/room")).answer().await
}

#[tokio::test]
async fn whatever_the_point_of_death_a_workspace_is_whole_or_gone() {
    let mut seen = 0;
    let leads = |point: &String| ["workspace", "teardown"].contains(&fault_group(point));
    for point in fault_points().into_iter().filter(leads) {
        seen += usize::from(fault_group(&point) == "workspace");
        let fixture = CrashFixture::new().await;
        let process = fixture.serve(None).await;
        let workspace = fixture.create_workspace(&process).await;
        assert_eq!(
            fixture.send_plan_paid(&process, &workspace).await,
            Some(200)
        );
        process.kill().await;

        let process = fixture.serve(Some(&point)).await;
        let path = format!("{WORKSPACES_PATH}/acme");
        // Its answer may have left before the end, which goes on behind it.
        drop(
            fixture
                .send_request(&process, Method::DELETE, &path, None)
                .await,
        );
        let (status, _) = process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");
        assert_eq!(
            fixture.till.take_calls()[0].path,
            "/v1/subscriptions/sub_1",
            "{point}"
        );

        let process = fixture.serve(None).await;
        let whole = point == "workspace.told";
        let (status, _) = fixture
            .send_request(&process, Method::GET, &path, None)
            .await
            .unwrap();
        assert_eq!(status, if whole { 200 } else { 404 }, "{point}");
        assert_eq!(
            page(&process).await.status,
            if whole { 200 } else { 404 },
            "{point}"
        );
        if whole {
            let (status, _) = fixture
                .send_request(&process, Method::DELETE, &path, None)
                .await
                .unwrap();
            assert_eq!(status, 204, "{point}");
        }
        // Nothing is left: neither the name, nor the page's, nor the database.
        let databases = fixture.data().join("backends");
        let gone = async || {
            let left = std::fs::read_dir(&databases).map_or(0, Iterator::count);
            (left == 0).then_some(())
        };
        wait_until("the databases to go", gone).await;
        fixture.create_workspace(&process).await;
        fixture.assert_recovered(&point).await;
        process.kill().await;
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn whatever_the_point_of_death_a_paid_plan_begins_once() {
    let mut seen = 0;
    for point in fault_points()
        .into_iter()
        .filter(|point| fault_group(point) == "webhook")
    {
        seen += 1;
        let fixture = CrashFixture::new().await;
        let process = fixture.serve(None).await;
        let workspace = fixture.create_workspace(&process).await;
        process.kill().await;
        let process = fixture.serve(Some(&point)).await;
        assert_eq!(
            fixture.send_plan_paid(&process, &workspace).await,
            None,
            "{point}"
        );
        process.wait_for_exit().await;
        let process = fixture.serve(None).await;
        let plan = async || {
            let path = format!("{WORKSPACES_PATH}/acme");
            let (_, detail) = fixture
                .send_request(&process, Method::GET, &path, None)
                .await
                .unwrap();
            text(&detail["plan"])
        };
        let kept = point == "webhook.committed";
        assert_eq!(plan().await, if kept { "pro" } else { "free" }, "{point}");
        // The provider sends again what was not answered.
        assert_eq!(
            fixture.send_plan_paid(&process, &workspace).await,
            Some(200),
            "{point}"
        );
        assert_eq!(plan().await, "pro", "{point}");
        fixture.assert_recovered(&point).await;
        process.kill().await;
    }
    assert_eq!(seen, 4);
}
