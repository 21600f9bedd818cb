//! Access tokens: whose are taken, which are not, and what an issuer does that does not answer.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, TokenIssuer};

use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::{Owner, text};

/// Base64 of URLs, without padding.
fn base64url(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = text.as_bytes().chunks(3).flat_map(|chunk| {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        let digit = move |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
        (0..=chunk.len()).map(digit)
    });
    digits.collect()
}

#[tokio::test]
async fn the_metadata_names_the_issuer() {
    let fixture = MembersFixture::with_settings(TestServer::builder(), |oauth| {
        oauth.scopes = vec!["svc".into()];
    })
    .await;
    let base = format!("http://localhost:{}", fixture.server.address().port());
    for (path, resource) in [("", base.clone()), ("/mcp", format!("{base}/mcp"))] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let answer = fixture.server.get(&path).answer().await.expect(200);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            answer.json(),
            json!({
                "resource": resource, "authorization_servers": [fixture.issuer.url()], "scopes_supported": ["svc"],
                "bearer_methods_supported": ["header"], "resource_name": "svc",
            })
        );
    }
    let without = TestServer::start().await;
    let answer = without
        .get("/.well-known/oauth-protected-resource")
        .answer()
        .await;
    assert_eq!(
        answer.expect(200).json()["authorization_servers"],
        json!([])
    );
}

#[tokio::test]
async fn a_token_is_a_user_from_the_first_sight_on() {
    let fixture = MembersFixture::new().await;
    let first = fixture.user("alice").await;
    assert!(first.id.starts_with("usr_"), "{}", first.id);
    let me = first.get(&fixture, "/api/v1/me").await.json();
    let expected = json!({
        "kind": "user", "user_id": first.id, "email": "alice@example.org", "memberships": [],
    });
    assert_eq!(me, expected);
    let projects = first
        .get(&fixture, "/api/v1/projects")
        .await
        .expect(200)
        .json();
    assert_eq!(projects, json!({ "projects": [] }));
    let refused = first
        .owner
        .post(&fixture.server, "", &json!({ "name": "x" }))
        .await;
    refused.problem(403, "forbidden");
    assert_eq!(fixture.user("alice").await.id, first.id);
    assert_ne!(fixture.user("bob").await.id, first.id);
    // An address that nobody has verified is nobody's.
    let mut claims = fixture.issuer.claims("carol");
    claims["email_verified"] = false.into();
    let carol = Owner::with_credential(&fixture.issuer.sign(&claims));
    let me = carol
        .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
        .await;
    assert_eq!(me.expect(200).json().get("email"), None);
    // Audiences come alone or with others; a scope is not asked for.
    claims["aud"] = json!(["https://other.example", svc_tests::AUDIENCE]);
    let several = Owner::with_credential(&fixture.issuer.sign(&claims));
    several.get(&fixture.server, "").await.expect(200);
    let fixture = MembersFixture {
        server: fixture.server.restart().await,
        issuer: fixture.issuer,
    };
    assert_eq!(fixture.user("alice").await.id, first.id);
}

