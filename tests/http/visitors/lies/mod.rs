//! An issuer that lies, is slow, or answers without end: each lie is refused with its code, signs nobody in, and stalls nobody else.

mod table;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use svc::issuers::SigningKey;
use svc_tests::browser::location;

pub(super) use self::table::{Change, LIES};
use super::place::{Place, provider};
use super::stub::{Manner, Stub};

pub(super) const DISCOVERY: &str = "/.well-known/openid-configuration";

#[tokio::test]
async fn every_lie_is_refused_with_its_code_and_stalls_nobody() {
    let mut stubs = Vec::new();
    for (_, change, _) in LIES {
        let stub = Stub::start().await;
        stub.change(change);
        stubs.push(stub);
    }
    let named = stubs.iter().enumerate();
    let providers = named
        .map(|(at, stub)| provider(&format!("p{at}"), stub))
        .collect();
    let place = Place::with(|settings| settings.providers = providers).await;
    let walks = LIES.iter().enumerate().map(async |(at, (lie, _, code))| {
        let mut browser = place.browser();
        let name = format!("p{at}");
        let url = place.url(&format!("/auth/login?provider={name}"));
        let answer = browser.get(&url).await.expect(302);
        let mut found = location(&url, &answer);
        if let Some((_, query)) = found.split_once("/authorize?") {
            let asked: std::collections::HashMap<_, _> =
                url::form_urlencoded::parse(query.as_bytes())
                    .into_owned()
                    .collect();
            let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
            found = place.come_back(&mut browser, &name, &query).await;
        }
        assert_eq!(found, place.failed(code), "{lie}");
        assert_eq!(place.user(&mut browser).await, Value::Null, "{lie}");
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
        let mut stranger = place.browser();
        let call = async {
            let body = json!({"action": "all"});
            place.call(&mut stranger, &body).await.expect(200)
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
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    place.walk(&mut place.browser(), "acme").await;
    // A thief of codes, say, whose every token names another key.
    stub.change(|inner| {
        inner.token = Some(|inner, claims| {
            let name = format!("key-{}", inner.given.len());
            SigningKey::generate(&name).unwrap().sign(claims).unwrap()
        });
    });
    let flood = async |place: &Place| {
        let walks = (0..10).map(async |_| place.ticket(&mut place.browser(), "acme").await);
        for found in join_all(walks).await {
            assert_eq!(found, place.failed("token_invalid"));
        }
    };
    flood(&place).await;
    assert_eq!(stub.count("/keys"), 2, "once more, for all of them");
    flood(&place).await;
    assert_eq!(stub.count("/keys"), 2);
    // A minute later a new key of the issuer's own is found, by one call again.
    place.house.server.advance(61);
    stub.change(|inner| {
        inner.now += 61;
        inner.token = None;
        inner.key = SigningKey::generate("second").unwrap();
        inner.shown.push(inner.key.public_jwk());
    });
    let mut browser = place.browser();
    assert_eq!(place.walk(&mut browser, "acme").await, place.url(""));
    assert_eq!((stub.count("/keys"), stub.count(DISCOVERY)), (3, 1));
}

#[tokio::test]
async fn an_honest_issuer_is_believed_and_nothing_of_it_reaches_the_page() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
    let asked = place
        .begin(&mut browser, "?return_to=%2Froom%3Fa%3Db%23c")
        .await;
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "me"),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
        (
            "redirect_uri",
            &format!("{}/_svc/auth/callback/acme", place.sites),
        ),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = place.come_back(&mut browser, "acme", &query).await;
    let ticket = complete
        .strip_prefix(&place.url("/auth/complete?ticket="))
        .unwrap();
    assert!(
        ticket.bytes().all(|b| b.is_ascii_alphanumeric()),
        "{ticket}"
    );
    let answer = browser.get(&complete).await.expect(302);
    assert_eq!(
        location(&complete, &answer),
        format!("{}?a=b#c", place.url(""))
    );
    // The client shows its secret in the header, and the proof of PKCE.
    let (body, headers) = stub.last("/token");
    assert_eq!(headers["authorization"], "Basic bWU6c2VzYW1l");
    let verifier = body
        .split('&')
        .find_map(|pair| pair.strip_prefix("code_verifier="))
        .unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    assert_eq!(URL_SAFE_NO_PAD.encode(digest), asked["code_challenge"]);
    let shown = format!("{answer:?}{}", place.user(&mut browser).await);
    for secret in ["at-sesame", &asked["nonce"], &asked["state"], ticket, "s-1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    // The keys are asked for once, the document once.
    for _ in 0..3 {
        place.walk(&mut place.browser(), "acme").await;
    }
    assert_eq!((stub.count("/keys"), stub.count(DISCOVERY)), (1, 1));
}

#[tokio::test]
async fn what_a_token_leaves_out_is_asked_for() {
    let stub = Stub::start().await;
    stub.change(|inner| {
        inner.claims = json!({"email": null, "email_verified": null, "name": null});
        inner.discovery = json!({"userinfo_endpoint": format!("{}/userinfo", inner.address)});
        inner.user = json!({"sub": "s-1", "email": "ada@example.com", "email_verified": "true", "locale": "de_AT"});
    });
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
    place.walk(&mut browser, "acme").await;
    let user = place.user(&mut browser).await;
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(user["locale"], "de-AT");
    assert_eq!(
        stub.last("/userinfo").1["authorization"],
        "Bearer at-sesame"
    );
    // One that says no more does not keep anybody from signing in.
    stub.change(|inner| inner.manners.insert("/userinfo", Manner::Status(403)));
    assert_eq!(place.walk(&mut browser, "acme").await, place.url(""));
    assert_eq!(place.user(&mut browser).await.get("email"), None);
}

#[tokio::test]
async fn an_address_that_nobody_has_checked_is_nobodys() {
    let stub = Stub::start().await;
    stub.change(|inner| inner.claims = json!({"email_verified": false}));
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
    place.walk(&mut browser, "acme").await;
    assert_eq!(place.user(&mut browser).await.get("email"), None);
    let sign = json!({"action": "sign", "params": {"words": "Hi"}});
    place.call(&mut browser, &sign).await.expect(200);
    let rows = place
        .call(&mut browser, &json!({"action": "mine"}))
        .await
        .json();
    assert_eq!(rows["rows"][0]["email"], Value::Null);
}

#[tokio::test]
async fn issuers_are_not_mixed_up() {
    let (good, evil) = (Stub::start().await, Stub::start().await);
    evil.change(|inner| {
        inner.discovery = json!({"authorization_response_iss_parameter_supported": true});
    });
    let place = Place::with_issuers(&[("good", &good), ("evil", &evil)]).await;
    let mut browser = place.browser();
    // An answer that names another issuer than the one that was asked.
    for (provider, iss) in [("good", evil.address()), ("evil", good.address())] {
        let asked = place
            .begin(&mut browser, &format!("?provider={provider}"))
            .await;
        let iss = iss.replace(':', "%3A").replace('/', "%2F");
        let query = format!("code={}&state={}&iss={iss}", asked["nonce"], asked["state"]);
        let found = place.come_back(&mut browser, provider, &query).await;
        assert_eq!(found, place.failed("provider_error"));
    }
    // A sign-in with one that comes back to the other's address.
    let asked = place.begin(&mut browser, "?provider=good").await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let found = place.come_back(&mut browser, "evil", &query).await;
    assert_eq!(found, place.failed("state_invalid"));
    // Neither was sent the code of the other.
    assert_eq!((good.count("/token"), evil.count("/token")), (0, 0));
    // A token of one is none of the other's.
    good.change(|inner| {
        inner.key = SigningKey::generate("first").unwrap();
    });
    assert_eq!(
        place.ticket(&mut browser, "good").await,
        place.failed("token_invalid")
    );
}

#[tokio::test]
async fn what_an_issuer_says_instead_of_a_code_is_told() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
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
        let asked = place.begin(&mut browser, "").await;
        let query = format!("{error}&state={}", asked["state"]);
        let found = place.come_back(&mut browser, "acme", &query).await;
        assert_eq!(found, place.failed(code), "{error}");
    }
}

#[tokio::test]
async fn a_dead_issuer_costs_a_sign_in_and_nothing_else() {
    let stub = Stub::start().await;
    let mut dead = provider("dead", &stub);
    dead.issuer = "http://127.0.0.1:1".to_owned();
    let alive = provider("alive", &stub);
    let place = Place::with(|settings| settings.providers = vec![dead, alive]).await;
    let mut browser = place.browser();
    let url = place.url("/auth/login?provider=dead&return_to=/room?x=1");
    let answer = browser.get(&url).await.expect(302);
    let expected = format!("{}?x=1&auth_error=provider_unavailable", place.url(""));
    assert_eq!(location(&url, &answer), expected);
    assert_eq!(place.walk(&mut browser, "alive").await, place.url(""));
}
