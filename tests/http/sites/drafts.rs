//! Drafts of sites: made of whole sets or of changes, looked at, promoted and rolled back.

use http::Method;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;

use super::{SiteFixture, publish, texts};
use crate::owner::text;

#[tokio::test]
async fn changes_are_previewed_promoted_and_rolled_back() {
    let fixture = SiteFixture::with_files(&[
        ("index.html", "<title>Home</title>one"),
        ("css/site.css", "a { color: red }"),
        ("old.txt", "old"),
    ])
    .await;
    let before = fixture.active().await;
    let changes = json!({ "changes": {
        "set": { "new.txt": { "text": "new" } },
        "delete": ["old.txt"],
        "edits": [
            { "path": "index.html", "find": "one", "replace": "two" },
            { "path": "css/site.css", "find": "red", "replace": "blue" },
            { "path": "css/site.css", "find": "blue", "replace": "green" },
        ],
    } });
    let draft = fixture.draft(&changes).await;
    assert_eq!(draft["deduplicated"], false);
    assert_eq!(draft["revision"]["title"], "Home");
    assert_eq!(draft["revision"]["site"]["files"], 3);
    let id = &draft["revision"]["revision_id"];
    // Nobody sees it but in its preview.
    assert!(fixture.read("/site/").await.ends_with("one"));
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let look = async |below: &str| {
        let path = format!("{preview}{below}");
        fixture.server.get(&path).answer().await
    };
    let page = look("").await.expect(200);
    assert!(page.text().ends_with("two"));
    assert_eq!(page.header("x-robots-tag"), Some("noindex"));
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("sandbox")
    );
    assert_eq!(
        page.header("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    assert_eq!(
        look("css/site.css").await.expect(200).text(),
        "a { color: green }"
    );
    assert_eq!(look("css").await.status, 404);
    assert_eq!(look("old.txt").await.status, 404);
    let again = fixture.draft(&changes).await;
    assert_eq!(again["deduplicated"], true);
    assert_eq!(&again["revision"]["revision_id"], id);
    let promoted = fixture.release("promote", id).await.expect(200).json();
    assert_eq!(promoted["revision"]["state"], "active");
    assert_eq!(promoted["frontend"]["site"]["files"], 3);
    assert!(fixture.read("/site/").await.ends_with("two"));
    assert_eq!(fixture.read("/site/new.txt").await, "new");
    assert_eq!(fixture.get("/site/old.txt").await.status, 404);
    let back = fixture
        .release("rollback", &json!(before))
        .await
        .expect(200)
        .json();
    assert_eq!(back["frontend"]["active_revision_id"], before);
    assert_eq!(fixture.read("/site/old.txt").await, "old");
    assert_eq!(fixture.get("/site/new.txt").await.status, 404);
    let releases = fixture.send(Method::GET, "/releases", None).await.json();
    let kinds: Vec<_> = releases["releases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(kinds, ["rollback", "promote", "baseline"]);
}

#[tokio::test]
async fn drafts_and_releases_tell_the_warnings_of_a_site() {
    let fixture = SiteFixture::with_files(&[("a.txt", "1"), ("A.txt", "2")]).await;
    let first = json!(fixture.active().await);
    let draft = fixture
        .draft(&json!({ "changes": { "set": { "ws": { "text": "x" } } } }))
        .await;
    let codes = |warnings: &Value| {
        let warnings = warnings.as_array().unwrap().iter();
        warnings.map(|it| text(&it["code"])).collect::<Vec<_>>()
    };
    let both = ["case_collision", "path_hidden"];
    assert_eq!(codes(&draft["warnings"]), both);
    assert_eq!(draft["preview_origin"], draft["revision"]["preview_origin"]);
    assert!(draft["preview_origin"].is_string());
    let promoted = fixture.release("promote", &draft["revision"]["revision_id"]);
    let promoted = promoted.await.expect(200).json();
    assert_eq!(codes(&promoted["frontend"]["warnings"]), both);
    let back = fixture.release("rollback", &first).await.expect(200).json();
    assert_eq!(codes(&back["frontend"]["warnings"]), both[..1]);
}

#[tokio::test]
async fn a_draft_changes_nothing_of_what_was_live() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let first = json!(fixture.active().await);
    let page = ("index.html", "1");
    for files in [
        &[page, ("b.js", "old")][..],
        &[page, ("a.js", "a")],
        &[page, ("a.js", "a"), ("b.js", "new")],
    ] {
        publish(&fixture, files).await.expect(200);
    }
    // The files of one that was live, and deleted by name.
    let draft = fixture
        .draft(&json!({ "changes": { "delete": ["b.js"] } }))
        .await;
    assert_eq!(draft["deduplicated"], false);
    fixture.release("rollback", &first).await.expect(200);
    assert_eq!(fixture.read("/site/b.js").await, "old");
}