#[tokio::test]
async fn tokens_that_lie_are_refused_everywhere() {
    let fixture = MembersFixture::new().await;
    fixture.user("alice").await;
    let (claims, good) = (
        fixture.issuer.claims("alice"),
        fixture.issuer.token("alice"),
    );
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        fixture.issuer.sign(&claims)
    };
    let without = |name: &str| {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().remove(name);
        fixture.issuer.sign(&claims)
    };
    let mut parts = good.split('.');
    let (header, body, signature) = (
        parts.next().unwrap(),
        parts.next().unwrap(),
        parts.next().unwrap(),
    );
    let mut other = claims.clone();
    other["sub"] = "mallory".into();
    let other = base64url(&other.to_string());
    let unsigned = base64url(&json!({ "alg": "none", "typ": "JWT" }).to_string());
    let shared = base64url(&json!({ "alg": "HS256", "kid": "first" }).to_string());
    let stranger = TokenIssuer::start().await;
    let now = claims["iat"].as_i64().unwrap();
    let lies = [
        ("another's key", stranger.sign(&claims)),
        ("another issuer", stranger.token("alice")),
        (
            "another issuer's name",
            with("iss", json!("https://evil.example")),
        ),
        (
            "another audience",
            with("aud", json!("https://other.example")),
        ),
        ("no audience", without("aud")),
        ("an empty audience", with("aud", json!([]))),
        ("past its end", with("exp", json!(now - 61))),
        ("without an end", without("exp")),
        ("an end that is no number", with("exp", json!("soon"))),
        ("before its time", with("nbf", json!(now + 61))),
        ("without a subject", without("sub")),
        ("an empty subject", with("sub", json!(""))),
        ("a subject that is no text", with("sub", json!(7))),
        ("a long subject", with("sub", json!("x".repeat(256)))),
        ("without an issuer", without("iss")),
        ("no signature", format!("{header}.{body}.")),
        ("another body", format!("{header}.{other}.{signature}")),
        ("no algorithm", format!("{unsigned}.{body}.")),
        (
            "no algorithm, signed",
            format!("{unsigned}.{body}.{signature}"),
        ),
        ("a shared secret", format!("{shared}.{body}.{signature}")),
        ("two parts", format!("{header}.{body}")),
        ("four parts", format!("{good}.{signature}")),
        ("five parts", format!("{good}.{signature}.{signature}")),
        ("dots", "..".to_owned()),
        ("a padded signature", format!("{good}==")),
        ("something behind it", format!("{good}A")),
        ("a space within", good.replacen('.', ". ", 1)),
        ("the beginning of a key", format!("svc_{good}")),
        ("two issuers", with("iss", json!([fixture.issuer.url()]))),
        (
            "an audience within a text",
            with("aud", json!(format!("{} x", svc_tests::AUDIENCE))),
        ),
        (
            "an audience of another type",
            with("aud", json!({ "a": svc_tests::AUDIENCE })),
        ),
        ("an end without an end", with("exp", json!(null))),
        ("a beginning that is no number", with("nbf", json!("now"))),
        ("issued in the future", with("iat", json!(now + 61))),
        ("nothing like a token", "nonsense".to_owned()),
    ];
    for (what, token) in &lies {
        let liar = Owner::with_credential(token);
        for path in ["/api/v1/me", "/api/v1/projects", WORKSPACES_PATH] {
            let answer = liar
                .send_request(&fixture.server, Method::GET, path, None)
                .await;
            assert_eq!(answer.status, 401, "{what}");
            answer.problem(401, "unauthorized");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, Some("Bearer error=\"invalid_token\""), "{what}");
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let tools = fixture.server.json("/mcp", &body).bearer_auth(token);
        let answer = tools
            .header("mcp-protocol-version", "2025-11-25")
            .answer()
            .await;
        answer.problem(401, "unauthorized");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer error=\"invalid_token\", resource_metadata="));
    }
    // The clocks may be a minute apart.
    for (name, value) in [("exp", now - 59), ("nbf", now + 59)] {
        let near = Owner::with_credential(&with(name, json!(value)));
        near.get(&fixture.server, "").await.expect(200);
    }
    let me = fixture.user("alice").await;
    me.get(&fixture, "/api/v1/me").await.expect(200);
}

#[tokio::test]
async fn a_token_that_was_taken_is_refused_from_its_end_on() {
    let fixture = MembersFixture::new().await;
    let mut claims = fixture.issuer.claims("alice");
    claims["exp"] = (claims["iat"].as_i64().unwrap() + 30).into();
    let alice = Owner::with_credential(&fixture.issuer.sign(&claims));
    for (seconds, status) in [(0, 200), (50, 200), (39, 200), (1, 401), (60, 401)] {
        fixture.server.advance(seconds);
        let answer = alice.get(&fixture.server, "").await;
        assert_eq!(answer.status, status, "{seconds} seconds later");
    }
}

#[tokio::test]
async fn a_scope_is_asked_for_where_the_operator_does() {
    let fixture = MembersFixture::with_settings(TestServer::builder(), |oauth| {
        oauth.scopes = vec!["svc".into()];
    })
    .await;
    for (scope, taken) in [
        (None, false),
        (Some(""), false),
        (Some("openid svcx"), false),
        (Some("svc"), true),
        (Some("openid svc"), true),
    ] {
        let mut claims = fixture.issuer.claims("alice");
        if let Some(scope) = scope {
            claims["scope"] = scope.into();
        }
        let owner = Owner::with_credential(&fixture.issuer.sign(&claims));
        let answer = owner
            .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
            .await;
        if taken {
            answer.expect(200);
            continue;
        }
        answer.problem(403, "forbidden");
        let challenge = answer.header("www-authenticate");
        assert_eq!(
            challenge,
            Some("Bearer error=\"insufficient_scope\", scope=\"svc\"")
        );
    }
}

