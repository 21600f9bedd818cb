//! Shared caps: the parts for one client, one owner and all strangers together, and the reserved rest.

use std::fmt::Write as _;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Builder, ReadAnswer, TestServer};

use crate::members::MembersFixture;
use crate::owner::{Owner, text};

const DEPLOY: &str = "/api/v1/deploy";

/// Makes a server trust this machine as a proxy.
fn behind_a_proxy(builder: Builder) -> Builder {
    builder.settings(|settings| settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
}

async fn share_from(server: &TestServer, client: &str, body: &Value) -> Answer {
    let request = server.json(DEPLOY, body);
    request.header("x-forwarded-for", client).answer().await
}

/// Asserts that a part of a cap was reached.
#[track_caller]
fn assert_cap_reached(answer: &Answer, cap: &str, part: &str) {
    let problem = answer.problem(503, "capacity_reached");
    assert_eq!(problem["cap"], cap, "{problem}");
    assert_eq!(problem["part"], part, "{problem}");
    assert!(text(&problem["detail"]).contains(cap), "{problem}");
    assert_eq!(answer.header("retry-after"), Some("60"));
}

#[tokio::test]
async fn strangers_of_one_network_leave_room_for_others_and_for_owners() {
    let builder = TestServer::builder().limits(|limits| limits.active_deployments = 24);
    let server = behind_a_proxy(builder).start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let body = json!({ "content": "x" });
    let once = json!({ "content": "x", "one_time": true });
    let mut first = None;
    for number in 0..10 {
        let client = format!("2001:db8:1:{number}::1");
        let body = if number % 2 == 0 { &body } else { &once };
        let made = share_from(&server, &client, body).await.expect(201).json();
        first.get_or_insert(made);
    }
    for body in [&body, &once] {
        let refused = share_from(&server, "2001:db8:1:ffff::1", body).await;
        assert_cap_reached(&refused, "active_deployments", "client");
    }
    let form = server.request(Method::PUT, "/api/v1/deploy/notes.md");
    let form = form.header("x-forwarded-for", "2001:db8:1:1::1").body("x");
    assert_cap_reached(&form.answer().await, "active_deployments", "client");
    // Counts survive a restart.
    let server = server.restart().await;
    let refused = share_from(&server, "2001:db8:1:ffff::1", &body).await;
    assert_cap_reached(&refused, "active_deployments", "client");
    for number in 0..10 {
        let client = format!("192.0.2.{number}");
        share_from(&server, &client, &body).await.expect(201);
    }
    let refused = share_from(&server, "198.51.100.1", &body).await;
    assert_cap_reached(&refused, "active_deployments", "strangers");
    owner.frontend(&server, &project, "one").await;
    owner.frontend(&server, &project, "two").await;
    for _ in 0..2 {
        let share = owner.request(&server, Method::POST, DEPLOY).json(&body);
        share.answer().await.expect(201);
    }
    let full = owner.request(&server, Method::POST, DEPLOY).json(&body);
    assert_cap_reached(&full.answer().await, "active_deployments", "whole");
    // A claim does not add to the usage of the server.
    let first = first.unwrap();
    let claim = json!({ "id": first["id"], "delete_token": first["delete_token"] });
    let path = format!("/{project}/frontends/claim");
    owner.post(&server, &path, &claim).await.expect(201);
    owner
        .delete(&server, &format!("/{project}/frontends/one"))
        .await
        .expect(204);
    let again = share_from(&server, "2001:db8:1:ffff::1", &body).await;
    again.expect(201);
}

#[tokio::test]
async fn nothing_says_who_has_published_a_share() {
    let server = behind_a_proxy(TestServer::builder()).start().await;
    let owner = Owner::new(&server, "acme").await;
    let body = json!({ "content": "x" });
    for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] {
        share_from(&server, client, &body).await.expect(201);
    }
    let share = owner.request(&server, Method::POST, DEPLOY).json(&body);
    share.answer().await.expect(201);
    let rows = rusqlite::Connection::open(server.data().join("control.db")).unwrap();
    let held: Vec<(Vec<u8>, bool)> = rows
        .prepare("SELECT holder, is_owners FROM deployments ORDER BY rowid")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(
        held.iter().all(|(holder, _)| holder.len() == 16),
        "{held:?}"
    );
    assert_eq!(held[0], held[1], "one client is one holder");
    assert_ne!(held[0], held[2]);
    let owners: Vec<bool> = held.iter().map(|(_, is_owners)| *is_owners).collect();
    assert_eq!(owners, [false, false, false, true]);
    // Another installation names the same client otherwise.
    let other = behind_a_proxy(TestServer::builder()).start().await;
    share_from(&other, "192.0.2.1", &body).await.expect(201);
    let rows = rusqlite::Connection::open(other.data().join("control.db")).unwrap();
    let sql = "SELECT holder FROM deployments";
    let holder: Vec<u8> = rows.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_ne!(holder, held[0].0);
}

