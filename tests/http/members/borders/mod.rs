//! The borders between workspaces: what is another's is not reached through what is one's own, and who was let out is out.

mod attempts;

use http::Method;
use serde_json::{Value, json};
use svc::operations;
use svc_tests::{Answer, ReadAnswer};

use self::attempts::{foreign_requests, foreign_tool_calls};
use super::roles::{UNSCOPED_OPERATIONS, WorkspaceFixture, create_callers, fill_path};
use super::{MembersFixture, WORKSPACES_PATH};
use crate::openapi::{description, operations as described};
use crate::owner::{Owner, text};

const PROJECTS: &str = "/api/v1/projects";

/// Ids of the resources in a workspace.
struct ResourceIds {
    frontend: String,
    live: String,
    draft: String,
    price: String,
    visitor: String,
    key: String,
    member: String,
}

async fn send_request(
    fixture: &MembersFixture,
    who: &Owner,
    method: Method,
    path: &str,
    body: Value,
) -> Answer {
    let body = (!body.is_null()).then_some(body);
    who.send_request(&fixture.server, method, path, body.as_ref())
        .await
}

/// Creates one resource of each kind in a workspace, as its owner.
async fn populate(
    fixture: &MembersFixture,
    owner: &Owner,
    place: &WorkspaceFixture,
    member: &str,
) -> ResourceIds {
    let project = format!("{PROJECTS}/{}", place.project);
    let frontend = format!("{project}/frontends/{}", place.slug);
    let post = async |path: String, body: Value| {
        let made = send_request(fixture, owner, Method::POST, &path, body).await;
        made.expect(201).json()
    };
    let shown = send_request(fixture, owner, Method::GET, &frontend, Value::Null).await;
    let id = text(&shown.expect(200).json()["id"]);
    let listed = format!("{frontend}/revisions");
    let listed = send_request(fixture, owner, Method::GET, &listed, Value::Null).await;
    let live = text(&listed.expect(200).json()["active_revision_id"]);
    let draft = json!({ "base_revision_id": live, "content": format!("# Two of {}", place.slug) });
    let draft = send_request(
        fixture,
        owner,
        Method::POST,
        &format!("{frontend}/revisions"),
        draft,
    )
    .await;
    let draft = text(&draft.expect(200).json()["revision"]["revision_id"]);
    let price = json!({ "product_name": "Tea", "label": "Cup", "amount": 300, "currency": "eur" });
    let price = post(format!("{project}/payments/catalog"), price).await;
    let keys = format!("{WORKSPACES_PATH}/{}/keys", place.workspace);
    let key = post(keys, json!({ "note": "kept" })).await;
    let visitor = format!("usr_visitor{}", place.slug);
    let (id_of_visitor, of) = (visitor.clone(), place.project.clone());
    let control = &fixture.server.server().app().control;
    let signed_in = control.write(move |tx| {
        tx.execute(
            "INSERT INTO visitors (id, project_id, issuer, subject, provider, created_at, last_seen_at)
             VALUES (?1, ?2, 'https://issuer.example', 's-1', 'dev', 0, 0)",
            [id_of_visitor, of],
        )?;
        Ok::<_, svc::control::Error>(())
    });
    signed_in.await.unwrap();
    ResourceIds {
        frontend: id,
        live,
        draft,
        price: text(&price["id"]),
        visitor,
        key: text(&key["key_id"]),
        member: member.to_owned(),
    }
}

/// Documents of a workspace, as its owner reads them.
async fn owner_view(
    fixture: &MembersFixture,
    owner: &Owner,
    place: &WorkspaceFixture,
) -> Vec<Value> {
    let project = format!("{PROJECTS}/{}", place.project);
    let (frontend, workspace) = (
        format!("{project}/frontends/{}", place.slug),
        format!("{WORKSPACES_PATH}/{}", place.workspace),
    );
    let mut seen = Vec::new();
    for path in [
        project.clone(),
        format!("{project}/frontends"),
        format!("{frontend}/content"),
        format!("{frontend}/revisions"),
        format!("{frontend}/releases"),
        format!("{project}/backend"),
        format!("{project}/payments/catalog"),
        format!("{project}/visitors"),
        workspace.clone(),
        format!("{workspace}/keys"),
        format!("{workspace}/audit"),
    ] {
        let answer = send_request(fixture, owner, Method::GET, &path, Value::Null).await;
        let mut document = answer.expect(200).json();
        // When a key was last used is written down behind the request.
        for key in document["keys"].as_array_mut().into_iter().flatten() {
            key["last_used_at"] = Value::Null;
        }
        seen.push(document);
    }
    seen
}

