//! A backup keeps visitors, and sessions as they were when it was made.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::TestServer;

use super::place::{Place, stable};
use super::stub::Stub;
use crate::owner::text;
use crate::svc;

/// Signs somebody in who is this subject for the issuer; answers the browser and who that is.
async fn sign_in(
    place: &Place,
    stub: &Stub,
    subject: &str,
) -> (svc_tests::browser::Browser, Value) {
    let email = format!("{subject}@example.com");
    stub.change(|inner| inner.claims = json!({ "sub": subject, "email": email, "name": subject }));
    let mut browser = place.browser();
    assert_eq!(place.walk(&mut browser, "acme").await, place.url(""));
    let user = place.user(&mut browser).await;
    (browser, user)
}

#[tokio::test]
async fn a_restored_backup_has_visitors_and_the_sessions_of_its_moment() {
    let stub = Stub::start().await;
    let place = Place::with(|settings| stable(settings, &stub)).await;
    let (mut ada, as_ada) = sign_in(&place, &stub, "ada").await;
    let (mut bob, as_bob) = sign_in(&place, &stub, "bob").await;
    let sign = json!({"action": "sign", "params": {"words": "Hi"}});
    place.call(&mut ada, &sign).await.expect(200);

    let vault = tempfile::tempdir().unwrap();
    let backup = vault.path().join("backup");
    let backup = backup.to_str().unwrap().to_owned();
    let server = &place.fixture.server;
    let made = server.command(&svc(), &["backup", &backup]).await;
    assert!(made.success, "{made:?}");

    // Afterwards one signs out, one is forgotten, one comes anew, and one comes back under another name.
    let own = HeaderMap::from_iter([("origin".parse().unwrap(), place.origin.parse().unwrap())]);
    let out = place.url("/auth/logout");
    let mut leaving = ada.clone();
    let answer = leaving.send_request(Method::POST, &out, own, None).await;
    answer.expect(204);
    let forget = format!(
        "/{}/visitors/{}",
        place.fixture.project,
        text(&as_bob["id"])
    );
    place
        .fixture
        .owner
        .delete(server, &forget)
        .await
        .expect(204);
    let (eve, _) = sign_in(&place, &stub, "eve").await;
    stub.change(|inner| inner.claims = json!({ "sub": "ada", "name": "Countess" }));
    let mut later = place.browser();
    place.walk(&mut later, "acme").await;
    for browser in [&mut ada, &mut bob] {
        assert_eq!(place.user(browser).await, Value::Null);
    }

    let restore = async |server: TestServer| {
        let put_back = server.restart_after_change(async |data| {
            let restored = svc().run(data, &["restore", &backup]).await;
            assert!(restored.success, "{restored:?}");
        });
        put_back.await
    };
    let place = place.moved(restore).await;
    // Who was signed in then is so again, under the id and with the profile of then, and until when it was.
    for (browser, user) in [(&ada, &as_ada), (&bob, &as_bob)] {
        let mut browser = place.browser_of(browser);
        assert_eq!(place.user(&mut browser).await, *user);
    }
    let mine = json!({"action": "mine"});
    let rows = place.call(&mut place.browser_of(&ada), &mine).await;
    assert_eq!(rows.expect(200).json()["rows"][0]["user_id"], as_ada["id"]);
    // Sessions that began later are gone, with who came later.
    for browser in [&eve, &later] {
        let mut browser = place.browser_of(browser);
        assert_eq!(place.user(&mut browser).await, Value::Null);
        let refused = place.call(&mut browser, &mine).await;
        refused.problem(401, "identity_required");
    }
    let (server, owner) = (&place.fixture.server, &place.fixture.owner);
    let listed = format!("/{}/visitors", place.fixture.project);
    let listed = owner.get(server, &listed).await.expect(200).json();
    let ids: Vec<_> = listed["visitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&as_bob["id"], &as_ada["id"]]);
    // Who signs in again is who they were.
    let (_, again) = sign_in(&place, &stub, "bob").await;
    assert_eq!(again["id"], as_bob["id"]);
    let check = ["check", "--json"];
    let checked = place.fixture.server.command(&svc(), &check).await.json();
    assert_eq!(checked["errors"], json!([]));
}
