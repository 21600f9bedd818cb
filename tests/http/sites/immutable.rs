//! Immutable files: kept by browsers for a year, and so never other bytes than were live.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, collected_objects, texts};
use crate::owner::text;
use crate::svc;

const FOREVER: &str = "public, max-age=31536000, immutable";
const REVALIDATED: &str = "public, max-age=0, must-revalidate";

/// Starts a server with a site whose folder `assets` is immutable.
async fn with_assets(files: &[(&str, &str)]) -> SiteFixture {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    fixture.create(&site(files)).await.expect(201);
    fixture
}

fn site(files: &[(&str, &str)]) -> Value {
    json!({
        "type": "site", "files": texts(files), "requested_slug": "site",
        "options": { "immutable": ["/assets/*", "/logo.svg"] },
    })
}

async fn put_site(fixture: &SiteFixture, files: &[(&str, &str)]) -> Answer {
    let body = json!({ "files": texts(files) });
    fixture.send(Method::PUT, "", Some(&body)).await
}

/// Refuses with 409 and these paths.
fn expect_changed(refused: &Answer, paths: &[&str]) {
    let problem = refused.problem(409, "immutable_changed");
    assert_eq!(problem["paths"], json!(paths), "{problem}");
}

#[tokio::test]
async fn only_addresses_that_never_change_are_kept_for_a_year() {
    let fixture = with_assets(&[
        ("index.html", "x"),
        ("404.html", "none"),
        ("assets/app.js", "1"),
        ("assets/page.html", "p"),
        ("logo.svg", "<svg/>"),
        ("logo.png", "?"),
    ])
    .await;
    for (path, expected) in [
        ("", REVALIDATED),
        ("assets/app.js", FOREVER),
        ("assets/page.html", FOREVER),
        // A file of exactly this name may come.
        ("assets/page", REVALIDATED),
        ("logo.svg", FOREVER),
        ("logo.png", REVALIDATED),
        ("assets/none.js", "no-store"),
    ] {
        let answer = fixture.get(&format!("/site/{path}")).await;
        assert_eq!(answer.header("cache-control"), Some(expected), "{path}");
    }
    // Of what is left for open tabs, only what was immutable then: other bytes may come to the rest.
    let next = json!({ "files": texts(&[("index.html", "x")]), "options": { "immutable": ["/assets/*", "/logo.png"] } });
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    for (path, expected) in [
        ("assets/app.js", FOREVER),
        ("logo.svg", REVALIDATED),
        ("logo.png", REVALIDATED),
    ] {
        let answer = fixture.get(&format!("/site/{path}")).await.expect(200);
        assert_eq!(answer.header("cache-control"), Some(expected), "{path}");
    }
    let next = json!({ "files": texts(&[("index.html", "x")]), "options": { "immutable": ["/assets/*", "/logo.svg"] } });
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    let content = fixture.send(Method::GET, "/content", None).await.json();
    let options = json!({ "immutable": ["/assets/*", "/logo.svg"] });
    assert_eq!(content["options"], options);
}

#[tokio::test]
async fn patterns_are_told_apart_from_what_is_none() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let body = |patterns: Value| json!({ "type": "site", "files": texts(&[("a", "b")]), "options": { "immutable": patterns } });
    let many: Vec<String> = (0..101).map(|number| format!("/{number}")).collect();
    for (patterns, said) in [
        (json!(["assets/*"]), "`assets/*`"),
        (json!(["/ok", "/a//*"]), "`/a//*`"),
        (json!(["/:id"]), "`/:id`"),
        (json!(["/../*"]), "`/../*`"),
        (json!([""]), "``"),
        (json!([1]), "immutable"),
        (json!(many), "101"),
        (json!("/*"), "immutable"),
    ] {
        let refused = fixture.create(&body(patterns)).await;
        let problem = refused.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(said), "{said}: {problem}");
    }
    let patterns = json!(["/*", "/assets/**", "/*.js", "/a/*/b"]);
    fixture.create(&body(patterns)).await.expect(201);
}

