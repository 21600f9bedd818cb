//! Which hosts are the console's, which of its paths answer, and that no route of another host does.

use http::{Method, header};
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use super::ConsoleFixture;
use crate::owner::Owner;

/// Forms of `Host`, with `PORT` for the server's port, and whether each is the console's.
const HOSTS: [(&str, bool); 36] = [
    ("console.localhost:PORT", true),
    ("CONSOLE.localhost:PORT", true),
    ("Console.LocalHost:PORT", true),
    ("console.localhost", false),
    ("console.localhost:", false),
    ("console.localhost:80", false),
    ("console.localhost:443", false),
    ("console.localhost:0PORT", false),
    ("console.localhost:PORT0", false),
    ("console.localhost:PORT:PORT", false),
    ("console.localhost.:PORT", false),
    ("console.localhost:PORT.", false),
    ("console.localhost:PORT.evil.example", false),
    ("console.localhost.evil.example:PORT", false),
    ("console.evil.example:PORT", false),
    ("evil.example:PORT", false),
    ("a.console.localhost:PORT", false),
    ("console.console.localhost:PORT", false),
    ("console-dev.localhost:PORT", false),
    ("dev-console.localhost:PORT", false),
    ("consoles.localhost:PORT", false),
    ("xn--console.localhost:PORT", false),
    ("localhost:PORT", false),
    ("127.0.0.1:PORT", false),
    ("[::1]:PORT", false),
    ("0.0.0.0:PORT", false),
    ("console:PORT", false),
    (".console.localhost:PORT", false),
    ("console..localhost:PORT", false),
    ("user@console.localhost:PORT", false),
    ("console.localhost:PORT/", false),
    ("console.localhost:PORT?", false),
    ("http://console.localhost:PORT", false),
    ("console%2elocalhost:PORT", false),
    ("*.localhost:PORT", false),
    ("", false),
];

/// Paths as they are sent, each with the status of the answer.
const PATHS: [(&str, u16); 72] = [
    ("/", 200),
    ("/?a=b", 200),
    ("/login", 200),
    ("/log%69n", 200),
    ("/callback", 200),
    ("/callback?code=a&state=b", 200),
    ("/new", 200),
    ("/p/a", 200),
    ("/p/a/pages", 200),
    ("/p/a/pages/b", 200),
    ("/p/a/pages/b/c", 200),
    ("/p/a/data", 200),
    ("/p/a/data?table=notes", 200),
    ("/p/a/sql", 200),
    ("/p/a/schema", 200),
    ("/p/a/actions", 200),
    ("/p/a/actions/b", 200),
    ("/p/a/history", 200),
    ("/p/a/rooms", 200),
    ("/p/a/visitors", 200),
    ("/p/a/payments", 200),
    ("/p/a/agents", 200),
    ("/p/a/settings", 200),
    ("/w/new", 200),
    ("/w/a/members", 200),
    ("/w/a/keys", 200),
    ("/w/a/audit", 200),
    ("/w/a/plan", 200),
    ("/w/a/settings", 200),
    ("/config.json", 200),
    ("/robots.txt", 200),
    ("/favicon.svg", 200),
    ("/favicon.ico", 200),
    ("/healthz", 200),
    ("/api/v1/openapi.json", 200),
    ("/page", 404),
    ("/page/", 404),
    ("/page/raw", 404),
    ("/page/api/schema", 404),
    ("/page/auth/login", 404),
    ("/page/auth/status", 404),
    ("/page/payments/catalog", 404),
    ("/page/index.html", 404),
    ("/login/", 404),
    ("/LOGIN", 404),
    ("/p", 404),
    ("/p/", 404),
    ("/p/a/", 404),
    ("/p/a/nothing", 404),
    ("/p/a/pages/b/c/d", 404),
    ("/w", 404),
    ("/w/a", 404),
    ("/w/a/nothing", 404),
    ("/nothing", 404),
    ("/index.html", 404),
    ("/console", 404),
    ("//login", 404),
    ("/./login", 404),
    ("/p/../login", 404),
    ("/p/%2e%2e/login", 404),
    ("/p%2Fa", 404),
    ("/p/a%5Cb", 404),
    ("/p/a%00", 404),
    ("/%ff", 404),
    ("/_svc/console/", 404),
    ("/_svc/console/main.js", 404),
    ("/_svc/docs/", 404),
    ("/_preview/a/b/", 404),
    ("/llms.txt", 404),
    ("/.well-known/security.txt", 404),
    ("/api/v1/nothing", 404),
    ("/api/v2/me", 404),
];

