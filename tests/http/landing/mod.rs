//! The landing page, what stands beside it, and previews of what is yet to be published.

mod forms;
mod previews;

use http::Method;
use svc_tests::{Builder, ReadAnswer, TestServer};

use crate::owner::Owner;

/// Builds a server whose landing page has a host of its own, beside that of the API.
fn with_landing_host() -> Builder {
    TestServer::builder().settings(|s| {
        s.base_url = Some("https://api.example.com".parse().unwrap());
        s.landing_host = Some("www.example.com".to_owned());
    })
}

/// The files of the landing page with their types.
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
        let send_request =
            |method, name, value: &str| server.request(method, path).header(name, value);
        let held = send_request(Method::GET, "if-none-match", &etag)
            .answer()
            .await;
        assert!(held.expect(304).body.is_empty(), "{path}");
        let head = server.request(Method::HEAD, path).answer().await;
        assert_eq!(head.header("etag"), Some(etag.as_str()), "{path}");
        assert!(head.expect(200).body.is_empty(), "{path}");
        let part = send_request(Method::GET, "range", "bytes=0-3")
            .answer()
            .await;
        assert_eq!(part.expect(206).body, whole.body.slice(0..4), "{path}");
        let post = server.post(path).answer().await;
        post.problem(405, "method_not_allowed");
    }
    let compressed = server.get("/").header("accept-encoding", "br");
    let compressed = compressed.answer().await.expect(200);
    assert_eq!(compressed.header("content-encoding"), Some("br"));
    // With the headers it fits into the first flight of a connection, ten segments (RFC 6928).
    assert!(compressed.body.len() <= 12_000, "{}", compressed.body.len());
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
    let console = base.replace("localhost", "console.localhost");
    for loaded in html.split("src").skip(1) {
        let loaded = loaded.trim_start_matches("set");
        if let Some(picture) = loaded.strip_prefix("=\"") {
            assert!(
                picture.starts_with("/_svc/pictures/"),
                "it loads {picture:.60}"
            );
        }
    }
    assert!(
        html.contains(" data-keeps=\"yes\""),
        "no owner's page is of this origin"
    );
    for link in html.split(" href=\"").skip(1) {
        let link = link.split('"').next().unwrap();
        let is_ours = [&base, &console]
            .iter()
            .any(|origin| link.starts_with(*origin));
        assert!(link.starts_with('/') || is_ours, "{link}");
    }
    for store in [".cookie", "indexedDB"] {
        assert!(!html.contains(store), "{store}");
    }
    for part in ["<title>", "name=\"description\"", "rel=\"canonical\""] {
        assert_eq!(html.matches(part).count(), 1, "{part}");
    }
}

#[tokio::test]
async fn its_pictures_are_small_and_its_own() {
    let server = with_landing_host().start().await;
    for host in ["api.example.com", "www.example.com"] {
        let page = server.get_raw(host, "/").await.expect(200);
        let pictures: Vec<_> = page.html().split("\"/_svc/pictures/").skip(1).collect();
        let pictures: Vec<_> = pictures
            .iter()
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(pictures.len(), 6, "three, each in light and dark");
        let mut bytes = 0;
        for picture in pictures {
            let path = format!("/_svc/pictures/{picture}");
            let answer = server.get_raw(host, &path).await.expect(200);
            assert_eq!(answer.header("content-type"), Some("image/webp"), "{path}");
            assert!(answer.header("cache-control").unwrap().contains("public"));
            assert_eq!(&answer.body[8..12], b"WEBP", "{path}");
            bytes += answer.body.len();
        }
        // A visitor loads those of one scheme.
        assert!(bytes < 2 * 60_000, "{bytes} bytes");
        let none = server.get_raw(host, "/_svc/pictures/none.webp").await;
        none.problem(404, "not_found");
    }
}

