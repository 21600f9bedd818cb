//! Which providers a project offers: at the choice, at each step of a sign-in, and for sessions that live.

use http::Method;
use serde_json::{Value, json};
use svc_tests::Answer;
use svc_tests::browser::location;

use super::place::{Place, provider};
use super::stub::Stub;

async fn patch(place: &Place, allowed: &Value) -> Answer {
    let (fixture, body) = (&place.fixture, json!({ "allowed_providers": allowed }));
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .send(&fixture.server, Method::PATCH, &path, &body)
        .await
}

async fn offered(place: &Place) -> Vec<String> {
    let answer = place
        .browser()
        .get(&place.url("/auth/providers"))
        .await
        .expect(200);
    let providers = answer.json()["providers"].clone();
    let names = providers.as_array().unwrap().iter();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A place with two providers, the second with a name for people.
async fn place(stub: &Stub) -> Place {
    let mut providers = vec![provider("acme", stub), provider("other", stub)];
    providers[1].display_name = "The <Other>".to_owned();
    Place::with(|settings| settings.providers = providers).await
}

#[tokio::test]
async fn the_visitor_chooses_among_those_that_the_project_offers() {
    let stub = Stub::start().await;
    let place = place(&stub).await;
    let mut browser = place.browser();
    let page = browser
        .get(&place.url("/auth/login?return_to=/room?a=b"))
        .await
        .expect(200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let html = page.text();
    assert!(
        html.contains("/room/auth/login?provider=acme&amp;return_to=%2Froom%3Fa%3Db"),
        "{html}"
    );
    assert!(html.contains("Continue with The &lt;Other&gt;"), "{html}");
    assert_eq!(offered(&place).await, ["acme", "other"]);

    let project = patch(&place, &json!(["other", "other"]))
        .await
        .expect(200)
        .json();
    assert_eq!(project["allowed_providers"], json!(["other"]));
    assert_eq!(offered(&place).await, ["other"]);
    // One is no choice.
    place.begin(&mut browser, "").await;
    // Null leaves the list, an empty one takes it away.
    let project = patch(&place, &Value::Null).await;
    project.problem(400, "nothing_to_update");
    assert_eq!(offered(&place).await, ["other"]);
    let refused = patch(&place, &json!(["acme", "nobody"])).await;
    let refused = refused.problem(400, "invalid_request");
    assert!(
        refused["detail"].as_str().unwrap().contains("`nobody`"),
        "{refused}"
    );
    let project = patch(&place, &json!([])).await.expect(200).json();
    assert_eq!(project["allowed_providers"], Value::Null);
    assert_eq!(offered(&place).await, ["acme", "other"]);
}

#[tokio::test]
async fn what_is_not_offered_any_more_ends_at_every_step() {
    let stub = Stub::start().await;
    let place = place(&stub).await;
    let (mut ada, mut bob) = (place.browser(), place.browser());
    place.walk(&mut ada, "acme").await;
    place.walk(&mut bob, "other").await;
    let (mut at_provider, mut at_ticket) = (place.browser(), place.browser());
    let asked = place.begin(&mut at_provider, "?provider=acme").await;
    let ticket = place.ticket(&mut at_ticket, "acme").await;

    patch(&place, &json!(["other"])).await.expect(200);
    let refused = place.failed("provider_not_allowed");
    let mine = json!({"action": "mine"});
    place
        .call(&mut ada, &mine)
        .await
        .problem(401, "identity_required");
    assert_eq!(place.user(&mut ada).await, Value::Null);
    place.call(&mut bob, &mine).await.expect(200);
    let login = place.url("/auth/login?provider=acme");
    let answer = ada.get(&login).await.expect(302);
    assert_eq!(location(&login, &answer), refused);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    assert_eq!(
        place.come_back(&mut at_provider, "acme", &query).await,
        refused
    );
    let answer = at_ticket.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    // What has ended does not come back with the provider.
    patch(&place, &json!([])).await.expect(200);
    place
        .call(&mut ada, &mine)
        .await
        .problem(401, "identity_required");
}