#[tokio::test]
async fn other_bytes_are_refused_however_they_come() {
    let fixture = with_assets(&[
        ("index.html", "1"),
        ("assets/a.js", "1"),
        ("assets/b.js", "1"),
    ])
    .await;
    let first = fixture.active().await;
    let changed = [
        ("index.html", "2"),
        ("assets/a.js", "2"),
        ("assets/b.js", "2"),
    ];
    expect_changed(
        &put_site(&fixture, &changed).await,
        &["assets/a.js", "assets/b.js"],
    );
    let draft = async |body: Value| {
        let mut body = body;
        body["base_revision_id"] = fixture.active().await.into();
        fixture.send(Method::POST, "/revisions", Some(&body)).await
    };
    let set = json!({ "changes": { "set": { "assets/a.js": { "text": "2" } } } });
    expect_changed(&draft(set).await, &["assets/a.js"]);
    let edit = json!({ "path": "assets/b.js", "find": "1", "replace": "2" });
    expect_changed(
        &draft(json!({ "changes": { "edits": [edit] } })).await,
        &["assets/b.js"],
    );
    let path = format!(
        "/api/v1/projects/{}/frontends/site/files/assets/a.js",
        fixture.project
    );
    let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
    expect_changed(&request.body("2").answer().await, &["assets/a.js"]);
    // Missing files are told of first, and immutable ones before there is too little room.
    let missing = json!({ "files": { "assets/a.js": { "text": "2" }, "x": { "sha256": super::sha256(b"x") } } });
    fixture
        .send(Method::PUT, "", Some(&missing))
        .await
        .problem(409, "files_missing");
    assert_eq!(fixture.active().await, first);
    assert_eq!(fixture.read("/site/assets/a.js").await, "1");
    // Other names and other paths are free.
    put_site(&fixture, &[("index.html", "2"), ("assets/c.js", "2")])
        .await
        .expect(200);
    // What was live stays what it is when it is gone, and when its revision is.
    let path = format!("/revisions/{first}");
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    collected_objects(&fixture.server).await;
    let again = [("index.html", "2"), ("assets/a.js", "2")];
    expect_changed(&put_site(&fixture, &again).await, &["assets/a.js"]);
    put_site(&fixture, &[("index.html", "2"), ("assets/a.js", "1")])
        .await
        .expect(200);
    // Without the pattern nothing is promised any more, but what was is remembered.
    let without = json!({ "files": texts(&again), "options": {} });
    fixture
        .send(Method::PUT, "", Some(&without))
        .await
        .expect(200);
    let answer = fixture.get("/site/assets/a.js").await;
    assert_eq!(
        (answer.text(), answer.header("cache-control")),
        ("2", Some(REVALIDATED))
    );
    let with = json!({ "files": texts(&again), "options": { "immutable": ["/assets/*"] } });
    let refused = fixture.send(Method::PUT, "", Some(&with)).await;
    expect_changed(&refused, &["assets/a.js"]);
}

#[tokio::test]
async fn drafts_are_compared_with_what_is_live_when_they_are_released() {
    let fixture = with_assets(&[("index.html", "1"), ("assets/a.js", "1")]).await;
    let first = json!(fixture.active().await);
    let add = |name: &str, text: &str| {
        let mut set = json!({});
        set[format!("assets/{name}.js")] = json!({ "text": text });
        json!({ "changes": { "set": set } })
    };
    let mut drafts = Vec::new();
    for (name, text) in [("x", "1"), ("x", "2"), ("y", "1")] {
        let draft = fixture.draft(&add(name, text)).await;
        drafts.push(draft["revision"]["revision_id"].clone());
    }
    fixture.release("promote", &drafts[0]).await.expect(200);
    expect_changed(
        &fixture.release("promote", &drafts[1]).await,
        &["assets/x.js"],
    );
    assert_eq!(fixture.read("/site/assets/x.js").await, "1");
    fixture.release("promote", &drafts[2]).await.expect(200);
    assert_eq!(fixture.read("/site/assets/y.js").await, "1");
    // Whatever was live may be live again.
    for revision in [&drafts[0], &first, &drafts[2]] {
        fixture.release("rollback", revision).await.expect(200);
    }
    expect_changed(
        &fixture.release("promote", &drafts[1]).await,
        &["assets/x.js"],
    );
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
}

#[tokio::test]
async fn publications_at_once_keep_one_of_two_contents() {
    let fixture = with_assets(&[("index.html", "1")]).await;
    let publish = |number: usize| {
        let files = [("index.html", "1"), ("assets/a.js", ["1", "2"][number % 2])];
        let fixture = &fixture;
        async move { put_site(fixture, &files).await }
    };
    let published = futures_util::future::join_all((0..8).map(publish)).await;
    let live = fixture.read("/site/assets/a.js").await;
    for (number, answer) in published.iter().enumerate() {
        match ["1", "2"][number % 2] == live {
            true => assert_eq!(answer.status, 200, "{}", answer.text()),
            false => expect_changed(answer, &["assets/a.js"]),
        }
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_site_that_ends() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let before = collected_objects(&fixture.server).await;
    fixture
        .create(&site(&[("index.html", "1"), ("assets/a.js", "1")]))
        .await
        .expect(201);
    put_site(&fixture, &[("index.html", "2"), ("assets/b.js", "2")])
        .await
        .expect(200);
    let draft = fixture
        .draft(&json!({ "changes": { "set": { "assets/c.js": { "text": "3" } } } }))
        .await;
    let other = fixture
        .draft(&json!({ "changes": { "set": { "assets/d.js": { "text": "4" } } } }))
        .await;
    fixture
        .release("promote", &draft["revision"]["revision_id"])
        .await
        .expect(200);
    collected_objects(&fixture.server).await;
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(
        (&check["errors"], &check["leftovers"]),
        (&json!([]), &json!([]))
    );
    fixture
        .release("promote", &other["revision"]["revision_id"])
        .await
        .expect(200);
    fixture.send(Method::DELETE, "", None).await.expect(204);
    assert_eq!(collected_objects(&fixture.server).await, before);
}