#[tokio::test]
async fn it_keeps_nothing_where_owners_pages_have_its_origin() {
    let server = with_landing_host().start().await;
    let keeps = async |host: &str| {
        let page = server.get_raw(host, "/").await.expect(200);
        page.html().contains(" data-keeps=\"yes\"")
    };
    assert!(!keeps("api.example.com").await);
    assert!(keeps("www.example.com").await, "it has no other pages");
}

#[tokio::test]
async fn the_landing_host_has_its_files_and_calls_the_api_host() {
    let server = with_landing_host()
        .limits(|limits| limits.quick_share_seconds = 7_200)
        .start()
        .await;
    let send_request = async |host: &str, path: &str| server.get_raw(host, path).await;
    for (path, kind) in FILES {
        let answer = send_request("www.example.com", path).await.expect(200);
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
    }
    for path in ["/_svc/preview", "/healthz/", "/api/v1/openapi.json", "/x"] {
        let answer = send_request("www.example.com", path).await;
        answer.problem(404, "not_found");
    }
    let page = send_request("www.example.com", "/").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src https://api.example.com;"));
    assert!(policy.contains("frame-src https://api.example.com;"));
    let html = page.html();
    assert!(html.contains("data-api=\"https://api.example.com\""));
    assert!(html.contains("rel=\"canonical\" href=\"https://www.example.com/\""));
    assert!(html.contains("lives for 2 hours"), "{html}");
    let here = send_request("api.example.com", "/").await;
    assert!(here.html().contains("data-api=\"\""));
    assert!(here.html().contains("href=\"https://www.example.com/\""));
    let stage = send_request("api.example.com", "/_svc/preview")
        .await
        .expect(200);
    let policy = stage.header("content-security-policy").unwrap();
    let ancestors = "frame-ancestors 'self' https://www.example.com:*";
    assert_eq!(policy, format!("sandbox allow-scripts; {ancestors}"));
    let guide = send_request("www.example.com", "/llms.txt").await;
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
    // A browser asks for this without being told to: what is answered must not look like a fault of the page.
    let icon = server.get_raw(&host, "/favicon.ico").await.expect(204);
    assert_eq!(icon.header("cache-control"), Some("public, max-age=86400"));
    assert!(icon.body.is_empty());
    let files = FILES
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| !matches!(*path, "/" | "/favicon.ico"));
    for path in files.chain([
        "/_svc/preview",
        "/_svc/pictures/app.webp",
        "/_svc/report",
        "/_svc/qr/room",
        "/.well-known/security.txt",
    ]) {
        let answer = server.get_raw(&host, path).await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn where_nothing_is_a_visitor_is_led_to_a_start_page_of_ours() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    owner.project(&server, "House").await;
    let port = server.address().port();
    let (api, project) = (
        format!("localhost:{port}"),
        format!("house-acme.localhost:{port}"),
    );
    // A project that has published nothing has no start page: there the platform's is named.
    let platform = format!("http://localhost:{port}");
    for (host, path, start) in [
        (&api, "/not-there", "/"),
        (&api, "/%22%3E%3Cscript%3E", "/"),
        (&api, "//example.com/x", "/"),
        (&api, "/x?next=https://example.com", "/"),
        (&project, "/not-there", "/"),
        (&project, "/", platform.as_str()),
    ] {
        let request = server
            .get(path)
            .header("host", host)
            .header("accept", "text/html");
        let answer = request.answer().await.expect(404);
        let page = answer.html();
        let links: Vec<_> = page.split("href=\"").skip(1).collect();
        assert_eq!(links.len(), 1, "{path}: {page}");
        assert!(
            links[0].starts_with(&format!("{start}\">")),
            "{path}: {page}"
        );
        assert!(
            !page.contains("example.com") && !page.contains("<script"),
            "{page}"
        );
    }
    let forbidden = server
        .get("/robots.txt/x")
        .header("accept", "application/json");
    forbidden.answer().await.problem(404, "not_found");
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