#[tokio::test]
async fn an_issuer_that_is_down_harms_nobody_whom_it_has_told_of() {
    let mut fixture = MembersFixture::new().await;
    let key = Owner::new(&fixture.server, "machines").await;
    fixture.issuer.set_down(true);
    // Nothing is known of it: no token can be told from another.
    let early = Owner::with_credential(&fixture.issuer.token("alice"));
    let answer = early.get(&fixture.server, "").await;
    answer.problem(503, "provider_unavailable");
    assert_eq!(answer.header("retry-after"), Some("60"));
    key.get(&fixture.server, "").await.expect(200);
    fixture.issuer.set_down(false);
    fixture.server.advance(61);
    let alice = fixture.user("alice").await;
    let known = alice.owner.clone();
    fixture.issuer.set_down(true);
    known.get(&fixture.server, "").await.expect(200);
    key.get(&fixture.server, "").await.expect(200);
    let page = fixture
        .server
        .publish_slug(&json!({ "content": "here" }))
        .await;
    fixture
        .server
        .get(&format!("/{page}"))
        .answer()
        .await
        .expect(200);
    // A key that it tells nobody of cannot be known to be its.
    fixture.issuer.rotate("second");
    let answer = Owner::with_credential(&fixture.issuer.token("alice"))
        .get(&fixture.server, "")
        .await;
    assert!(matches!(answer.status, 401 | 503), "{}", answer.status);
    fixture.issuer.set_down(false);
    fixture.server.advance(61);
    assert_eq!(fixture.user("alice").await.id, alice.id);
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_asked_for_once_a_minute() {
    let fixture = MembersFixture::new().await;
    fixture.user("alice").await;
    let before = fixture.issuer.key_request_count();
    let stranger = TokenIssuer::start().await;
    let mut forged = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let mut other = TokenIssuer::start().await;
        other.rotate(name);
        forged.push(other.sign(&fixture.issuer.claims("alice")));
    }
    forged.push(stranger.sign(&fixture.issuer.claims("alice")));
    for token in forged.iter().chain(&forged) {
        Owner::with_credential(token)
            .get(&fixture.server, "")
            .await
            .problem(401, "unauthorized");
    }
    assert!(
        fixture.issuer.key_request_count() <= before + 1,
        "{} calls",
        fixture.issuer.key_request_count()
    );
}

#[tokio::test]
async fn tools_begin_a_sign_in_where_there_is_an_issuer() {
    let fixture = MembersFixture::new().await;
    let base = format!("http://localhost:{}", fixture.server.address().port());
    let metadata = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
    let call = async |method: &str, params: Value, token: Option<&str>| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = fixture.server.json("/mcp", &body);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        match token {
            Some(token) => request.bearer_auth(token).answer().await,
            None => request.answer().await,
        }
    };
    let list = json!({ "name": "manage_project", "arguments": { "action": "list" } });
    let anonymous = call("tools/call", list.clone(), None).await;
    anonymous.problem(401, "unauthorized");
    let challenge = anonymous.header("www-authenticate");
    assert_eq!(challenge, Some(format!("Bearer {metadata}").as_str()));
    let share = json!({ "name": "deploy_asset", "arguments": { "content": "x" } });
    call("tools/call", share, None).await.expect(200);
    call("tools/list", json!({}), None).await.expect(200);
    let known = call("tools/call", list, Some(&fixture.issuer.token("alice"))).await;
    let result = known.expect(200).json();
    assert_eq!(
        result["result"]["structuredContent"],
        json!({ "projects": [] })
    );
}

#[tokio::test]
async fn a_user_has_a_bucket_whatever_token_is_sent() {
    let builder = TestServer::builder().limits(|limits| {
        limits.owner_burst = 3;
        limits.owner_per_minute = 60;
    });
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    for (jti, left) in ["2", "1", "0"].into_iter().enumerate() {
        let mut claims = fixture.issuer.claims("alice");
        claims["jti"] = jti.into();
        let owner = Owner::with_credential(&fixture.issuer.sign(&claims));
        let answer = owner.get(&fixture.server, "").await.expect(200);
        let state = format!("\"owner\";r={left};t=1");
        assert_eq!(answer.header("ratelimit"), Some(state.as_str()));
    }
    let owner = Owner::with_credential(&fixture.issuer.token("alice"));
    owner
        .get(&fixture.server, "")
        .await
        .problem(429, "rate_limited");
    let id = text(
        &Owner::with_credential(&fixture.issuer.token("bob"))
            .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
            .await
            .expect(200)
            .json()["user_id"],
    );
    assert!(id.starts_with("usr_"));
}
