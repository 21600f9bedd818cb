//! Tests of tokens: each lie that a token can tell, with keys made here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::*;
use svc_base::clock::Timestamp;

const NOW: i64 = 1_795_262_400;
const ISSUER: &str = "https://a.example";

fn metadata(asked: &str, issuer: &str) -> IssuerMetadata {
    let document = json!({"issuer": issuer, "jwks_uri": "https://a.example/keys"});
    let address = IssuerAddress::parse(asked).unwrap();
    IssuerMetadata::parse(&address, document.to_string().as_bytes()).unwrap()
}

fn keys(keys: &Value) -> IssuerKeySet {
    IssuerKeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "s-1", "aud": "me", "exp": NOW + 300, "iat": NOW, "nonce": "n",
        "email": "ada@example.com", "email_verified": true, "name": "Ada",
    })
}

/// Makes the claims with some changed, or without those that are null.
fn with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let claims = claims.as_object_mut().unwrap();
    claims.retain(|_, value| !value.is_null());
    Value::Object(claims.clone())
}

fn id(
    token: &str,
    metadata: &IssuerMetadata,
    keys: &IssuerKeySet,
) -> Result<IdTokenClaims, TokenError> {
    UnverifiedToken::parse(token)?.verify_id(metadata, keys, "me", "n", Timestamp(NOW * 1000))
}

#[test]
fn a_token_is_taken_only_if_everything_about_it_holds() {
    let key = SigningKey::generate("k").unwrap();
    let (keys, metadata) = (keys(&json!([key.public_jwk()])), metadata(ISSUER, ISSUER));
    let missing = TokenError::Missing;
    for (changes, expected) in [
        (json!({}), Ok(())),
        (json!({"aud": ["me"]}), Ok(())),
        (json!({"aud": ["me", "you"], "azp": "me"}), Ok(())),
        (json!({"azp": "me"}), Ok(())),
        (json!({"exp": NOW - 59}), Ok(())),
        (json!({"iat": NOW + 60, "nbf": NOW + 60}), Ok(())),
        (json!({"exp": 1_795_262_700.5}), Ok(())),
        (json!({"iss": "https://b.example"}), Err(TokenError::Issuer)),
        (
            json!({"iss": "https://a.example/"}),
            Err(TokenError::Issuer),
        ),
        (json!({"iss": null}), Err(TokenError::Issuer)),
        (json!({"iss": [ISSUER]}), Err(TokenError::Malformed)),
        (json!({"aud": "you"}), Err(TokenError::Audience)),
        (json!({"aud": ["you"]}), Err(TokenError::Audience)),
        (json!({"aud": []}), Err(TokenError::Audience)),
        (json!({"aud": null}), Err(TokenError::Audience)),
        (
            json!({"aud": ["me", "you"]}),
            Err(TokenError::AuthorizedParty),
        ),
        (
            json!({"aud": ["me", "you"], "azp": "you"}),
            Err(TokenError::AuthorizedParty),
        ),
        (json!({"azp": "you"}), Err(TokenError::AuthorizedParty)),
        (json!({"exp": NOW - 60}), Err(TokenError::Expired)),
        (json!({"exp": -1e300}), Err(TokenError::Expired)),
        (json!({"exp": null}), Err(missing("exp"))),
        (json!({"exp": "soon"}), Err(TokenError::Malformed)),
        (json!({"nbf": NOW + 61}), Err(TokenError::NotYet)),
        (json!({"iat": NOW + 61}), Err(TokenError::NotYet)),
        (json!({"iat": null}), Err(missing("iat"))),
        (json!({"nonce": "m"}), Err(TokenError::Nonce)),
        (json!({"nonce": null}), Err(TokenError::Nonce)),
        (json!({"sub": null}), Err(missing("sub"))),
        (json!({"sub": ""}), Err(missing("sub"))),
        (json!({"sub": "s".repeat(256)}), Err(missing("sub"))),
        (json!({"sub": 7}), Err(TokenError::Malformed)),
    ] {
        let token = key.sign(&with(&changes)).unwrap();
        let found = id(&token, &metadata, &keys).map(|_| ());
        assert_eq!(found, expected, "{changes}");
    }
}

