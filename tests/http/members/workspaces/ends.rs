//! Plans, the end of a workspace, and its place in a backup.

use super::*;

#[tokio::test]
async fn the_plan_is_not_the_callers_to_choose() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let id = alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, &id, &bob, "admin").await;
    let path = format!("{WORKSPACES_PATH}/{id}");
    let patch = async |who: &crate::members::User, body: Value| {
        who.send(&fixture, Method::PATCH, &path, body).await
    };
    let plan = |plan: &str| json!({ "plan": plan });
    patch(&alice, plan("pro")).await.problem(403, "plan_limit");
    patch(&alice, plan("gold"))
        .await
        .problem(400, "invalid_request");
    patch(&alice, json!({}))
        .await
        .problem(400, "nothing_to_update");
    patch(&alice, json!({ "slug": "x" }))
        .await
        .problem(400, "invalid_request");
    patch(&bob, plan("free")).await.problem(403, "forbidden");
    let both = json!({ "plan": "free", "display_name": "Ours" });
    patch(&bob, both).await.problem(403, "forbidden");
    let named = patch(&bob, json!({ "display_name": "Ours" }))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&named["display_name"], &named["role"]),
        (&json!("Ours"), &json!("admin"))
    );
    // The operator's word is another matter; back to free only with what that allows.
    let set = ["namespace", "plan", "acme", "pro"];
    assert!(fixture.server.command(&svc(), &set).await.success);
    for name in ["One", "Two"] {
        alice.owner.project(&fixture.server, name).await;
    }
    patch(&alice, plan("pro")).await.problem(403, "plan_limit");
    patch(&alice, plan("free")).await.problem(403, "plan_limit");
    let projects = alice.owner.get(&fixture.server, "").await.json();
    let last = text(&projects["projects"][1]["id"]);
    alice
        .owner
        .delete(&fixture.server, &format!("/{last}"))
        .await
        .expect(204);
    let free = patch(&alice, plan("free")).await.expect(200).json();
    assert_eq!(
        (&free["plan"], &free["project_count"]),
        (&json!("free"), &json!(1))
    );
    let more = alice
        .owner
        .post(&fixture.server, "", &json!({ "name": "Three" }))
        .await;
    more.problem(403, "plan_limit");
}

#[tokio::test]
async fn a_workspace_ends_with_all_that_it_owns() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let id = alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, &id, &bob, "admin").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    let page = alice
        .owner
        .frontend(&fixture.server, &project, "room")
        .await;
    fixture.server.get("/room").answer().await.expect(200);
    let body = json!({});
    let key = alice
        .send(
            &fixture,
            Method::POST,
            &format!("{WORKSPACES_PATH}/acme/keys"),
            body,
        )
        .await;
    let key = Owner::with_credential(&text(&key.expect(201).json()["credential"]));
    let path = format!("{WORKSPACES_PATH}/{id}");
    bob.delete(&fixture, &path).await.problem(403, "forbidden");
    key.send_request(&fixture.server, Method::DELETE, &path, None)
        .await
        .problem(403, "forbidden");
    fixture.server.get("/room").answer().await.expect(200);
    alice.delete(&fixture, &path).await.expect(204);
    // Before it was answered: the page is in memory no more.
    fixture
        .server
        .get("/room")
        .answer()
        .await
        .problem(404, "not_found");
    key.get(&fixture.server, "")
        .await
        .problem(401, "unauthorized");
    assert_eq!(
        alice.get(&fixture, WORKSPACES_PATH).await.json(),
        json!({ "workspaces": [] })
    );
    alice.get(&fixture, &path).await.problem(404, "not_found");
    alice
        .delete(&fixture, &path)
        .await
        .problem(404, "not_found");
    alice
        .owner
        .get(&fixture.server, &format!("/{project}"))
        .await
        .problem(404, "not_found");
    // Its name is free at once.
    bob.workspace(&fixture, "acme").await;
    assert!(page["id"].is_string());
    let gone = async || {
        let rows = fixture.server.rows();
        let left = rows.iter().filter(|(table, _)| table == "deployments");
        (left.map(|(_, rows)| rows).sum::<i64>() == 0).then_some(())
    };
    svc_tests::wait_until("the teardown", gone).await;
    let checked = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(checked["errors"], json!([]));
}

#[tokio::test]
async fn a_user_owns_some_workspaces_and_no_more() {
    let builder = TestServer::builder().limits(|limits| limits.workspaces_per_user = 2);
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    let alice = fixture.user("alice").await;
    for slug in ["one", "two"] {
        alice.workspace(&fixture, slug).await;
    }
    let body = json!({ "display_name": "three" });
    alice
        .send(&fixture, Method::POST, WORKSPACES_PATH, body.clone())
        .await
        .problem(403, "forbidden");
    alice
        .delete(&fixture, &format!("{WORKSPACES_PATH}/one"))
        .await
        .expect(204);
    alice
        .send(&fixture, Method::POST, WORKSPACES_PATH, body)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_backup_has_users_members_and_keys() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let id = alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, &id, &bob, "viewer").await;
    let body = json!({ "role": "viewer", "note": "kept" });
    let key = alice
        .send(
            &fixture,
            Method::POST,
            &format!("{WORKSPACES_PATH}/acme/keys"),
            body,
        )
        .await;
    let key = Owner::with_credential(&text(&key.expect(201).json()["credential"]));
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("backup");
    let backup = backup.to_str().unwrap().to_owned();
    assert!(
        fixture
            .server
            .command(&svc(), &["backup", &backup])
            .await
            .success
    );
    alice
        .delete(&fixture, &format!("{WORKSPACES_PATH}/{id}"))
        .await
        .expect(204);
    let MembersFixture { server, issuer } = fixture;
    let server = server
        .restart_after_change(async |data| {
            let put_back = svc().run(data, &["restore", &backup]).await;
            assert!(put_back.success, "{put_back:?}");
        })
        .await;
    let fixture = MembersFixture { server, issuer };
    let again = fixture.user("alice").await;
    assert_eq!(again.id, alice.id);
    let detail = again
        .get(&fixture, &format!("{WORKSPACES_PATH}/acme"))
        .await
        .expect(200)
        .json();
    assert_eq!(detail["members"].as_array().unwrap().len(), 2);
    let me = key
        .send_request(&fixture.server, Method::GET, "/api/v1/me", None)
        .await
        .expect(200);
    assert_eq!(me.json()["memberships"][0]["role"], "viewer");
}
