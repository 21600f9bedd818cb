//! An issuer that lies, is slow, or answers without end: each lie is refused with its code, signs nobody in, and stalls nobody else.

mod table;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use svc::issuers::SigningKey;
use svc_tests::browser::location;

pub(super) use self::table::{DISHONEST_ANSWERS, IssuerChange};
use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::{IssuerBehaviour, StubIssuer};

pub(super) const DISCOVERY: &str = "/.well-known/openid-configuration";

#[tokio::test]
async fn every_lie_is_refused_with_its_code_and_stalls_nobody() {
    let mut stubs = Vec::new();
    for (_, change, _) in DISHONEST_ANSWERS {
        let stub = StubIssuer::start().await;
        stub.change(change);
        stubs.push(stub);
    }
    let named = stubs.iter().enumerate();
    let providers = named
        .map(|(at, stub)| provider_settings(&format!("p{at}"), stub))
        .collect();
    let guest_book = GuestBook::with_settings(|settings| settings.providers = providers).await;
    let walks = DISHONEST_ANSWERS
        .iter()
        .enumerate()
        .map(async |(at, (lie, _, code))| {
            let mut browser = guest_book.browser();
            let name = format!("p{at}");
            let url = guest_book.url(&format!("/auth/login?provider={name}"));
            let answer = browser.get(&url).await.expect(302);
            let mut found = location(&url, &answer);
            if let Some((_, query)) = found.split_once("/authorize?") {
                let asked: std::collections::HashMap<_, _> =
                    url::form_urlencoded::parse(query.as_bytes())
                        .into_owned()
                        .collect();
                let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
                found = guest_book
                    .return_from_issuer(&mut browser, &name, &query)
                    .await;
            }
            assert_eq!(found, guest_book.failure_url(code), "{lie}");
            assert_eq!(guest_book.user(&mut browser).await, Value::Null, "{lie}");
            assert!(
                !browser
                    .cookies
                    .iter()
                    .any(|one| one.name.contains("session")),
                "{lie}"
            );
        });
    let all = join_all(walks);
    tokio::pin!(all);
    // While some issuers say nothing, everybody else is answered.
    let mut answered = 0;
    loop {
        let mut stranger = guest_book.browser();
        let call = async {
            let body = json!({"action": "all"});
            guest_book.call(&mut stranger, &body).await.expect(200)
        };
        tokio::select! {
            _ = &mut all => break,
            _ = call => answered += 1,
        }
        tokio::task::yield_now().await;
    }
    assert!(answered > 10, "{answered} calls while issuers were silent");
}

#[tokio::test]
async fn names_of_keys_that_nobody_knows_do_not_flood_the_issuer() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    guest_book
        .sign_in_with_issuer(&mut guest_book.browser(), "acme")
        .await;
    // A thief of codes, say, whose every token names another key.
    stub.change(|inner| {
        inner.token = Some(|inner, claims| {
            let name = format!("key-{}", inner.issued_tokens.len());
            SigningKey::generate(&name).unwrap().sign(claims).unwrap()
        });
    });
    let flood = async |guest_book: &GuestBook| {
        let walks = (0..10).map(async |_| {
            guest_book
                .completion_url(&mut guest_book.browser(), "acme")
                .await
        });
        for found in join_all(walks).await {
            assert_eq!(found, guest_book.failure_url("token_invalid"));
        }
    };
    flood(&guest_book).await;
    assert_eq!(stub.request_count("/keys"), 2, "once more, for all of them");
    flood(&guest_book).await;
    assert_eq!(stub.request_count("/keys"), 2);
    // A minute later a new key of the issuer's own is found, by one call again.
    guest_book.fixture.server.advance(61);
    stub.change(|inner| {
        inner.now += 61;
        inner.token = None;
        inner.key = SigningKey::generate("second").unwrap();
        inner.published_keys.push(inner.key.public_jwk());
    });
    let mut browser = guest_book.browser();
    assert_eq!(
        guest_book.sign_in_with_issuer(&mut browser, "acme").await,
        guest_book.url("")
    );
    assert_eq!(
        (stub.request_count("/keys"), stub.request_count(DISCOVERY)),
        (3, 1)
    );
}

#[tokio::test]
async fn an_honest_issuer_is_believed_and_nothing_of_it_reaches_the_page() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    let asked = guest_book
        .begin_sign_in(&mut browser, "?return_to=%2Froom%3Fa%3Db%23c")
        .await;
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "me"),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
        (
            "redirect_uri",
            &format!("{}/_svc/auth/callback/acme", guest_book.sites),
        ),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = guest_book
        .return_from_issuer(&mut browser, "acme", &query)
        .await;
    let ticket = complete
        .strip_prefix(&guest_book.url("/auth/complete?ticket="))
        .unwrap();
    assert!(
        ticket.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{ticket}"
    );
    let answer = browser.get(&complete).await.expect(302);
    assert_eq!(
        location(&complete, &answer),
        format!("{}?a=b#c", guest_book.url(""))
    );
    // The client shows its secret in the header, and the proof of PKCE.
    let (body, headers) = stub.last_request("/token");
    assert_eq!(headers["authorization"], "Basic bWU6c2VzYW1l");
    let verifier = body
        .split('&')
        .find_map(|pair| pair.strip_prefix("code_verifier="))
        .unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    assert_eq!(URL_SAFE_NO_PAD.encode(digest), asked["code_challenge"]);
    let shown = format!("{answer:?}{}", guest_book.user(&mut browser).await);
    for secret in ["at-sesame", &asked["nonce"], &asked["state"], ticket, "s-1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    // The keys are asked for once, the document once.
    for _ in 0..3 {
        guest_book
            .sign_in_with_issuer(&mut guest_book.browser(), "acme")
            .await;
    }
    assert_eq!(
        (stub.request_count("/keys"), stub.request_count(DISCOVERY)),
        (1, 1)
    );
}