#[test]
fn a_signature_is_the_issuers_or_nothing() {
    let (key, other) = (
        SigningKey::generate("k").unwrap(),
        SigningKey::generate("k").unwrap(),
    );
    let stranger = SigningKey::generate("stranger").unwrap();
    let (keys, metadata) = (keys(&json!([key.public_jwk()])), metadata(ISSUER, ISSUER));
    let good = key.sign(&claims()).unwrap();
    let refused = |token: &str| id(token, &metadata, &keys).unwrap_err();
    assert_eq!(
        refused(&other.sign(&claims()).unwrap()),
        TokenError::Signature
    );
    assert_eq!(
        refused(&stranger.sign(&claims()).unwrap()),
        TokenError::UnknownKey
    );
    let (head, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = head.split_once('.').unwrap();
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let changed = encode(&with(&json!({"sub": "s-2"})));
    assert_eq!(
        refused(&format!("{header}.{changed}.{signature}")),
        TokenError::Signature
    );
    for algorithm in [
        "none", "None", "HS256", "HS512", "RS256", "ES384", "ES256K", "EdDSA",
    ] {
        let header = encode(&json!({"alg": algorithm, "kid": "k"}));
        let unsigned = refused(&format!("{header}.{payload}."));
        let signed = refused(&format!("{header}.{payload}.{signature}"));
        for refusal in [unsigned, signed] {
            let expected = [TokenError::Algorithm, TokenError::UnknownKey];
            assert!(expected.contains(&refusal), "{algorithm}: {refusal:?}");
        }
    }
    // The public key as if it were a shared secret.
    let header = encode(&json!({"alg": "HS256", "kid": "k"}));
    let message = format!("{header}.{payload}");
    let secret = hmac::Key::new(hmac::HMAC_SHA256, key.public_jwk().to_string().as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, message.as_bytes()));
    assert_eq!(refused(&format!("{message}.{tag}")), TokenError::Algorithm);
    // A key in the token itself says nothing.
    let header = encode(&json!({"alg": "ES256", "kid": "own", "jwk": stranger.public_jwk()}));
    assert_eq!(
        refused(&format!("{header}.{payload}.{signature}")),
        TokenError::UnknownKey
    );
    let header = encode(&json!({"alg": "ES256", "kid": "k", "crit": ["exp"]}));
    assert_eq!(
        refused(&format!("{header}.{payload}.{signature}")),
        TokenError::Malformed
    );
    for text in [
        "",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        &format!("{good}.e"),
        "\u{e9}.\u{e9}.\u{e9}",
    ] {
        assert_eq!(refused(text), TokenError::Malformed, "{text}");
    }
}

#[test]
fn a_profile_is_what_the_issuer_asserted_and_nothing_else() {
    let key = SigningKey::generate("k").unwrap();
    let (keys, metadata) = (keys(&json!([key.public_jwk()])), metadata(ISSUER, ISSUER));
    for (changes, verified) in [
        (json!({}), true),
        (json!({"email_verified": "true"}), true),
        (json!({"email_verified": false}), false),
        (json!({"email_verified": "yes"}), false),
        (json!({"email_verified": 1}), false),
        (json!({"email_verified": null}), false),
    ] {
        let token = key.sign(&with(&changes)).unwrap();
        let found = id(&token, &metadata, &keys).unwrap();
        assert_eq!(found.email_verified, verified, "{changes}");
        assert_eq!(found.email.as_deref(), Some("ada@example.com"));
    }
    let odd = with(&json!({"email": 7, "name": ["a"], "picture": {}, "locale": ""}));
    let found = id(&key.sign(&odd).unwrap(), &metadata, &keys).unwrap();
    assert_eq!(
        (found.email, found.name, found.picture, found.locale),
        (None, None, None, None)
    );
}

#[test]
fn a_tenant_signs_for_itself_alone() {
    let key = SigningKey::generate("k").unwrap();
    let template = "https://m.example/{tenantid}/v2.0";
    let metadata = metadata("https://m.example/common/v2.0", template);
    let tenant = with(&json!({"iss": "https://m.example/t-1/v2.0", "tid": "t-1"}));
    let token = key.sign(&tenant).unwrap();
    for (issuer, taken) in [
        (None, true),
        (Some(template), true),
        (Some("https://m.example/t-1/v2.0"), true),
        (Some("https://m.example/t-2/v2.0"), false),
    ] {
        let mut public = key.public_jwk();
        if let Some(issuer) = issuer {
            public["issuer"] = json!(issuer);
        }
        let found = id(&token, &metadata, &keys(&json!([public])));
        assert_eq!(found.is_ok(), taken, "{issuer:?}: {found:?}");
    }
    let keys = keys(&json!([key.public_jwk()]));
    for lie in [
        json!({"iss": "https://m.example/t-1/v2.0", "tid": "t-2"}),
        json!({"iss": "https://m.example/t-1/v2.0"}),
        json!({"iss": template, "tid": "{tenantid}"}),
        json!({"iss": "https://m.example/a/../b/v2.0", "tid": "a/../b"}),
    ] {
        let found = id(&key.sign(&with(&lie)).unwrap(), &metadata, &keys);
        assert_eq!(found.unwrap_err(), TokenError::Issuer, "{lie}");
    }
}

#[test]
fn an_access_token_says_for_whom_it_stands() {
    let key = SigningKey::generate("k").unwrap();
    let (keys, metadata) = (keys(&json!([key.public_jwk()])), metadata(ISSUER, ISSUER));
    let access = |changes: &Value| {
        let token = key.sign(&with(changes)).unwrap();
        let token = UnverifiedToken::parse(&token)?;
        token.verify_access(&metadata, &keys, "me", Timestamp(NOW * 1000))
    };
    let found =
        access(&json!({"nonce": null, "aud": ["you", "me"], "azp": "program", "scope": "a b"}));
    let found = found.unwrap();
    assert_eq!(
        (found.issuer.as_str(), found.subject.as_str()),
        (ISSUER, "s-1")
    );
    assert_eq!(found.email.as_deref(), Some("ada@example.com"));
    assert_eq!(found.client_id.as_deref(), Some("program"));
    assert_eq!(found.scope.as_deref(), Some("a b"));
    let found = access(&json!({"email_verified": false})).unwrap();
    assert_eq!(found.email, None);
    assert_eq!(access(&json!({"aud": "you"})), Err(TokenError::Audience));
    assert_eq!(access(&json!({"exp": NOW - 60})), Err(TokenError::Expired));
}