#[tokio::test]
async fn options_or_a_title_may_change_without_files() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let base = fixture.active().await;
    let nothing = json!({ "base_revision_id": base, "changes": {} });
    let refused = fixture
        .send(Method::POST, "/revisions", Some(&nothing))
        .await;
    refused.problem(400, "invalid_request");
    let options = json!({ "changes": {}, "options": { "fallback": "index.html" } });
    let options = fixture.draft(&options).await;
    assert_eq!(options["deduplicated"], false);
    let title = fixture
        .draft(&json!({ "changes": {}, "title": "Beds" }))
        .await;
    assert_eq!(title["revision"]["title"], "Beds");
}

#[tokio::test]
async fn changes_are_made_all_or_not_at_all() {
    let fixture = SiteFixture::with_files(&[("a.txt", "one two two"), ("b/c.txt", "x")]).await;
    let base = fixture.active().await;
    let bytes = fixture.put(&[0xff; 9]).await;
    let binary = json!({ "changes": { "set": { "bin": { "sha256": bytes } } } });
    let binary = fixture.draft(&binary).await;
    fixture
        .release("promote", &binary["revision"]["revision_id"])
        .await
        .expect(200);
    let refuse = async |changes: serde_json::Value, code: &str, said: &str| {
        let body = json!({ "base_revision_id": fixture.active().await, "changes": changes });
        let refused = fixture.send(Method::POST, "/revisions", Some(&body)).await;
        let problem = refused.problem(400, code);
        assert!(text(&problem["detail"]).contains(said), "{said}: {problem}");
    };
    let edit = |path: &str, find: &str| json!({ "edits": [{ "path": path, "find": find, "replace": "y" }] });
    refuse(json!({}), "invalid_request", "empty").await;
    refuse(json!({ "delete": ["none"] }), "invalid_request", "none").await;
    refuse(
        json!({ "delete": ["a.txt", "b/c.txt", "bin"] }),
        "invalid_request",
        "one file",
    )
    .await;
    refuse(edit("none", "x"), "invalid_request", "none").await;
    refuse(
        edit("a.txt", "three"),
        "invalid_request",
        "changes.edits[0]",
    )
    .await;
    refuse(edit("a.txt", "two"), "invalid_request", "2 times").await;
    refuse(
        edit("a.txt", ""),
        "invalid_request",
        "changes.edits[0].find",
    )
    .await;
    refuse(edit("bin", "x"), "invalid_request", "no text").await;
    let twice = json!({ "set": { "a.txt": { "text": "z" } }, "delete": ["a.txt"] });
    refuse(twice, "invalid_request", "twice").await;
    refuse(
        json!({ "set": { "a.txt/x": { "text": "z" } } }),
        "path_refused",
        "folder",
    )
    .await;
    refuse(
        json!({ "set": { "../x": { "text": "z" } } }),
        "path_refused",
        "..",
    )
    .await;
    let both = json!({ "base_revision_id": fixture.active().await, "files": texts(&[("a", "b")]), "changes": { "delete": ["bin"] } });
    let refused = fixture.send(Method::POST, "/revisions", Some(&both)).await;
    refused.problem(400, "invalid_request");
    let stale = json!({ "base_revision_id": base, "files": texts(&[("a", "b")]) });
    let refused = fixture.send(Method::POST, "/revisions", Some(&stale)).await;
    refused.problem(409, "revision_conflict");
    assert_eq!(fixture.read("/site/a.txt").await, "one two two");
    // A file in the place of a folder, and a folder in the place of a file.
    let turned = json!({ "changes": {
        "delete": ["a.txt", "b/c.txt"], "set": { "a.txt/x": { "text": "1" }, "b": { "text": "2" } },
    } });
    let turned = fixture.draft(&turned).await;
    fixture
        .release("promote", &turned["revision"]["revision_id"])
        .await
        .expect(200);
    assert_eq!(fixture.read("/site/a.txt/x").await, "1");
    assert_eq!(fixture.read("/site/b").await, "2");
}

#[tokio::test]
async fn a_text_of_any_length_is_edited() {
    let fixture = SiteFixture::with_files(&[("a.txt", "a")]).await;
    let long = "line\n".repeat(500_000) + "last";
    let digest = fixture.put(long.as_bytes()).await;
    let set = json!({ "changes": { "set": { "long.txt": { "sha256": digest } } } });
    let draft = fixture.draft(&set).await;
    let released = fixture.release("promote", &draft["revision"]["revision_id"]);
    released.await.expect(200);
    let edit = json!([{ "path": "long.txt", "find": "last", "replace": "end" }]);
    let draft = fixture
        .draft(&json!({ "changes": { "edits": edit } }))
        .await;
    let released = fixture.release("promote", &draft["revision"]["revision_id"]);
    released.await.expect(200);
    let read = fixture.read("/site/long.txt").await;
    assert_eq!(read.len(), long.len() - 1);
    assert!(read.ends_with("line\nend"));
}
