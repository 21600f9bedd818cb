//! Workspaces: made, seen, changed, shared and ended.

mod ends;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::{Owner, text};
use crate::svc;

#[tokio::test]
async fn a_user_makes_a_workspace_and_owns_it() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    let body = json!({ "display_name": "Acme Inc." });
    let made = alice
        .send(&fixture, Method::POST, WORKSPACES_PATH, body)
        .await
        .expect(201)
        .json();
    let id = text(&made["id"]);
    let expected = json!({
        "id": id, "slug": "acme-inc", "display_name": "Acme Inc.", "role": "owner", "plan": "free",
        "project_count": 0, "created_at": "2026-11-20T12:00:00.000Z",
    });
    assert_eq!(made, expected);
    let listed = alice
        .get(&fixture, WORKSPACES_PATH)
        .await
        .expect(200)
        .json();
    assert_eq!(listed, json!({ "workspaces": [expected] }));
    alice.owner.project(&fixture.server, "House").await;
    for name in [id.as_str(), "acme-inc"] {
        let detail = alice
            .get(&fixture, &format!("{WORKSPACES_PATH}/{name}"))
            .await
            .expect(200)
            .json();
        assert_eq!(detail["project_count"], 1);
        assert_eq!(
            detail["members"],
            json!([{
                "user_id": alice.id, "email": "alice@example.org", "role": "owner",
                "created_at": "2026-11-20T12:00:00.000Z",
            }])
        );
    }
    let me = alice.get(&fixture, "/api/v1/me").await.json();
    let membership = json!({ "workspace": { "id": id, "slug": "acme-inc" }, "role": "owner" });
    assert_eq!(me["memberships"], json!([membership]));
    // One slug is made of one name as often as it is asked for; one that is asked for is taken or not.
    for expected in ["acme-inc-2", "acme-inc-3"] {
        let body = json!({ "display_name": "ACME, Inc!" });
        let made = alice
            .send(&fixture, Method::POST, WORKSPACES_PATH, body)
            .await
            .expect(201)
            .json();
        assert_eq!(made["slug"], expected);
    }
    let body = json!({ "display_name": "x", "slug": "acme-inc" });
    let taken = alice
        .send(&fixture, Method::POST, WORKSPACES_PATH, body)
        .await;
    taken.problem(409, "slug_conflict");
    let body = json!({ "display_name": "日本" });
    let made = alice
        .send(&fixture, Method::POST, WORKSPACES_PATH, body)
        .await
        .expect(201)
        .json();
    assert_eq!(made["slug"], "workspace");
}

#[tokio::test]
async fn names_and_slugs_have_rules() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    for body in [
        json!({}),
        json!({ "display_name": "" }),
        json!({ "display_name": " " }),
        json!({ "display_name": "x".repeat(101) }),
        json!({ "display_name": "x", "slug": "No" }),
        json!({ "display_name": "x", "slug": "" }),
        json!({ "display_name": "x", "slug": "a".repeat(64) }),
        json!({ "display_name": "x", "slug": "01a1fc50-0000-7000-8000-000000000000" }),
        json!({ "display_name": "x", "plan": "pro" }),
    ] {
        let answer = alice
            .send(&fixture, Method::POST, WORKSPACES_PATH, body)
            .await;
        answer.problem(400, "invalid_request");
    }
    let machine = Owner::new(&fixture.server, "machines").await;
    let body = json!({ "display_name": "x" });
    let answer = machine
        .send_request(&fixture.server, Method::POST, WORKSPACES_PATH, Some(&body))
        .await;
    answer.problem(403, "forbidden");
}

#[tokio::test]
async fn a_repeated_request_makes_one_workspace_and_one_member() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let twice = async |path: &str, body: Value| {
        let send = async || {
            let request = alice.owner.request(&fixture.server, Method::POST, path);
            let request = request.header("idempotency-key", "once");
            request.json(&body).answer().await.expect(201)
        };
        let (first, second) = (send().await, send().await);
        assert_eq!(second.header("idempotency-replayed"), Some("true"));
        assert_eq!(first.json(), second.json());
    };
    twice(WORKSPACES_PATH, json!({ "display_name": "Acme" })).await;
    let listed = alice.get(&fixture, WORKSPACES_PATH).await.json();
    assert_eq!(listed["workspaces"].as_array().unwrap().len(), 1);
    let body = json!({ "user_id": bob.id, "role": "viewer" });
    twice(&format!("{WORKSPACES_PATH}/acme/members"), body).await;
}