/// Text that no encoding makes much smaller.
fn incompressible_text(bytes: usize) -> String {
    let mut text = String::new();
    let mut state: u64 = 1;
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        write!(text, "{:016x}", state.rotate_left(17)).unwrap();
    }
    text
}

#[tokio::test]
async fn bytes_of_shares_count_with_their_encodings() {
    let builder = TestServer::builder().limits(|limits| {
        limits.share_bytes = 800_000;
        limits.cap_client_percent = 25;
    });
    let server = behind_a_proxy(builder).start().await;
    let owner = Owner::new(&server, "acme").await;
    // The source and the page are 100 kB, and the encodings as much again.
    let body = json!({ "content": incompressible_text(50_000) });
    let first = share_from(&server, "192.0.2.1", &body).await.expect(201);
    let second = share_from(&server, "192.0.2.1", &body).await;
    assert_cap_reached(&second, "share_bytes", "client");
    let once = json!({ "content": incompressible_text(50_000), "one_time": true });
    let third = share_from(&server, "192.0.2.1", &once).await;
    assert_cap_reached(&third, "share_bytes", "client");
    for client in ["192.0.2.2", "192.0.2.3"] {
        share_from(&server, client, &body).await.expect(201);
    }
    let fourth = share_from(&server, "192.0.2.4", &body).await;
    assert_cap_reached(&fourth, "share_bytes", "strangers");
    let share = owner.request(&server, Method::POST, DEPLOY).json(&body);
    share.answer().await.expect(201);
    let stored = server.snapshot();
    let full = owner.request(&server, Method::POST, DEPLOY).json(&body);
    assert_cap_reached(&full.answer().await, "share_bytes", "whole");
    assert_eq!(server.snapshot().0, stored.0);
    let first = first.json();
    let path = format!("{DEPLOY}/{}", text(&first["id"]));
    let delete = server.request(Method::DELETE, &path);
    let delete = delete.bearer_auth(text(&first["delete_token"]));
    delete.answer().await.expect(204);
    share_from(&server, "192.0.2.4", &body).await.expect(201);
}

#[tokio::test]
async fn an_owners_content_has_a_bound_and_can_be_rolled_back_beyond_it() {
    let builder = TestServer::builder().limits(|limits| limits.owner_bytes = 400_000);
    let server = builder.start().await;
    let owner = Owner::new(&server, "acme").await;
    let other = Owner::new(&server, "other").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let room = format!("/{project}/frontends/room");
    let put = async |content: String| {
        let body = json!({ "content": content });
        owner.send(&server, Method::PUT, &room, &body).await
    };
    put("# Two".into()).await.expect(200);
    put(incompressible_text(150_000)).await.expect(200);
    assert_cap_reached(&put("# Three".into()).await, "owner_bytes", "owner");
    let new = json!({ "type": "markdown", "content": "# New" });
    let path = format!("/{project}/frontends");
    let refused = owner.post(&server, &path, &new).await;
    assert_cap_reached(&refused, "owner_bytes", "owner");
    let list = owner.get(&server, &format!("{room}/revisions")).await;
    let list = list.expect(200).json();
    let (active, first) = (&list["active_revision_id"], &list["revisions"][1]);
    let draft = json!({ "base_revision_id": active, "content": "# Draft" });
    let refused = owner
        .post(&server, &format!("{room}/revisions"), &draft)
        .await;
    assert_cap_reached(&refused, "owner_bytes", "owner");
    let back =
        json!({ "revision_id": first["revision_id"], "expected_active_revision_id": active });
    let back = owner
        .post(&server, &format!("{room}/rollback"), &back)
        .await;
    back.expect(200);
    let theirs = other.project(&server, "House").await;
    other.frontend(&server, &theirs, "hall").await;
    owner.delete(&server, &room).await.expect(204);
    owner.frontend(&server, &project, "room").await;
}

