//! An issuer of access tokens on this machine, as an operator's would be: its discovery, its keys, its tokens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};
use svc::issuers::SigningKey;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::server::NOW;

/// Value that tokens for the service under test have in `aud`.
pub const AUDIENCE: &str = "https://svc.example";

/// An issuer. Dropping it ends it.
#[derive(Debug)]
pub struct TokenIssuer {
    shared: Arc<Shared>,
    key: SigningKey,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    url: String,
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
            down: AtomicBool::new(false),
            key_requests: AtomicUsize::new(0),
        });
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shared, key, task }
    }

    /// Returns the address.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// How often it was asked for its keys.
    pub fn key_request_count(&self) -> usize {
        self.shared.key_requests.load(Ordering::Relaxed)
    }

    /// Answers nothing but 500 from now on, or again as it should.
    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::Relaxed);
    }

    /// Signs with a new key from now on, which it tells; the old one is none of its keys any more.
    pub fn rotate(&mut self, id: &str) {
        self.key = SigningKey::generate(id).unwrap();
        *self.shared.keys.lock().unwrap() = vec![self.key.public_jwk()];
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

    /// A token of these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.key.sign(claims).unwrap()
    }

    /// A token of a person for an hour.
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

impl Shared {
    fn answer(&self, document: Value) -> Response {
        if self.down.load(Ordering::Relaxed) {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        Json(document).into_response()
    }
}