#[tokio::test]
async fn members_come_change_and_go_from_the_next_request_on() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let id = alice.workspace(&fixture, "acme").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    let members = format!("{WORKSPACES_PATH}/{id}/members");
    let path = format!("/{project}");
    bob.owner
        .get(&fixture.server, &path)
        .await
        .problem(403, "forbidden");
    bob.get(&fixture, &format!("{WORKSPACES_PATH}/acme"))
        .await
        .problem(403, "forbidden");
    bob.get(&fixture, &format!("{WORKSPACES_PATH}/nowhere"))
        .await
        .problem(404, "not_found");
    let body = json!({ "user_id": bob.id, "role": "viewer" });
    let added = alice
        .send(&fixture, Method::POST, &members, body)
        .await
        .expect(201)
        .json();
    let expected = json!({
        "user_id": bob.id, "email": "bob@example.org", "role": "viewer", "created_at": "2026-11-20T12:00:00.000Z",
    });
    assert_eq!(added, expected);
    bob.owner.get(&fixture.server, &path).await.expect(200);
    let rename = json!({ "name": "Home" });
    let change = async || {
        bob.owner
            .send(&fixture.server, Method::PATCH, &path, &rename)
            .await
    };
    change().await.problem(403, "forbidden");
    let one = format!("{members}/{}", bob.id);
    let role = json!({ "role": "editor" });
    let set = alice
        .send(&fixture, Method::PATCH, &one, role)
        .await
        .expect(200)
        .json();
    assert_eq!(set["role"], "editor");
    change().await.expect(200);
    let listed = alice.get(&fixture, &members).await.expect(200).json();
    assert_eq!(listed["members"].as_array().unwrap().len(), 2);
    alice.delete(&fixture, &one).await.expect(204);
    change().await.problem(403, "forbidden");
    assert_eq!(
        bob.get(&fixture, WORKSPACES_PATH).await.json(),
        json!({ "workspaces": [] })
    );
    alice.delete(&fixture, &one).await.problem(404, "not_found");
    let gone = alice
        .send(&fixture, Method::PATCH, &one, json!({ "role": "viewer" }))
        .await;
    gone.problem(404, "not_found");
}

#[tokio::test]
async fn who_is_no_user_is_no_member() {
    let fixture = MembersFixture::new().await;
    let alice = fixture.user("alice").await;
    alice.workspace(&fixture, "acme").await;
    let machine = Owner::new(&fixture.server, "machines").await;
    let key = machine.credential.split('_').nth(1).unwrap().to_owned();
    let members = format!("{WORKSPACES_PATH}/acme/members");
    for (body, status, code) in [
        (
            json!({ "user_id": key, "role": "viewer" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "user_id": machine.credential, "role": "viewer" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "user_id": alice.id, "role": "machine" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "user_id": alice.id, "role": "boss" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "user_id": "alice@example.org", "role": "viewer" }),
            400,
            "invalid_request",
        ),
        (json!({ "role": "viewer" }), 400, "invalid_request"),
        (json!({ "user_id": alice.id }), 400, "invalid_request"),
        (
            json!({ "user_id": "usr_nobody", "role": "viewer" }),
            404,
            "not_found",
        ),
        (
            json!({ "user_id": "usr_01a1fc50-0000-7000-8000-000000000000", "role": "viewer" }),
            404,
            "not_found",
        ),
    ] {
        let answer = alice
            .send(&fixture, Method::POST, &members, body.clone())
            .await;
        answer.problem(status, code);
    }
    let (path, role) = (format!("{members}/{key}"), json!({ "role": "viewer" }));
    let patch = alice.send(&fixture, Method::PATCH, &path, role).await;
    patch.problem(400, "invalid_request");
}

