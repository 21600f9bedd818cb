//! Paths that no site has, whatever way they come.

use http::Method;
use serde_json::{Value, json};

use super::SiteFixture;
use crate::owner::text;

#[tokio::test]
async fn refused_paths_are_named() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let long = "a".repeat(513);
    let segment = "a".repeat(256);
    for path in [
        "",
        "/a",
        "a//b",
        "a/",
        ".",
        "..",
        "a/..",
        "../a",
        "a\\b",
        "a\u{0}b",
        "a\u{1f}",
        "_svc/x",
        "_svc",
        ".git/config",
        ".env",
        "a/.htaccess",
        "u\u{308}",
        &long,
        &segment,
    ] {
        let mut files = serde_json::Map::new();
        files.insert(path.to_owned(), json!({ "text": "x" }));
        files.insert("index.html".to_owned(), json!({ "text": "x" }));
        let body = json!({ "files": Value::Object(files) });
        let refused = fixture.send(Method::PUT, "", Some(&body)).await;
        let problem = refused.problem(400, "path_refused");
        assert_eq!(problem["path"], path, "{problem}");
        assert!(!text(&problem["reason"]).is_empty());
    }
    let folders = json!({ "files": { "a": { "text": "1" }, "a/b": { "text": "2" } } });
    let refused = fixture.send(Method::PUT, "", Some(&folders)).await;
    assert_eq!(refused.problem(400, "path_refused")["path"], "a");
    assert_eq!(fixture.read("/site/").await, "x");
}

#[tokio::test]
async fn addresses_lead_to_files_of_the_site_alone() {
    let fixture = SiteFixture::with_files(&[
        ("index.html", "x"),
        ("%2e%2e/a", "encoded"),
        ("a+b", "plus"),
    ])
    .await;
    for path in [
        "/site/../site/",
        "/site/%2e%2e/%2e%2e/etc/passwd",
        "/site/..%2fx",
        "/site/%5c",
        "/site/%00",
        "/site/a%2fb",
        "/site/./index.html",
        "/site/%2e/index.html",
        "/site/index.html/",
        "/site/INDEX.HTML",
        "/other/index.html",
        "/site/index.html%20",
        "/site/%ff",
    ] {
        assert_eq!(fixture.get(path).await.status, 404, "{path}");
    }
    assert_eq!(fixture.read("/site/%252e%252e/a").await, "encoded");
    assert_eq!(fixture.read("/site/a+b").await, "plus");
}
