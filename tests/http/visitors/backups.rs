//! A backup keeps visitors, and sessions as they were when it was made.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::TestServer;

use super::guest_book::{GuestBook, pin_address};
use super::stub_issuer::StubIssuer;
use crate::owner::text;
use crate::svc;

/// Signs somebody in who is this subject for the issuer; answers the browser and who that is.
async fn sign_in(
    guest_book: &GuestBook,
    stub: &StubIssuer,
    subject: &str,
) -> (svc_tests::browser::Browser, Value) {
    let email = format!("{subject}@example.com");
    stub.change(|inner| inner.claims = json!({ "sub": subject, "email": email, "name": subject }));
    let mut browser = guest_book.browser();
    assert_eq!(
        guest_book.sign_in_with_issuer(&mut browser, "acme").await,
        guest_book.url("")
    );
    let user = guest_book.user(&mut browser).await;
    (browser, user)
}

#[tokio::test]
async fn a_restored_backup_has_visitors_and_the_sessions_of_its_moment() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_settings(|settings| pin_address(settings, &stub)).await;
    let (mut ada, as_ada) = sign_in(&guest_book, &stub, "ada").await;
    let (mut bob, as_bob) = sign_in(&guest_book, &stub, "bob").await;
    let sign = json!({"action": "sign", "params": {"words": "Hi"}});
    guest_book.call(&mut ada, &sign).await.expect(200);

    let vault = tempfile::tempdir().unwrap();
    let backup = vault.path().join("backup");
    let backup = backup.to_str().unwrap().to_owned();
    let server = &guest_book.fixture.server;
    let made = server.command(&svc(), &["backup", &backup]).await;
    assert!(made.success, "{made:?}");

    // Afterwards one signs out, one is forgotten, one comes anew, and one comes back under another name.
    let own = HeaderMap::from_iter([(
        "origin".parse().unwrap(),
        guest_book.origin.parse().unwrap(),
    )]);
    let out = guest_book.url("/auth/logout");
    let mut leaving = ada.clone();
    let answer = leaving.send_request(Method::POST, &out, own, None).await;
    answer.expect(204);
    let forget = format!(
        "/{}/visitors/{}",
        guest_book.fixture.project,
        text(&as_bob["id"])
    );
    guest_book
        .fixture
        .owner
        .delete(server, &forget)
        .await
        .expect(204);
    let (eve, _) = sign_in(&guest_book, &stub, "eve").await;
    stub.change(|inner| inner.claims = json!({ "sub": "ada", "name": "Countess" }));
    let mut later = guest_book.browser();
    guest_book.sign_in_with_issuer(&mut later, "acme").await;
    for browser in [&mut ada, &mut bob] {
        assert_eq!(guest_book.user(browser).await, Value::Null);
    }

    let restore = async |server: TestServer| {
        let put_back = server.restart_after_change(async |data| {
            let restored = svc().run(data, &["restore", &backup]).await;
            assert!(restored.success, "{restored:?}");
        });
        put_back.await
    };
    let guest_book = guest_book.move_to_server(restore).await;
    // Who was signed in then is so again, under the id and with the profile of then, and until when it was.
    for (browser, user) in [(&ada, &as_ada), (&bob, &as_bob)] {
        let mut browser = guest_book.browser_of(browser);
        assert_eq!(guest_book.user(&mut browser).await, *user);
    }
    let mine = json!({"action": "mine"});
    let rows = guest_book
        .call(&mut guest_book.browser_of(&ada), &mine)
        .await;
    assert_eq!(rows.expect(200).json()["rows"][0]["user_id"], as_ada["id"]);
    // Sessions that began later are gone, with who came later.
    for browser in [&eve, &later] {
        let mut browser = guest_book.browser_of(browser);
        assert_eq!(guest_book.user(&mut browser).await, Value::Null);
        let refused = guest_book.call(&mut browser, &mine).await;
        refused.problem(401, "identity_required");
    }
    let (server, owner) = (&guest_book.fixture.server, &guest_book.fixture.owner);
    let listed = format!("/{}/visitors", guest_book.fixture.project);
    let listed = owner.get(server, &listed).await.expect(200).json();
    let ids: Vec<_> = listed["visitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&as_bob["id"], &as_ada["id"]]);
    // Who signs in again is who they were.
    let (_, again) = sign_in(&guest_book, &stub, "bob").await;
    assert_eq!(again["id"], as_bob["id"]);
    let check = ["check", "--json"];
    let checked = guest_book
        .fixture
        .server
        .command(&svc(), &check)
        .await
        .json();
    assert_eq!(checked["errors"], json!([]));
}
