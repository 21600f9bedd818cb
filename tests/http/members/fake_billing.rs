//! A payment provider on this machine that notes what it is asked, and whose webhooks are signed as the real one's are.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use svc::config::{StripeSettings, WebhookSecrets};
use svc_tests::{Answer, NOW, TestServer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::payments::fake_stripe;

pub(super) const SECRET: &str = "whsec_of_the_tests";

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) path: String,
    pub(super) form: String,
}

#[derive(Debug, Default)]
struct Shared {
    calls: Mutex<Vec<Call>>,
    /// Answer in place of the one that it should give.
    refusal: Mutex<Option<(StatusCode, Value)>>,
}

/// A payment provider for plans. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct FakeBilling {
    shared: Arc<Shared>,
    base: String,
    task: JoinHandle<()>,
}

impl FakeBilling {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = listener.await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shared, base, task }
    }

    /// The settings of a server that uses it.
    pub(crate) fn settings(&self) -> StripeSettings {
        StripeSettings {
            secret_key: "sk_test_1".to_owned(),
            webhook_secret: WebhookSecrets(vec![SECRET.to_owned()]),
            api_base: self.base.parse().unwrap(),
            plan_price: Some("price_pro".to_owned()),
        }
    }

    /// Returns and clears the recorded calls.
    pub(super) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.shared.calls.lock().unwrap())
    }

    /// Sets the refusal with which every call is answered.
    pub(super) fn set_refusal(&self, refusal: Option<(StatusCode, Value)>) {
        *self.shared.refusal.lock().unwrap() = refusal;
    }
}

impl Drop for FakeBilling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(till): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(headers["authorization"], "Bearer sk_test_1");
    assert!(headers.contains_key("idempotency-key") && headers.contains_key("stripe-version"));
    till.calls.lock().unwrap().push(Call {
        path: uri.path().to_owned(),
        form: String::from_utf8(body.to_vec()).unwrap(),
    });
    if let Some((status, error)) = till.refusal.lock().unwrap().clone() {
        return (status, axum::Json(json!({ "error": error }))).into_response();
    }
    let url = format!("https://pay.example{}", uri.path());
    axum::Json(json!({ "id": "cs_1", "url": url })).into_response()
}

/// Sends a webhook of the provider's; `after` is how many seconds after the test's beginning it says that it happened.
pub(crate) async fn send_webhook(
    server: &TestServer,
    kind: &str,
    id: &str,
    after: i64,
    object: Value,
) -> Answer {
    let event = fake_stripe::event(id, kind, NOW.0 / 1000 + after, &object);
    let now = server.server().app().clock.now();
    fake_stripe::send_webhook(server, event.to_string(), SECRET, now).await
}
