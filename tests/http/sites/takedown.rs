//! Takedown by digest: what an operator blocks is taken nowhere and shown nowhere, and comes back once it is allowed.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, collected_objects, put, put_as, sha256, texts};
use crate::owner::{Owner, text};
use crate::svc;

/// Runs `svc content` on a server; returns its document.
async fn content(server: &TestServer, arguments: &[&str]) -> Value {
    let arguments = [&["content"][..], arguments, &["--json"]].concat();
    server.command(&svc(), &arguments).await.json()
}

impl SiteFixture {
    async fn block(&self, digest: &str) {
        let done = content(&self.server, &["block", digest, "--note", "reported"]).await;
        assert_eq!(done, json!({ "sha256": digest, "blocked": true }));
    }

    async fn unblock(&self, digest: &str) {
        let done = content(&self.server, &["unblock", digest]).await;
        assert_eq!(done, json!({ "sha256": digest, "blocked": false }));
    }

    /// Reads a path with a header.
    async fn get_with(&self, path: &str, name: &str, value: &str) -> Answer {
        let request = self.server.get(path).header(name, value);
        request.answer().await
    }

    /// Sends one file of the site.
    async fn put_file(&self, path: &str, bytes: &'static [u8]) -> Answer {
        let path = format!(
            "/api/v1/projects/{}/frontends/site/files/{path}",
            self.project
        );
        let request = self.owner.request(&self.server, Method::PUT, &path);
        request.body(bytes).answer().await
    }
}

const BAD: &[u8] = b"harmful bytes";

#[tokio::test]
async fn blocked_files_are_shown_nowhere() {
    let bad = std::str::from_utf8(BAD).unwrap();
    let files = [("index.html", "start"), ("bad.txt", bad), ("b/copy", bad)];
    let fixture = SiteFixture::with_files(&files).await;
    let draft = fixture
        .draft(&json!({ "changes": { "set": texts(&[("new", "1")]) } }))
        .await;
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let body =
        json!({ "type": "site", "files": texts(&[("bad", bad)]), "requested_slug": "other" });
    let path = format!("/{other}/frontends");
    let made = fixture.owner.post(&fixture.server, &path, &body).await;
    made.expect(201);
    let share =
        json!({ "type": "site", "files": texts(&[("bad", bad), ("x", "x")]), "name": "share" });
    fixture.server.deploy(&share).await;

    let digest = sha256(BAD);
    let etag = fixture.get("/site/bad.txt").await.expect(200);
    let etag = etag.header("etag").unwrap().to_owned();
    let download = "/files/bad.txt";
    let shown = [
        "/site/bad.txt".to_owned(),
        "/site/b/copy".to_owned(),
        "/other/bad".to_owned(),
        "/share/bad".to_owned(),
        format!("{preview}bad.txt"),
    ];
    fixture.block(&digest).await;
    for path in &shown {
        let get = fixture.server.get(path).answer().await;
        get.problem(403, "disabled");
        let known = fixture.get_with(path, "if-none-match", &etag).await;
        known.problem(403, "disabled");
        let part = fixture.get_with(path, "range", "bytes=0-3").await;
        part.problem(403, "disabled");
        let head = fixture.server.head(path).answer().await;
        assert_eq!(head.status, 403, "{path}");
    }
    for path in [download, "/archive"] {
        let read = fixture.send(Method::GET, path, None).await;
        read.problem(403, "disabled");
    }
    // The rest goes on, and an owner sees what is named.
    assert_eq!(fixture.read("/site/").await, "start");
    assert_eq!(fixture.server.get("/share/x").answer().await.text(), "x");
    let named = fixture.send(Method::GET, "/content", None).await;
    assert_eq!(
        named.expect(200).json()["files"]["bad.txt"]["sha256"],
        digest
    );
    let listed = content(&fixture.server, &["list", "house-acme"]).await;
    let listed = listed["content"].as_array().unwrap();
    let blocked: Vec<_> = listed.iter().filter(|it| it["blocked"] == true).collect();
    assert_eq!(blocked.len(), 2, "{listed:?}");
    assert_eq!(
        (&blocked[0]["path"], &blocked[1]["path"]),
        (&json!("b/copy"), &json!("bad.txt"))
    );
    let unlisted = listed.iter().filter(|it| it["slug"].is_null());
    assert_eq!(unlisted.count(), 1, "the draft's own file");
    let listed = content(&fixture.server, &["list", "share"]).await;
    assert_eq!(listed["content"].as_array().unwrap().len(), 2);
    let blocked = content(&fixture.server, &["blocked"]).await;
    assert_eq!(blocked["blocked"][0]["sha256"], digest);
    assert_eq!(blocked["blocked"][0]["note"], "reported");

    fixture.unblock(&digest).await;
    for path in &shown {
        let get = fixture.server.get(path).answer().await;
        assert_eq!(get.expect(200).body, BAD);
    }
    for path in [download, "/archive"] {
        fixture.send(Method::GET, path, None).await.expect(200);
    }
    let blocked = content(&fixture.server, &["blocked"]).await;
    assert_eq!(blocked, json!({ "blocked": [] }));
}