#[tokio::test]
async fn what_is_anothers_is_not_reached_through_ones_own() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    let by = |name: &str| &people.iter().find(|one| one.name == name).unwrap().owner;
    let (alice, bob) = (by("alice").clone(), by("bob").clone());
    // Each workspace has a member that the other one lacks.
    let mut things = Vec::new();
    for (owner, place, name) in [(&alice, &places[0], "erin"), (&bob, &places[1], "frank")] {
        let member = fixture.user(name).await.id;
        let body = json!({ "user_id": member, "role": "viewer" });
        let path = format!("{WORKSPACES_PATH}/{}/members", place.workspace);
        send_request(&fixture, owner, Method::POST, &path, body)
            .await
            .expect(201);
        things.push(populate(&fixture, owner, place, &member).await);
    }
    let before = [
        owner_view(&fixture, &alice, &places[0]).await,
        owner_view(&fixture, &bob, &places[1]).await,
    ];
    for (name, own) in [
        ("alice", 0),
        ("a machine", 0),
        ("bob", 1),
        ("another machine", 1),
    ] {
        let (who, other) = (by(name), 1 - own);
        let attempts = foreign_requests(&places[own], &things[own], &places[other], &things[other]);
        for (method, path, body, status) in attempts {
            let answer = send_request(&fixture, who, method.clone(), &path, body).await;
            let above = name.contains("machine") && path.starts_with(WORKSPACES_PATH);
            let expected = if above { 403 } else { status };
            assert_eq!(
                answer.status,
                expected,
                "{method} {path} by {name}: {}",
                answer.text()
            );
        }
        for (tool, given) in foreign_tool_calls(&places[own], &places[other], &things[other]) {
            let params = json!({ "name": tool, "arguments": given });
            let body =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let request = fixture
                .server
                .json("/mcp", &body)
                .bearer_auth(&who.credential);
            let answer = request
                .header("mcp-protocol-version", "2025-11-25")
                .answer()
                .await;
            let result = answer.expect(200).json()["result"].take();
            let code = &result["structuredContent"]["code"];
            let done = result["structuredContent"] == json!({ "deleted": true });
            assert!(
                done || *code == "not_found" || *code == "forbidden",
                "{tool} {given} by {name}: {result}"
            );
        }
    }
    // Nothing of either has changed, not even by what is answered as if it were done.
    let after = [
        owner_view(&fixture, &alice, &places[0]).await,
        owner_view(&fixture, &bob, &places[1]).await,
    ];
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_kept_answer_is_its_callers_own() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    let path = format!("{PROJECTS}/{}/frontends", places[0].project);
    let body = json!({ "type": "markdown", "content": "# Mine", "requested_slug": "mine" });
    let send = async |who: &Owner| {
        let request = who.request(&fixture.server, Method::POST, &path);
        let request = request.header("idempotency-key", "one-key");
        request.json(&body).answer().await
    };
    let mut slugs = Vec::new();
    for somebody in &people {
        let answer = send(&somebody.owner).await;
        let may = somebody.roles[0].is_some_and(|role| role >= svc::workspaces::Role::Editor);
        assert_eq!(
            answer.status,
            if may { 201 } else { 403 },
            "{}",
            somebody.name
        );
        if may {
            assert_eq!(
                answer.header("idempotency-replayed"),
                None,
                "{}",
                somebody.name
            );
            slugs.push(text(&answer.json()["slug"]));
        }
    }
    slugs.sort();
    slugs.dedup();
    let who = "alice, carol, the machine and the admin's key have one each";
    assert_eq!(slugs.len(), 4, "{who}");
}

#[tokio::test]
async fn who_is_let_out_is_out_from_the_next_request_on() {
    let fixture = MembersFixture::new().await;
    let (places, people) = create_callers(&fixture).await;
    let by = |name: &str| &people.iter().find(|one| one.name == name).unwrap().owner;
    let (alice, bob, carol) = (by("alice"), by("bob"), by("carol"));
    let (machine, reader) = (by("a machine"), by("a reader"));
    // All callers are authenticated once, so that later requests write nothing for that.
    for who in [carol, machine, reader] {
        let project = format!("/{}", places[0].project);
        who.get(&fixture.server, &project).await.expect(200);
    }
    let me = send_request(&fixture, carol, Method::GET, "/api/v1/me", Value::Null).await;
    let carol_id = text(&me.expect(200).json()["user_id"]);
    for (owner, place) in [(alice, &places[0]), (bob, &places[1])] {
        let path = format!("{WORKSPACES_PATH}/{}/members/{carol_id}", place.workspace);
        let gone = send_request(&fixture, owner, Method::DELETE, &path, Value::Null).await;
        gone.expect(204);
    }
    for key in [machine, reader] {
        let id = key.credential.split('_').nth(1).unwrap();
        let path = format!("{WORKSPACES_PATH}/acme/keys/{id}");
        let gone = send_request(&fixture, alice, Method::DELETE, &path, Value::Null).await;
        gone.expect(204);
    }
    let before = fixture.server.snapshot();
    let routes = described(&description(&fixture.server).await);
    for row in operations::all() {
        let found = routes
            .iter()
            .find(|(_, _, operation)| operation["operationId"] == row.id);
        let (path, method, _) = found.unwrap();
        for place in &places {
            let path = fill_path(path, place);
            for key in [machine, reader] {
                let answer = send_request(&fixture, key, method.clone(), &path, json!({})).await;
                answer.problem(401, "unauthorized");
            }
            if UNSCOPED_OPERATIONS.contains(&row.id) {
                continue;
            }
            let answer = send_request(&fixture, carol, method.clone(), &path, json!({})).await;
            answer.problem(403, "forbidden");
        }
    }
    for (path, body) in [
        ("api/query", json!({ "sql": "SELECT 1 AS n" })),
        (
            "api/op",
            json!({ "action": "none", "as": { "user_id": "usr_test" } }),
        ),
    ] {
        let path = format!("/acme/{path}");
        for who in [carol, machine] {
            let answer = send_request(&fixture, who, Method::POST, &path, body.clone()).await;
            assert!(
                matches!(answer.status, 401 | 403),
                "{path}: {}",
                answer.text()
            );
        }
    }
    let listed = carol.get(&fixture.server, "").await.expect(200).json();
    assert_eq!(listed, json!({ "projects": [] }));
    assert_eq!(fixture.server.snapshot(), before, "nothing was done");
}