/// Paths that this host has, too, for itself.
const OWN_PATHS: [&str; 7] = [
    "/",
    "/robots.txt",
    "/favicon.svg",
    "/favicon.ico",
    "/healthz",
    "/readyz",
    "/api/v1/openapi.json",
];

async fn with_page() -> ConsoleFixture {
    let fixture = ConsoleFixture::start().await;
    let page = json!({ "content": "page", "name": "page" });
    fixture.server.publish_slug(&page).await;
    fixture
}

#[tokio::test]
async fn only_one_host_is_the_consoles() {
    let fixture = ConsoleFixture::start().await;
    let port = fixture.server.address().port().to_string();
    for (form, is_console) in HOSTS {
        let host = form.replace("PORT", &port);
        let answer = fixture.server.get_raw(&host, "/config.json").await;
        match is_console {
            true => assert_eq!(answer.status, 200, "{host}"),
            false => {
                let is_refused = [400, 404, 421].contains(&answer.status);
                assert!(is_refused, "{host}: {}", answer.status);
                assert!(!answer.text().contains("sites_domain"), "{host}");
            }
        }
    }
}

#[tokio::test]
async fn the_other_hosts_have_nothing_of_it() {
    let fixture = ConsoleFixture::start().await;
    let port = fixture.server.address().port();
    let document = fixture.get("/login").await.expect(200);
    let file = document.text().split("/_svc/console/").nth(1).unwrap();
    let file = format!("/_svc/console/{}", file.split('"').next().unwrap());
    fixture.get(&file).await.expect(200);
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        for path in ["/config.json", file.as_str(), "/login", "/p/a/data"] {
            let answer = fixture.server.get_raw(&host, path).await;
            answer.problem(404, "not_found");
        }
    }
}

#[tokio::test]
async fn paths_are_screens_files_operations_or_nothing() {
    let fixture = with_page().await;
    for (path, status) in PATHS {
        let answer = fixture.get_raw(path).await;
        assert_eq!(answer.status, status, "{path}: {:.200}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        assert_eq!(answer.header("x-robots-tag"), Some("noindex"), "{path}");
    }
}

/// The table of the router: the description has every route that is for others.
#[tokio::test]
async fn every_route_of_the_other_hosts_is_not_found() {
    let fixture = with_page().await;
    let document = fixture.get("/api/v1/openapi.json").await.expect(200).json();
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_owned = operation.get("x-role").is_some();
            if operation.get("operationId").is_none() || is_owned || OWN_PATHS.contains(&&**path) {
                continue;
            }
            let parts = path.split('/').map(|part| match part.starts_with('{') {
                true => "page",
                false => part,
            });
            let address = parts.collect::<Vec<_>>().join("/");
            let method: Method = method.to_uppercase().parse().unwrap();
            let request = fixture.request(method.clone(), &address);
            let answer = request.body("{}").answer().await;
            assert_eq!(answer.status, 404, "{method} {address}");
            refused += 1;
        }
    }
    assert!(refused > 30, "{refused}");
    for (method, address) in [
        (Method::POST, "/_svc/dev/payments/a/refund"),
        (Method::GET, "/_svc/dev/reload"),
        (Method::POST, "/mcp"),
        (Method::POST, "/page/mcp"),
        (Method::GET, "/page/ws"),
    ] {
        let answer = fixture.request(method, address).answer().await;
        assert_eq!(answer.status, 404, "{address}");
    }
}

