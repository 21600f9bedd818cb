//! Slugs in the form of an id: never given out, and found where they were.

use super::*;

const UUID: &str = "0198c0de-0000-7000-8000-00000000000f";

/// Gives what answers at a slug another one, as the server once did where it was asked for.
fn rename(server: &TestServer, from: &str, to: &str) {
    let rows = rusqlite::Connection::open(server.data().join("control.db")).unwrap();
    let sql = "UPDATE deployments SET slug = ?2 WHERE slug = ?1";
    assert_eq!(rows.execute(sql, [from, to]).unwrap(), 1);
}

#[tokio::test]
async fn a_slug_in_the_form_of_an_id_is_never_given_out() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let stored = server.snapshot();
    let body = json!({ "type": "markdown", "content": "# x", "requested_slug": UUID });
    let frontends = format!("/{project}/frontends");
    let frontend = owner.post(&server, &frontends, &body);
    let share = json!({ "content": "x", "name": UUID });
    let share = server.json("/api/v1/deploy", &share).answer();
    let file = server.request(Method::PUT, &format!("/api/v1/deploy/a.md?name={UUID}"));
    let file = file.body("x").answer();
    let form = server.post("/_svc/share");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let form = form
        .body(format!("content=x&type=html&name={UUID}"))
        .answer();
    for (answer, field) in [
        (frontend.await, "requested_slug"),
        (share.await, "name"),
        (file.await, "name"),
        (form.await, "name"),
    ] {
        let problem = answer.problem(400, "invalid_request");
        let detail = text(&problem["detail"]);
        assert!(detail.contains(field) && detail.contains("id"), "{detail}");
    }
    assert_eq!(server.snapshot(), stored);
    // One digit less is a slug like others.
    let body = json!({ "content": "x", "name": &UUID[1..] });
    assert_eq!(server.publish_slug(&body).await, UUID[1..]);
}

#[tokio::test]
async fn a_page_that_has_such_a_slug_is_found_by_it() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let room = owner.frontend(&server, &project, "room").await;
    rename(&server, "room", UUID);
    let path = format!("/{project}/frontends/{UUID}");
    let found = owner.get(&server, &path).await.expect(200).json();
    assert_eq!((&found["id"], &found["slug"]), (&room["id"], &json!(UUID)));
    let body = json!({ "content": "# Two" });
    owner
        .send(&server, Method::PUT, &path, &body)
        .await
        .expect(200);
    let page = server.get(&format!("/{UUID}/raw")).answer().await;
    assert_eq!(page.expect(200).text(), "# Two");
    // An id comes before a slug that looks like it.
    let hall = owner.frontend(&server, &project, "hall").await;
    rename(&server, UUID, &text(&hall["id"]));
    let path = format!("/{project}/frontends/{}", text(&hall["id"]));
    let found = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(found["slug"], "hall");
    owner.delete(&server, &path).await.expect(204);
    let found = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(found["id"], room["id"]);
    owner.delete(&server, &path).await.expect(204);
    owner.get(&server, &path).await.problem(404, "not_found");
    server
        .get(&format!("/{}", text(&hall["id"])))
        .answer()
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_claimed_share_leaves_such_a_slug_behind() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let share = json!({ "content": "# x", "type": "markdown", "name": "note" });
    let share = server.deploy(&share).await;
    rename(&server, "note", UUID);
    let old = format!("/{UUID}");
    server.get(&old).answer().await.expect(200);
    let claim = json!({ "id": share["id"], "delete_token": share["delete_token"] });
    let path = format!("/{project}/frontends/claim");
    let claimed = owner.post(&server, &path, &claim).await.expect(201).json();
    let slug = text(&claimed["slug"]);
    assert_ne!(slug, UUID);
    let page = server.get(&format!("/{slug}")).answer().await.expect(200);
    assert!(page.text().contains(&format!("data-slug=\"{slug}\"")));
    server.get(&old).answer().await.problem(404, "not_found");
}