#[tokio::test]
async fn blocked_files_are_taken_nowhere_and_leave_nothing() {
    let bad = std::str::from_utf8(BAD).unwrap();
    let fixture = SiteFixture::with_files(&[("index.html", "start"), ("bad", bad)]).await;
    let digest = sha256(BAD);
    fixture.server.advance(100_000);
    let before = collected_objects(&fixture.server).await;
    fixture.block(&digest).await;
    let refused = |answer: Answer, path: Option<&str>| {
        let problem = answer.problem(403, "content_blocked");
        assert_eq!(problem["sha256"], digest);
        assert_eq!(problem["path"], json!(path));
    };
    let whole = (digest.as_str(), BAD.to_vec());
    let sent = put_as(&fixture.owner, &fixture.server, &fixture.project, whole).await;
    refused(sent, None);
    let inline = json!({ "x": { "text": "x" }, "new": { "text": bad } });
    let named = json!({ "new": { "sha256": digest } });
    for files in [&inline, &named] {
        let site = json!({ "type": "site", "files": files });
        refused(fixture.create(&site).await, Some("new"));
        let body = json!({ "files": files });
        refused(
            fixture.send(Method::PUT, "", Some(&body)).await,
            Some("new"),
        );
        let mut body = json!({ "changes": { "set": files } });
        body["base_revision_id"] = fixture.active().await.into();
        let drafted = fixture.send(Method::POST, "/revisions", Some(&body)).await;
        // What the base has is looked at first.
        assert!(["bad", "new"].contains(&&*text(&drafted.json()["path"])));
        drafted.problem(403, "content_blocked");
    }
    refused(fixture.put_file("new", BAD).await, None);
    refused(fixture.put_file("new", b"good").await, Some("bad"));
    let share = json!({ "type": "site", "files": inline });
    let shared = fixture.server.json("/api/v1/deploy", &share).answer().await;
    refused(shared, Some("new"));
    fixture.server.advance(100_000);
    assert_eq!(collected_objects(&fixture.server).await, before);
    // Without the file the site is published as ever.
    let deleted = fixture.send(Method::DELETE, "/files/bad", None).await;
    deleted.expect(200);
    fixture.put_file("new", b"good").await.expect(200);
    assert_eq!(fixture.read("/site/new").await, "good");
}

