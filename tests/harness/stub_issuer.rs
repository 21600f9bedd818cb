//! An OpenID Connect issuer that answers what a test wants, lies included.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use svc::issuers::SigningKey;
use tokio::net::TcpListener;

use crate::server::NOW;

/// Behaviour of one path of the issuer.
#[derive(Clone, Debug, Default)]
pub enum IssuerBehaviour {
    /// No fault.
    #[default]
    Good,
    /// Answers with this status.
    Status(u16),
    /// Redirects to another URL.
    Redirect(String),
    /// Answers with endless bytes.
    Endless,
    /// Never answers.
    Silent,
    /// Sends a byte now and then, and never ends.
    Dripping,
    /// Answers with this text.
    Text(String),
}

/// State and behaviour of the issuer.
#[derive(Debug)]
pub struct IssuerState {
    pub address: String,
    /// The time by its clock, in seconds.
    pub now: i64,
    /// Behaviours by path.
    pub behaviours: HashMap<&'static str, IssuerBehaviour>,
    /// Claims of its tokens; changed from what they should be.
    pub claims: Value,
    /// Members that differ in its discovery document.
    pub discovery: Value,
    /// The key that it signs with.
    pub key: SigningKey,
    /// The keys that it shows.
    pub published_keys: Vec<Value>,
    /// A token to answer instead of one that it makes.
    pub token: Option<fn(&IssuerState, &Value) -> String>,
    /// Answer to a question with an access token.
    pub user: Value,
    /// Requests that it was sent: path, body, headers.
    pub requests: Vec<(String, String, HeaderMap)>,
    /// ID tokens that it has given out.
    pub issued_tokens: Vec<String>,
}

/// The issuer; clones are the same.
#[derive(Clone, Debug)]
pub struct StubIssuer(pub Arc<Mutex<IssuerState>>);

impl StubIssuer {
    /// Starts an honest one.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::generate("first").unwrap();
        let stub = Self(Arc::new(Mutex::new(IssuerState {
            address,
            now: NOW.0 / 1000,
            behaviours: HashMap::new(),
            claims: json!({}),
            discovery: json!({}),
            published_keys: vec![key.public_jwk()],
            key,
            token: None,
            user: json!({}),
            requests: Vec::new(),
            issued_tokens: Vec::new(),
        })));
        let router = Router::new().fallback(answer).with_state(stub.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        stub
    }

    /// Changes what it is.
    pub fn change<T>(&self, change: impl FnOnce(&mut IssuerState) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Returns the address.
    pub fn address(&self) -> String {
        self.change(|inner| inner.address.clone())
    }

    /// Returns the number of requests to a path.
    pub fn request_count(&self, path: &str) -> usize {
        self.change(|inner| inner.requests.iter().filter(|one| one.0 == path).count())
    }

    /// The last request to a path: its body and its headers.
    pub fn last_request(&self, path: &str) -> (String, HeaderMap) {
        self.change(|inner| {
            let found = inner
                .requests
                .iter()
                .rev()
                .find(|one| one.0 == path)
                .unwrap();
            (found.1.clone(), found.2.clone())
        })
    }
}

/// The claims of a token that holds, for the sign-in whose nonce this is.
pub fn claims(inner: &IssuerState, nonce: &str) -> Value {
    let now = inner.now;
    let mut claims = json!({
        "iss": inner.address, "aud": "me", "sub": "s-1", "iat": now, "exp": now + 300, "nonce": nonce,
        "email": "ada@example.com", "email_verified": true, "name": "Ada",
    });
    merge_objects(&mut claims, &inner.claims);
    claims
}

/// Puts members of one object over those of another; null takes one away.
fn merge_objects(into: &mut Value, from: &Value) {
    let into = into.as_object_mut().unwrap();
    for (name, value) in from.as_object().unwrap() {
        into.insert(name.clone(), value.clone());
        into.retain(|_, value| !value.is_null());
    }
}

async fn answer(State(stub): State<StubIssuer>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let manner = stub.change(|inner| {
        inner
            .requests
            .push((path.clone(), body.clone(), headers.clone()));
        let manner = inner.behaviours.iter().find(|(known, _)| **known == path);
        manner.map(|(_, manner)| manner.clone()).unwrap_or_default()
    });
    match manner {
        IssuerBehaviour::Good => valid_answer(&stub, &path, &body),
        IssuerBehaviour::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        IssuerBehaviour::Redirect(to) => {
            (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
        }
        IssuerBehaviour::Text(text) => text.into_response(),
        IssuerBehaviour::Silent => std::future::pending().await,
        IssuerBehaviour::Dripping => {
            let drops = futures_util::stream::unfold((), |()| async {
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                let space = bytes::Bytes::from_static(b" ");
                Some((Ok::<_, std::io::Error>(space), ()))
            });
            Body::from_stream(drops).into_response()
        }
        IssuerBehaviour::Endless => {
            let bytes = futures_util::stream::repeat_with(|| {
                Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b' '; 65_536]))
            });
            Body::from_stream(bytes).into_response()
        }
    }
}

fn valid_answer(stub: &StubIssuer, path: &str, body: &str) -> Response {
    let answer = stub.change(|inner| {
        let address = &inner.address;
        match path {
            // Of each of its tenants, where it has some.
            path if path.ends_with("/.well-known/openid-configuration") => {
                let mut document = json!({
                    "issuer": address,
                    "authorization_endpoint": format!("{address}/authorize"),
                    "token_endpoint": format!("{address}/token"),
                    "jwks_uri": format!("{address}/keys"),
                });
                merge_objects(&mut document, &inner.discovery);
                Some(document)
            }
            "/keys" => Some(json!({ "keys": inner.published_keys })),
            "/token" => {
                // A code is the nonce of its sign-in; each is used once.
                let code = body
                    .split('&')
                    .find_map(|pair| pair.strip_prefix("code="))
                    .unwrap();
                let used = inner
                    .requests
                    .iter()
                    .filter(|one| one.1.contains(&format!("code={code}&")));
                if used.count() > 1 {
                    return None;
                }
                let claims = claims(inner, code);
                let token = match inner.token {
                    Some(make) => make(inner, &claims),
                    None => inner.key.sign(&claims).unwrap(),
                };
                inner.issued_tokens.push(token.clone());
                Some(
                    json!({"id_token": token, "access_token": "at-sesame", "token_type": "Bearer"}),
                )
            }
            "/userinfo" => Some(inner.user.clone()),
            _ => None,
        }
    });
    match answer {
        Some(answer) => axum::Json(answer).into_response(),
        None => (
            StatusCode::BAD_REQUEST,
            axum::Json(json!({"error": "invalid_grant"})),
        )
            .into_response(),
    }
}
