//! Addresses below a site, and what their answers carry.

use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer};

use super::{SiteFixture, texts};

/// Asks with headers on the project's origin.
async fn ask(fixture: &SiteFixture, method: &str, path: &str, headers: &str) -> Answer {
    let port = fixture.server.address().port();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: house-acme.localhost:{port}\r\nConnection: close\r\n{headers}\r\n"
    );
    fixture.server.raw(request).await
}

#[tokio::test]
async fn folders_pages_and_missing_files_are_found() {
    let fixture = SiteFixture::with_files(&[
        ("index.html", "home"),
        ("about.html", "about"),
        ("docs/index.html", "docs"),
        ("docs/404.html", "no such doc"),
        ("a b/ü.html", "umlaut"),
        ("raw", "raw file"),
        ("api/data.json", "{}"),
        (".well-known/x", "known"),
    ])
    .await;
    for (path, expected) in [
        ("/site/", "home"),
        ("/site/index.html", "home"),
        ("/site/about", "about"),
        ("/site/docs/", "docs"),
        ("/site/a%20b/%C3%BC", "umlaut"),
        ("/site/a%20b/%c3%bc.html", "umlaut"),
        ("/site/raw", "raw file"),
        ("/site/api/data.json", "{}"),
        ("/site/.well-known/x", "known"),
    ] {
        assert_eq!(fixture.read(path).await, expected, "{path}");
    }
    for (path, location) in [
        ("/site", "/site/"),
        ("/site?a=b", "/site/?a=b"),
        ("/site/docs", "/site/docs/"),
        ("/site/docs?q=1", "/site/docs/?q=1"),
        ("/site/about/", "/site/about"),
        ("/site/a%20b/%C3%BC/", "/site/a%20b/%C3%BC"),
    ] {
        let answer = fixture.get(path).await.expect(308);
        assert_eq!(answer.header("location"), Some(location), "{path}");
    }
    let missing = fixture.get("/site/docs/none").await.expect(404);
    assert_eq!(missing.text(), "no such doc");
    assert_eq!(missing.header("cache-control"), Some("no-store"));
    for path in [
        "/site/none",
        "/site/Index.html",
        "/site/docs%2findex.html",
        "/site//index.html",
        "/site/%2e%2e/site/",
    ] {
        fixture.get(path).await.problem(404, "not_found");
    }
    // A path that no file can have is a missing file of its folder.
    for path in [
        "/site/docs//intro.html",
        "/site/docs/a%2Fb",
        "/site/docs/%5Cx",
        "/site/docs/x//",
        "/docs//index.html",
    ] {
        let missing = fixture.get(path).await.expect(404);
        assert_eq!(missing.text(), "no such doc", "{path}");
        let head = ask(&fixture, "HEAD", path, "").await;
        assert_eq!((head.status, head.body.len()), (404, 0), "{path}");
    }
    for path in ["/site/docs//../x", "/site/docs//%00", "/other/docs//x"] {
        fixture.get(path).await.problem(404, "not_found");
    }
    let refused = ask(&fixture, "POST", "/site/about", "Content-Length: 0\r\n").await;
    refused.problem(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("GET,HEAD"));
}

