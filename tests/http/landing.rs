//! The landing page, what stands beside it, and previews of what is yet to be published.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Ask, TestServer, until};

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

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn send_form(server: &TestServer, path: &str, origin: Option<&str>, form: &str) -> Answer {
    let mut request = server.post(path).header(FORM.0, FORM.1);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let request = request.header("accept", "text/html").body(form.to_owned());
    request.answer().await
}

/// Returns the text between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split(before).nth(1).expect(before);
    rest.split(after).next().unwrap()
}

#[tokio::test]
async fn the_form_publishes_and_takes_back_without_scripts() {
    let server = TestServer::start().await;
    let ours = format!("http://{}", server.address());
    let form = "type=markdown&content=a%0D%0Ab&title=&name=by-hand&password=&expires_in=60";
    for foreign in ["null", "http://localhost:1", "https://example.com"] {
        let answer = send_form(&server, "/_svc/share", Some(foreign), form).await;
        assert_eq!(answer.status, 403, "{foreign}");
    }
    server
        .get("/by-hand")
        .answer()
        .await
        .problem(404, "not_found");
    let answer = send_form(&server, "/_svc/share", Some(&ours), form).await;
    let answer = answer.expect(201);
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    let page = answer.html();
    let base = format!("http://localhost:{}", server.address().port());
    assert!(page.contains(&format!("{base}/by-hand")), "{page}");
    assert!(page.contains("Expires after 1 minute"), "{page}");
    assert!(page.contains("<svg"), "its code");
    let raw = server.get("/by-hand/raw").answer().await.expect(200);
    assert_eq!(raw.text(), "a\nb", "line breaks as they were typed");
    let id = between(page, "name=\"id\" value=\"", "\"");
    let token = between(page, "name=\"delete_token\" value=\"", "\"");
    let wrong = format!("id={id}&delete_token=svcd_x");
    let refused = send_form(&server, "/_svc/share/delete", Some(&ours), &wrong).await;
    assert_eq!(refused.status, 404);
    let right = format!("id={id}&delete_token={token}");
    let foreign = send_form(&server, "/_svc/share/delete", Some("null"), &right).await;
    assert_eq!(foreign.status, 403);
    server.get("/by-hand").answer().await.expect(200);
    let gone = send_form(&server, "/_svc/share/delete", Some(&ours), &right).await;
    gone.expect(200);
    server
        .get("/by-hand")
        .answer()
        .await
        .problem(404, "not_found");
    for (form, says) in [
        ("type=markdown&content=+&title=", "content"),
        ("type=pdf&content=x", "pdf"),
        ("type=markdown&content=x&surprise=1", "surprise"),
        ("type=markdown&content=x&expires_in=soon", "expires_in"),
    ] {
        let answer = send_form(&server, "/_svc/share", None, form).await;
        assert!(answer.clone().expect(400).html().contains(says), "{form}");
    }
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
async fn a_page_is_reported_by_a_form() {
    let server = TestServer::builder()
        .settings(|s| s.contact = Some("abuse@example.com".to_owned()))
        .service_limits()
        .start()
        .await;
    server
        .slug(&json!({ "content": "x", "name": "page" }))
        .await;
    let form = server.get("/_svc/report/page").answer().await.expect(200);
    for part in [
        "action=\"/api/v1/reports\"",
        "value=\"page\"",
        "mailto:abuse@example.com",
    ] {
        assert!(form.html().contains(part), "{part}");
    }
    server.get("/_svc/report").answer().await.expect(200);
    let odd = server.get("/_svc/report/No!").answer().await;
    odd.problem(404, "not_found");
    let sent = "slug=page&reason=malware&details=&contact=";
    let foreign = send_form(&server, "/api/v1/reports", Some("null"), sent).await;
    assert!(foreign.expect(403).html().contains("origin_refused"));
    let thanks = send_form(&server, "/api/v1/reports", None, sent).await;
    assert!(thanks.expect(202).html().contains("Thank you"));
    let unknown = send_form(&server, "/api/v1/reports", None, "slug=none&reason=other").await;
    assert!(unknown.expect(404).html().contains("There is no such page"));
    let odd = send_form(&server, "/api/v1/reports", None, "slug=page&reason=ugly").await;
    assert!(odd.expect(400).html().contains("invalid_request"));
    for _ in 0..5 {
        send_form(&server, "/api/v1/reports", None, sent).await;
    }
    let late = send_form(&server, "/api/v1/reports", None, sent).await;
    assert!(late.expect(429).html().contains("Too many requests"));
    server.advance(60);
    // What `curl -d` sends says that it is a form, and is JSON.
    let body = json!({ "slug": "page", "reason": "other" }).to_string();
    let answer = send_form(&server, "/api/v1/reports", Some("null"), &body).await;
    assert!(answer.expect(202).json()["id"].is_string());
    let list = server
        .command(&crate::svc(), &["report", "list", "--json"])
        .await;
    let reports = list.json()["reports"].clone();
    let said: Vec<_> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (&r["reason"], &r["details"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("other"), &Value::Null),
            (&json!("malware"), &Value::Null),
            (&json!("malware"), &Value::Null)
        ]
    );
    let disable = ["deployment", "disable", "page"];
    assert!(server.command(&crate::svc(), &disable).await.success);
    let refused = async || {
        let shown = server.get("/page").answer().await;
        (shown.status == 403).then_some(shown)
    };
    let disabled = until("the page to be disabled", refused).await;
    assert!(disabled.html().contains("mailto:abuse@example.com"));
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
