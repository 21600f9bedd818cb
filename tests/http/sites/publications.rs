//! Publishing sites: by texts, by base64, and by digests of files that were sent ahead.

use http::Method;
use serde_json::{Value, json};
use svc::workspaces::Plan;
use svc_tests::{ReadAnswer, TestServer};

use super::{SiteFixture, put, sha256, texts};
use crate::owner::{Owner, text};

#[tokio::test]
async fn a_folder_is_published_and_read_again() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let script = fixture.put(b"run()").await;
    let page = "<!doctype html><title>My app</title><script src=app.js></script>";
    let files = json!({
        "index.html": { "text": page },
        "app.js": { "sha256": script, "size": 5 },
        "img/dot.gif": { "base64": "R0lGODlhAQABAAAAACw=" },
    });
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let made = fixture.create(&site).await.expect(201).json();
    assert_eq!(made["type"], "site");
    assert_eq!(made["slug"], "site");
    assert_eq!(made["title"], "My app");
    assert_eq!(
        made["site"],
        json!({ "files": 3, "bytes": page.len() + 5 + 14 })
    );
    let canonical = format!(
        "{{\"files\":{{\"app.js\":\"{script}\",\"img/dot.gif\":\"{}\",\"index.html\":\"{}\"}},\"options\":{{}}}}",
        sha256(b"GIF89a\x01\x00\x01\x00\x00\x00\x00,"),
        sha256(page.as_bytes()),
    );
    assert_eq!(made["content_sha256"], sha256(canonical.as_bytes()));
    let content = fixture.send(Method::GET, "/content", None).await;
    let content = content.expect(200).json();
    assert_eq!(content["type"], "site");
    assert_eq!(content["content_sha256"], made["content_sha256"]);
    assert_eq!(content["options"], json!({}));
    let script =
        json!({ "sha256": script, "size": 5, "media_type": "text/javascript; charset=utf-8" });
    assert_eq!(content["files"]["app.js"], script);
    let known = format!(
        "/content?known_content_sha256={}",
        text(&made["content_sha256"])
    );
    let unchanged = fixture.send(Method::GET, &known, None).await;
    assert_eq!(unchanged.expect(200).json()["unchanged"], true);
    assert_eq!(fixture.read("/site/").await, page);
    assert_eq!(fixture.read("/site/app.js").await, "run()");
    let listed = fixture
        .owner
        .get(&fixture.server, &format!("/{}", fixture.project))
        .await;
    assert_eq!(listed.expect(200).json()["members"][0]["type"], "site");
}

#[tokio::test]
async fn a_digest_is_a_projects_own() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let stranger = Owner::new(&fixture.server, "other").await;
    let elsewhere = stranger.project(&fixture.server, "Other").await;
    let theirs = put(&stranger, &fixture.server, &elsewhere, b"theirs").await;
    let nobodys = sha256(b"nobody's");
    let site = |files: Value| json!({ "type": "site", "files": files, "requested_slug": "site" });
    let files = json!({
        "a": { "sha256": theirs, "size": 6 }, "b": { "sha256": nobodys, "size": 8 },
        "c": { "sha256": theirs }, "d": { "text": "ours" },
    });
    let refused = fixture
        .create(&site(files))
        .await
        .problem(409, "files_missing");
    let mut missing = [theirs.clone(), nobodys.clone()];
    missing.sort();
    assert_eq!(refused["missing"], json!(missing));
    // Nothing was made, and the slug is free.
    let listed = fixture
        .owner
        .get(&fixture.server, &format!("/{}/frontends", fixture.project))
        .await;
    assert_eq!(listed.json()["frontends"], json!([]));
    fixture.put(b"theirs").await;
    let wrong = site(json!({ "a": { "sha256": theirs, "size": 7 } }));
    fixture.create(&wrong).await.problem(400, "digest_mismatch");
    let right = site(json!({ "a": { "sha256": theirs, "size": 6 } }));
    assert_eq!(
        fixture.create(&right).await.expect(201).json()["slug"],
        "site"
    );
}

