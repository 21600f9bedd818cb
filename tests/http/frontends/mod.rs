//! Frontends: what they are, what is refused, their sources, previews and views.

mod history;
mod ids;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};

use crate::owner::{Owner, text};
use crate::svc;

async fn start_fixture(server: &TestServer) -> (Owner, String) {
    let owner = Owner::new(server, "acme").await;
    let project = owner.project(server, "House").await;
    (owner, project)
}

#[tokio::test]
async fn a_frontend_is_what_it_was_made_of() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let frontends = format!("/{project}/frontends");
    let port = server.address().port();
    for (kind, content) in [
        ("html", "<p>x"),
        ("markdown", "# x"),
        ("mermaid", "graph TD; a-->b"),
        ("json", "[1]"),
        ("csv", "a,b"),
    ] {
        let body =
            json!({ "type": kind, "content": content, "requested_slug": kind, "title": "T" });
        let answer = owner.post(&server, &frontends, &body).await.expect(201);
        let made = answer.json();
        let url = format!("http://house-acme.localhost:{port}/{kind}");
        assert_eq!(answer.header("location"), Some(url.as_str()));
        assert_eq!(
            made,
            json!({
                "id": made["id"], "slug": kind, "url": url, "api_base": format!("{url}/api"),
                "type": kind, "title": "T", "state": "active", "visits": 0,
                "content_sha256": made["content_sha256"],
                "created_at": "2026-11-20T12:00:00.000Z", "updated_at": "2026-11-20T12:00:00.000Z",
            })
        );
        assert_eq!(text(&made["content_sha256"]).len(), 64);
        for target in [kind, made["id"].as_str().unwrap()] {
            let found = owner
                .get(&server, &format!("{frontends}/{target}"))
                .await
                .expect(200);
            assert_eq!(found.json(), made);
        }
        assert_eq!(
            server.get(&format!("/{kind}/raw")).answer().await.text(),
            content
        );
    }
    let listed = owner.get(&server, &frontends).await.expect(200).json();
    let slugs: Vec<_> = listed["frontends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| text(&f["slug"]))
        .collect();
    assert_eq!(
        slugs,
        ["html", "markdown", "mermaid", "json", "csv"],
        "oldest first"
    );
}

#[tokio::test]
async fn what_is_wrong_is_named_and_leaves_nothing() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let frontends = format!("/{project}/frontends");
    for (body, code, says) in [
        (json!({ "content": "x" }), "invalid_request", "`type`"),
        (json!({ "type": "html" }), "invalid_request", "`content`"),
        (
            json!({ "type": "html", "content": "" }),
            "invalid_request",
            "`content`",
        ),
        (
            json!({ "type": "database", "content": "x" }),
            "invalid_request",
            "database",
        ),
        (
            json!({ "type": "app", "content": "x" }),
            "invalid_request",
            "app",
        ),
        (
            json!({ "type": "html", "content": "x", "password": "p" }),
            "invalid_request",
            "`password`",
        ),
        (
            json!({ "type": "html", "content": "x", "one_time": true }),
            "invalid_request",
            "`one_time`",
        ),
        (
            json!({ "type": "html", "content": "x", "password": "p" }),
            "invalid_request",
            "Only a quick share (POST /api/v1/deploy, or the tool deploy_asset) has `password`, `one_time`",
        ),
        (
            json!({ "type": "html", "content": "x", "expires_in": 60 }),
            "invalid_request",
            "lives as long as its project",
        ),
        (
            json!({ "type": "html", "content": "x", "requested_slug": "No" }),
            "invalid_request",
            "`requested_slug`",
        ),
        (
            json!({ "type": "html", "content": "x", "title": "t".repeat(201) }),
            "invalid_request",
            "`title`",
        ),
        (
            json!({ "type": "json", "content": "{" }),
            "render_failed",
            "line 1",
        ),
    ] {
        let problem = owner
            .post(&server, &frontends, &body)
            .await
            .problem(400, code);
        assert!(text(&problem["detail"]).contains(says), "{body}: {problem}");
    }
    assert_eq!(
        owner.get(&server, &frontends).await.json(),
        json!({ "frontends": [] })
    );

    let made = owner.frontend(&server, &project, "").await;
    let path = format!("{frontends}/{}", text(&made["slug"]));
    for (body, code) in [
        (json!({}), "invalid_request"),
        (json!({ "content": "" }), "invalid_request"),
        (json!({ "content": "x", "type": "html" }), "type_mismatch"),
        (
            json!({ "content": "x", "requested_slug": "other" }),
            "invalid_request",
        ),
    ] {
        owner
            .send(&server, Method::PUT, &path, &body)
            .await
            .problem(400, code);
    }
    let fine = json!({ "content": "x", "type": "markdown", "requested_slug": "" });
    owner
        .send(&server, Method::PUT, &path, &fine)
        .await
        .expect(200);
    let missing = format!("{frontends}/missing");
    owner.get(&server, &missing).await.problem(404, "not_found");
    owner
        .send(&server, Method::PUT, &missing, &json!({}))
        .await
        .problem(404, "not_found");
    owner.delete(&server, &missing).await.expect(204);
}