#[tokio::test]
async fn owners_operations_are_here_and_stored_nowhere() {
    let fixture = ConsoleFixture::start().await;
    let owner = Owner::new(&fixture.server, "acme").await;
    let document = fixture.get("/api/v1/openapi.json").await.expect(200).json();
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("x-role").is_none() {
                continue;
            }
            seen += 1;
            let parts = path.split('/').map(|part| match part.starts_with('{') {
                true => "a",
                false => part,
            });
            let address = parts.collect::<Vec<_>>().join("/");
            let method: Method = method.to_uppercase().parse().unwrap();
            let answer = fixture.request(method.clone(), &address).answer().await;
            answer.problem(401, "unauthorized");
            let request = fixture.request(method.clone(), &address);
            let known = request.bearer_auth(&owner.credential).answer().await;
            assert_ne!(known.status, 401, "{method} {address}");
            let cache = known.header("cache-control");
            assert_eq!(cache, Some("no-store"), "{method} {address}");
        }
    }
    assert_eq!(seen, svc::operations::all().len());
}

#[tokio::test]
async fn other_origins_ask_in_vain() {
    let fixture = ConsoleFixture::start().await;
    let owner = Owner::new(&fixture.server, "acme").await;
    let port = fixture.server.address().port();
    let own = fixture.origin();
    for (origin, allowed) in [
        (own.clone(), true),
        (own.to_uppercase(), true),
        (format!("http://localhost:{port}"), false),
        (format!("https://console.localhost:{port}"), false),
        (format!("{own}.evil.example"), false),
        ("http://console.localhost".to_owned(), false),
        (format!("http://shop-acme.localhost:{port}"), false),
        ("null".to_owned(), false),
    ] {
        for (method, path) in [
            (Method::GET, "/"),
            (Method::GET, "/config.json"),
            (Method::GET, "/api/v1/me"),
            (Method::POST, super::SESSION_PATH),
            (Method::OPTIONS, "/api/v1/projects"),
            (Method::GET, "/healthz"),
            (Method::GET, "/nothing"),
        ] {
            let request = fixture.request(method.clone(), path);
            let request = request.bearer_auth(&owner.credential);
            let answer = request.header(header::ORIGIN, &origin).answer().await;
            for name in [
                "access-control-allow-origin",
                "access-control-allow-headers",
                "access-control-allow-methods",
            ] {
                assert_eq!(answer.header(name), None, "{origin} {method} {path}");
            }
            match allowed {
                true => assert_ne!(answer.status, 403, "{origin} {method} {path}"),
                false => drop(answer.problem(403, "origin_refused")),
            }
        }
    }
    let preflight = fixture.request(Method::OPTIONS, "/api/v1/projects");
    let preflight = preflight.answer().await;
    preflight.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_console_is_where_the_settings_say_or_nowhere() {
    let none = TestServer::builder().settings(|s| s.console_url = Some(String::new()));
    let none = none.start().await;
    let port = none.address().port();
    let host = format!("console.localhost:{port}");
    none.get_raw(&host, "/config.json")
        .await
        .problem(404, "not_found");
    let elsewhere = TestServer::builder().settings(|s| {
        s.base_url = Some("https://api.example.com".parse().unwrap());
        s.sites_domain = Some("pages.example.com".to_owned());
        s.console_url = Some("https://console.example.com".to_owned());
    });
    let elsewhere = elsewhere.start().await;
    for (host, status) in [
        ("console.example.com", 200),
        ("console.example.com:443", 200),
        ("console.example.com:80", 421),
        ("console.pages.example.com", 404),
        ("api.example.com", 404),
    ] {
        let answer = elsewhere.get_raw(host, "/config.json").await;
        assert_eq!(answer.status, status, "{host}");
    }
    let answer = elsewhere.get_raw("console.example.com", "/").await;
    assert!(answer.header("strict-transport-security").is_some());
}