#[tokio::test]
async fn an_app_gets_its_page_for_navigations_alone() {
    let fixture = SiteFixture::with_files(&[("index.html", "app"), ("a.js", "1")]).await;
    let files = json!({ "files": texts(&[("index.html", "app"), ("a.js", "1")]), "options": { "fallback": "index.html" } });
    fixture
        .send(Method::PUT, "", Some(&files))
        .await
        .expect(200);
    let page = "Accept: text/html\r\n";
    let routed = ask(&fixture, "GET", "/site/users/7", page)
        .await
        .expect(200);
    assert_eq!(routed.text(), "app");
    assert_eq!(
        routed.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for path in ["/site/users%2F7", "/site//users", "/users/%5C", "//users"] {
        let routed = ask(&fixture, "GET", path, page).await.expect(200);
        assert_eq!(routed.text(), "app", "{path}");
        assert_eq!(routed.header("link"), None, "{path}");
    }
    for path in ["/site//a.js", "/site/x%2Fa.js", "//a.js"] {
        let missing = ask(&fixture, "GET", path, page).await;
        assert_eq!(missing.status, 404, "{path}: never a file");
    }
    let navigation = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n";
    ask(&fixture, "GET", "/site/users/7", navigation)
        .await
        .expect(200);
    for headers in [
        "",
        "Accept: */*\r\n",
        "Accept: text/html\r\nSec-Fetch-Mode: cors\r\n",
    ] {
        let missing = ask(&fixture, "GET", "/site/users/7", headers).await;
        assert_eq!(missing.status, 404, "{headers}");
    }
    let chunk = ask(&fixture, "GET", "/site/chunk-1.js", page).await;
    assert_eq!(chunk.status, 404, "a missing script is no page");
    // Caches are told all that the answer depends on, away from the project's origin, too.
    let elsewhere = fixture.server.get("/site/users/7");
    let elsewhere = elsewhere.header("accept", "text/html").answer().await;
    let answer = elsewhere.expect(200);
    let vary = answer.headers.get_all("vary").iter();
    let vary: Vec<&str> = vary
        .flat_map(|line| line.to_str().unwrap().split(", "))
        .collect();
    let (encoding, navigation) = ("Accept-Encoding", ["Sec-Fetch-Mode", "Sec-Fetch-Dest"]);
    let of_its_page = ["Accept", "Sec-Fetch-Mode"];
    assert_eq!(vary, [&[encoding], &navigation[..], &of_its_page].concat());
    // The other way to write such an app: a rule, which holds for what is no navigation, too.
    let ruled = [
        ("index.html", "app"),
        ("a.js", "1"),
        ("_redirects", "/* /index.html 200\n"),
    ];
    fixture
        .send(
            Method::PUT,
            "",
            Some(&json!({ "files": texts(&ruled), "options": {} })),
        )
        .await
        .expect(200);
    for path in [
        "/site/users/7",
        "/site/users%2F7",
        "/site//a.js",
        "/users/%5C",
    ] {
        let routed = ask(&fixture, "GET", path, "").await.expect(200);
        assert_eq!(routed.text(), "app", "{path}");
    }
}

#[tokio::test]
async fn answers_carry_types_tags_and_encodings() {
    let style = "a { color: red }\n".repeat(200);
    let fixture = SiteFixture::with_files(&[
        ("index.html", "<title>x</title>"),
        ("a.css", &style),
        ("x.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("data", "?"),
    ])
    .await;
    let css = fixture.get("/site/a.css").await.expect(200);
    assert_eq!(css.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(
        css.header("cache-control"),
        Some("public, max-age=0, must-revalidate")
    );
    assert_eq!(css.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(css.header("content-security-policy"), None);
    assert_eq!(css.header("vary"), Some("Accept-Encoding"));
    assert_eq!(
        css.header("content-length"),
        Some(&*style.len().to_string())
    );
    let tag = css.header("etag").unwrap();
    let known = format!("If-None-Match: {tag}\r\n");
    ask(&fixture, "GET", "/site/a.css", &known)
        .await
        .expect(304);
    let known = ask(&fixture, "HEAD", "/site/a.css", &known)
        .await
        .expect(304);
    assert_eq!(known.header("content-length"), None);
    let gzip = ask(&fixture, "GET", "/site/a.css", "Accept-Encoding: gzip\r\n")
        .await
        .expect(200);
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    assert!(gzip.body.len() < style.len() / 4);
    assert_ne!(gzip.header("etag"), Some(tag));
    let head = ask(&fixture, "HEAD", "/site/a.css", "").await.expect(200);
    assert_eq!(
        head.header("content-length"),
        Some(&*style.len().to_string())
    );
    assert!(head.body.is_empty());
    let part = ask(
        &fixture,
        "GET",
        "/site/a.css",
        "Range: bytes=2-4\r\nAccept-Encoding: gzip\r\n",
    )
    .await;
    let part = part.expect(206);
    assert_eq!(part.text(), &style[2..5]);
    let data = fixture.get("/site/data").await.expect(200);
    assert_eq!(
        data.header("content-type"),
        Some("application/octet-stream")
    );
    // Away from the project's origin every file is a stranger's.
    for path in ["/site/", "/site/a.css", "/site/x.svg"] {
        let answer = fixture.server.get(path).answer().await.expect(200);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("sandbox"), "{path}: {policy}");
    }
    let opened = fixture
        .server
        .get("/site/docs?x=1")
        .header("sec-fetch-mode", "navigate");
    let sent_on = opened
        .header("sec-fetch-dest", "document")
        .answer()
        .await
        .expect(302);
    assert!(sent_on.header("location").unwrap().ends_with("/docs?x=1"));
}

#[tokio::test]
async fn a_large_file_is_read_in_parts() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let large: Vec<u8> = (0..600_000_u32).flat_map(u32::to_le_bytes).collect();
    let digest = fixture.put(&large).await;
    let files =
        json!({ "changes": { "set": { "movie.mp4": { "sha256": digest, "size": large.len() } } } });
    let draft = fixture.draft(&files).await;
    fixture
        .release("promote", &draft["revision"]["revision_id"])
        .await
        .expect(200);
    let whole = fixture.get("/site/movie.mp4").await.expect(200);
    assert_eq!(whole.header("content-type"), Some("video/mp4"));
    assert_eq!(
        whole.header("content-length"),
        Some(&*large.len().to_string())
    );
    assert!(whole.body == large);
    let tag = whole.header("etag").unwrap();
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=1048570-1048590", 1_048_570, 1_048_591),
        ("bytes=2399990-", 2_399_990, 2_400_000),
        ("bytes=-5", 2_399_995, 2_400_000),
    ] {
        let headers = format!("Range: {range}\r\nIf-Range: {tag}\r\n");
        let part = ask(&fixture, "GET", "/site/movie.mp4", &headers)
            .await
            .expect(206);
        assert!(part.body == large[from..to], "{range}");
        let said = format!("bytes {from}-{}/2400000", to - 1);
        assert_eq!(part.header("content-range"), Some(&*said));
    }
    let beyond = ask(
        &fixture,
        "GET",
        "/site/movie.mp4",
        "Range: bytes=2400000-\r\n",
    )
    .await;
    beyond.problem(416, "range_not_satisfiable");
    let head = ask(&fixture, "HEAD", "/site/movie.mp4", "")
        .await
        .expect(200);
    assert_eq!(head.header("content-length"), Some("2400000"));
}

#[tokio::test]
async fn views_are_navigations_to_pages() {
    let fixture =
        SiteFixture::with_files(&[("index.html", "x"), ("a.html", "y"), ("a.js", "1")]).await;
    let page = "Accept: text/html\r\n";
    for path in ["/site/", "/site/a", "/site/a.js", "/site/none"] {
        ask(&fixture, "GET", path, page).await;
    }
    ask(&fixture, "GET", "/site/", "").await.expect(200);
    ask(&fixture, "HEAD", "/site/", page).await.expect(200);
    fixture
        .server
        .server()
        .app()
        .serving
        .flush_visits()
        .await
        .unwrap();
    let detail = fixture.send(Method::GET, "", None).await.expect(200).json();
    assert_eq!(detail["visits"], 2);
}
