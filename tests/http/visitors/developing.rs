//! The whole way with the provider inside the server, as a developer of a page walks it.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::guest_book::GuestBook;
use crate::owner::text;

const ADA: &str = "name=Ada&email=ada%40example.com";
const BOB: &str = "name=Bob&email=bob%40example.com";

#[tokio::test]
async fn a_visitor_signs_in_and_is_known_to_actions_and_signs_out() {
    let guest_book = GuestBook::with_dev_provider().await;
    let (mut ada, mut bob) = (guest_book.browser(), guest_book.browser());
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
    let mine = json!({"action": "mine"});
    let refused = guest_book.call(&mut ada, &mine).await;
    refused.problem(401, "identity_required");

    assert_eq!(
        guest_book.sign_in(&mut ada, ADA, "").await,
        guest_book.url("")
    );
    assert_eq!(
        guest_book.sign_in(&mut bob, BOB, "?provider=dev").await,
        guest_book.url("")
    );
    let user = guest_book.user(&mut ada).await;
    let id = text(&user["id"]);
    assert!(id.starts_with("usr_") && id.len() == 26, "{id}");
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(user["name"], "Ada");
    assert_eq!(user["provider"], "dev");
    assert_eq!(user["expires_at"], "2026-12-20T12:00:00.000Z");
    assert_eq!(user.get("locale"), None);
    let others = guest_book.user(&mut bob).await;
    assert_ne!(others["id"], user["id"]);

    for (browser, words) in [(&mut ada, "Hello"), (&mut bob, "Servus")] {
        let sign = json!({"action": "sign", "params": {"words": words}});
        guest_book.call(browser, &sign).await.expect(200);
    }
    let rows = guest_book.call(&mut ada, &mine).await.expect(200).json()["rows"].clone();
    assert_eq!(
        rows,
        json!([{"words": "Hello", "user_id": id, "email": "ada@example.com"}])
    );
    // A batch knows who calls, too.
    let batch = json!({"ops": [
        {"action": "sign", "params": {"words": "again"}},
        {"action": "mine"},
    ]});
    let results = guest_book.call(&mut ada, &batch).await.expect(200).json();
    assert_eq!(results["results"][1]["rows"].as_array().unwrap().len(), 2);
    let forged = json!({"action": "mine", "params": {"svc_user_id": id}});
    let refused = guest_book.call(&mut bob, &forged).await;
    refused.problem(400, "reserved_param");

    let own = HeaderMap::from_iter([(
        "origin".parse().unwrap(),
        guest_book.origin.parse().unwrap(),
    )]);
    let logout = guest_book.url("/auth/logout");
    let out = ada
        .send_request(Method::POST, &logout, own.clone(), None)
        .await;
    assert_eq!(out.expect(204).text(), "");
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
    assert_eq!(guest_book.user(&mut bob).await, others);
    // Who comes again is who they were.
    guest_book.sign_in(&mut ada, ADA, "").await;
    assert_eq!(guest_book.user(&mut ada).await["id"], user["id"]);
}

#[tokio::test]
async fn a_session_has_the_attributes_of_its_cookie_and_is_one_frontends() {
    let guest_book = GuestBook::with_dev_provider().await;
    guest_book.fixture.publish("sibling").await;
    let mut ada = guest_book.browser();
    guest_book.sign_in(&mut ada, ADA, "").await;
    let page = format!("/{}/frontends/room", guest_book.fixture.project);
    let page = guest_book
        .fixture
        .owner
        .get(&guest_book.fixture.server, &page)
        .await;
    let name = format!("svc_session_{}", text(&page.json()["id"]));
    let held = ada
        .cookies
        .iter()
        .find(|one| one.name == name)
        .unwrap()
        .clone();
    assert_eq!(held.path, "/room");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/room", "Max-Age=2592000"] {
        assert!(
            held.line.split("; ").any(|one| one == attribute),
            "{}",
            held.line
        );
    }
    for attribute in ["Secure", "Domain"] {
        assert!(!held.line.contains(attribute), "{}", held.line);
    }
    let status = format!("{}/sibling/auth/status", guest_book.origin);
    let cookie = ada.cookie(&guest_book.url("/auth/status")).unwrap();
    // Not even a browser that sends the cookie there is signed in on a sibling.
    let headers = HeaderMap::from_iter([("cookie".parse().unwrap(), cookie.parse().unwrap())]);
    let answer = ada
        .send_request(Method::GET, &status, headers.clone(), None)
        .await;
    assert_eq!(answer.json()["user"], Value::Null);
    // Nor on the sites host, where the page is a stranger.
    let status = format!("{}/room/auth/status", guest_book.sites);
    let answer = ada.send_request(Method::GET, &status, headers, None).await;
    assert_eq!(answer.json()["user"], Value::Null);
    // Only its digest is stored.
    let token = held.value.clone();
    let database = std::fs::read(guest_book.fixture.server.data().join("control.db")).unwrap();
    let log = std::fs::read(guest_book.fixture.server.data().join("control.db-wal")).unwrap();
    for bytes in [database, log] {
        assert!(
            !bytes
                .windows(token.len())
                .any(|part| part == token.as_bytes())
        );
    }
}

#[tokio::test]
async fn a_visitor_who_says_no_comes_back_with_the_reason() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    let at = guest_book
        .sign_in(&mut ada, "cancel=1", "?return_to=/room?a=b%23c")
        .await;
    assert_eq!(
        at,
        format!("{}?a=b&auth_error=access_denied#c", guest_book.url(""))
    );
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
}

#[tokio::test]
async fn without_dev_there_is_no_such_provider() {
    let guest_book = GuestBook::with_settings(|_| {}).await;
    let mut browser = guest_book.browser();
    let login = browser.get(&guest_book.url("/auth/login")).await;
    assert_eq!(login.header("retry-after"), Some("60"));
    login.problem(503, "identity_unconfigured");
    let providers = browser
        .get(&guest_book.url("/auth/providers"))
        .await
        .expect(200);
    assert_eq!(providers.json(), json!({"providers": []}));
    assert_eq!(guest_book.user(&mut browser).await, Value::Null);
    for path in [".well-known/openid-configuration", "keys", "authorize"] {
        let answer = browser
            .get(&format!("{}/_svc/dev/{path}", guest_book.sites))
            .await;
        answer.problem(404, "not_found");
    }
    // On a server for everybody it is not there either, whatever the flag says.
    let guest_book = GuestBook::with_settings(|settings| {
        settings.dev = true;
        settings.base_url = Some("https://svc.example".parse().unwrap());
    })
    .await;
    let answer = guest_book
        .fixture
        .server
        .get("/_svc/dev/keys")
        .header("host", "svc.example");
    svc_tests::ReadAnswer::answer(answer)
        .await
        .problem(404, "not_found");
}
