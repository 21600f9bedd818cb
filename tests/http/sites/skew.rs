//! Tabs that were opened before a release: they get the files of then, for a while, and not what was taken back.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use super::{SiteFixture, collected_objects, texts};
use crate::owner::text;
use crate::svc;

const DAY: u64 = 86_400;

impl SiteFixture {
    /// Publishes other files at once.
    async fn put_site(&self, files: &[(&str, &str)]) {
        let body = json!({ "files": texts(files) });
        self.send(Method::PUT, "", Some(&body)).await.expect(200);
    }

    /// Makes a draft and promotes it; returns its id.
    async fn promote(&self, draft: &Value, forget: bool) -> Value {
        let draft = self.draft(draft).await;
        let id = draft["revision"]["revision_id"].clone();
        self.release_saying("promote", &id, forget).await;
        id
    }

    /// Promotes a revision or rolls back to it, and says whether to forget what was live.
    async fn release_saying(&self, kind: &str, revision: &Value, forget: bool) {
        let body = json!({
            "revision_id": revision, "expected_active_revision_id": self.active().await, "forget": forget,
        });
        let path = format!("/{kind}");
        let released = self.send(Method::POST, &path, Some(&body));
        released.await.expect(200);
    }

    /// Compares what some paths answer; `None` is a 404.
    async fn expect_answers(&self, expected: &[(&str, Option<&str>)]) {
        for (path, text) in expected {
            let answer = self.get(&format!("/site/{path}")).await;
            let found = (answer.status == 200).then(|| answer.text().to_owned());
            assert_eq!(found.as_deref(), *text, "{path}: {}", answer.status);
            assert!([200, 404].contains(&answer.status), "{path}");
        }
    }
}