#[tokio::test]
async fn what_a_token_leaves_out_is_asked_for() {
    let stub = StubIssuer::start().await;
    stub.change(|inner| {
        inner.claims = json!({"email": null, "email_verified": null, "name": null});
        inner.discovery = json!({"userinfo_endpoint": format!("{}/userinfo", inner.address)});
        inner.user = json!({"sub": "s-1", "email": "ada@example.com", "email_verified": "true", "locale": "de_AT"});
    });
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    guest_book.sign_in_with_issuer(&mut browser, "acme").await;
    let user = guest_book.user(&mut browser).await;
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(user["locale"], "de-AT");
    assert_eq!(
        stub.last_request("/userinfo").1["authorization"],
        "Bearer at-sesame"
    );
    // An issuer that refuses userinfo does not prevent a sign-in.
    stub.change(|inner| {
        inner
            .behaviours
            .insert("/userinfo", IssuerBehaviour::Status(403))
    });
    assert_eq!(
        guest_book.sign_in_with_issuer(&mut browser, "acme").await,
        guest_book.url("")
    );
    assert_eq!(guest_book.user(&mut browser).await.get("email"), None);
}

#[tokio::test]
async fn an_address_that_nobody_has_checked_is_nobodys() {
    let stub = StubIssuer::start().await;
    stub.change(|inner| inner.claims = json!({"email_verified": false}));
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    guest_book.sign_in_with_issuer(&mut browser, "acme").await;
    assert_eq!(guest_book.user(&mut browser).await.get("email"), None);
    let sign = json!({"action": "sign", "params": {"words": "Hi"}});
    guest_book.call(&mut browser, &sign).await.expect(200);
    let rows = guest_book
        .call(&mut browser, &json!({"action": "mine"}))
        .await
        .json();
    assert_eq!(rows["rows"][0]["email"], Value::Null);
}

#[tokio::test]
async fn issuers_are_not_mixed_up() {
    let (good, evil) = (StubIssuer::start().await, StubIssuer::start().await);
    evil.change(|inner| {
        inner.discovery = json!({"authorization_response_iss_parameter_supported": true});
    });
    let guest_book = GuestBook::with_issuers(&[("good", &good), ("evil", &evil)]).await;
    let mut browser = guest_book.browser();
    // An answer that names another issuer than the one that was asked.
    for (provider, iss) in [("good", evil.address()), ("evil", good.address())] {
        let asked = guest_book
            .begin_sign_in(&mut browser, &format!("?provider={provider}"))
            .await;
        let iss = iss.replace(':', "%3A").replace('/', "%2F");
        let query = format!("code={}&state={}&iss={iss}", asked["nonce"], asked["state"]);
        let found = guest_book
            .return_from_issuer(&mut browser, provider, &query)
            .await;
        assert_eq!(found, guest_book.failure_url("provider_error"));
    }
    // A sign-in with one that comes back to the other's address.
    let asked = guest_book
        .begin_sign_in(&mut browser, "?provider=good")
        .await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let found = guest_book
        .return_from_issuer(&mut browser, "evil", &query)
        .await;
    assert_eq!(found, guest_book.failure_url("state_invalid"));
    // Neither was sent the code of the other.
    assert_eq!(
        (good.request_count("/token"), evil.request_count("/token")),
        (0, 0)
    );
    // A token of one is none of the other's.
    good.change(|inner| {
        inner.key = SigningKey::generate("first").unwrap();
    });
    assert_eq!(
        guest_book.completion_url(&mut browser, "good").await,
        guest_book.failure_url("token_invalid")
    );
}

#[tokio::test]
async fn what_an_issuer_says_instead_of_a_code_is_told() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    for (error, code) in [
        ("error=access_denied", "access_denied"),
        ("error=login_required", "access_denied"),
        (
            "error=consent_required&error_description=%3Cscript%3E",
            "access_denied",
        ),
        ("error=temporarily_unavailable", "provider_unavailable"),
        ("error=server_error", "provider_error"),
        ("error=%0d%0ax", "provider_error"),
        ("code=", "provider_error"),
        ("x=y", "provider_error"),
        ("code=never-given", "token_invalid"),
    ] {
        let asked = guest_book.begin_sign_in(&mut browser, "").await;
        let query = format!("{error}&state={}", asked["state"]);
        let found = guest_book
            .return_from_issuer(&mut browser, "acme", &query)
            .await;
        assert_eq!(found, guest_book.failure_url(code), "{error}");
    }
}

#[tokio::test]
async fn a_dead_issuer_costs_a_sign_in_and_nothing_else() {
    let stub = StubIssuer::start().await;
    let mut dead = provider_settings("dead", &stub);
    dead.issuer = "http://127.0.0.1:1".to_owned();
    let alive = provider_settings("alive", &stub);
    let guest_book =
        GuestBook::with_settings(|settings| settings.providers = vec![dead, alive]).await;
    let mut browser = guest_book.browser();
    let url = guest_book.url("/auth/login?provider=dead&return_to=/room?x=1");
    let answer = browser.get(&url).await.expect(302);
    let expected = format!("{}?x=1&auth_error=provider_unavailable", guest_book.url(""));
    assert_eq!(location(&url, &answer), expected);
    assert_eq!(
        guest_book.sign_in_with_issuer(&mut browser, "alive").await,
        guest_book.url("")
    );
}
