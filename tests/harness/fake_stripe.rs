//! A payment provider on loopback that records what it is asked, and the events that it would send.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use svc::config::{StripeSettings, WebhookSecrets};
use svc_base::clock::Timestamp;

use crate::answer::{Answer, ReadAnswer};
use crate::server::TestServer;
use crate::wait::wait_until;

/// Secret that webhooks are signed with.
pub const SECRET: &str = "whsec_of_tests";
/// Secret that they were signed with before.
pub const OLD_SECRET: &str = "whsec_of_yesterday";
const KEY: &str = "sk_test_of_tests";

/// A call that was made.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    pub headers: HeaderMap,
    pub form: BTreeMap<String, String>,
}

/// Answer to a call in place of the usual one.
#[derive(Clone, Debug)]
pub enum FakeAnswer {
    /// Answers with this status and body.
    Respond(u16, Value),
    /// Answers with endless bytes.
    Endless,
    /// After so long as nobody waits.
    Hang,
    /// Answers as usual, once the test says so.
    Wait(Arc<tokio::sync::Notify>),
}

#[derive(Debug, Default)]
struct FakeStripeState {
    calls: Vec<Call>,
    next_answers: VecDeque<FakeAnswer>,
    /// Answers that were made, by idempotency key.
    answers_by_key: BTreeMap<String, Value>,
}

/// The provider.
#[derive(Clone, Debug)]
pub struct FakeStripe {
    recorded: Arc<Mutex<FakeStripeState>>,
    address: std::net::SocketAddr,
}

impl FakeStripe {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let recorded = Arc::new(Mutex::default());
        let provider = Self { recorded, address };
        let router = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    pub fn settings(&self) -> StripeSettings {
        StripeSettings {
            secret_key: KEY.into(),
            webhook_secret: WebhookSecrets(vec![SECRET.into(), OLD_SECRET.into()]),
            api_base: format!("http://{}", self.address).parse().unwrap(),
            plan_price: None,
        }
    }

    /// Writes the settings as a file.
    pub fn settings_file(&self) -> String {
        format!(
            "[stripe]\nsecret_key = '{KEY}'\nwebhook_secret = ['{SECRET}', '{OLD_SECRET}']\napi_base = 'http://{}'\n",
            self.address
        )
    }

    fn lock_state(&self) -> MutexGuard<'_, FakeStripeState> {
        self.recorded.lock().unwrap()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.lock_state().calls.clone()
    }

    /// Has the next call answered once the test says so.
    pub fn delay_next_answer(&self) -> DelayedAnswer {
        let told = Arc::new(tokio::sync::Notify::new());
        self.set_next_answer(FakeAnswer::Wait(Arc::clone(&told)));
        let calls_before = self.calls().len();
        DelayedAnswer { told, calls_before }
    }

    /// Waits until the provider was called again after a delay was set.
    pub async fn wait_for_call(&self, delayed: &DelayedAnswer) {
        let called = async || (self.calls().len() > delayed.calls_before).then_some(());
        wait_until("the provider to be called", called).await;
    }

    /// Has the next call answered in another manner.
    pub fn set_next_answer(&self, manner: FakeAnswer) {
        self.lock_state().next_answers.push_back(manner);
    }
}

/// Answer to a call that waits for the test.
#[derive(Debug)]
pub struct DelayedAnswer {
    told: Arc<tokio::sync::Notify>,
    calls_before: usize,
}

impl DelayedAnswer {
    /// Has the call answered.
    pub fn send(self) {
        self.told.notify_one();
    }
}

async fn answer(State(provider): State<FakeStripe>, request: Request) -> axum::response::Response {
    use axum::response::IntoResponse;
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let form: BTreeMap<String, String> = form_pairs(&body);
    let key = head.headers["idempotency-key"].to_str().unwrap().to_owned();
    let manner = {
        let mut recorded = provider.lock_state();
        recorded.calls.push(Call {
            path: head.uri.path().to_owned(),
            headers: head.headers.clone(),
            form: form.clone(),
        });
        recorded.next_answers.pop_front()
    };
    match manner {
        Some(FakeAnswer::Respond(status, body)) => {
            let status = StatusCode::from_u16(status).unwrap();
            return (status, axum::Json(body)).into_response();
        }
        Some(FakeAnswer::Endless) => {
            let endless = futures_util::stream::repeat_with(|| {
                Ok::<_, std::convert::Infallible>(bytes::Bytes::from_static(&[b' '; 65536]))
            });
            return Body::from_stream(endless).into_response();
        }
        Some(FakeAnswer::Wait(told)) => told.notified().await,
        Some(FakeAnswer::Hang) => tokio::time::sleep(Duration::from_secs(3600)).await,
        None => {}
    }
    let mut recorded = provider.lock_state();
    let number = recorded.answers_by_key.len() + 1;
    let made = recorded.answers_by_key.entry(key).or_insert_with(|| {
        let id = format!("cs_test_{number}");
        json!({ "id": id, "object": "checkout.session", "url": format!("http://127.0.0.1:9/pay/{id}") })
    });
    axum::Json(made.clone()).into_response()
}

fn form_pairs(body: &[u8]) -> BTreeMap<String, String> {
    let url = format!("http://x/?{}", std::str::from_utf8(body).unwrap());
    let url = reqwest::Url::parse(&url).unwrap();
    url.query_pairs().into_owned().collect()
}

/// Sends the body of a webhook, signed with a secret at a time.
pub async fn send_webhook(
    server: &TestServer,
    body: String,
    secret: &str,
    now: Timestamp,
) -> Answer {
    let signature = svc::stripe::sign(secret, body.as_bytes(), now);
    let post = server.post("/_svc/webhooks/stripe");
    let post = post.header("stripe-signature", signature);
    post.header("content-type", "application/json; charset=utf-8")
        .body(body)
        .answer()
        .await
}

/// An event.
pub fn event(id: &str, kind: &str, at: i64, object: &Value) -> Value {
    json!({
        "id": id, "object": "event", "type": kind, "created": at, "livemode": false,
        "api_version": svc::stripe::API_VERSION, "data": { "object": object },
    })
}

/// A hosted checkout that was paid once.
pub fn checkout(id: &str, payment_status: &str) -> Value {
    json!({
        "id": id, "object": "checkout.session", "mode": "payment", "status": "complete",
        "payment_status": payment_status, "amount_total": 900, "currency": "eur", "metadata": {},
        "payment_intent": format!("pi_of_{id}"), "subscription": null, "invoice": null, "payment_link": null,
        "customer_details": { "email": "Ada@Example.com" },
    })
}

/// The charge of such a checkout.
pub fn charge(checkout: &str, refunded: i64) -> Value {
    json!({
        "id": format!("ch_of_{checkout}"), "object": "charge", "amount": 900, "amount_refunded": refunded,
        "refunded": refunded == 900, "currency": "eur", "payment_intent": format!("pi_of_{checkout}"), "metadata": {},
    })
}
