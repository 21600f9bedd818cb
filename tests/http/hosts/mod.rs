//! Which hosts are ours, which paths are canonical, and which origins may ask.

mod navigation;
mod scripts;

use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::Owner;

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "page", "name": "page" }))
        .await;
    server
}

#[tokio::test]
async fn hosts_that_are_not_ours_are_misdirected() {
    let server = start_with_page().await;
    let port = server.address().port();
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("LocalHost:{port}"), 200),
        ("localhost".to_owned(), 421),
        ("127.0.0.1".to_owned(), 421),
        (format!("127.0.0.1:{}", port.wrapping_add(1)), 421),
        (format!("evil.example:{port}"), 421),
        (format!("localhost:{port}.evil.example"), 421),
        (format!("evil-localhost:{port}"), 421),
        (String::new(), 421),
    ] {
        let answer = server.get_raw(&host, "/page").await;
        if status == 421 {
            answer.problem(421, "misdirected");
        }
        assert_eq!(answer.status, status, "{host}");
    }
}

#[tokio::test]
async fn what_decides_something_is_said_once() {
    let server = start_with_page().await;
    let ours = format!("Host: {}", server.address());
    for (path, repeated) in [
        ("/page", format!("{ours}\r\nHost: evil.example")),
        ("/page", format!("{ours}\r\n{ours}")),
        (
            "/api/v1/projects",
            format!("{ours}\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b"),
        ),
        (
            "/api/v1/projects",
            format!("{ours}\r\nIdempotency-Key: a\r\nIdempotency-Key: b"),
        ),
        ("/page/raw", format!("{ours}\r\nOrigin: a\r\nOrigin: b")),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\n{repeated}\r\nConnection: close\r\n\r\n");
        let problem = server.raw(request).await.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("more than once"), "{detail}");
    }
}

#[tokio::test]
async fn http_11_names_a_host_and_http_10_need_not() {
    let server = start_with_page().await;
    let ours = server.address();
    let missing = async |head: &str| {
        let answer = server
            .raw(format!("{head}\r\nConnection: close\r\n\r\n"))
            .await;
        let problem = answer.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`Host`"), "{head}: {detail}");
    };
    for path in [
        "/page",
        "/page/raw",
        "/",
        "/healthz",
        "/readyz",
        "/api/v1/openapi.json",
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            missing(&format!("{method} {path} HTTP/1.1")).await;
        }
    }
    missing("POST /page/api/op HTTP/1.1\r\nContent-Length: 0").await;
    // A target in absolute form names a host, and yet the header must be there.
    missing(&format!("GET http://{ours}/page HTTP/1.1")).await;
    for (head, status) in [
        (
            format!("GET http://{ours}/page HTTP/1.1\r\nHost: {ours}"),
            200,
        ),
        (
            format!("GET http://{ours}/page HTTP/1.1\r\nHost: evil.example"),
            200,
        ),
        (
            format!("GET http://evil.example/page HTTP/1.1\r\nHost: {ours}"),
            421,
        ),
        ("GET /page HTTP/1.0".to_owned(), 200),
        ("GET /page/raw HTTP/1.0".to_owned(), 200),
        ("GET /nowhere HTTP/1.0".to_owned(), 404),
        (format!("GET /page HTTP/1.0\r\nHost: {ours}"), 200),
        ("GET /page HTTP/1.0\r\nHost: evil.example".to_owned(), 421),
        ("GET /page HTTP/1.0\r\nHost:".to_owned(), 421),
    ] {
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.raw(request).await.status, status, "{head}");
    }
}

#[tokio::test]
async fn probes_answer_any_host() {
    let server = start_with_page().await;
    for host in [
        "evil.example",
        "",
        "10.0.0.1",
        "[::1]:1",
        "shop.localhost:1",
    ] {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(server.get_raw(host, path).await.status, 200, "{host}");
        }
    }
}

#[tokio::test]
async fn an_unknown_label_of_the_sites_domain_is_not_found() {
    let server = start_with_page().await;
    let port = server.address().port();
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let page = server.get("/room").answer().await;
    let script = page.text().split("<script src=\"").nth(1).unwrap();
    let script = script.split('"').next().unwrap();
    let send_request = async |method: &str, host: &str, path: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}.localhost:{port}\r\nConnection: close\r\n\r\n"
        );
        server.raw(request).await
    };
    for path in [
        "/page",
        "/room",
        "/room/",
        "/room/raw",
        "/",
        "/api/v1/openapi.json",
        "/_svc/runtime.d.ts",
        script,
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = send_request(method, "nobody", path).await;
            answer.problem(404, "not_found");
        }
        assert_eq!(
            send_request("HEAD", "nobody", path).await.status,
            404,
            "{path}"
        );
    }
    // A label in use answers all of these.
    send_request("GET", "house-acme", script).await.expect(200);
    send_request("POST", "house-acme", script)
        .await
        .problem(405, "method_not_allowed");
    send_request("OPTIONS", "house-acme", "/room")
        .await
        .expect(204);
}

