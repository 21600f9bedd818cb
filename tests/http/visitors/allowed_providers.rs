//! Which providers a project offers: at the choice, at each step of a sign-in, and for sessions that live.

use http::Method;
use serde_json::{Value, json};
use svc_tests::Answer;
use svc_tests::browser::location;

use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::StubIssuer;

async fn set_allowed_providers(guest_book: &GuestBook, allowed: &Value) -> Answer {
    let (fixture, body) = (&guest_book.fixture, json!({ "allowed_providers": allowed }));
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .send(&fixture.server, Method::PATCH, &path, &body)
        .await
}

async fn offered_providers(guest_book: &GuestBook) -> Vec<String> {
    let answer = guest_book
        .browser()
        .get(&guest_book.url("/auth/providers"))
        .await
        .expect(200);
    let providers = answer.json()["providers"].clone();
    let names = providers.as_array().unwrap().iter();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A place with two providers, the second with a name for people.
async fn start_guest_book(stub: &StubIssuer) -> GuestBook {
    let mut providers = vec![
        provider_settings("acme", stub),
        provider_settings("other", stub),
    ];
    providers[1].display_name = "The <Other>".to_owned();
    GuestBook::with_settings(|settings| settings.providers = providers).await
}

#[tokio::test]
async fn the_visitor_chooses_among_those_that_the_project_offers() {
    let stub = StubIssuer::start().await;
    let guest_book = start_guest_book(&stub).await;
    let mut browser = guest_book.browser();
    let page = browser
        .get(&guest_book.url("/auth/login?return_to=/room?a=b"))
        .await
        .expect(200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let html = page.text();
    assert!(
        html.contains("/room/auth/login?provider=acme&amp;return_to=%2Froom%3Fa%3Db"),
        "{html}"
    );
    assert!(html.contains("Continue with The &lt;Other&gt;"), "{html}");
    assert_eq!(offered_providers(&guest_book).await, ["acme", "other"]);

    let project = set_allowed_providers(&guest_book, &json!(["other", "other"]))
        .await
        .expect(200)
        .json();
    assert_eq!(project["allowed_providers"], json!(["other"]));
    assert_eq!(offered_providers(&guest_book).await, ["other"]);
    // One is no choice.
    guest_book.begin_sign_in(&mut browser, "").await;
    // Null leaves the list, an empty one takes it away.
    let project = set_allowed_providers(&guest_book, &Value::Null).await;
    project.problem(400, "nothing_to_update");
    assert_eq!(offered_providers(&guest_book).await, ["other"]);
    let refused = set_allowed_providers(&guest_book, &json!(["acme", "nobody"])).await;
    let refused = refused.problem(400, "invalid_request");
    assert!(
        refused["detail"].as_str().unwrap().contains("`nobody`"),
        "{refused}"
    );
    let project = set_allowed_providers(&guest_book, &json!([]))
        .await
        .expect(200)
        .json();
    assert_eq!(project["allowed_providers"], Value::Null);
    assert_eq!(offered_providers(&guest_book).await, ["acme", "other"]);
}

#[tokio::test]
async fn what_is_not_offered_any_more_ends_at_every_step() {
    let stub = StubIssuer::start().await;
    let guest_book = start_guest_book(&stub).await;
    let (mut ada, mut bob) = (guest_book.browser(), guest_book.browser());
    guest_book.sign_in_with_issuer(&mut ada, "acme").await;
    guest_book.sign_in_with_issuer(&mut bob, "other").await;
    let (mut at_provider, mut at_ticket) = (guest_book.browser(), guest_book.browser());
    let asked = guest_book
        .begin_sign_in(&mut at_provider, "?provider=acme")
        .await;
    let ticket = guest_book.completion_url(&mut at_ticket, "acme").await;

    set_allowed_providers(&guest_book, &json!(["other"]))
        .await
        .expect(200);
    let refused = guest_book.failure_url("provider_not_allowed");
    let mine = json!({"action": "mine"});
    guest_book
        .call(&mut ada, &mine)
        .await
        .problem(401, "identity_required");
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
    guest_book.call(&mut bob, &mine).await.expect(200);
    let login = guest_book.url("/auth/login?provider=acme");
    let answer = ada.get(&login).await.expect(302);
    assert_eq!(location(&login, &answer), refused);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    assert_eq!(
        guest_book
            .return_from_issuer(&mut at_provider, "acme", &query)
            .await,
        refused
    );
    let answer = at_ticket.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    // What has ended does not come back with the provider.
    set_allowed_providers(&guest_book, &json!([]))
        .await
        .expect(200);
    guest_book
        .call(&mut ada, &mine)
        .await
        .problem(401, "identity_required");
}