#[tokio::test]
async fn parts_of_a_large_file_are_blocked_too() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let large = vec![7; 2_500_000];
    let digest = fixture.put(&large).await;
    let body = json!({ "type": "site", "files": { "large": { "sha256": digest } }, "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    let object = sha256(&large[..1 << 20]);
    for part in [digest.as_str(), &object] {
        fixture.block(part).await;
        let get = fixture.server.get("/site/large").answer().await;
        get.problem(403, "disabled");
        if part == object {
            let sent = (digest.as_str(), large.clone());
            let sent = put_as(&fixture.owner, &fixture.server, &fixture.project, sent).await;
            sent.problem(403, "content_blocked");
        }
        fixture.unblock(part).await;
        let get = fixture.server.get("/site/large").answer().await;
        assert!(get.expect(200).body == large);
    }
}

#[tokio::test]
async fn who_reads_a_large_file_as_it_is_blocked_does_not_get_all_of_it() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let large = vec![7; 4_000_000];
    let digest = fixture.put(&large).await;
    let body = json!({ "type": "site", "files": { "large": { "sha256": digest } }, "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    // The server sends as much as the reader has taken, and little more.
    let reader = svc_tests::http_client()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(65_535)
        .no_proxy()
        .build()
        .unwrap();
    let asking = reader.get(fixture.server.url("/site/large")).send();
    let mut answer = asking.await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut read = answer.chunk().await.unwrap().unwrap().len();
    fixture.block(&digest).await;
    let is_whole = loop {
        match answer.chunk().await {
            Ok(Some(bytes)) => read += bytes.len(),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    assert!(!is_whole && read < large.len(), "{read} bytes");
}

#[tokio::test]
async fn sources_of_pages_are_taken_and_shown_nowhere() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let sources = [
        ("html", "<p>bad</p>"),
        ("markdown", "# bad"),
        ("json", "[\"bad\"]"),
        ("csv", "bad,worse\n1,2\n"),
        ("mermaid", "flowchart TD\n  a[bad]"),
    ];
    for (kind, source) in sources {
        let (share, slug) = (format!("share-{kind}"), format!("page-{kind}"));
        let body = json!({ "type": kind, "content": source, "name": share });
        fixture.server.deploy(&body).await;
        let page = json!({ "type": kind, "content": source, "requested_slug": slug });
        fixture.create(&page).await.expect(201);
        let digest = sha256(source.as_bytes());
        fixture.block(&digest).await;
        for path in [format!("/{share}"), format!("/{slug}")] {
            let shown = fixture.server.get(&path).answer().await;
            assert!(shown.expect(403).html().contains("<h1>"), "{kind}");
            let raw = fixture.server.get(&format!("{path}/raw")).answer().await;
            raw.problem(403, "disabled");
        }
        let path = format!("/{}/frontends/{slug}", fixture.project);
        let below = async |below: &str| {
            let path = format!("{path}{below}");
            fixture.owner.get(&fixture.server, &path).await
        };
        below("/content").await.problem(403, "disabled");
        let revisions = below("/revisions").await.expect(200).json();
        let live = text(&revisions["active_revision_id"]);
        for more in [
            json!({}),
            json!({ "one_time": true }),
            json!({ "password": "long-enough" }),
        ] {
            let mut body = json!({ "type": kind, "content": source });
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let sent = fixture.server.json("/api/v1/deploy", &body).answer().await;
            sent.problem(403, "content_blocked");
        }
        fixture.create(&page).await.problem(403, "content_blocked");
        let draft = json!({ "base_revision_id": live, "content": source });
        let path = format!("{path}/revisions");
        let drafted = fixture.owner.post(&fixture.server, &path, &draft).await;
        drafted.problem(403, "content_blocked");
        fixture.unblock(&digest).await;
        fixture
            .server
            .get(&format!("/{slug}"))
            .answer()
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn an_earlier_revision_of_blocked_bytes_is_neither_previewed_nor_put_back() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let owner = &fixture.owner;
    owner
        .frontend(&fixture.server, &fixture.project, "site")
        .await;
    let first = fixture.active().await;
    let draft = fixture.draft(&json!({ "content": "# Bad" })).await;
    let id = &draft["revision"]["revision_id"];
    fixture.release("promote", id).await.expect(200);
    fixture.release("rollback", &json!(first)).await.expect(200);
    let digest = sha256(b"# Bad");
    fixture.block(&digest).await;
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let look = fixture.server.get(preview).answer().await;
    assert_eq!(look.status, 403);
    let again = fixture.release("promote", id).await;
    again.problem(403, "content_blocked");
    assert!(fixture.read("/site").await.contains("One"));
    fixture.unblock(&digest).await;
    fixture.release("promote", id).await.expect(200);
    assert!(fixture.read("/site").await.contains("Bad"));
    // What is stored of a page is a name of it, too.
    let shown = ["deployment", "show", "site", "--json"];
    let shown = fixture.server.command(&svc(), &shown).await.json();
    assert_eq!(shown["source_sha256"], digest);
    fixture.block(&text(&shown["page_sha256"])).await;
    assert_eq!(fixture.get("/site").await.status, 403);
    let same = json!({ "content": "# Bad" });
    let same = fixture.send(Method::PUT, "", Some(&same)).await;
    same.problem(403, "content_blocked");
}

#[tokio::test]
async fn what_is_blocked_stays_so_over_restarts_and_without_a_server() {
    let fixture = SiteFixture::with_files(&[("index.html", "start"), ("bad", "bad")]).await;
    let SiteFixture { server, owner, .. } = fixture;
    let digest = sha256(b"bad");
    content(&server, &["block", &digest]).await;
    let server = server.restart().await;
    let get = server.get("/site/bad").answer().await;
    get.problem(403, "disabled");
    server.get("/site/").answer().await.expect(200);
    drop(owner);
    let server = server
        .restart_after_change(async |data| {
            let run = ["content", "unblock", &digest];
            assert!(svc().run(data, &run).await.success);
            let again = svc().run(data, &run).await;
            assert!(again.stderr.contains("is not blocked"), "{again:?}");
        })
        .await;
    server.get("/site/bad").answer().await.expect(200);
}

#[tokio::test]
async fn commands_say_what_is_wrong() {
    let server = TestServer::start().await;
    for (arguments, why) in [
        (["content", "block", "x"], "64 hexadecimal digits"),
        (["content", "unblock", "x"], "64 hexadecimal digits"),
        (["content", "list", "nobody"], "no quick share `nobody`"),
    ] {
        let output = server.command(&svc(), &arguments).await;
        assert!(!output.success && output.stderr.contains(why), "{output:?}");
    }
    let note = "x".repeat(1_001);
    let digest = sha256(b"x").to_uppercase();
    let arguments = ["content", "block", &digest, "--note", &note];
    let output = server.command(&svc(), &arguments).await;
    assert!(output.stderr.contains("1000 characters"), "{output:?}");
    let done = content(&server, &["block", &digest]).await;
    assert_eq!(done["sha256"], digest.to_lowercase());
}

#[tokio::test]
async fn a_report_names_a_file() {
    let fixture = SiteFixture::with_files(&[("index.html", "start"), ("bad", "bad")]).await;
    let report = json!({ "slug": "site", "path": "bad", "reason": "malware" });
    let path = "/api/v1/reports";
    let reported = fixture.server.json(path, &report).answer().await;
    reported.expect(202);
    let list = ["report", "list", "--json"];
    let listed = fixture.server.command(&svc(), &list).await.json();
    assert_eq!(listed["reports"][0]["path"], "bad");
    let report = json!({ "slug": "site", "path": "x".repeat(513), "reason": "malware" });
    let refused = fixture.server.json(path, &report).answer().await;
    refused.problem(400, "invalid_request");
}

/// Others share the store, and not what they may take back.
#[tokio::test]
async fn another_owner_is_refused_alike() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let digest = sha256(b"bad");
    fixture.block(&digest).await;
    for name in ["one", "two"] {
        let owner = Owner::new(&fixture.server, name).await;
        let project = owner.project(&fixture.server, "House").await;
        let sent = (digest.as_str(), b"bad".to_vec());
        let sent = put_as(&owner, &fixture.server, &project, sent).await;
        sent.problem(403, "content_blocked");
        put(&owner, &fixture.server, &project, b"good").await;
    }
}