#[tokio::test]
async fn nobody_gives_or_takes_a_role_above_their_own_and_an_owner_stays() {
    let fixture = MembersFixture::new().await;
    let (alice, bob, carol) = (
        fixture.user("alice").await,
        fixture.user("bob").await,
        fixture.user("carol").await,
    );
    let id = alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, &id, &bob, "admin").await;
    let members = format!("{WORKSPACES_PATH}/{id}/members");
    let of = |user: &super::User| format!("{members}/{}", user.id);
    let role = |role: &str| json!({ "role": role });
    let owner = json!({ "user_id": carol.id, "role": "owner" });
    bob.send(&fixture, Method::POST, &members, owner)
        .await
        .problem(403, "forbidden");
    for (who, role_given) in [(&bob, "owner"), (&alice, "viewer")] {
        let answer = bob
            .send(&fixture, Method::PATCH, &of(who), role(role_given))
            .await;
        answer.problem(403, "forbidden");
    }
    // Adding who is there is no way around it.
    let demote = json!({ "user_id": alice.id, "role": "viewer" });
    bob.send(&fixture, Method::POST, &members, demote.clone())
        .await
        .problem(403, "forbidden");
    bob.delete(&fixture, &of(&alice))
        .await
        .problem(403, "forbidden");
    alice
        .send(&fixture, Method::POST, &members, demote)
        .await
        .problem(409, "last_owner");
    alice
        .send(&fixture, Method::PATCH, &of(&alice), role("admin"))
        .await
        .problem(409, "last_owner");
    alice
        .delete(&fixture, &of(&alice))
        .await
        .problem(409, "last_owner");
    bob.add_member(&fixture, &id, &carol, "admin").await;
    bob.send(&fixture, Method::PATCH, &of(&carol), role("editor"))
        .await
        .expect(200);
    alice
        .send(&fixture, Method::PATCH, &of(&bob), role("owner"))
        .await
        .expect(200);
    alice.delete(&fixture, &of(&alice)).await.expect(204);
    bob.delete(&fixture, &of(&bob))
        .await
        .problem(409, "last_owner");
}

#[tokio::test]
async fn two_owners_who_remove_each_other_leave_one() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let id = alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, &id, &bob, "owner").await;
    let members = format!("{WORKSPACES_PATH}/{id}/members");
    let (one, other) = (
        format!("{members}/{}", alice.id),
        format!("{members}/{}", bob.id),
    );
    let (first, second) = tokio::join!(alice.delete(&fixture, &other), bob.delete(&fixture, &one));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    // The second caller is no longer a member.
    assert_eq!(statuses, [204, 403]);
}

#[tokio::test]
async fn who_has_several_workspaces_names_one() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let acme = alice.workspace(&fixture, "acme").await;
    alice.owner.project(&fixture.server, "First").await;
    alice.workspace(&fixture, "zeta").await;
    let post = async |body: Value| alice.owner.post(&fixture.server, "", &body).await;
    let detail = post(json!({ "name": "x" }))
        .await
        .problem(400, "invalid_request");
    let detail = text(&detail["detail"]);
    assert!(
        detail.contains("acme") && detail.contains("zeta"),
        "{detail}"
    );
    post(json!({ "name": "x", "workspace": "acme" }))
        .await
        .problem(403, "plan_limit");
    let second = post(json!({ "name": "Second", "workspace": "zeta" }))
        .await
        .expect(201);
    assert_eq!(second.json()["workspace"]["slug"], "zeta");
    post(json!({ "name": "x", "workspace": "nowhere" }))
        .await
        .problem(404, "not_found");
    let listed = async |query: &str| {
        let answer = alice
            .owner
            .get(&fixture.server, query)
            .await
            .expect(200)
            .json();
        let projects = answer["projects"].as_array().unwrap().clone();
        projects
            .iter()
            .map(|p| text(&p["name"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["First", "Second"]);
    assert_eq!(listed("?workspace=zeta").await, ["Second"]);
    assert_eq!(listed(&format!("?workspace={acme}")).await, ["First"]);
    bob.owner
        .get(&fixture.server, "?workspace=zeta")
        .await
        .problem(403, "forbidden");
    bob.owner
        .get(&fixture.server, "?workspace=none")
        .await
        .problem(404, "not_found");
    alice.add_member(&fixture, "zeta", &bob, "viewer").await;
    // A viewer's one workspace needs no name, and makes no projects.
    bob.owner
        .post(&fixture.server, "", &json!({ "name": "x" }))
        .await
        .problem(403, "forbidden");
}
