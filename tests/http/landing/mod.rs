//! The landing page, what stands beside it, and previews of what is yet to be published.

mod forms;
mod previews;

use http::Method;
use svc_tests::{Ask, TestServer};

use crate::account::Owner;

/// The files of the landing page, and what they are.
const FILES: [(&str, &str); 5] = [
    ("/", "text/html; charset=utf-8"),
    ("/llms.txt", "text/plain; charset=utf-8"),
    ("/robots.txt", "text/plain; charset=utf-8"),
    ("/favicon.svg", "image/svg+xml"),
    ("/favicon.ico", "image/x-icon"),
];

#[tokio::test]
async fn its_files_are_answered_like_pages() {
    let server = TestServer::start().await;
    for (path, kind) in FILES {
        let whole = server.get(path).answer().await.expect(200);
        assert_eq!(whole.header("content-type"), Some(kind), "{path}");
        assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
        assert!(whole.header("cache-control").unwrap().contains("public"));
        let etag = whole.header("etag").unwrap().to_owned();
        let ask = |method, name, value: &str| server.request(method, path).header(name, value);
        let held = ask(Method::GET, "if-none-match", &etag).answer().await;
        assert!(held.expect(304).body.is_empty(), "{path}");
        let head = server.request(Method::HEAD, path).answer().await;
        assert_eq!(head.header("etag"), Some(etag.as_str()), "{path}");
        assert!(head.expect(200).body.is_empty(), "{path}");
        let part = ask(Method::GET, "range", "bytes=0-3").answer().await;
        assert_eq!(part.expect(206).body, whole.body.slice(0..4), "{path}");
        let post = server.post(path).answer().await;
        post.problem(405, "method_not_allowed");
    }
    let compressed = server.get("/").header("accept-encoding", "br");
    let compressed = compressed.answer().await.expect(200);
    assert_eq!(compressed.header("content-encoding"), Some("br"));
    // With room to spare in the first flight of a connection (RFC 6928).
    assert!(compressed.body.len() < 10_000, "{}", compressed.body.len());
}

