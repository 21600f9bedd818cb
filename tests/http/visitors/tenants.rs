//! An issuer that stands for many tenants, as Microsoft's does: each tenant's tokens count as its own, and none as another's.

use serde_json::{Value, json};
use svc::issuers::SigningKey;

use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::StubIssuer;
use crate::owner::text;

const ONE: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";
const OTHER: &str = "72f988bf-86f1-41af-91ab-2d7cd011db47";
/// Where it describes all of its tenants.
const COMMON: &str = "/common/v2.0/.well-known/openid-configuration";

/// The issuer with a template in its discovery document, and a place that signs in with it.
async fn start_guest_book() -> (StubIssuer, GuestBook) {
    let stub = StubIssuer::start().await;
    stub.change(|inner| {
        let issuer = format!("{}/{{tenantid}}/v2.0", inner.address);
        inner.discovery = json!({ "issuer": issuer });
    });
    let mut microsoft = provider_settings("microsoft", &stub);
    microsoft.issuer = format!("{}/common/v2.0", stub.address());
    let guest_book =
        GuestBook::with_settings(|settings| settings.providers = vec![microsoft]).await;
    (stub, guest_book)
}

/// The name of a tenant's issuer.
fn issuer_of_tenant(stub: &StubIssuer, tenant: &str) -> String {
    format!("{}/{tenant}/v2.0", stub.address())
}

/// Has tokens name the issuer of one tenant, and another tenant.
fn name_tenants(stub: &StubIssuer, tenant: &str, tid: &Value) {
    let iss = issuer_of_tenant(stub, tenant);
    stub.change(|inner| inner.claims = json!({ "iss": iss, "tid": tid }));
}

/// Signs in with an answer that names an issuer, if it does; returns where that leads in the end.
async fn sign_in(
    guest_book: &GuestBook,
    iss: Option<&str>,
) -> (svc_tests::browser::Browser, String) {
    let mut browser = guest_book.browser();
    let asked = guest_book.begin_sign_in(&mut browser, "").await;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("code", &asked["nonce"])
        .append_pair("state", &asked["state"]);
    if let Some(iss) = iss {
        query.append_pair("iss", iss);
    }
    let mut at = guest_book
        .return_from_issuer(&mut browser, "microsoft", &query.finish())
        .await;
    if at.contains("ticket=") {
        let answer = browser.get(&at).await.expect(302);
        at = svc_tests::browser::location(&at, &answer);
    }
    (browser, at)
}

#[tokio::test]
async fn a_token_counts_for_its_own_tenant() {
    let (stub, guest_book) = start_guest_book().await;
    let mut ids = Vec::new();
    for tenant in [ONE, OTHER, ONE] {
        name_tenants(&stub, tenant, &json!(tenant));
        for iss in [None, Some(issuer_of_tenant(&stub, tenant))] {
            let (mut browser, at) = sign_in(&guest_book, iss.as_deref()).await;
            assert_eq!(at, guest_book.url(""), "{tenant} {iss:?}");
            let user = guest_book.user(&mut browser).await;
            assert_eq!(user["provider"], "microsoft");
            ids.push(text(&user["id"]));
        }
    }
    assert_eq!(ids[..2], ids[4..]);
    // Equal subjects of two tenants are two visitors.
    assert_eq!(ids[2], ids[3]);
    assert_ne!(ids[0], ids[2]);
    // All tenants are described once, and have one set of keys.
    assert_eq!(
        (stub.request_count(COMMON), stub.request_count("/keys")),
        (1, 1)
    );
}

#[tokio::test]
async fn what_mixes_tenants_is_refused() {
    let (stub, guest_book) = start_guest_book().await;
    let own = issuer_of_tenant(&stub, ONE);
    for (iss, tid, named) in [
        (ONE, json!(OTHER), None),
        (OTHER, json!(ONE), None),
        (ONE, Value::Null, None),
        (ONE, json!(""), None),
        (ONE, json!(7), None),
        ("{tenantid}", json!("{tenantid}"), None),
        ("{tenantid}", json!(ONE), None),
        ("common", json!(ONE), None),
        ("a/b", json!("a/b"), None),
        ("..", json!(".."), None),
        // A token of one tenant in the answer of another.
        (OTHER, json!(OTHER), Some(own.clone())),
    ] {
        name_tenants(&stub, iss, &tid);
        let (mut browser, at) = sign_in(&guest_book, named.as_deref()).await;
        assert_eq!(at, guest_book.failure_url("token_invalid"), "{iss} {tid}");
        assert_eq!(
            guest_book.user(&mut browser).await,
            Value::Null,
            "{iss} {tid}"
        );
    }
    // An answer that names no tenant of this issuer is none of its.
    name_tenants(&stub, ONE, &json!(ONE));
    let calls = stub.request_count("/token");
    for iss in [
        "https://login.example/v2.0",
        &issuer_of_tenant(&stub, "a/b"),
        &issuer_of_tenant(&stub, "{tenantid}"),
        &stub.address(),
    ] {
        let (_, at) = sign_in(&guest_book, Some(iss)).await;
        assert_eq!(at, guest_book.failure_url("provider_error"), "{iss}");
    }
    assert_eq!(
        stub.request_count("/token"),
        calls,
        "its code was not sent on"
    );
}

#[tokio::test]
async fn a_key_of_one_tenant_signs_for_no_other() {
    let (stub, guest_book) = start_guest_book().await;
    name_tenants(&stub, ONE, &json!(ONE));
    for (number, (signs_for, good)) in [
        (issuer_of_tenant(&stub, ONE), true),
        (issuer_of_tenant(&stub, "{tenantid}"), true),
        (issuer_of_tenant(&stub, OTHER), false),
    ]
    .into_iter()
    .enumerate()
    {
        // Each time another key, which is asked for once a minute has passed.
        guest_book.fixture.server.advance(61);
        stub.change(|inner| {
            inner.now += 61;
            inner.key = SigningKey::generate(&signs_for).unwrap();
            let mut shown = inner.key.public_jwk();
            shown["issuer"] = json!(signs_for);
            inner.published_keys = vec![shown];
        });
        let (_, at) = sign_in(&guest_book, None).await;
        let expected = match good {
            true => guest_book.url(""),
            false => guest_book.failure_url("token_invalid"),
        };
        assert_eq!(at, expected, "{signs_for}");
        assert_eq!(stub.request_count("/keys"), number + 1);
    }
}
