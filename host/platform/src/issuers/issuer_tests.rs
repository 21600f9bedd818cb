//! Tests of an issuer that is asked over the network: what is asked how often, and what a dead or lying one costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use super::*;
use crate::outbound::OutboundClient;
use svc_base::clock::{Clock, Timestamp};

const NOW: i64 = 1_795_262_400;

/// An issuer on this machine that answers what a test sets.
struct Stub {
    address: String,
    keys: Arc<Mutex<Vec<Value>>>,
    status: Arc<AtomicU64>,
    descriptions: Arc<AtomicU64>,
    sets: Arc<AtomicU64>,
}

impl Stub {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let stub = Self {
            address: address.clone(),
            keys: Arc::default(),
            status: Arc::new(AtomicU64::new(200)),
            descriptions: Arc::default(),
            sets: Arc::default(),
        };
        let (keys, status) = (Arc::clone(&stub.keys), Arc::clone(&stub.status));
        let (descriptions, sets) = (Arc::clone(&stub.descriptions), Arc::clone(&stub.sets));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let body = if request.starts_with("GET /keys ") {
                    sets.fetch_add(1, Ordering::SeqCst);
                    json!({ "keys": *keys.lock().await })
                } else {
                    descriptions.fetch_add(1, Ordering::SeqCst);
                    json!({"issuer": address, "jwks_uri": format!("{address}/keys")})
                };
                let (body, status) = (body.to_string(), status.load(Ordering::SeqCst));
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        stub
    }

    fn issuer(&self, clock: &Clock) -> Issuer {
        let address = IssuerAddress::parse(&self.address).unwrap();
        Issuer::new(address, OutboundClient::new().unwrap(), clock.clone())
    }

    fn token(&self, key: &SigningKey) -> String {
        let claims = json!({
            "iss": self.address, "sub": "s", "aud": "me", "exp": NOW + 1_000_000, "iat": NOW,
        });
        key.sign(&claims).unwrap()
    }

    fn asked(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        (count(&self.descriptions), count(&self.sets))
    }
}

#[tokio::test]
async fn an_unknown_key_has_the_keys_fetched_once_a_minute() {
    let (stub, clock) = (Stub::start().await, Clock::manual(Timestamp(NOW * 1000)));
    let issuer = stub.issuer(&clock);
    let (first, second) = (
        SigningKey::generate("1").unwrap(),
        SigningKey::generate("2").unwrap(),
    );
    stub.keys.lock().await.push(first.public_jwk());
    for _ in 0..3 {
        issuer
            .verify_access_token(&stub.token(&first), "me")
            .await
            .unwrap();
    }
    assert_eq!(stub.asked(), (1, 1));
    // The issuer turns to another key: the first token of it is taken at once.
    stub.keys.lock().await.push(second.public_jwk());
    issuer
        .verify_access_token(&stub.token(&second), "me")
        .await
        .unwrap();
    assert_eq!(stub.asked(), (1, 2));
    // Tokens that name keys nobody has cost nothing more for a minute.
    for number in 0..20 {
        let made_up = SigningKey::generate(&format!("made-up-{number}")).unwrap();
        let refused = issuer
            .verify_access_token(&stub.token(&made_up), "me")
            .await;
        assert_eq!(refused, Err(IssuerError::Token(TokenError::UnknownKey)));
    }
    assert_eq!(stub.asked(), (1, 2));
    clock.advance(Duration::from_secs(61));
    let third = SigningKey::generate("3").unwrap();
    stub.keys.lock().await.push(third.public_jwk());
    issuer
        .verify_access_token(&stub.token(&third), "me")
        .await
        .unwrap();
    assert_eq!(stub.asked(), (1, 3));
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_call() {
    let (stub, clock) = (Stub::start().await, Clock::manual(Timestamp(NOW * 1000)));
    let issuer = Arc::new(stub.issuer(&clock));
    let key = SigningKey::generate("1").unwrap();
    stub.keys.lock().await.push(key.public_jwk());
    let token = stub.token(&key);
    let calls = (0..50).map(|_| {
        let (issuer, token) = (Arc::clone(&issuer), token.clone());
        tokio::spawn(async move { issuer.verify_access_token(&token, "me").await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(stub.asked(), (1, 1));
}

#[tokio::test]
async fn what_is_known_is_used_while_the_issuer_is_down_but_not_for_ever() {
    let (stub, clock) = (Stub::start().await, Clock::manual(Timestamp(NOW * 1000)));
    let issuer = stub.issuer(&clock);
    let key = SigningKey::generate("1").unwrap();
    stub.keys.lock().await.push(key.public_jwk());
    let token = stub.token(&key);
    issuer.verify_access_token(&token, "me").await.unwrap();
    stub.status.store(500, Ordering::SeqCst);
    clock.advance(Duration::from_secs(2 * 60 * 60));
    for _ in 0..5 {
        issuer.verify_access_token(&token, "me").await.unwrap();
    }
    // One attempt each, then a pause.
    assert_eq!(stub.asked(), (2, 2));
    clock.advance(Duration::from_secs(24 * 60 * 60));
    let refused = issuer.verify_access_token(&token, "me").await.unwrap_err();
    assert!(matches!(refused, IssuerError::Unusable(_)), "{refused}");
    stub.status.store(200, Ordering::SeqCst);
    issuer.verify_access_token(&token, "me").await.unwrap();
}

#[tokio::test]
async fn a_dead_issuer_is_told_from_a_bad_token() {
    let clock = Clock::manual(Timestamp(NOW * 1000));
    let key = SigningKey::generate("1").unwrap();
    let address = IssuerAddress::parse("http://127.0.0.1:1").unwrap();
    let issuer = Issuer::new(address, OutboundClient::new().unwrap(), clock);
    let token = key.sign(&json!({"sub": "s"})).unwrap();
    let dead = issuer.verify_access_token(&token, "me").await.unwrap_err();
    assert!(matches!(dead, IssuerError::Unreachable(_)), "{dead}");
    // A text that is no token is refused without a request to the issuer.
    let bad = issuer.verify_access_token("a.b.c", "me").await.unwrap_err();
    assert_eq!(bad, IssuerError::Token(TokenError::Malformed));
}
