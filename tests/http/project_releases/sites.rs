//! Sites in a release: with pages and actions, all of them or none.

use super::*;
use svc::content::Digest;

/// A site of texts for a release.
fn site(slug: &str, files: &[(&str, &str)], expected: &Value) -> Value {
    let files: serde_json::Map<String, Value> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), json!({ "text": text })))
        .collect();
    json!({ "slug": slug, "type": "site", "files": files, "expected_active_revision_id": expected })
}

/// Changes of a site for a release.
fn changes(slug: &str, changes: &Value, expected: &Value) -> Value {
    json!({ "slug": slug, "changes": changes, "expected_active_revision_id": expected })
}

/// The text of a file of a site; `None` without one.
async fn file(at: &ProjectFixture, path: &str) -> Option<String> {
    let host = format!("house-acme.localhost:{}", at.server.address().port());
    let answer = at.server.get_raw(&host, path).await;
    (answer.status == 200).then(|| answer.text().to_owned())
}

/// Number of stored objects, once the collector has been.
async fn objects(at: &ProjectFixture) -> usize {
    at.server.advance(3600);
    let app = at.server.server().app();
    app.files.sweep().await.unwrap();
    at.server.advance(3600);
    app.collector.collect().await.unwrap();
    app.content.list().await.unwrap().0.len()
}

#[tokio::test]
async fn sites_and_pages_change_together() {
    let at = ProjectFixture::new(GUESTS).await;
    let room = active(&at, "room").await;
    let made = released(
        &at,
        json!({
            "actions": [{ "name": "all", "sql": "SELECT name FROM guests" }],
            "pages": [
                site("garden", &[("index.html", "<title>Garden</title>one"), ("a.css", "a{}")], &Value::Null),
                page("room", "# Two", &room),
            ],
            "home": "garden",
        }),
    )
    .await;
    let garden = &made["pages"][0]["revision_id"];
    assert_eq!(*garden, active(&at, "garden").await);
    assert_eq!(file(&at, "/garden/a.css").await.as_deref(), Some("a{}"));
    assert_eq!(shown(&at.server, "room").await.as_deref(), Some("# Two"));
    let first = &revisions(&at, "garden").await[0];
    assert_eq!(first["title"], "Garden");
    assert_eq!(first["site"]["files"], 2);
    // Files and options that are there already keep their revision.
    let same = json!({ "pages": [
        site("garden", &[("a.css", "a{}"), ("index.html", "<title>Garden</title>one")], garden),
    ] });
    let again = released(&at, same).await;
    assert_eq!(again["pages"][0]["revision_id"], *garden);
    assert_eq!(revisions(&at, "garden").await.len(), 1);
    let mut more = changes(
        "garden",
        &json!({
            "set": { "b.txt": { "text": "b" } }, "delete": ["a.css"],
            "edits": [{ "path": "index.html", "find": "one", "replace": "two" }],
        }),
        garden,
    );
    more["options"] = json!({ "fallback": "index.html" });
    let changed = released(&at, json!({ "pages": [more], "message": "beans" })).await;
    let second = &changed["pages"][0]["revision_id"];
    assert_eq!(file(&at, "/garden/b.txt").await.as_deref(), Some("b"));
    assert!(file(&at, "/garden/").await.unwrap().ends_with("two"));
    assert_eq!(file(&at, "/garden/a.css").await, None);
    assert_eq!(revisions(&at, "garden").await[0]["message"], "beans");
    // Options may change without any file.
    let mut only_options = changes("garden", &json!({}), second);
    only_options["options"] = json!({});
    let changed = released(&at, json!({ "pages": [only_options] })).await;
    let second = &changed["pages"][0]["revision_id"];
    assert_eq!(*second, active(&at, "garden").await);
    assert_eq!(revisions(&at, "garden").await.len(), 3);
    let gone = json!([{ "slug": "garden", "expected_active_revision_id": second }]);
    let gone = released(&at, json!({ "remove_pages": gone, "home": "" })).await;
    assert_eq!(gone["removed"]["pages"], json!(["garden"]));
    assert_eq!(file(&at, "/garden/").await, None);
}