#[tokio::test]
async fn a_tab_loads_its_old_files_for_a_day() {
    let first = [
        ("index.html", "one"),
        ("app-1.js", "1"),
        ("old.html", "old"),
        ("old.xhtml", "old"),
        ("LICENSE", "free"),
        ("both.css", "1"),
    ];
    let fixture = SiteFixture::with_files(&first).await;
    let options = json!({ "fallback": "index.html" });
    let next = json!({ "files": texts(&[("index.html", "two"), ("app-2.js", "2"), ("both.css", "2")]), "options": options });
    fixture.get("/site/app-1.js").await.expect(200);
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    fixture
        .expect_answers(&[
            ("", Some("two")),
            ("app-1.js", Some("1")),
            ("app-2.js", Some("2")),
            ("both.css", Some("2")),
            ("LICENSE", Some("free")),
            ("old.html", None),
            ("old.xhtml", None),
            ("old", None),
            ("none.js", None),
        ])
        .await;
    let old = fixture.get("/site/app-1.js").await;
    assert_eq!(
        old.header("cache-control"),
        Some("public, max-age=0, must-revalidate")
    );
    assert_eq!(
        old.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert!(old.header("etag").is_some());
    // It comes before the page of an app that routes by itself.
    let opened = fixture
        .server
        .get("/site/LICENSE")
        .header("accept", "text/html");
    assert_eq!(opened.answer().await.expect(200).text(), "free");
    let opened = fixture
        .server
        .get("/site/users")
        .header("accept", "text/html");
    assert_eq!(opened.answer().await.expect(200).text(), "two");
    // A preview shows its revision alone.
    let draft = fixture
        .draft(&json!({ "files": texts(&[("a", "b")]), "options": {} }))
        .await;
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let path = format!("{preview}app-1.js");
    assert_eq!(fixture.server.get(&path).answer().await.status, 404);
    fixture.server.advance(DAY - 1);
    fixture.expect_answers(&[("app-1.js", Some("1"))]).await;
    fixture.server.advance(1);
    fixture.expect_answers(&[("app-1.js", None)]).await;
    fixture
        .server
        .server()
        .app()
        .revisions
        .forget_former()
        .await
        .unwrap();
    fixture
        .expect_answers(&[("app-1.js", None), ("app-2.js", Some("2"))])
        .await;
}

#[tokio::test]
async fn the_newest_former_file_is_served_after_a_restart_too() {
    let mut fixture =
        SiteFixture::with_files(&[("index.html", "1"), ("a.js", "1"), ("b.js", "1")]).await;
    fixture
        .put_site(&[("index.html", "2"), ("a.js", "2")])
        .await;
    fixture.server.advance(1_000);
    fixture.put_site(&[("index.html", "3")]).await;
    let expected = [("a.js", Some("2")), ("b.js", Some("1"))];
    fixture.expect_answers(&expected).await;
    fixture.server = fixture.server.restart().await;
    fixture.expect_answers(&expected).await;
    // The first was displaced earlier.
    fixture.server.advance(DAY - 1_000);
    fixture
        .expect_answers(&[("a.js", Some("2")), ("b.js", None)])
        .await;
    // Another site at the slug has none of them.
    fixture.send(Method::DELETE, "", None).await.expect(204);
    let site =
        json!({ "type": "site", "files": texts(&[("index.html", "4")]), "requested_slug": "site" });
    fixture.create(&site).await.expect(201);
    fixture
        .expect_answers(&[("", Some("4")), ("a.js", None)])
        .await;
}

#[tokio::test]
async fn what_was_rolled_back_does_not_come_back() {
    let fixture = SiteFixture::with_files(&[("index.html", "1"), ("app-1.js", "1")]).await;
    let first = json!(fixture.active().await);
    let second = json!({ "files": texts(&[("index.html", "2"), ("app-2.js", "2")]) });
    let second = fixture.promote(&second, false).await;
    fixture.expect_answers(&[("app-1.js", Some("1"))]).await;
    fixture.release("rollback", &first).await.expect(200);
    fixture
        .expect_answers(&[("app-1.js", Some("1")), ("app-2.js", None)])
        .await;
    // Once it is live again, a promotion is what displaces it.
    fixture.release("promote", &second).await.expect(200);
    fixture.put_site(&[("index.html", "3")]).await;
    fixture
        .expect_answers(&[("app-1.js", Some("1")), ("app-2.js", Some("2"))])
        .await;
    fixture.release("rollback", &second).await.expect(200);
    fixture
        .expect_answers(&[("app-1.js", Some("1")), ("app-2.js", Some("2"))])
        .await;
}

#[tokio::test]
async fn files_that_are_deleted_by_name_are_gone() {
    let fixture = SiteFixture::with_files(&[
        ("index.html", "1"),
        ("a.js", "a"),
        ("b.js", "b"),
        ("c.js", "c"),
        ("d.js", "d"),
    ])
    .await;
    fixture
        .send(Method::DELETE, "/files/a.js", None)
        .await
        .expect(200);
    fixture
        .expect_answers(&[("a.js", None), ("b.js", Some("b"))])
        .await;
    fixture
        .promote(&json!({ "changes": { "delete": ["b.js"] } }), false)
        .await;
    // A draft with the same files that deletes nothing by name is the same revision, and learns what is.
    let plain = json!({ "files": texts(&[("index.html", "1"), ("d.js", "d")]) });
    let plain = fixture.draft(&plain).await;
    let named = fixture
        .draft(&json!({ "changes": { "delete": ["c.js"] } }))
        .await;
    assert_eq!(named["deduplicated"], true);
    assert_eq!(
        named["revision"]["revision_id"],
        plain["revision"]["revision_id"]
    );
    fixture
        .release("promote", &named["revision"]["revision_id"])
        .await
        .expect(200);
    let gone = [("a.js", None), ("b.js", None), ("c.js", None)];
    fixture.expect_answers(&gone).await;
    // Left out of a set of files is another thing, and later releases bring back nothing.
    let deleting = fixture.active().await;
    fixture.put_site(&[("index.html", "2")]).await;
    fixture.expect_answers(&gone).await;
    fixture.expect_answers(&[("d.js", Some("d"))]).await;
    // Nor does the end of the revision that deleted them.
    let path = format!("/revisions/{deleting}");
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    fixture.expect_answers(&gone).await;
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
    // A new file at the path is as good as any.
    fixture
        .put_site(&[("index.html", "3"), ("a.js", "new")])
        .await;
    fixture.put_site(&[("index.html", "4")]).await;
    fixture.expect_answers(&[("a.js", Some("new"))]).await;
}

#[tokio::test]
async fn rules_of_before_are_no_files() {
    let fixture = SiteFixture::with_files(&[
        ("index.html", "1"),
        ("a.js", "1"),
        ("_headers", "/*\n X-Secret: 1"),
        ("_redirects", "/secret /a.js 200"),
    ])
    .await;
    fixture.put_site(&[("index.html", "2")]).await;
    fixture
        .expect_answers(&[
            ("a.js", Some("1")),
            ("_headers", None),
            ("_redirects", None),
        ])
        .await;
}

#[tokio::test]
async fn a_rollback_brings_back_no_file_that_was_deleted_by_name() {
    let fixture = SiteFixture::with_files(&[("index.html", "1")]).await;
    let first = json!(fixture.active().await);
    fixture
        .put_site(&[("index.html", "1"), ("secret.js", "s"), ("app.js", "a")])
        .await;
    fixture
        .send(Method::DELETE, "/files/secret.js", None)
        .await
        .expect(200);
    let deleting = fixture.active().await;
    let gone = [("secret.js", None), ("app.js", Some("a"))];
    fixture.expect_answers(&[("secret.js", None)]).await;
    fixture.release("rollback", &first).await.expect(200);
    fixture.expect_answers(&gone).await;
    // Nor does the end of the revision that has deleted it, or the collector.
    let path = format!("/revisions/{deleting}");
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    fixture.server.advance(3600);
    collected_objects(&fixture.server).await;
    fixture.expect_answers(&gone).await;
    let check = async || {
        let checked = fixture.server.command(&svc(), &["check", "--json"]).await;
        assert_eq!(checked.json()["errors"], json!([]));
    };
    check().await;
    // What it says ends with the time of open tabs.
    fixture.server.advance(DAY);
    fixture
        .server
        .server()
        .app()
        .revisions
        .forget_former()
        .await
        .unwrap();
    collected_objects(&fixture.server).await;
    fixture
        .expect_answers(&[("secret.js", None), ("app.js", None)])
        .await;
    check().await;
}

#[tokio::test]
async fn the_end_of_a_revision_hides_no_more_than_it_has_deleted() {
    let fixture =
        SiteFixture::with_files(&[("index.html", "1"), ("app-1.js", "1"), ("secret.js", "s")])
            .await;
    fixture
        .put_site(&[("index.html", "2"), ("app-2.js", "2"), ("secret.js", "s")])
        .await;
    fixture
        .promote(&json!({ "changes": { "delete": ["secret.js"] } }), false)
        .await;
    let deleting = fixture.active().await;
    fixture.put_site(&[("index.html", "3")]).await;
    let served = [
        ("app-1.js", Some("1")),
        ("app-2.js", Some("2")),
        ("secret.js", None),
    ];
    fixture.expect_answers(&served).await;
    let path = format!("/revisions/{deleting}");
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    fixture.expect_answers(&served).await;
}

#[tokio::test]
async fn many_small_publications_end_no_file_of_a_tab() {
    let fixture = SiteFixture::with_files(&[("index.html", "1"), ("chunk.js", "c")]).await;
    for number in 0..60 {
        fixture
            .put_site(&[("index.html", &number.to_string())])
            .await;
    }
    fixture.expect_answers(&[("chunk.js", Some("c"))]).await;
}

#[tokio::test]
async fn a_release_that_forgets_leaves_nothing_of_before() {
    let fixture = SiteFixture::with_files(&[("index.html", "1"), ("a.js", "1")]).await;
    fixture
        .put_site(&[("index.html", "2"), ("b.js", "2")])
        .await;
    fixture.expect_answers(&[("a.js", Some("1"))]).await;
    let body = json!({ "files": texts(&[("index.html", "3"), ("c.js", "3")]), "forget": true });
    fixture.send(Method::PUT, "", Some(&body)).await.expect(200);
    fixture
        .expect_answers(&[("a.js", None), ("b.js", None), ("c.js", Some("3"))])
        .await;
    let third = json!(fixture.active().await);
    let fourth = json!({ "files": texts(&[("index.html", "4"), ("d.js", "4")]) });
    fixture.promote(&fourth, false).await;
    fixture.expect_answers(&[("c.js", Some("3"))]).await;
    let fifth = json!({ "files": texts(&[("index.html", "5")]) });
    fixture.promote(&fifth, true).await;
    fixture
        .expect_answers(&[("c.js", None), ("d.js", None)])
        .await;
    fixture
        .put_site(&[("index.html", "6"), ("e.js", "6")])
        .await;
    fixture.put_site(&[("index.html", "7")]).await;
    fixture.expect_answers(&[("e.js", Some("6"))]).await;
    fixture.release_saying("rollback", &third, true).await;
    fixture
        .expect_answers(&[("e.js", None), ("c.js", Some("3"))])
        .await;
}

#[tokio::test]
async fn files_of_a_deleted_revision_serve_nobody() {
    let fixture = SiteFixture::with_files(&[("index.html", "1"), ("a.js", "1")]).await;
    let first = fixture.active().await;
    fixture
        .put_site(&[("index.html", "2"), ("b.js", "2")])
        .await;
    let second = fixture.active().await;
    fixture.put_site(&[("index.html", "3")]).await;
    fixture
        .expect_answers(&[("a.js", Some("1")), ("b.js", Some("2"))])
        .await;
    let delete = async |id: &str| {
        let path = format!("/revisions/{id}");
        fixture.send(Method::DELETE, &path, None).await.expect(204);
    };
    delete(&second).await;
    fixture
        .expect_answers(&[("a.js", Some("1")), ("b.js", None)])
        .await;
    delete(&first).await;
    fixture.expect_answers(&[("a.js", None)]).await;
}

#[tokio::test]
async fn an_installation_may_keep_nothing_for_open_tabs() {
    let server = TestServer::builder().limits(|limits| limits.skew_seconds = 0);
    let fixture = SiteFixture::empty(server.start().await).await;
    let site = json!({ "type": "site", "files": texts(&[("index.html", "1"), ("a.js", "1")]), "requested_slug": "site" });
    fixture.create(&site).await.expect(201);
    fixture.put_site(&[("index.html", "2")]).await;
    fixture.expect_answers(&[("a.js", None)]).await;
}

#[tokio::test]
async fn manifests_in_memory_count_with_pages() {
    let paths: Vec<String> = (0..1_000)
        .map(|number| format!("assets/{number:060}.js"))
        .collect();
    let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "1")).collect();
    files.push(("index.html", "x"));
    let fixture = SiteFixture::with_files(&files).await;
    let pages = fixture.server.server().app().serving.pages();
    let before = pages.size().1;
    fixture.get("/site/none.js").await;
    let live = pages.size().1;
    assert!(live - before > 100_000, "{live}");
    fixture.put_site(&[("index.html", "y")]).await;
    assert!(pages.size().1 <= before, "the site's are forgotten");
    fixture.expect_answers(&[(&paths[7], Some("1"))]).await;
    assert!(
        pages.size().1 - before > 100_000,
        "those of before count, too"
    );
}

#[tokio::test]
async fn a_former_file_has_the_headers_of_the_rules() {
    let rules = ("_headers", "/*\n  Cache-Control: private, no-store\n");
    let fixture = SiteFixture::with_files(&[("old.js", "old"), rules]).await;
    fixture.put_site(&[("new.js", "new"), rules]).await;
    for path in ["/site/old.js", "/site/new.js"] {
        let answer = fixture.get(path).await.expect(200);
        assert_eq!(
            answer.header("cache-control"),
            Some("private, no-store"),
            "{path}"
        );
    }
}
