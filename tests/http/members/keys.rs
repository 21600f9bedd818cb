//! Keys that admins make: with a role, an end, and a note.

use http::Method;
use serde_json::{Value, json};
use svc::workspaces::Plan;
use svc_tests::Answer;

use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::{Owner, text};

#[tokio::test]
async fn a_key_is_made_listed_and_revoked() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    let keys = format!("{WORKSPACES_PATH}/acme/keys");
    let body = json!({ "note": "for the agent", "role": "viewer", "expires_in": 60 });
    let made = alice
        .send(&fixture, Method::POST, &keys, body)
        .await
        .expect(201);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let made = made.json();
    assert_eq!(made["role"], "viewer");
    assert_eq!(made["expires_at"], "2026-11-20T12:01:00.000Z");
    let credential = text(&made["credential"]);
    let listed = alice.get(&fixture, &keys).await.expect(200);
    assert!(!listed.text().contains(&credential));
    assert_eq!(
        listed.json()["keys"],
        json!([{
            "key_id": made["key_id"], "role": "viewer", "note": "for the agent",
            "expires_at": "2026-11-20T12:01:00.000Z", "created_at": "2026-11-20T12:00:00.000Z", "last_used_at": null,
        }])
    );
    let machine = Owner::with_credential(&credential);
    let me = machine
        .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
        .await;
    let me = me.expect(200).json();
    assert_eq!(me["kind"], "machine");
    assert_eq!(me.get("user_id"), None);
    assert_eq!(me["memberships"][0]["workspace"]["slug"], "acme");
    assert_eq!(me["memberships"][0]["role"], "viewer");
    // The key expires by itself.
    fixture.server.advance(60);
    let over = machine.get(&fixture.server, "").await;
    over.problem(401, "unauthorized");
    // A key without an end can be revoked twice.
    let made = alice.send(&fixture, Method::POST, &keys, json!({})).await;
    let made = made.expect(201).json();
    assert_eq!(
        (&made["role"], &made["expires_at"]),
        (&json!("editor"), &Value::Null)
    );
    let machine = Owner::with_credential(&text(&made["credential"]));
    let me = machine
        .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
        .await;
    assert_eq!(me.expect(200).json()["memberships"][0]["role"], "machine");
    let path = format!("{keys}/{}", text(&made["key_id"]));
    for _ in 0..2 {
        alice.delete(&fixture, &path).await.expect(204);
        machine
            .get(&fixture.server, "")
            .await
            .problem(401, "unauthorized");
    }
    let unknown = alice.delete(&fixture, &format!("{keys}/23456789")).await;
    unknown.problem(404, "not_found");
    let listed = alice.get(&fixture, &keys).await.json();
    assert_eq!(listed["keys"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn a_keys_role_and_end_have_bounds() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    let keys = format!("{WORKSPACES_PATH}/acme/keys");
    for body in [
        json!({ "role": "admin" }),
        json!({ "role": "owner" }),
        json!({ "role": "machine" }),
        json!({ "expires_in": 0 }),
        json!({ "expires_in": 31_536_001 }),
        json!({ "expires_in": 1.5 }),
        json!({ "expires_in": "60" }),
        json!({ "note": "x".repeat(1001) }),
        json!({ "key_id": "abcdefgh" }),
    ] {
        let answer = alice
            .send(&fixture, Method::POST, &keys, body.clone())
            .await;
        answer.problem(400, "invalid_request");
    }
    let longest = json!({ "expires_in": 31_536_000, "role": null });
    alice
        .send(&fixture, Method::POST, &keys, longest)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_key_that_nothing_is_said_of_is_an_editors_for_good() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    let keys = format!("{WORKSPACES_PATH}/acme/keys");
    let server = &fixture.server;
    for body in [None, Some(""), Some(" \r\n"), Some("{}")] {
        let request = alice.owner.request(server, Method::POST, &keys);
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let made = svc_tests::ReadAnswer::answer(request)
            .await
            .expect(201)
            .json();
        assert_eq!(
            (&made["role"], &made["expires_at"]),
            (&json!("editor"), &Value::Null),
            "{body:?}"
        );
        let machine = Owner::with_credential(&text(&made["credential"]));
        machine.get(server, "").await.expect(200);
    }
    for (body, code) in [
        ("{", "invalid_json"),
        ("[]", "invalid_request"),
        ("null", "invalid_request"),
    ] {
        let request = alice.owner.request(server, Method::POST, &keys).body(body);
        svc_tests::ReadAnswer::answer(request)
            .await
            .problem(400, code);
    }
}

#[tokio::test]
async fn a_viewers_key_only_reads() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    let ddl = json!({ "ddl": "CREATE TABLE t (n)" });
    let path = format!("/{project}/backend");
    let made = alice.owner.post(&fixture.server, &path, &ddl).await;
    made.expect(201);
    alice
        .owner
        .frontend(&fixture.server, &project, "room")
        .await;
    let body = json!({ "role": "viewer" });
    let made = alice
        .send(
            &fixture,
            Method::POST,
            &format!("{WORKSPACES_PATH}/acme/keys"),
            body,
        )
        .await;
    let viewer = Owner::with_credential(&text(&made.expect(201).json()["credential"]));
    for path in ["", &format!("/{project}"), &format!("/{project}/backend")] {
        viewer.get(&fixture.server, path).await.expect(200);
    }
    let query = async |who: &Owner, sql: &str| {
        let body = json!({ "sql": sql });
        who.send_request(
            &fixture.server,
            Method::POST,
            "/room/api/query",
            Some(&body),
        )
        .await
    };
    query(&viewer, "SELECT count(*) AS n FROM t")
        .await
        .expect(200);
    for sql in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET n = 1 RETURNING n",
        "DELETE FROM t",
        "WITH x AS (SELECT 1 AS n) INSERT INTO t SELECT n FROM x",
    ] {
        let answer = query(&viewer, sql).await;
        answer.problem(403, "forbidden");
        query(&alice.owner, sql).await.expect(200);
    }
    let schema = viewer.send_request(&fixture.server, Method::GET, "/room/api/schema", None);
    schema.await.expect(200);
    let change = viewer
        .post(&fixture.server, "", &json!({ "name": "Another" }))
        .await;
    change.problem(403, "forbidden");
    let bob = fixture.user("bob").await;
    query(&bob.owner, "SELECT 1 AS n")
        .await
        .problem(401, "unauthorized");
}