#[tokio::test]
async fn slugs_are_shared_by_everybody() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    server
        .publish_slug(&json!({ "content": "x", "name": "room" }))
        .await;
    for (wanted, given) in [("room", "room-2"), ("api", "api-2"), ("room", "room-3")] {
        assert_eq!(
            owner.frontend(&server, &project, wanted).await["slug"],
            given
        );
    }
    let other = owner.project(&server, "Shop").await;
    let foreign = format!("/{other}/frontends/room-2");
    owner.get(&server, &foreign).await.problem(404, "not_found");
    owner.delete(&server, &foreign).await.expect(204);
    server.get("/room-2").answer().await.expect(200);
    owner
        .delete(&server, &format!("/{project}/frontends/room-2"))
        .await
        .expect(204);
    server
        .get("/room-2")
        .answer()
        .await
        .problem(404, "not_found");
    assert_eq!(
        owner.frontend(&server, &other, "room-2").await["slug"],
        "room-2"
    );
}

#[tokio::test]
async fn a_source_is_answered_as_it_was_or_not_at_all() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    let made = owner.frontend(&server, &project, "room").await;
    let path = format!("/{project}/frontends/room/content");
    let sha = text(&made["content_sha256"]);
    let whole = json!({ "content": "# One", "content_sha256": sha, "type": "markdown", "revision_id": null });
    assert_eq!(owner.get(&server, &path).await.expect(200).json(), whole);
    let held = format!("{path}?known_content_sha256={sha}");
    let unchanged = json!({ "unchanged": true, "content_sha256": sha });
    assert_eq!(
        owner.get(&server, &held).await.expect(200).json(),
        unchanged
    );
    for other in ["0".repeat(64), "abc".to_owned(), String::new()] {
        let other = format!("{path}?known_content_sha256={other}");
        assert_eq!(owner.get(&server, &other).await.expect(200).json(), whole);
    }
    let problem = owner
        .get(&server, &format!("{path}?revision=abc"))
        .await
        .problem(400, "invalid_request");
    assert!(text(&problem["detail"]).contains("`revision`"), "{problem}");
    owner
        .get(&server, &format!("{path}?revision_id=abc"))
        .await
        .problem(404, "not_found");
    let put = json!({ "content": "# Two" });
    owner
        .send(
            &server,
            Method::PUT,
            &format!("/{project}/frontends/room"),
            &put,
        )
        .await
        .expect(200);
    let history = owner
        .get(&server, &format!("/{project}/frontends/room/revisions"))
        .await
        .json();
    for (index, source) in [(0, "# Two"), (1, "# One")] {
        let id = text(&history["revisions"][index]["revision_id"]);
        let found = owner
            .get(&server, &format!("{path}?revision_id={id}"))
            .await
            .expect(200)
            .json();
        assert_eq!(
            (&found["content"], &found["revision_id"]),
            (&json!(source), &json!(id))
        );
    }
}

#[tokio::test]
async fn previews_are_immutable_unlisted_and_static() {
    let server = TestServer::start().await;
    let (owner, project) = start_fixture(&server).await;
    owner.frontend(&server, &project, "room").await;
    let revisions = format!("/{project}/frontends/room/revisions");
    let base = text(&owner.get(&server, &revisions).await.json()["active_revision_id"]);
    let mut previews = Vec::new();
    for content in ["# Two", "# One"] {
        let body = json!({ "base_revision_id": base, "content": content, "title": "room" });
        let made = owner
            .post(&server, &revisions, &body)
            .await
            .expect(200)
            .json();
        let url = text(&made["preview_url"]);
        previews.push((url.split_once("/_preview").unwrap().1.to_owned(), content));
    }
    for (preview, content) in &previews {
        let path = format!("/_preview{preview}");
        let page = server.get(&path).answer().await.expect(200);
        assert!(
            page.html().contains(&format!(">{}<", &content[2..])),
            "the baseline's, too"
        );
        assert!(!page.text().contains("<script"));
        for (name, value) in [
            ("cache-control", "public, max-age=31536000, immutable"),
            ("x-robots-tag", "noindex"),
        ] {
            assert_eq!(page.header(name), Some(value));
        }
        assert!(
            page.header("content-security-policy")
                .unwrap()
                .starts_with("sandbox ")
        );
        let bare = server
            .get(path.trim_end_matches('/'))
            .answer()
            .await
            .expect(308);
        assert_eq!(bare.header("location"), Some(path.as_str()));
        let head = server.head(&path).header("range", "bytes=0-3");
        head.answer().await.expect(200);
    }
    let nobodys =
        "/_preview/01a1fc50-0000-7000-8000-000000000000/01a1fc50-0000-7000-8000-000000000000";
    for path in [nobodys.to_owned(), format!("{nobodys}/")] {
        server.get(&path).answer().await.problem(404, "not_found");
    }
    let disabled = server
        .command(&svc(), &["deployment", "disable", "room"])
        .await;
    assert!(disabled.success, "{disabled:?}");
    let path = format!("/_preview{}", previews[0].0);
    let taken_down = async || {
        let page = server.get("/room").answer().await;
        (page.status == 403).then_some(())
    };
    wait_until("the page to be taken down", taken_down).await;
    server.get(&path).answer().await.expect(403);
    let bare = path.trim_end_matches('/');
    server.get(bare).answer().await.expect(403);
    owner.get(&server, &revisions).await.expect(200);
    server
        .command(&svc(), &["deployment", "enable", "room"])
        .await;
    owner
        .delete(&server, &format!("/{project}/frontends/room"))
        .await
        .expect(204);
    server.get(&path).answer().await.problem(404, "not_found");
}