#[tokio::test]
async fn requests_that_are_no_sites_are_told_why() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let site = |files: Value| json!({ "type": "site", "files": files });
    let digest = sha256(b"x");
    for (body, said) in [
        (site(json!({})), "one file"),
        (json!({ "type": "site" }), "files"),
        (
            json!({ "type": "site", "files": texts(&[("a", "b")]), "content": "x" }),
            "content",
        ),
        (
            json!({ "type": "html", "files": texts(&[("a", "b")]) }),
            "files",
        ),
        (
            json!({ "type": "html", "content": "x", "options": {} }),
            "options",
        ),
        (site(json!({ "a": {} })), "`a`"),
        (
            site(json!({ "a": { "text": "x", "sha256": digest } })),
            "`a`",
        ),
        (site(json!({ "a": { "base64": "%" } })), "base64"),
        (site(json!({ "a": { "sha256": "x" } })), "sha256"),
        (
            json!({ "type": "site", "files": texts(&[("a", "b")]), "options": { "fallback": "c" } }),
            "fallback",
        ),
        (
            json!({ "type": "site", "files": texts(&[("a", "b")]), "options": { "other": 1 } }),
            "other",
        ),
    ] {
        let problem = fixture.create(&body).await.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(said), "{said}: {problem}");
    }
}

#[tokio::test]
async fn fields_of_other_types_may_be_null() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let files = texts(&[("index.html", "x")]);
    let mut site =
        json!({ "type": "site", "files": files, "requested_slug": "site", "content": null });
    fixture.create(&site).await.expect(201);
    site["content"] = "x".into();
    fixture.create(&site).await.problem(400, "invalid_request");
    let page = json!({ "type": "html", "content": "x", "requested_slug": "leaf", "files": null, "options": null });
    fixture.create(&page).await.expect(201);
    let share = json!({ "type": "site", "files": files, "content": null, "password": null, "one_time": null });
    fixture.server.deploy(&share).await;
    let share = json!({ "content": "x", "files": null, "options": null });
    fixture.server.deploy(&share).await;
    let next = json!({ "files": files, "content": null, "requested_slug": "", "forget": null });
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    // A list of an object's values is no object.
    for wrong in [
        json!({ "files": files, "options": ["index.html", []] }),
        json!({ "files": { "index.html": ["x", null, null, null] } }),
    ] {
        let refused = fixture.send(Method::PUT, "", Some(&wrong)).await;
        refused.problem(400, "invalid_request");
    }
    let renamed = json!({ "files": files, "requested_slug": "other" });
    let refused = fixture.send(Method::PUT, "", Some(&renamed)).await;
    refused.problem(400, "invalid_request");
    fixture
        .draft(&json!({ "files": files, "content": null, "edits": null }))
        .await;
    let options = json!({ "fallback": null, "immutable": null });
    for changes in [
        json!({ "set": texts(&[("b.txt", "b")]), "delete": null, "edits": null }),
        json!({ "set": null, "edits": [{ "path": "index.html", "find": "x", "replace": "y", "count": null }] }),
    ] {
        fixture
            .draft(&json!({ "changes": changes, "options": options }))
            .await;
    }
    let path = format!("/{}/frontends/leaf", fixture.project);
    let site = json!({ "type": "site", "files": files });
    let (owner, server) = (&fixture.owner, &fixture.server);
    let put = owner.send(server, Method::PUT, &path, &site).await;
    put.problem(400, "type_mismatch");
    let next = json!({ "content": "y", "files": null, "options": null, "forget": true });
    let (owner, server) = (&fixture.owner, &fixture.server);
    let put = owner.send(server, Method::PUT, &path, &next).await;
    put.expect(200);
    let path = format!("{path}/revisions");
    let listed = owner.get(server, &path).await.expect(200).json();
    let draft = json!({
        "base_revision_id": listed["active_revision_id"], "content": "z", "files": null, "changes": null, "options": null,
    });
    owner.post(server, &path, &draft).await.expect(200);
}