/// Creates a page of html; returns the path of its frontend.
async fn html_page(server: &TestServer, owner: &Owner, content: &str) -> String {
    let project = owner.project(server, "House").await;
    let path = format!("/{project}/frontends");
    let new = json!({ "type": "html", "content": content });
    let made = owner.post(server, &path, &new).await.expect(201).json();
    format!("{path}/{}", text(&made["id"]))
}

#[tokio::test]
async fn revisions_count_with_the_pages_that_looks_at_them_make() {
    // A source and its page are 160 to 200 kB with their encodings: so are a live one, its baseline and each revision.
    let builder = TestServer::builder().limits(|limits| limits.owner_bytes = 620_000);
    let server = builder.start().await;
    let owner = Owner::new(&server, "acme").await;
    let room = html_page(&server, &owner, &incompressible_text(50_000)).await;
    let put = async |number: u32| {
        let body = json!({ "content": format!("{number}{}", incompressible_text(50_000)) });
        owner.send(&server, Method::PUT, &room, &body).await
    };
    for number in 0..2 {
        put(number).await.expect(200);
    }
    assert_cap_reached(&put(2).await, "owner_bytes", "owner");
}

#[tokio::test]
async fn what_is_sent_at_once_passes_no_owners_bound() {
    let builder = TestServer::builder().limits(|limits| limits.owner_bytes = 300_000);
    let server = builder.start().await;
    // The first two drafts reach the limit, as does the first publication, which counts as a live page and as a revision.
    for (name, method, most) in [("drafts", Method::POST, 2), ("pages", Method::PUT, 1)] {
        let owner = Owner::new(&server, name).await;
        let room = html_page(&server, &owner, "One").await;
        let revisions = format!("{room}/revisions");
        let list = owner.get(&server, &revisions).await.expect(200).json();
        let mut racing = tokio::task::JoinSet::new();
        for number in 0..6 {
            let content = format!("{number}{}", incompressible_text(50_000));
            let draft =
                json!({ "base_revision_id": list["active_revision_id"], "content": content });
            let (path, body) = match name {
                "drafts" => (&revisions, draft),
                _ => (&room, json!({ "content": content })),
            };
            let path = format!("/api/v1/projects{path}");
            let request = owner.request(&server, method.clone(), &path);
            racing.spawn(request.json(&body).answer());
        }
        let answers = racing.join_all().await;
        let (made, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(made.len(), most, "{name}");
        for answer in refused {
            assert_cap_reached(answer, "owner_bytes", "owner");
        }
    }
}

#[tokio::test]
async fn the_last_of_the_disk_is_kept_for_owners() {
    let builder = TestServer::builder().limits(|limits| limits.free_disk_owners_bytes = u64::MAX);
    let server = builder.start().await;
    let owner = Owner::new(&server, "acme").await;
    let body = json!({ "content": "x" });
    let before = server.snapshot();
    let refused = server.json(DEPLOY, &body).answer().await;
    assert_cap_reached(&refused, "free_disk_owners_bytes", "strangers");
    assert_eq!(server.snapshot(), before);
    let share = owner.request(&server, Method::POST, DEPLOY).json(&body);
    share.answer().await.expect(201);
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
}

#[tokio::test]
async fn a_user_makes_some_free_workspaces_and_no_more() {
    let builder = TestServer::builder().limits(|limits| limits.free_workspaces_per_user = 2);
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let one = alice.workspace(&fixture, "one").await;
    alice.workspace(&fixture, "two").await;
    let all = "/api/v1/workspaces";
    let body = json!({ "display_name": "three", "slug": "three" });
    let refused = alice.send(&fixture, Method::POST, all, body.clone()).await;
    refused.problem(403, "plan_limit");
    // A project that was given away counts as created, and one that was taken over does not.
    alice.add_member(&fixture, &one, &bob, "owner").await;
    bob.workspace(&fixture, "bobs").await;
    let path = format!("{all}/{one}/members/{}", alice.id);
    alice.delete(&fixture, &path).await.expect(204);
    let refused = alice.send(&fixture, Method::POST, all, body.clone()).await;
    refused.problem(403, "plan_limit");
    alice
        .delete(&fixture, &format!("{all}/two"))
        .await
        .expect(204);
    alice
        .send(&fixture, Method::POST, all, body)
        .await
        .expect(201);
}

async fn create_backend(server: &TestServer, owner: &Owner, project: &str) -> Answer {
    let body = json!({ "ddl": "CREATE TABLE t (id INTEGER PRIMARY KEY)" });
    let path = format!("/{project}/backend");
    owner.post(server, &path, &body).await
}

#[tokio::test]
async fn free_workspaces_of_one_user_share_a_part_of_the_backends() {
    let builder = TestServer::builder().limits(|limits| {
        limits.backends = 5;
        limits.cap_part_least = 1;
    });
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    let server = &fixture.server;
    let project_in = async |owner: &Owner, workspace: &str| {
        let body = json!({ "name": "House", "workspace": workspace });
        let made = owner.post(server, "", &body).await.expect(201);
        text(&made.json()["id"])
    };
    // Of five, one is kept for those who pay or whom the operator made, and two are an owner's part.
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    for (slug, is_there) in [("a1", true), ("a2", true), ("a3", false)] {
        alice.workspace(&fixture, slug).await;
        let project = project_in(&alice.owner, slug).await;
        let made = create_backend(server, &alice.owner, &project).await;
        match is_there {
            true => drop(made.expect(201)),
            false => assert_cap_reached(&made, "backends", "owner"),
        }
    }
    // A key of one of them is the same owner's.
    let body = json!({ "role": "editor" });
    let keys = "/api/v1/workspaces/a3/keys";
    let key = alice.send(&fixture, Method::POST, keys, body).await;
    let key = Owner::with_credential(&text(&key.expect(201).json()["credential"]));
    let list = key.get(server, "").await.expect(200).json();
    let third = text(&list["projects"][0]["id"]);
    assert_cap_reached(
        &create_backend(server, &key, &third).await,
        "backends",
        "owner",
    );
    for slug in ["b1", "b2"] {
        bob.workspace(&fixture, slug).await;
        let project = project_in(&bob.owner, slug).await;
        create_backend(server, &bob.owner, &project)
            .await
            .expect(201);
    }
    let carol = fixture.user("carol").await;
    carol.workspace(&fixture, "c1").await;
    let project = project_in(&carol.owner, "c1").await;
    let refused = create_backend(server, &carol.owner, &project).await;
    assert_cap_reached(&refused, "backends", "strangers");
    let owner = Owner::new(server, "acme").await;
    let (one, two) = (
        owner.project(server, "One").await,
        owner.project(server, "Two").await,
    );
    create_backend(server, &owner, &one).await.expect(201);
    let full = create_backend(server, &owner, &two).await;
    assert_cap_reached(&full, "backends", "whole");
    owner
        .delete(server, &format!("/{one}/backend"))
        .await
        .expect(204);
    create_backend(server, &owner, &two).await.expect(201);
}
