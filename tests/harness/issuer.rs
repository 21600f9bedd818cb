//! An issuer on this machine, as an operator's would be: its discovery, its keys, its access tokens, and sign-ins of a visitor.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};
use svc::issuers::SigningKey;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::server::NOW;

/// Value that tokens for the service under test have in `aud`.
pub const AUDIENCE: &str = "https://svc.example";

/// Client that visitors' servers are to the issuer.
const CLIENT: &str = "me";

/// An issuer. Dropping it ends it.
#[derive(Debug)]
pub struct TokenIssuer {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    url: String,
    /// The key that it signs with.
    key: Mutex<SigningKey>,
    keys: Mutex<Vec<Value>>,
    down: AtomicBool,
    key_requests: AtomicUsize,
}

impl TokenIssuer {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::generate("first").unwrap();
        let shared = Arc::new(Shared {
            url,
            keys: Mutex::new(vec![key.public_jwk()]),
            key: Mutex::new(key),
            down: AtomicBool::new(false),
            key_requests: AtomicUsize::new(0),
        });
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/token", post(sign_in))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shared, task }
    }

    /// Returns the address.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// Returns how often its keys were requested.
    pub fn key_request_count(&self) -> usize {
        self.shared.key_requests.load(Ordering::Relaxed)
    }

    /// Answers everything with 500 while `down`.
    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::Relaxed);
    }

    /// Replaces the signing key; the old one is no longer published.
    pub fn rotate(&mut self, id: &str) {
        let key = SigningKey::generate(id).unwrap();
        *self.shared.keys.lock().unwrap() = vec![key.public_jwk()];
        *self.shared.key.lock().unwrap() = key;
    }

    /// The claims of a token of a person for an hour, by the clock of tests.
    pub fn claims(&self, subject: &str) -> Value {
        self.claims_at(subject, NOW.0 / 1000)
    }

    /// Makes claims by a clock that says `now`, in seconds.
    pub fn claims_at(&self, subject: &str, now: i64) -> Value {
        json!({
            "iss": self.url(), "aud": AUDIENCE, "sub": subject,
            "iat": now, "nbf": now, "exp": now + 3600,
            "email": format!("{subject}@example.org"), "email_verified": true,
        })
    }

    /// Signs a token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.shared.sign(claims)
    }

    /// Signs a token for a subject, valid for an hour by the clock of this machine, for a server that is a process of its own.
    pub fn token_now(&self, subject: &str) -> String {
        self.sign(&self.claims_at(subject, now()))
    }

    /// Settings by which its tokens prove who calls, and by which visitors sign in with it as `acme`.
    pub fn settings(&self) -> String {
        let url = self.url();
        format!(
            "[oauth]\nissuer = '{url}'\naudience = '{AUDIENCE}'\n\
             [[providers]]\nname = 'acme'\nissuer = '{url}'\nclient_id = '{CLIENT}'\nclient_secret = 'sesame'\n"
        )
    }

    /// Signs a token for a subject, valid for an hour.
    pub fn token(&self, subject: &str) -> String {
        self.sign(&self.claims(subject))
    }
}

impl Drop for TokenIssuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn discovery(State(issuer): State<Arc<Shared>>) -> Response {
    let document = json!({
        "issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url),
        "authorization_endpoint": format!("{}/auth", issuer.url),
        "token_endpoint": format!("{}/token", issuer.url),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    issuer.answer(document)
}

async fn keys(State(issuer): State<Arc<Shared>>) -> Response {
    issuer.key_requests.fetch_add(1, Ordering::Relaxed);
    let keys = issuer.keys.lock().unwrap().clone();
    issuer.answer(json!({ "keys": keys }))
}

/// Ends a sign-in of the visitor `ada`. The code of a sign-in is its nonce.
async fn sign_in(State(issuer): State<Arc<Shared>>, form: String) -> Response {
    let pairs = url::form_urlencoded::parse(form.as_bytes());
    let code = pairs.into_owned().find(|(name, _)| name == "code");
    let (nonce, now) = (code.map(|(_, code)| code), now());
    let claims = json!({
        "iss": issuer.url, "aud": CLIENT, "sub": "ada", "iat": now, "exp": now + 300,
        "nonce": nonce, "email": "ada@example.org", "email_verified": true, "name": "Ada",
    });
    let token = issuer.sign(&claims);
    let answer = json!({ "id_token": token, "access_token": "none", "token_type": "Bearer" });
    issuer.answer(answer)
}

/// Returns the time of this machine, in seconds.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

impl Shared {
    fn sign(&self, claims: &Value) -> String {
        self.key.lock().unwrap().sign(claims).unwrap()
    }

    fn answer(&self, document: Value) -> Response {
        if self.down.load(Ordering::Relaxed) {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        Json(document).into_response()
    }
}
