//! The landing page, what stands beside it, and previews of what is yet to be published.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Ask, TestServer};

use crate::account::Owner;

/// The files of the landing page, and what they are.
const FILES: [(&str, &str); 5] = [
    ("/", "text/html; charset=utf-8"),
    ("/llms.txt", "text/plain; charset=utf-8"),
    ("/robots.txt", "text/plain; charset=utf-8"),
    ("/favicon.svg", "image/svg+xml"),
    ("/favicon.ico", "image/x-icon"),
];

async fn preview(server: &TestServer, body: &Value) -> Answer {
    server.post("/_svc/preview").json(body).answer().await
}

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
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("set-cookie"), None);
    let html = page.html();
    let base = format!("http://localhost:{}", server.address().port());
    assert!(!html.contains(" src=\""), "it loads something");
    for link in html.split(" href=\"").skip(1) {
        let link = link.split('"').next().unwrap();
        assert!(link.starts_with('/') || link.starts_with(&base), "{link}");
    }
    for store in ["localStorage", "sessionStorage", ".cookie", "indexedDB"] {
        assert!(!html.contains(store), "{store}");
    }
    for part in ["<title>", "name=\"description\"", "rel=\"canonical\""] {
        assert_eq!(html.matches(part).count(), 1, "{part}");
    }
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
    owner.frontend(&server, &project, "hall").await;
    let host = format!("house-acme.localhost:{}", server.address().port());
    for (path, _) in FILES {
        let answer = server.get_raw(&host, path).await;
        answer.problem(404, "not_found");
    }
    let answer = server.get_raw(&host, "/_svc/preview").await;
    answer.problem(404, "not_found");
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
async fn a_preview_is_what_would_be_published() {
    let server = TestServer::start().await;
    let before = server.stored();
    let sources = [
        ("markdown", "# Hi\n\n```rust\nfn main() {}\n```"),
        ("html", "<!doctype html><title>x</title><script>1</script>"),
        ("mermaid", "flowchart TD\n  A --> B"),
        ("json", "{\"a\": [1, 2.50]}"),
        ("csv", "a,b\n1,2\n"),
    ];
    let mut previews = Vec::new();
    for (kind, content) in sources {
        let body = json!({ "type": kind, "content": content, "title": "A title" });
        let answer = preview(&server, &body).await.expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        previews.push(answer.json()["html"].as_str().unwrap().to_owned());
    }
    assert_eq!(server.stored(), before, "nothing is stored");
    for ((kind, content), preview) in sources.into_iter().zip(previews) {
        let body = json!({ "type": kind, "content": content, "title": "A title" });
        let slug = server.slug(&body).await;
        let page = server.get(&format!("/{slug}")).answer().await;
        // What has no address yet has no foot.
        let published = page.html();
        let foot = published
            .find("<footer class=\"foot\"")
            .filter(|_| kind != "html");
        let (content, foot) = published.split_at(foot.unwrap_or(published.len()));
        let end = foot.split_once("</footer>").map_or("", |(_, end)| end);
        assert_eq!(format!("{content}{end}"), preview, "{kind}");
    }
}

#[tokio::test]
async fn what_cannot_be_previewed_is_a_problem() {
    let server = TestServer::builder()
        .limits(|l| l.body_bytes = 1_000)
        .start()
        .await;
    for (body, status, code) in [
        (
            json!({ "type": "json", "content": "{\n x" }),
            400,
            "render_failed",
        ),
        (json!({ "content": "" }), 400, "invalid_request"),
        (json!({ "type": "markdown" }), 400, "invalid_request"),
        (
            json!({ "content": "x", "type": "pdf" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "content": "x", "name": "x" }),
            400,
            "invalid_request",
        ),
        (
            json!({ "content": "x", "title": "x".repeat(201) }),
            400,
            "invalid_request",
        ),
        (
            json!({ "content": "x".repeat(1_000) }),
            413,
            "payload_too_large",
        ),
    ] {
        let problem = preview(&server, &body).await.problem(status, code);
        if code == "render_failed" {
            assert_eq!(problem["line"], 2);
            assert_eq!(problem["column"], 2);
        }
    }
}

#[tokio::test]
async fn previews_have_a_bucket_of_their_own() {
    let server = TestServer::builder().service_limits().start().await;
    let body = json!({ "content": "x" });
    for _ in 0..20 {
        preview(&server, &body).await.expect(200);
    }
    // It is counted before anything of it is read.
    let large = json!({ "content": "x".repeat(2 << 20) });
    let refused = preview(&server, &large).await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    server.deploy(&body).await;
    server.get("/_svc/preview").answer().await.expect(200);
}
