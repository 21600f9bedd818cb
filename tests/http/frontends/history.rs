//! The history of a frontend, its views, and its end.

use super::*;

#[tokio::test]
async fn the_history_has_pages() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    owner.frontend(&server, &project, "room").await;
    let room = format!("/{project}/frontends/room");
    for number in 0..5 {
        let put = json!({ "content": format!("# {number}") });
        owner
            .send(&server, Method::PUT, &room, &put)
            .await
            .expect(200);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("{room}/revisions?limit=2{cursor}");
        let page = owner.get(&server, &path).await.expect(200).json();
        seen.extend(
            page["revisions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| text(&r["revision_id"])),
        );
        match &page["next_cursor"] {
            Value::Null => break,
            next => cursor = format!("&cursor={}", text(next)),
        }
    }
    let all = owner
        .get(&server, &format!("{room}/revisions"))
        .await
        .json();
    let all: Vec<_> = all["revisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| text(&r["revision_id"]))
        .collect();
    assert_eq!((seen.len(), &seen), (6, &all));
    for query in [
        "limit=0",
        "limit=-1",
        "limit=201",
        "limit=x",
        "cursor=x",
        "page=1",
    ] {
        let answer = owner
            .get(&server, &format!("{room}/revisions?{query}"))
            .await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn views_survive_a_restart_and_retire_with_their_frontend() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    owner.frontend(&server, &project, "room").await;
    let room = format!("/{project}/frontends/room");
    for _ in 0..3 {
        server.get("/room").answer().await.expect(200);
    }
    let put = json!({ "content": "# Two" });
    owner
        .send(&server, Method::PUT, &room, &put)
        .await
        .expect(200);
    server.get("/room").answer().await.expect(200);
    let server = server.restart().await;
    assert_eq!(owner.get(&server, &room).await.json()["visits"], 4);
    let detail = owner.get(&server, &format!("/{project}")).await.json();
    assert_eq!(
        (&detail["visits"]["total"], &detail["members"][0]["visits"]),
        (&json!(4), &json!(4))
    );
    owner.delete(&server, &room).await.expect(204);
    owner.frontend(&server, &project, "room").await;
    assert_eq!(owner.get(&server, &room).await.json()["visits"], 0);
}

#[tokio::test]
async fn without_a_sites_domain_pages_are_on_the_sites_host() {
    let server = TestServer::builder()
        .settings(|settings| settings.base_url = Some("https://api.example.com".parse().unwrap()))
        .start()
        .await;
    let (owner, project) = start_fixture(&server).await;
    let made = owner.frontend(&server, &project, "room").await;
    assert_eq!(made["url"], "https://api.example.com/room");
    assert_eq!(made["api_base"], "https://api.example.com/room/api");
    let page = server.get("/room").answer().await.expect(200);
    assert_eq!(
        page.header("content-security-policy"),
        None,
        "every owner is trusted with it"
    );
}

/// A frontend that is deleted during its creation ends for its creator, too, and releases its slug.
#[tokio::test]
async fn a_frontend_can_be_deleted_while_it_is_created() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let frontends = format!("/{project}/frontends");
    let large = json!({
        "type": "markdown", "content": "*slow* `work`\n\n".repeat(50_000), "requested_slug": "room",
    });
    let caught = async || {
        let deleting = async {
            let creating = async || {
                let listed = owner.get(&server, &frontends).await.json();
                let first = listed["frontends"].get(0)?["state"].clone();
                Some(first == "creating")
            };
            let caught = wait_until("the frontend to be listed", creating).await;
            owner
                .delete(&server, &format!("{frontends}/room"))
                .await
                .expect(204);
            let listed = owner.get(&server, &frontends).await.json();
            assert_eq!(
                listed,
                json!({ "frontends": [] }),
                "gone when it is answered"
            );
            caught
        };
        let (made, caught) = tokio::join!(owner.post(&server, &frontends, &large), deleting);
        if caught {
            made.problem(404, "not_found");
        }
        caught.then_some(())
    };
    wait_until("a deletion in time", caught).await;
    server.get("/room").answer().await.problem(404, "not_found");
    assert_eq!(
        owner.frontend(&server, &project, "room").await["slug"],
        "room"
    );
}
