//! Reading the audit: who may, in which pages, what operators see, and what changes nothing.

use http::Method;
use serde_json::{Value, json};
use svc::control::audit;
use svc_tests::{NOW, ReadAnswer, TestServer};

use super::{WORKSPACES, entries};
use crate::members::{MembersFixture, User};
use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

async fn page(fixture: &MembersFixture, user: &User, query: &str) -> Value {
    let path = format!("{WORKSPACES}/acme/audit{query}");
    user.get(fixture, &path).await.expect(200).json()
}

#[tokio::test]
async fn pages_are_newest_first_and_whole() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    let workspace = alice.workspace(&fixture, "acme").await;
    for number in 0..6 {
        fixture.server.advance(1);
        let body = json!({ "display_name": format!("Acme {number}") });
        let path = format!("{WORKSPACES}/acme");
        alice
            .send(&fixture, Method::PATCH, &path, body)
            .await
            .expect(200);
    }
    let all = page(&fixture, &alice, "").await;
    assert_eq!(all["next_cursor"], Value::Null);
    let listed = all["entries"].as_array().unwrap();
    assert_eq!(listed.len(), 7);
    let times: Vec<_> = listed.iter().map(|entry| text(&entry["at"])).collect();
    assert_eq!(times[0], "2026-11-20T12:00:06.000Z");
    assert!(times.is_sorted_by(|a, b| a > b), "{times:?}");
    assert_eq!(listed[6]["action"], "workspace.create");
    let members: Vec<_> = listed[0].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["action", "at", "principal", "request_id", "target"]
    );
    let (mut found, mut query) = (Vec::new(), "?limit=3".to_owned());
    let mut sizes = Vec::new();
    loop {
        let part = page(&fixture, &alice, &query).await;
        let part_entries = part["entries"].as_array().unwrap();
        sizes.push(part_entries.len());
        found.extend(part_entries.clone());
        match part["next_cursor"].as_str() {
            Some(cursor) => query = format!("?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(&found, listed);
    for query in [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=x",
        "cursor=x",
        "cursor=",
        "cursor=-1",
        "page=2",
    ] {
        let path = format!("{WORKSPACES}/{workspace}/audit?{query}");
        let answer = alice.get(&fixture, &path).await;
        let problem = answer.problem(400, "invalid_request");
        let named = query.split('=').next().unwrap();
        assert!(
            text(&problem["detail"]).contains(named),
            "{query}: {problem}"
        );
    }
    // Ninety days later they are gone, whether or not they were swept yet.
    let control = &fixture.server.server().app().control;
    let workspace = Some(workspace.parse().unwrap());
    for (seconds, left) in [(0, 6), (5, 1), (6, 0)] {
        let now = NOW.plus_seconds(audit::RETENTION_SECONDS + seconds);
        let found = audit::list_entries(control, workspace, None, 10, now).await;
        assert_eq!(found.unwrap().entries.len(), left, "{seconds}");
    }
    audit::forget_old(control, NOW.plus_seconds(audit::RETENTION_SECONDS + 5))
        .await
        .unwrap();
    assert_eq!(
        page(&fixture, &alice, "").await["entries"],
        json!(listed[..1])
    );
}

#[tokio::test]
async fn it_is_for_admins_of_the_workspace() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    alice.workspace(&fixture, "acme").await;
    let path = format!("{WORKSPACES}/acme/audit");
    bob.get(&fixture, &path).await.problem(403, "forbidden");
    for (role, may) in [
        ("viewer", false),
        ("editor", false),
        ("admin", true),
        ("owner", true),
    ] {
        alice.add_member(&fixture, "acme", &bob, role).await;
        let answer = bob.get(&fixture, &path).await;
        match may {
            true => drop(answer.expect(200)),
            false => drop(answer.problem(403, "forbidden")),
        }
    }
    let key = alice
        .send(
            &fixture,
            Method::POST,
            &format!("{WORKSPACES}/acme/keys"),
            json!({}),
        )
        .await;
    let key = Owner::with_credential(&text(&key.expect(201).json()["credential"]));
    let answer = key
        .send_request(&fixture.server, Method::GET, &path, None)
        .await;
    answer.problem(403, "forbidden");
    let nobody = fixture.server.get(&path).answer().await;
    nobody.problem(401, "unauthorized");
    let unknown = format!("{WORKSPACES}/nothing/audit");
    alice
        .get(&fixture, &unknown)
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_key_is_named_by_its_id_and_a_command_by_its_operator() {
    let server = TestServer::start().await;
    let made = ["namespace", "create", "beta", "--plan", "pro", "--json"];
    let made = server.command(&svc(), &made).await.json();
    let credential = text(&made["credential"]);
    let owner = Owner::with_credential(&credential);
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    for command in [
        &["deployment", "disable", "room"][..],
        &["deployment", "enable", "room"],
        &["namespace", "plan", "beta", "free"],
    ] {
        let done = server.command(&svc(), command).await;
        assert!(done.success, "{done:?}");
    }
    let key = server
        .command(&svc(), &["key", "create", "beta", "--json"])
        .await;
    let key = text(&key.json()["key_id"]);
    for _ in 0..2 {
        let revoke = ["key", "revoke", "beta", &key];
        assert!(server.command(&svc(), &revoke).await.success);
    }
    let read = async |of: &[&str]| {
        let command = [&["audit", "--json"], of].concat();
        server.command(&svc(), &command).await.json()["entries"].take()
    };
    let listed = read(&["beta"]).await;
    let listed = listed.as_array().unwrap();
    let own = credential.split('_').nth(1).unwrap();
    let said: Vec<_> = listed
        .iter()
        .map(|entry| (text(&entry["principal"]), text(&entry["action"])))
        .collect();
    let operator = |action: &str| ("operator".to_owned(), action.to_owned());
    let by_key = |action: &str| (own.to_owned(), action.to_owned());
    let mut expected = vec![
        operator("key.revoke"),
        operator("key.create"),
        operator("workspace.update"),
        operator("deployment.enable"),
        operator("deployment.disable"),
        by_key("frontend.create"),
        by_key("project.create"),
        operator("workspace.create"),
    ];
    assert_eq!(said, expected);
    for entry in listed {
        assert!(!text(&entry["request_id"]).is_empty(), "{entry}");
        assert!(!text(&entry["target"]).is_empty(), "{entry}");
    }
    assert_eq!(listed[0]["target"], key);
    assert_eq!(
        read(&["beta", "--limit", "2"])
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // Entries without a workspace are read without one, and entries of a deleted workspace by its id.
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    let disabled = server
        .command(&svc(), &["deployment", "disable", "share"])
        .await;
    assert!(disabled.success, "{disabled:?}");
    assert_eq!(read(&[]).await[0]["action"], "deployment.disable");
    let deleted = server
        .command(&svc(), &["namespace", "delete", "beta"])
        .await;
    assert!(deleted.success, "{deleted:?}");
    let by_id = read(&[&text(&made["id"])]).await;
    expected.insert(0, operator("workspace.delete"));
    assert_eq!(by_id.as_array().unwrap().len(), expected.len());
    assert_eq!(by_id[0]["action"], "workspace.delete");
    let unknown = server.command(&svc(), &["audit", "beta"]).await;
    assert!(!unknown.success, "{unknown:?}");
}

#[tokio::test]
async fn what_changes_nothing_leaves_nothing() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    let workspace = alice.workspace(&fixture, "acme").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    // The issuer must live as long as the server.
    let MembersFixture {
        server,
        issuer: _issuer,
    } = fixture;
    let rooms = ProjectFixture {
        server,
        owner: alice.owner.clone(),
        project: project.clone(),
    };
    rooms.create(GUESTS).await.expect(201);
    rooms.publish("room").await;
    rooms.define(&[("one", "SELECT 1 AS one")]).await;
    rooms.migrate("CREATE TABLE more (a)").await.expect(200);
    let again = async || {
        let path = format!("/api/v1/projects/{project}/frontends");
        let request = rooms.owner.request(&rooms.server, Method::POST, &path);
        let page = json!({ "type": "markdown", "content": "# x" });
        let request = request.header("idempotency-key", "once").json(&page);
        request.answer().await.expect(201);
    };
    again().await;
    let before = entries(&rooms.server, &workspace).await;
    let path = format!("/{project}/frontends/room");
    let send = async |method, below: &str, body: Value| {
        let path = format!("{path}{below}");
        rooms.owner.send(&rooms.server, method, &path, &body).await
    };
    // Done before, refused, tried, or read.
    again().await;
    rooms.define(&[("one", "SELECT 1 AS one")]).await;
    rooms.migrate("CREATE TABLE more (a)").await.expect(200);
    rooms.migrate("DROP TABLE more").await.expect(400);
    let dry = json!({ "ddl": "CREATE TABLE dry (a)" });
    rooms
        .send(Method::PATCH, "?dry_run=true", &dry)
        .await
        .expect(200);
    rooms.create(GUESTS).await.expect(409);
    let live = send(Method::GET, "/revisions", Value::Null).await.json();
    let live = &live["active_revision_id"];
    let same = json!({ "revision_id": live, "expected_active_revision_id": live });
    send(Method::POST, "/promote", same).await.expect(200);
    let stale = json!({ "base_revision_id": project, "content": "# x" });
    send(Method::POST, "/revisions", stale).await.expect(409);
    let wrong = json!({ "content": "# x", "type": "html" });
    send(Method::PUT, "", wrong).await.expect(400);
    let gone = format!("/{project}/frontends/nothing");
    rooms.owner.delete(&rooms.server, &gone).await.expect(204);
    let nothing = "/00000000-0000-7000-8000-000000000009";
    rooms.owner.delete(&rooms.server, nothing).await.expect(204);
    assert_eq!(entries(&rooms.server, &workspace).await, before);
}