#[tokio::test]
async fn a_release_with_sites_leaves_nothing_when_it_is_refused() {
    let at = ProjectFixture::new(GUESTS).await;
    let made = released(
        &at,
        json!({ "pages": [site("garden", &[("a", "a")], &Value::Null)] }),
    )
    .await;
    let garden = made["pages"][0]["revision_id"].clone();
    let room = active(&at, "room").await;
    let (before, stored) = (state(&at).await, objects(&at).await);
    let digests = ["one", "two"].map(|text| Digest::of(text.as_bytes()).to_string());
    let named = |slug: &str, digest: &str| {
        json!({
            "slug": slug, "type": "site", "expected_active_revision_id": null,
            "files": { "x": { "sha256": digest }, "y": { "text": slug } },
        })
    };
    let body = json!({ "pages": [named("hut", &digests[0]), named("den", &digests[1]), named("pen", &digests[0])] });
    for dry_run in [false, true] {
        let mut body = body.clone();
        body["dry_run"] = dry_run.into();
        let refused = release(&at, &body).await.problem(409, "files_missing");
        let mut missing = digests.to_vec();
        missing.sort();
        assert_eq!(refused["missing"], json!(missing), "those of all sites");
        assert_eq!(refused["part"], "pages[0]", "the first that names one");
    }
    let fine = site("hut", &[("x", "fine")], &Value::Null);
    let mut options = fine.clone();
    options["options"] = json!({ "fallback": "none" });
    let mut patterns = fine.clone();
    patterns["options"] = json!({ "immutable": ["no slash"] });
    let mut text = fine.clone();
    text["content"] = "x".into();
    let mut typed = new_page("den", "# x");
    typed["type"] = "site".into();
    let mut kind = site("den", &[("x", "y")], &Value::Null);
    kind["type"] = "html".into();
    let mut on_page = changes("room", &json!({ "delete": ["x"] }), &room);
    on_page.as_object_mut().unwrap().remove("type");
    for (wrong, status, code, said) in [
        (options, 400, "invalid_request", "fallback"),
        (patterns, 400, "invalid_request", "immutable"),
        (text, 400, "invalid_request", "`content`"),
        (typed, 400, "invalid_request", "files"),
        (kind, 400, "invalid_request", "content"),
        (on_page, 400, "invalid_request", "content"),
        (
            page("garden", "# x", &garden),
            400,
            "invalid_request",
            "files",
        ),
        (
            changes("den", &json!({ "delete": ["x"] }), &Value::Null),
            400,
            "invalid_request",
            "`type`",
        ),
        (
            changes("garden", &json!({ "delete": ["x"] }), &garden),
            400,
            "invalid_request",
            "`x`",
        ),
        (
            site("den", &[("../x", "y")], &Value::Null),
            400,
            "path_refused",
            "..",
        ),
        (
            site("room", &[("x", "y")], &room),
            400,
            "type_mismatch",
            "markdown",
        ),
        (
            site("garden", &[("x", "y")], &Value::Null),
            409,
            "release_conflict",
            "garden",
        ),
    ] {
        for dry_run in [false, true] {
            let first = site(
                "first",
                &[("index.html", "stored, and given up")],
                &Value::Null,
            );
            let body = json!({ "pages": [first, wrong], "dry_run": dry_run });
            let refused = release(&at, &body).await.problem(status, code);
            let detail = crate::owner::text(&refused["detail"]);
            assert!(detail.contains(said), "{wrong}: {refused}");
            if code != "release_conflict" {
                assert_eq!(refused["part"], "pages[1]", "{wrong}");
            }
        }
    }
    // Stored by then, and refused after it.
    let body = json!({
        "pages": [site("first", &[("index.html", "stored, and given up")], &Value::Null)],
        "actions": [{ "name": "bad", "sql": "SELECT nothing" }],
    });
    release(&at, &body).await.problem(400, "statement_refused");
    assert_eq!(state(&at).await, before);
    assert_eq!(objects(&at).await, stored);
}

#[tokio::test]
async fn a_dry_run_counts_files() {
    let at = ProjectFixture::new(GUESTS).await;
    let made = released(
        &at,
        json!({ "pages": [site("garden", &[("a", "1"), ("b", "2"), ("c", "3")], &Value::Null)] }),
    )
    .await;
    let garden = &made["pages"][0]["revision_id"];
    let (before, stored) = (state(&at).await, objects(&at).await);
    let tried = |slug: &str, change: &str, added: u64, removed: u64| json!([{ "slug": slug, "change": change, "added_lines": added, "removed_lines": removed }]);
    for (part, expected) in [
        (
            json!({ "pages": [changes("garden", &json!({ "set": { "d": { "text": "4" }, "a": { "text": "5" } }, "delete": ["b"] }), garden)] }),
            tried("garden", "changed", 2, 2),
        ),
        (
            json!({ "pages": [site("garden", &[("a", "1"), ("b", "2"), ("c", "3")], garden)] }),
            tried("garden", "none", 0, 0),
        ),
        (
            json!({ "pages": [site("den", &[("a", "1")], &Value::Null)] }),
            tried("den", "new", 1, 0),
        ),
        (
            json!({ "remove_pages": [{ "slug": "garden", "expected_active_revision_id": garden }] }),
            tried("garden", "removed", 0, 3),
        ),
    ] {
        let mut body = part;
        body["dry_run"] = true.into();
        let answer = release(&at, &body).await.expect(200).json();
        assert_eq!(answer["pages"], expected);
    }
    assert_eq!(state(&at).await, before);
    assert_eq!(objects(&at).await, stored);
}

#[tokio::test]
async fn a_dry_run_stores_no_files() {
    let at = ProjectFixture::new(GUESTS).await;
    let stored = async || {
        let content = &at.server.server().app().content;
        content.list().await.unwrap().0.len()
    };
    let garden = site(
        "garden",
        &[("index.html", "<title>Garden</title>"), ("a", "a")],
        &Value::Null,
    );
    let mut body = json!({ "pages": [garden], "dry_run": true });
    // What the fixture has left over goes first.
    objects(&at).await;
    let before = stored().await;
    let tried = released(&at, body.clone()).await;
    assert_eq!(stored().await, before);
    assert_eq!(tried["pages"][0]["change"], "new");
    body["dry_run"] = false.into();
    released(&at, body).await;
    assert!(stored().await > before);
}