/// Returns how many tokens an answer says that its bucket has left.
fn tokens_left(answer: &Answer) -> u64 {
    let state = answer.header("ratelimit").unwrap();
    let left = state.strip_prefix("\"owner\";r=").unwrap();
    left.split(';').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn all_keys_and_free_workspaces_of_a_person_have_one_bucket() {
    let fixture = MembersFixture::new().await;
    let server = &fixture.server;
    let alice = fixture.user("alice").await;
    let mut callers = vec![alice.owner.clone()];
    for (slug, keys) in [("one", 2), ("two", 1)] {
        alice.workspace(&fixture, slug).await;
        let path = format!("{WORKSPACES_PATH}/{slug}/keys");
        for _ in 0..keys {
            let made = alice.send(&fixture, Method::POST, &path, json!({})).await;
            let credential = text(&made.expect(201).json()["credential"]);
            callers.push(Owner::with_credential(&credential));
        }
    }
    let mut left = Vec::new();
    for caller in &callers {
        left.push(tokens_left(&caller.get(server, "").await.expect(200)));
    }
    let first = left[0];
    assert_eq!(left, [first, first - 1, first - 2, first - 3]);
    // A workspace that pays counts by itself.
    let workspaces = &server.server().app().workspaces;
    workspaces.set_plan("two", Plan::Pro).await.unwrap();
    let paying = callers[3].get(server, "").await.expect(200);
    assert!(tokens_left(&paying) > first);
    let bob = fixture.user("bob").await;
    let other = bob.owner.get(server, "").await.expect(200);
    assert!(tokens_left(&other) > first);
}