#[tokio::test]
async fn a_path_that_stands_twice_is_named() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let twice = r#"{"a.js": {"text": "1"}, "b.js": {"text": "2"}, "a.js": {"text": "3"}}"#;
    let base = fixture.active().await;
    let project = &fixture.project;
    for (method, below, body) in [
        (
            Method::POST,
            "",
            format!(r#"{{"type": "site", "files": {twice}}}"#),
        ),
        (Method::PUT, "/site", format!(r#"{{"files": {twice}}}"#)),
        (
            Method::POST,
            "/site/revisions",
            format!(r#"{{"base_revision_id": "{base}", "files": {twice}}}"#),
        ),
        (
            Method::POST,
            "/site/revisions",
            format!(r#"{{"base_revision_id": "{base}", "changes": {{"set": {twice}}}}}"#),
        ),
    ] {
        let path = format!("/api/v1/projects/{project}/frontends{below}");
        let request = fixture.owner.request(&fixture.server, method, &path);
        let request = request.header("content-type", "application/json");
        let refused = request.body(body).answer().await;
        let problem = refused.problem(400, "invalid_request");
        assert!(
            text(&problem["detail"]).contains("`a.js` stands twice"),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn sites_have_bounds() {
    let server = TestServer::builder().limits(|limits| {
        limits.body_bytes = 5_000;
        limits.site_body_bytes = 9_000;
        limits.site_files_free = 3;
        limits.site_bytes_free = 6_000;
        limits.file_bytes_free = 4_000;
        limits.storage_bytes_free = 7_000;
    });
    let server = server.start().await;
    let owner = Owner::with_plan(&server, "acme", Plan::Free).await;
    let project = owner.project(&server, "House").await;
    let fixture = SiteFixture {
        server,
        owner,
        project,
    };
    let long = |bytes: usize, seed: &str| seed.repeat(bytes);
    let site = |files: &[(&str, &str)]| json!({ "type": "site", "files": texts(files), "requested_slug": "site" });
    // A page keeps the limit of pages, and a site has its own.
    let page = json!({ "type": "markdown", "content": long(6_000, "x") });
    fixture
        .create(&page)
        .await
        .problem(413, "payload_too_large");
    let whole = [("a", &*long(3_000, "a")), ("b", &*long(3_000, "b"))];
    fixture
        .create(&site(&[("a", &*long(9_000, "a"))]))
        .await
        .problem(413, "payload_too_large");
    fixture
        .create(&site(&[("a", &*long(4_001, "a"))]))
        .await
        .problem(413, "payload_too_large");
    let large = [whole[0], whole[1], ("c", "c")];
    fixture
        .create(&site(&large))
        .await
        .problem(413, "payload_too_large");
    let many = [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")];
    fixture
        .create(&site(&many))
        .await
        .problem(403, "plan_limit");
    let made = fixture.create(&site(&whole)).await.expect(201).json();
    assert_eq!(made["site"]["bytes"], 6_000);
    // What both revisions have counts once, and what is new does not fit.
    let next = json!({ "files": texts(&[whole[0], ("b", &*long(1_001, "c"))]) });
    let full = fixture
        .send(Method::PUT, "", Some(&next))
        .await
        .problem(413, "storage_full");
    assert_eq!(
        (&full["used_bytes"], &full["limit_bytes"]),
        (&json!(6_000), &json!(7_000))
    );
    let next = json!({ "files": texts(&[whole[0], ("b", &*long(1_000, "c"))]) });
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    assert_eq!(fixture.read("/site/b").await.len(), 1_000);
}

#[tokio::test]
async fn a_new_set_of_files_takes_the_place_of_the_one_before() {
    let fixture =
        SiteFixture::with_files(&[("index.html", "<title>One</title>one"), ("old.txt", "old")])
            .await;
    let next = json!({ "files": texts(&[("index.html", "<title>Two</title>two"), ("A", "a"), ("a", "b"), ("ws", "c")]) });
    let live = fixture
        .send(Method::PUT, "", Some(&next))
        .await
        .expect(200)
        .json();
    assert_eq!(live["title"], "Two");
    assert_eq!(live["revision_count"], 2);
    let codes: Vec<_> = live["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["code"])
        .collect();
    assert_eq!(codes, ["case_collision", "path_hidden"]);
    assert!(fixture.read("/site/").await.ends_with("two"));
    // A tab that was opened before may still need what is gone, but no page.
    assert_eq!(fixture.read("/site/old.txt").await, "old");
    assert_eq!(fixture.get("/site/old.html").await.status, 404);
    // Options and the title stay where nothing else is said.
    let named = json!({ "files": next["files"], "title": "Three", "options": { "fallback": "index.html" } });
    fixture
        .send(Method::PUT, "", Some(&named))
        .await
        .expect(200);
    let same = json!({ "files": next["files"] });
    let live = fixture
        .send(Method::PUT, "", Some(&same))
        .await
        .expect(200)
        .json();
    let content = fixture.send(Method::GET, "/content", None).await.json();
    assert_eq!(live["title"], "Three");
    assert_eq!(content["options"], json!({ "fallback": "index.html" }));
    assert_eq!(content["content_sha256"], live["content_sha256"]);
    for refused in [json!({ "content": "x" }), json!({ "files": {} })] {
        let refused = fixture.send(Method::PUT, "", Some(&refused)).await;
        refused.problem(400, "invalid_request");
    }
    let other = json!({ "files": next["files"], "type": "html" });
    fixture
        .send(Method::PUT, "", Some(&other))
        .await
        .problem(400, "type_mismatch");
}

#[tokio::test]
async fn a_page_of_one_source_stays_what_it_is() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    fixture
        .owner
        .frontend(&fixture.server, &fixture.project, "site")
        .await;
    for (method, below) in [
        (Method::GET, "/files/a"),
        (Method::DELETE, "/files/a"),
        (Method::GET, "/archive"),
    ] {
        let refused = fixture.send(method, below, None).await;
        refused.problem(400, "invalid_request");
    }
    let files = json!({ "files": texts(&[("a", "b")]) });
    fixture
        .send(Method::PUT, "", Some(&files))
        .await
        .problem(400, "invalid_request");
    for path in ["/site/", "/site/index.html", "/site/a/b"] {
        let status = fixture.get(path).await.status;
        assert_eq!(status, if path == "/site/" { 308 } else { 404 }, "{path}");
    }
    let posted = fixture.server.post("/site/a");
    posted.answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn the_title_of_a_long_start_page_is_read() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let page = "<title>Long</title>".to_owned() + &"ü".repeat(600_000);
    let digest = fixture.put(page.as_bytes()).await;
    let files = json!({ "index.html": { "sha256": digest } });
    let body = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let made = fixture.create(&body).await.expect(201).json();
    assert_eq!(made["title"], "Long");
}

#[tokio::test]
async fn sizes_are_looked_at_before_files_are_asked_for() {
    let server = TestServer::builder().limits(|limits| {
        limits.file_bytes_pro = 1_000;
        limits.site_bytes_pro = 1_500;
    });
    let fixture = SiteFixture::empty(server.start().await).await;
    let file = |name: &str, size: u64| json!({ "sha256": sha256(name.as_bytes()), "size": size });
    let create = async |files: Value| {
        let body = json!({ "type": "site", "files": files, "requested_slug": "site" });
        fixture.create(&body).await
    };
    let refused = create(json!({ "a": file("a", 1_001) })).await;
    refused.problem(413, "payload_too_large");
    let refused = create(json!({ "a": file("a", 1_000), "b": file("b", 501) })).await;
    refused.problem(413, "payload_too_large");
    let missing = create(json!({ "a": file("a", 1_000), "b": file("b", 500) })).await;
    missing.problem(409, "files_missing");
}

#[tokio::test]
async fn a_file_of_rules_is_no_fallback() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let files = texts(&[("index.html", "x"), ("_headers", ""), ("_redirects", "")]);
    for fallback in ["_headers", "_redirects"] {
        let body = json!({ "type": "site", "files": files, "options": { "fallback": fallback } });
        let refused = fixture.create(&body).await;
        refused.problem(400, "invalid_request");
    }
}