#[tokio::test]
async fn configured_hosts_serve_what_they_are_for() {
    let server = TestServer::builder()
        .settings(|s| {
            s.base_url = Some("https://api.example.com".parse().unwrap());
            s.sites_url = Some("https://sites.example.com".parse().unwrap());
            s.sites_domain = Some("pages.example.com".to_owned());
            s.landing_host = Some("www.example.com".to_owned());
        })
        .start()
        .await;
    let deployed = server
        .deploy(&json!({ "content": "page", "name": "page" }))
        .await;
    assert_eq!(deployed["url"], "https://sites.example.com/page");
    let send_request = async |host: &str, path: &str| server.get_raw(host, path).await;
    for host in [
        "api.example.com",
        "sites.example.com",
        "api.example.com:443",
    ] {
        assert_eq!(send_request(host, "/page").await.text(), "page", "{host}");
        assert_eq!(
            send_request(host, "/api/v1/openapi.json").await.status,
            200,
            "{host}"
        );
        assert!(
            send_request(host, "/")
                .await
                .html()
                .contains("https://api.example.com")
        );
    }
    for host in ["www.example.com", "WWW.example.com", "www.example.com:443"] {
        assert!(
            send_request(host, "/")
                .await
                .html()
                .contains("/api/v1/deploy")
        );
        send_request(host, "/page").await.problem(404, "not_found");
        send_request(host, "/api/v1/openapi.json")
            .await
            .problem(404, "not_found");
    }
    let problem = send_request("x.pages.example.com", "/page")
        .await
        .problem(404, "not_found");
    assert_eq!(
        problem["type"],
        "https://api.example.com/problems/not_found"
    );
    for host in ["pages.example.com", "example.com", "x.sites.example.com"] {
        send_request(host, "/page")
            .await
            .problem(421, "misdirected");
    }
}

#[tokio::test]
async fn on_a_wildcard_address_every_literal_ip_with_our_port_is_ours() {
    let server = TestServer::builder()
        .settings(|s| s.listen = Some(([0, 0, 0, 0], 0).into()))
        .start()
        .await;
    let port = server.address().port();
    for (host, status) in [
        (format!("192.0.2.7:{port}"), 404),
        (format!("[2001:db8::1]:{port}"), 404),
        (format!("192.0.2.7:{}", port.wrapping_add(1)), 421),
        ("192.0.2.7".to_owned(), 421),
        (format!("evil.example:{port}"), 421),
    ] {
        assert_eq!(
            server.get_raw(&host, "/nothing").await.status,
            status,
            "{host}"
        );
    }
}

#[tokio::test]
async fn paths_are_decoded_once_and_must_then_be_canonical() {
    let server = start_with_page().await;
    let host = server.address().to_string();
    for (path, status) in [
        ("/page", 200),
        ("/p%61ge", 200),
        ("/%70%61%67%65", 200),
        ("/page/r%61w", 200),
        ("/%61pi/v1/openapi.json", 200),
        ("/page/", 308),
        ("/p%2561ge", 404),
        ("/page%2Fraw", 404),
        ("/page%2fraw", 404),
        ("/page%5Craw", 404),
        ("//page", 404),
        ("/page//raw", 404),
        ("/./page", 404),
        ("/x/../page", 404),
        ("/x/%2e%2e/page", 404),
        ("/%2e/page", 404),
        ("/page/.", 404),
        ("/page%00", 404),
        ("/page%0a", 404),
        ("/%ff", 404),
        ("/page%", 404),
        ("/page%zz", 404),
        ("/PAGE", 404),
        ("/page/raw/", 404),
        ("/api/v1/openapi.json/", 404),
        ("/page;x", 404),
        ("/page%20", 404),
    ] {
        let answer = server.get_raw(&host, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        if status == 404 {
            answer.problem(404, "not_found");
        }
    }
    // The decoded path selects the route, too.
    let browser = "GET /%61pi/v1/nothing HTTP/1.1\r\nAccept: text/html\r\n";
    let request = format!("{browser}Host: {host}\r\nConnection: close\r\n\r\n");
    server.raw(request).await.problem(404, "not_found");
    let hidden = server.get_raw(&host, "/page/%61uth/status").await;
    assert_eq!(hidden.header("access-control-allow-origin"), None);
}

const EXPOSED: [&str; 7] = [
    "WWW-Authenticate",
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "ETag",
    "Location",
    "X-Request-Id",
];
const ALLOWED: [&str; 7] = [
    "Authorization",
    "Content-Type",
    "If-None-Match",
    "Idempotency-Key",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
];
