//! The lies of an issuer, each with the code that refuses it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use svc::issuers::SigningKey;

use super::super::stub_issuer::{IssuerBehaviour, IssuerState};
use super::DISCOVERY;

/// Change of an issuer's behaviour.
pub(in crate::visitors) type IssuerChange = fn(&mut IssuerState);

fn base64_of_json(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token without a signature.
fn unsigned_token(_: &IssuerState, claims: &Value) -> String {
    format!(
        "{}.{}.",
        base64_of_json(&json!({"alg": "none"})),
        base64_of_json(claims)
    )
}

/// A token that takes the public key for a shared secret.
fn token_signed_with_public_key(inner: &IssuerState, claims: &Value) -> String {
    let head = format!(
        "{}.{}",
        base64_of_json(&json!({"alg": "HS256", "kid": "first"})),
        base64_of_json(claims)
    );
    let key = hmac::Key::new(
        hmac::HMAC_SHA256,
        inner.published_keys[0].to_string().as_bytes(),
    );
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, head.as_bytes()));
    format!("{head}.{tag}")
}

/// Signs a token with a forged key of the same name.
fn token_of_forged_key(_: &IssuerState, claims: &Value) -> String {
    SigningKey::generate("first").unwrap().sign(claims).unwrap()
}

/// A token of a key that nobody has shown.
fn token_of_unknown_key(_: &IssuerState, claims: &Value) -> String {
    SigningKey::generate("second")
        .unwrap()
        .sign(claims)
        .unwrap()
}

/// A token whose claims were changed after it was signed.
fn token_with_changed_claims(inner: &IssuerState, claims: &Value) -> String {
    let token = inner.key.sign(claims).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let mut claims = claims.clone();
    claims["sub"] = json!("s-2");
    format!("{}.{}.{}", parts[0], base64_of_json(&claims), parts[2])
}

/// Every lie with what the page is told.
pub(in crate::visitors) const DISHONEST_ANSWERS: [(&str, IssuerChange, &str); 42] = [
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
    (
        "alg none",
        |i| i.token = Some(unsigned_token),
        "token_invalid",
    ),
    (
        "HS256",
        |i| i.token = Some(token_signed_with_public_key),
        "token_invalid",
    ),
    (
        "forged",
        |i| i.token = Some(token_of_forged_key),
        "token_invalid",
    ),
    (
        "unknown key",
        |i| i.token = Some(token_of_unknown_key),
        "token_invalid",
    ),
    (
        "changed",
        |i| i.token = Some(token_with_changed_claims),
        "token_invalid",
    ),
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
            i.behaviours.insert("/token", IssuerBehaviour::Status(400));
        },
        "provider_error",
    ),
    (
        "token 500",
        |i| {
            i.behaviours.insert("/token", IssuerBehaviour::Status(500));
        },
        "provider_error",
    ),
    (
        "token text",
        |i| {
            i.behaviours
                .insert("/token", IssuerBehaviour::Text("hello".into()));
        },
        "provider_error",
    ),
    (
        "token without ID",
        |i| {
            i.behaviours.insert(
                "/token",
                IssuerBehaviour::Text("{\"access_token\":\"x\"}".into()),
            );
        },
        "provider_error",
    ),
    (
        "token elsewhere",
        |i| {
            i.behaviours.insert(
                "/token",
                IssuerBehaviour::Redirect(format!("{}/authorize", i.address)),
            );
        },
        "provider_error",
    ),
    (
        "token endless",
        |i| {
            i.behaviours.insert("/token", IssuerBehaviour::Endless);
        },
        "provider_error",
    ),
    (
        "token silent",
        |i| {
            i.behaviours.insert("/token", IssuerBehaviour::Silent);
        },
        "provider_unavailable",
    ),
    (
        "token dripping",
        |i| {
            i.behaviours.insert("/token", IssuerBehaviour::Dripping);
        },
        "provider_unavailable",
    ),
    (
        "keys silent",
        |i| {
            i.behaviours.insert("/keys", IssuerBehaviour::Silent);
        },
        "provider_unavailable",
    ),
    (
        "keys dripping",
        |i| {
            i.behaviours.insert("/keys", IssuerBehaviour::Dripping);
        },
        "provider_unavailable",
    ),
    (
        "keys 500",
        |i| {
            i.behaviours.insert("/keys", IssuerBehaviour::Status(500));
        },
        "provider_error",
    ),
    (
        "keys text",
        |i| {
            i.behaviours
                .insert("/keys", IssuerBehaviour::Text("[]".into()));
        },
        "provider_error",
    ),
    (
        "keys endless",
        |i| {
            i.behaviours.insert("/keys", IssuerBehaviour::Endless);
        },
        "provider_error",
    ),
    (
        "keys elsewhere",
        |i| {
            i.behaviours.insert(
                "/keys",
                IssuerBehaviour::Redirect(format!("{}/other", i.address)),
            );
        },
        "provider_error",
    ),
    (
        "discovery 404",
        |i| {
            i.behaviours.insert(DISCOVERY, IssuerBehaviour::Status(404));
        },
        "provider_error",
    ),
    (
        "discovery text",
        |i| {
            i.behaviours
                .insert(DISCOVERY, IssuerBehaviour::Text("<html>".into()));
        },
        "provider_error",
    ),
    (
        "discovery endless",
        |i| {
            i.behaviours.insert(DISCOVERY, IssuerBehaviour::Endless);
        },
        "provider_error",
    ),
    (
        "discovery elsewhere",
        |i| {
            i.behaviours.insert(
                DISCOVERY,
                IssuerBehaviour::Redirect(format!("{}/other", i.address)),
            );
        },
        "provider_error",
    ),
    (
        "discovery silent",
        |i| {
            i.behaviours.insert(DISCOVERY, IssuerBehaviour::Silent);
        },
        "provider_unavailable",
    ),
    (
        "discovery dripping",
        |i| {
            i.behaviours.insert(DISCOVERY, IssuerBehaviour::Dripping);
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
