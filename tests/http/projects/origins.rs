//! Origins of projects, and ends under load.

use super::*;

#[tokio::test]
async fn a_projects_origin_leads_to_its_home_else_to_its_oldest_page() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let shop = owner.project(&server, "Shop").await;
    owner.frontend(&server, &shop, "till").await;
    let host = format!("house-acme.localhost:{}", server.address().port());
    let root = async || {
        let answer = server.get_raw(&host, "/").await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        match answer.status {
            302 => text(&json!(answer.header("location"))),
            _ => text(&answer.problem(404, "not_found")["detail"]),
        }
    };
    let path = format!("/{project}");
    let set = async |home: &str| {
        let body = json!({ "home": home });
        owner.send(&server, Method::PATCH, &path, &body).await
    };
    assert_eq!(root().await, "Nothing is published here yet.");
    for unknown in ["hall", "till", "No!"] {
        let problem = set(unknown).await.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains("home"), "{problem}");
    }
    owner.frontend(&server, &project, "room").await;
    owner.frontend(&server, &project, "hall").await;
    assert_eq!(root().await, "/room");
    assert_eq!(set("hall").await.expect(200).json()["home"], "hall");
    assert_eq!(root().await, "/hall");
    let detail = owner.get(&server, &path).await.expect(200).json();
    assert_eq!(detail["home"], "hall");
    let rename = json!({ "name": "Home", "home": null });
    let renamed = owner.send(&server, Method::PATCH, &path, &rename);
    assert_eq!(renamed.await.expect(200).json()["home"], "hall");
    owner
        .delete(&server, &format!("{path}/frontends/hall"))
        .await
        .expect(204);
    assert_eq!(root().await, "/room");
    assert_eq!(set("").await.expect(200).json()["home"], Value::Null);
    owner.frontend(&server, &project, "hall").await;
    assert_eq!(root().await, "/room");
    owner
        .delete(&server, &format!("{path}/frontends/room"))
        .await
        .expect(204);
    assert_eq!(root().await, "/hall");
    owner
        .delete(&server, &format!("{path}/frontends/hall"))
        .await
        .expect(204);
    assert_eq!(root().await, "Nothing is published here yet.");
}

#[tokio::test]
async fn a_projects_origin_has_its_own_frontends_and_nothing_else() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let (fixture, shop) = (
        owner.project(&server, "House").await,
        owner.project(&server, "Shop").await,
    );
    let port = server.address().port();
    let home = format!("house-acme.localhost:{port}");
    assert_eq!(server.get_raw(&home, "/").await.status, 404);
    owner.frontend(&server, &fixture, "room").await;
    owner.frontend(&server, &shop, "till").await;
    server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;

    let root = server.get_raw(&home, "/").await.expect(302);
    assert_eq!(root.header("location"), Some("/room"));
    let page = server.get_raw(&home, "/room").await.expect(200);
    assert_eq!(
        page.header("content-security-policy"),
        None,
        "at home it is trusted"
    );
    let elsewhere = server.get("/room").answer().await.expect(200);
    assert!(
        elsewhere
            .header("content-security-policy")
            .unwrap()
            .starts_with("sandbox ")
    );
    for path in [
        "/till",
        "/share",
        "/nothing",
        "/api/v1/projects",
        "/till/raw",
    ] {
        server.get_raw(&home, path).await.problem(404, "not_found");
    }
    assert_eq!(
        server.get_raw(&home, "/room/raw").await.expect(200).text(),
        "# One"
    );
    let script = page
        .text()
        .split("<script src=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(page.text().contains(&format!(
        "<head><script src=\"{script}\" data-slug=\"room\"></script>"
    )));
    let runtime = server.get_raw(&home, script).await.expect(200);
    assert_eq!(
        runtime.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    let part = server.head(script).header("range", "bytes=0-3");
    part.answer().await.expect(200);
    let share = server.get("/share").answer().await;
    assert!(
        !share.text().contains("<script"),
        "a quick share has no runtime"
    );
    owner.frontend(&server, &fixture, "hall").await;
    let root = server.get_raw(&home, "/").await.expect(302);
    assert_eq!(root.header("location"), Some("/room"), "the oldest stays");
}

#[tokio::test]
async fn five_thousand_members_end_while_pages_are_served() {
    const MEMBERS: i64 = 5_000;
    let roomy = TestServer::builder().limits(|limits| {
        limits.active_deployments = 6_000;
        limits.cap_owner_percent = 100;
    });
    let server = roomy.start().await;
    let owner = Owner::new(&server, "acme").await;
    let made = owner
        .post(&server, "", &json!({ "name": "Many", "ttl_seconds": 60 }))
        .await;
    let project = text(&made.expect(201).json()["id"]);
    owner.frontend(&server, &project, "member-0").await;
    // The others are rows alone: what ends is the same, and no renderer is under test here.
    let rows = rusqlite::Connection::open(server.data().join("control.db")).unwrap();
    rows.busy_timeout(std::time::Duration::from_secs(5))
        .unwrap();
    rows.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 1..MEMBERS {
        rows.execute(
            "INSERT INTO deployments (id, slug, content_type, title, project_id, state, updated_at,
                created_at, expires_at, source_digest, artifact_digest)
             SELECT substr(id, 1, 24) || printf('%012d', ?1), 'member-' || ?1, content_type, title,
                project_id, state, updated_at, created_at, expires_at, source_digest, artifact_digest
             FROM deployments WHERE slug = 'member-0'",
            [number],
        )
        .unwrap();
    }
    rows.execute_batch("COMMIT").unwrap();
    let long = owner.project(&server, "Long").await;
    owner.frontend(&server, &long, "stays").await;
    server.get("/member-4999").answer().await.expect(200);
    server.advance(60);
    for number in [0, 1, 4_999] {
        server
            .get(&format!("/member-{number}"))
            .answer()
            .await
            .problem(404, "not_found");
    }
    let ended = async || {
        server.get("/stays").answer().await.expect(200);
        let left: i64 = rows
            .query_row(
                "SELECT count(*) FROM deployments WHERE slug LIKE 'member-%'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        (left == 0).then_some(())
    };
    wait_until("all members to be gone", ended).await;
    let again = owner.frontend(&server, &long, "member-4999").await;
    assert_eq!(again["slug"], "member-4999");
}

/// A repeated request joins the first one while that still runs.
#[tokio::test]
async fn a_client_who_hangs_up_and_repeats_gets_one_project() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    // Writes wait while another connection writes.
    let rows = rusqlite::Connection::open(server.data().join("control.db")).unwrap();
    rows.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({ "name": "Once" });
    let send_request = || {
        let request = owner.request(&server, Method::POST, "/api/v1/projects");
        request.header("idempotency-key", "k").json(&body).answer()
    };
    let running = || !server.server().app().idempotency.is_idle();
    let begun = wait_until("the first request to run", async || running().then_some(()));
    tokio::select! {
        _ = send_request() => panic!("it is answered before it is written"),
        () = begun => {}
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    send_request().await.problem(409, "idempotency_conflict");
    rows.execute_batch("ROLLBACK").unwrap();
    wait_until("the first request to end", async || {
        (!running()).then_some(())
    })
    .await;
    let again = send_request().await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let listed = owner.get(&server, "").await.json();
    assert_eq!(listed["projects"].as_array().unwrap().len(), 1);
}
