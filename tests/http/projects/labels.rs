//! Host labels at rest: an origin has storage, permissions and links in browsers, which no stranger gets with its label.

use super::*;

use svc_tests::browser::Browser;

use crate::visitors::GuestBook;

const DAY: u64 = 24 * 60 * 60;

async fn label_of(
    server: &TestServer,
    owner: &Owner,
    name: &str,
    seconds: Option<u64>,
) -> (String, String) {
    let body = json!({ "name": name, "ttl_seconds": seconds });
    let made = owner.post(server, "", &body).await.expect(201).json();
    (text(&made["id"]), text(&made["host_label"]))
}

#[tokio::test]
async fn a_label_that_ended_is_its_own_workspaces_for_thirty_days() {
    let server = TestServer::start().await;
    let alice = Owner::new(&server, "alice").await;
    let other = Owner::new(&server, "shop-alice").await;
    let label = async |owner: &Owner, name: &str| label_of(&server, owner, name, None).await;
    let (web_shop, first) = label(&alice, "Web Shop").await;
    assert_eq!(first, "web-shop-alice");
    let (taken, second) = label(&other, "Web").await;
    assert_eq!(second, "web-shop-alice-2");
    other
        .delete(&server, &format!("/{taken}"))
        .await
        .expect(204);
    alice
        .delete(&server, &format!("/{web_shop}"))
        .await
        .expect(204);
    // The former workspace can take the label again at once, and another workspace never.
    let (again, third) = label(&alice, "Web Shop").await;
    assert_eq!(third, "web-shop-alice");
    alice
        .delete(&server, &format!("/{again}"))
        .await
        .expect(204);
    server.advance(30 * DAY - 1);
    let (one, fourth) = label(&other, "Web").await;
    assert_eq!(fourth, "web-shop-alice-2", "its own second one");
    let server = server.restart().await;
    server.advance(1);
    let (_, fifth) = label_of(&server, &other, "Web", None).await;
    assert_eq!(fifth, "web-shop-alice");
    let path = format!("/{one}");
    other.delete(&server, &path).await.expect(204);
}

#[tokio::test]
async fn a_label_rests_however_its_project_ends() {
    let server = TestServer::start().await;
    let alice = Owner::new(&server, "alice").await;
    let other = Owner::new(&server, "shop-alice").await;
    // By its time, and by the end of its workspace.
    label_of(&server, &alice, "Web Shop", Some(60)).await;
    label_of(&server, &alice, "Old Shop", None).await;
    server.advance(60);
    let (_, label) = label_of(&server, &other, "Web", None).await;
    assert_eq!(label, "web-shop-alice-2");
    let command = ["namespace", "delete", "alice"];
    let deleted = server.command(&crate::svc(), &command).await;
    assert!(deleted.success, "{deleted:?}");
    let (_, label) = label_of(&server, &other, "Old", None).await;
    assert_eq!(label, "old-shop-alice-2");
    // Another workspace that has the name is another workspace.
    let alice = Owner::new(&server, "alice").await;
    let (_, label) = label_of(&server, &alice, "Web Shop", None).await;
    assert_eq!(label, "web-shop-alice-3");
}

#[tokio::test]
async fn a_label_with_visitors_rests_for_good() {
    let guest_book = GuestBook::with_dev_provider().await;
    let (server, owner) = (&guest_book.fixture.server, &guest_book.fixture.owner);
    let path = format!("/{}", guest_book.fixture.project);
    let mut browser: Browser = guest_book.browser();
    guest_book
        .sign_in(&mut browser, "name=Ada&email=ada%40a.example", "")
        .await;
    let user = guest_book.user(&mut browser).await;
    // An erased visitor still counts.
    let visitor = format!("{path}/visitors/{}", text(&user["id"]));
    owner.delete(server, &visitor).await.expect(204);
    owner.delete(server, &path).await.expect(204);
    server.advance(400 * DAY);
    let (again, own) = label_of(server, owner, "House", None).await;
    assert_eq!(own, "house-acme");
    let again = format!("/{again}");
    owner.delete(server, &again).await.expect(204);
    server.advance(400 * DAY);
    let command = ["namespace", "delete", "acme"];
    assert!(server.command(&crate::svc(), &command).await.success);
    let other = Owner::new(server, "acme").await;
    let (_, theirs) = label_of(server, &other, "House", None).await;
    assert_eq!(theirs, "house-acme-2");
}
