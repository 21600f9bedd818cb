//! The lies of an issuer, each with the code that refuses it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use svc::issuers::SigningKey;

use super::super::stub::{Inner, Manner};
use super::DISCOVERY;

/// Change of an issuer's behaviour.
pub(in crate::visitors) type Change = fn(&mut Inner);

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token without a signature.
fn unsigned(_: &Inner, claims: &Value) -> String {
    format!("{}.{}.", encoded(&json!({"alg": "none"})), encoded(claims))
}

/// A token that takes the public key for a shared secret.
fn confused(inner: &Inner, claims: &Value) -> String {
    let head = format!(
        "{}.{}",
        encoded(&json!({"alg": "HS256", "kid": "first"})),
        encoded(claims)
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, inner.shown[0].to_string().as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, head.as_bytes()));
    format!("{head}.{tag}")
}

/// A token of somebody else's key of the same name.
fn forged(_: &Inner, claims: &Value) -> String {
    SigningKey::generate("first").unwrap().sign(claims).unwrap()
}

/// A token of a key that nobody has shown.
fn unknown(_: &Inner, claims: &Value) -> String {
    SigningKey::generate("second")
        .unwrap()
        .sign(claims)
        .unwrap()
}

/// A token whose claims were changed after it was signed.
fn changed(inner: &Inner, claims: &Value) -> String {
    let token = inner.key.sign(claims).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let mut claims = claims.clone();
    claims["sub"] = json!("s-2");
    format!("{}.{}.{}", parts[0], encoded(&claims), parts[2])
}

/// Every lie with what the page is told.
pub(in crate::visitors) const LIES: [(&str, Change, &str); 42] = [
    (
        "iss",
        |i| i.claims = json!({"iss": "https://b.example"}),
        "token_invalid",
    ),
    (
        "no iss",
        |i| i.claims = json!({"iss": null}),
        "token_invalid",
    ),
    ("aud", |i| i.claims = json!({"aud": "you"}), "token_invalid"),
    (
        "no aud",
        |i| i.claims = json!({"aud": null}),
        "token_invalid",
    ),
    (
        "many aud",
        |i| i.claims = json!({"aud": ["me", "you"]}),
        "token_invalid",
    ),
    ("azp", |i| i.claims = json!({"azp": "you"}), "token_invalid"),
    (
        "nonce",
        |i| i.claims = json!({"nonce": "another"}),
        "token_invalid",
    ),
    (
        "no nonce",
        |i| i.claims = json!({"nonce": null}),
        "token_invalid",
    ),
    (
        "expired",
        |i| i.claims = json!({"exp": i.now - 61}),
        "token_invalid",
    ),
    (
        "no exp",
        |i| i.claims = json!({"exp": null}),
        "token_invalid",
    ),
    (
        "iat",
        |i| i.claims = json!({"iat": i.now + 61}),
        "token_invalid",
    ),
    (
        "nbf",
        |i| i.claims = json!({"nbf": i.now + 61}),
        "token_invalid",
    ),
    (
        "no sub",
        |i| i.claims = json!({"sub": null}),
        "token_invalid",
    ),
    ("alg none", |i| i.token = Some(unsigned), "token_invalid"),
    ("HS256", |i| i.token = Some(confused), "token_invalid"),
    ("forged", |i| i.token = Some(forged), "token_invalid"),
    ("unknown key", |i| i.token = Some(unknown), "token_invalid"),
    ("changed", |i| i.token = Some(changed), "token_invalid"),
    (
        "no token",
        |i| i.token = Some(|_, _| String::new()),
        "token_invalid",
    ),
    (
        "somebody else's profile",
        |i| {
            i.claims = json!({"email": null});
            i.discovery = json!({"userinfo_endpoint": format!("{}/userinfo", i.address)});
            i.user = json!({"sub": "s-2", "email": "eve@example.com", "email_verified": true});
        },
        "token_invalid",
    ),
    (
        "token 400",
        |i| {
            i.manners.insert("/token", Manner::Status(400));
        },
        "provider_error",
    ),
    (
        "token 500",
        |i| {
            i.manners.insert("/token", Manner::Status(500));
        },
        "provider_error",
    ),
    (
        "token text",
        |i| {
            i.manners.insert("/token", Manner::Text("hello".into()));
        },
        "provider_error",
    ),
    (
        "token without ID",
        |i| {
            i.manners
                .insert("/token", Manner::Text("{\"access_token\":\"x\"}".into()));
        },
        "provider_error",
    ),
    (
        "token elsewhere",
        |i| {
            i.manners.insert(
                "/token",
                Manner::Elsewhere(format!("{}/authorize", i.address)),
            );
        },
        "provider_error",
    ),
    (
        "token endless",
        |i| {
            i.manners.insert("/token", Manner::Endless);
        },
        "provider_error",
    ),
    (
        "token silent",
        |i| {
            i.manners.insert("/token", Manner::Silent);
        },
        "provider_unavailable",
    ),
    (
        "token dripping",
        |i| {
            i.manners.insert("/token", Manner::Dripping);
        },
        "provider_unavailable",
    ),
    (
        "keys silent",
        |i| {
            i.manners.insert("/keys", Manner::Silent);
        },
        "provider_unavailable",
    ),
    (
        "keys dripping",
        |i| {
            i.manners.insert("/keys", Manner::Dripping);
        },
        "provider_unavailable",
    ),
    (
        "keys 500",
        |i| {
            i.manners.insert("/keys", Manner::Status(500));
        },
        "provider_error",
    ),
    (
        "keys text",
        |i| {
            i.manners.insert("/keys", Manner::Text("[]".into()));
        },
        "provider_error",
    ),
    (
        "keys endless",
        |i| {
            i.manners.insert("/keys", Manner::Endless);
        },
        "provider_error",
    ),
    (
        "keys elsewhere",
        |i| {
            i.manners
                .insert("/keys", Manner::Elsewhere(format!("{}/other", i.address)));
        },
        "provider_error",
    ),
    (
        "discovery 404",
        |i| {
            i.manners.insert(DISCOVERY, Manner::Status(404));
        },
        "provider_error",
    ),
    (
        "discovery text",
        |i| {
            i.manners.insert(DISCOVERY, Manner::Text("<html>".into()));
        },
        "provider_error",
    ),
    (
        "discovery endless",
        |i| {
            i.manners.insert(DISCOVERY, Manner::Endless);
        },
        "provider_error",
    ),
    (
        "discovery elsewhere",
        |i| {
            i.manners
                .insert(DISCOVERY, Manner::Elsewhere(format!("{}/other", i.address)));
        },
        "provider_error",
    ),
    (
        "discovery silent",
        |i| {
            i.manners.insert(DISCOVERY, Manner::Silent);
        },
        "provider_unavailable",
    ),
    (
        "discovery dripping",
        |i| {
            i.manners.insert(DISCOVERY, Manner::Dripping);
        },
        "provider_unavailable",
    ),
    (
        "discovery of another",
        |i| i.discovery = json!({"issuer": "https://b.example"}),
        "provider_error",
    ),
    (
        "names no issuer",
        |i| i.discovery = json!({"authorization_response_iss_parameter_supported": true}),
        "provider_error",
    ),
];