#[tokio::test]
async fn its_page_may_load_nothing_but_itself() {
    let server = TestServer::start().await;
    let page = server.get("/").answer().await.expect(200);
    let policy = page.header("content-security-policy").unwrap();
    for directive in [
        "default-src 'none'",
        "connect-src 'self'",
        "frame-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("set-cookie"), None);
    let referrer = page.header("referrer-policy");
    assert_eq!(referrer, Some("same-origin"), "its form has an origin");
    let html = page.html();
    let base = format!("http://localhost:{}", server.address().port());
    assert!(!html.contains(" src=\""), "it loads something");
    assert!(
        html.contains(" data-keeps=\"yes\""),
        "no owner's page is of this origin"
    );
    for link in html.split(" href=\"").skip(1) {
        let link = link.split('"').next().unwrap();
        assert!(link.starts_with('/') || link.starts_with(&base), "{link}");
    }
    for store in [".cookie", "indexedDB"] {
        assert!(!html.contains(store), "{store}");
    }
    for part in ["<title>", "name=\"description\"", "rel=\"canonical\""] {
        assert_eq!(html.matches(part).count(), 1, "{part}");
    }
}

#[tokio::test]
async fn it_keeps_nothing_where_owners_pages_have_its_origin() {
    let server = TestServer::builder()
        .settings(|s| {
            s.base_url = Some("https://api.example.com".parse().unwrap());
            s.landing_host = Some("www.example.com".to_owned());
        })
        .start()
        .await;
    let keeps = async |host: &str| {
        let page = server.get_raw(host, "/").await.expect(200);
        page.html().contains(" data-keeps=\"yes\"")
    };
    assert!(!keeps("api.example.com").await);
    assert!(keeps("www.example.com").await, "it has no other pages");
}

#[tokio::test]
async fn the_landing_host_has_its_files_and_calls_the_api_host() {
    let server = TestServer::builder()
        .settings(|s| {
            s.base_url = Some("https://api.example.com".parse().unwrap());
            s.landing_host = Some("www.example.com".to_owned());
            s.limits.quick_share_seconds = 7_200;
        })
        .start()
        .await;
    let ask = async |host: &str, path: &str| server.get_raw(host, path).await;
    for (path, kind) in FILES {
        let answer = ask("www.example.com", path).await.expect(200);
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
    }
    for path in ["/_svc/preview", "/healthz/", "/api/v1/openapi.json", "/x"] {
        let answer = ask("www.example.com", path).await;
        answer.problem(404, "not_found");
    }
    let page = ask("www.example.com", "/").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src https://api.example.com;"));
    assert!(policy.contains("frame-src https://api.example.com;"));
    let html = page.html();
    assert!(html.contains("data-api=\"https://api.example.com\""));
    assert!(html.contains("rel=\"canonical\" href=\"https://www.example.com/\""));
    assert!(html.contains("lives for 2 hours"), "{html}");
    let here = ask("api.example.com", "/").await;
    assert!(here.html().contains("data-api=\"\""));
    assert!(here.html().contains("href=\"https://www.example.com/\""));
    let stage = ask("api.example.com", "/_svc/preview").await.expect(200);
    let policy = stage.header("content-security-policy").unwrap();
    let ancestors = "frame-ancestors 'self' https://www.example.com:*";
    assert_eq!(policy, format!("sandbox allow-scripts; {ancestors}"));
    let guide = ask("www.example.com", "/llms.txt").await;
    assert!(guide.text().contains("https://api.example.com/mcp"));
    assert!(!guide.text().contains("localhost"));
}

#[tokio::test]
async fn a_projects_origin_has_none_of_it() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let host = format!("house-acme.localhost:{}", server.address().port());
    let root = server.get_raw(&host, "/").await.expect(302);
    assert_eq!(root.header("location"), Some("/room"));
    let files = FILES
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| *path != "/");
    for path in files.chain([
        "/_svc/preview",
        "/_svc/report",
        "/_svc/qr/room",
        "/.well-known/security.txt",
    ]) {
        let answer = server.get_raw(&host, path).await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn crawlers_are_kept_from_the_api_and_let_to_pages() {
    let server = TestServer::start().await;
    let robots = server.get("/robots.txt").answer().await.expect(200);
    let rules: Vec<_> = robots
        .text()
        .lines()
        .filter(|line| line.contains(':') && !line.starts_with('#'))
        .collect();
    assert_eq!(rules[0], "User-agent: *");
    for path in ["/api/", "/mcp", "/_preview/", "/_svc/"] {
        assert!(rules.contains(&format!("Disallow: {path}").as_str()));
    }
    assert!(!rules.contains(&"Disallow: /"));
}

#[tokio::test]
async fn a_link_has_a_code() {
    let server = TestServer::start().await;
    let code = server.get("/_svc/qr/any-page").answer().await.expect(200);
    assert_eq!(code.header("content-type"), Some("image/svg+xml"));
    assert_eq!(code.header("x-content-type-options"), Some("nosniff"));
    assert!(code.text().starts_with("<svg "), "{}", code.text());
    let other = server.get("/_svc/qr/other-page").answer().await.expect(200);
    assert_ne!(code.body, other.body);
    let longest = format!("/_svc/qr/{}", "a".repeat(63));
    server.get(&longest).answer().await.expect(200);
    for wrong in ["/_svc/qr/No!", "/_svc/qr/-a"] {
        let answer = server.get(wrong).answer().await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn security_txt_names_the_contact_that_is_set() {
    let server = TestServer::start().await;
    let none = server.get("/.well-known/security.txt").answer().await;
    none.problem(404, "not_found");
    let contact =
        |s: &mut svc::config::Settings| s.contact = Some("https://example.com/me".to_owned());
    let server = TestServer::builder().settings(contact).start().await;
    let answer = server
        .get("/.well-known/security.txt")
        .answer()
        .await
        .expect(200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let base = format!("http://localhost:{}", server.address().port());
    let expected = format!(
        "Contact: https://example.com/me\nExpires: 2027-05-19T12:00:00.000Z\nPreferred-Languages: en\n\
         Canonical: {base}/.well-known/security.txt\n"
    );
    assert_eq!(answer.text(), expected);
}
