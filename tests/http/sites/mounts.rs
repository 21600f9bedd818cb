//! Mounts: a site answers below its slug, and at the root of its project's origin if that leads to it.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::browser::{Browser, location};
use svc_tests::{Answer, TestServer};

use super::{SiteFixture, texts};
use crate::owner::text;

/// Files that say where they are.
const FILES: [(&str, &str); 12] = [
    ("index.html", "home"),
    ("about.html", "about"),
    ("docs/index.html", "docs"),
    ("docs/404.html", "no such doc"),
    ("raw", "raw file"),
    ("healthz", "no probe"),
    ("favicon.ico", "icon"),
    ("robots.txt", "robots"),
    ("llms.txt", "agents"),
    ("api/data.json", "{}"),
    ("room/hidden.txt", "behind a page"),
    (".well-known/x", "known"),
];

impl SiteFixture {
    /// Host of the project's origin.
    fn host(&self) -> String {
        format!("house-acme.localhost:{}", self.server.address().port())
    }

    fn origin(&self) -> String {
        format!("http://{}", self.host())
    }

    /// Asks a host with headers.
    async fn ask(&self, host: &str, request: &str, headers: &str) -> Answer {
        let request =
            format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        self.server.raw(request).await
    }

    /// Changes the project's home.
    async fn set_home(&self, slug: &str) {
        let path = format!("/{}", self.project);
        let body = json!({ "home": slug });
        let changed = self.owner.send(&self.server, Method::PATCH, &path, &body);
        changed.await.expect(200);
    }

    /// Returns what the root of the project's origin answers: a text, or the target of a redirect.
    async fn root(&self) -> String {
        let answer = self.get("/").await;
        match answer.status {
            200 => answer.text().to_owned(),
            302 => format!("to {}", answer.header("location").unwrap()),
            status => status.to_string(),
        }
    }

    /// Returns the addresses of a frontend and of its backend, as its document says.
    async fn addresses(&self, slug: &str) -> (String, String) {
        let path = format!("/{}/frontends/{slug}", self.project);
        let found = self.owner.get(&self.server, &path).await.expect(200).json();
        (text(&found["url"]), text(&found["api_base"]))
    }
}

/// A project with a site, and a page whose slug is a folder of the site.
async fn start_with_page() -> SiteFixture {
    let fixture = SiteFixture::with_files(&FILES).await;
    let (server, project) = (&fixture.server, &fixture.project);
    fixture.owner.frontend(server, project, "room").await;
    fixture
}

#[tokio::test]
async fn a_site_answers_at_the_root_too() {
    let fixture = start_with_page().await;
    let host = fixture.host();
    for (path, expected) in [
        ("/", "home"),
        ("/index.html", "home"),
        ("/about", "about"),
        ("/docs/", "docs"),
        ("/raw", "raw file"),
        ("/healthz", "no probe"),
        ("/favicon.ico", "icon"),
        ("/robots.txt", "robots"),
        ("/llms.txt", "agents"),
        ("/api/data.json", "{}"),
        ("/%61bout", "about"),
        ("/.well-known/x", "known"),
        ("/site/", "home"),
        ("/site/about", "about"),
        ("/site/raw", "raw file"),
    ] {
        assert_eq!(fixture.read(path).await, expected, "{path}");
    }
    for (path, target) in [
        ("/docs", "/docs/"),
        ("/docs?a=b", "/docs/?a=b"),
        ("/about/", "/about"),
        ("/site", "/site/"),
        ("/site/docs", "/site/docs/"),
    ] {
        let answer = fixture.get(path).await.expect(308);
        assert_eq!(answer.header("location"), Some(target), "{path}");
    }
    for (path, text) in [("/docs/none", "no such doc"), ("/docs/a/b", "no such doc")] {
        assert_eq!(fixture.get(path).await.expect(404).text(), text, "{path}");
    }
    // A page's slug has all below it, and the platform comes first.
    assert!(fixture.read("/room").await.contains("One"));
    for path in [
        "/room/hidden.txt",
        "/readyz",
        "/_svc/nothing",
        "/site/_svc/nothing",
        "/api/nothing/x",
        "/docs%2findex.html",
        "/nothing",
    ] {
        fixture.get(path).await.problem(404, "not_found");
    }
    assert_eq!(fixture.read("/site/room/hidden.txt").await, "behind a page");
    let refused = fixture
        .ask(&host, "POST /about", "Content-Length: 0\r\n")
        .await;
    refused.problem(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("GET,HEAD"));
    fixture
        .get("/api/op")
        .await
        .problem(405, "method_not_allowed");
    assert_eq!(
        fixture.ask(&host, "HEAD /", "").await.expect(200).text(),
        ""
    );
    fixture.ask(&host, "OPTIONS /about", "").await.expect(204);
    // Probes stay where operators look for them.
    let sites = format!("localhost:{}", fixture.server.address().port());
    for host in [&sites, &fixture.server.address().to_string()] {
        let probe = fixture.server.get_raw(host, "/healthz").await.expect(200);
        assert_eq!(probe.text(), "ok\n");
    }
    let unknown = format!("nobody.{sites}");
    fixture
        .server
        .get_raw(&unknown, "/healthz")
        .await
        .expect(200);
    let missing = fixture.server.get_raw(&unknown, "/about").await;
    missing.problem(404, "not_found");
}

#[tokio::test]
async fn a_frontend_that_hides_files_at_the_root_is_told_so() {
    let fixture = SiteFixture::with_files(&FILES).await;
    let page = |slug: &str| json!({ "type": "markdown", "content": "x", "requested_slug": slug });
    let mut site = page("room");
    site["type"] = "site".into();
    site["files"] = texts(&[("index.html", "x")]);
    site.as_object_mut().unwrap().remove("content");
    for (body, hidden) in [
        (page("docs"), Some("`docs/404.html`, `docs/index.html`:")),
        (site, Some("`room/hidden.txt`:")),
        (page("other"), None),
    ] {
        let made = fixture.create(&body).await.expect(201).json();
        let Some(hidden) = hidden else {
            assert_eq!(made.get("warnings"), None, "{made}");
            continue;
        };
        let warning = &made["warnings"][0];
        assert_eq!(warning["code"], "path_hidden", "{made}");
        assert!(text(&warning["detail"]).contains(hidden), "{made}");
    }
}

#[tokio::test]
async fn the_copy_below_the_slug_names_the_address_at_the_root() {
    let fixture = start_with_page().await;
    let (origin, host) = (fixture.origin(), fixture.host());
    let sites = format!("localhost:{}", fixture.server.address().port());
    let link = |path: &str| format!("<{origin}{path}>; rel=\"canonical\"");
    for (host, path, expected) in [
        (&host, "/site/", Some(link("/"))),
        (&host, "/site/about", Some(link("/about"))),
        (&host, "/site/.well-known/x", Some(link("/.well-known/x"))),
        (&sites, "/site/about", Some(link("/about"))),
        // The page's slug hides it at the root.
        (&host, "/site/room/hidden.txt", None),
        (&host, "/site/docs/none", None),
        (&host, "/", None),
        (&host, "/about", None),
    ] {
        let answer = fixture.server.get_raw(host, path).await;
        assert_eq!(answer.header("link"), expected.as_deref(), "{host}{path}");
    }
    // A browser that opens it on the sites host is led to the root.
    let navigation = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for (path, target) in [
        ("/site", "/"),
        ("/site/", "/"),
        ("/site/about?a=b", "/about?a=b"),
        ("/site/room/hidden.txt", "/site/room/hidden.txt"),
    ] {
        let request = format!("GET {path}");
        let answer = fixture.ask(&sites, &request, navigation).await.expect(302);
        let expected = format!("{origin}{target}");
        assert_eq!(answer.header("location"), Some(&*expected), "{path}");
    }
}

#[tokio::test]
async fn the_home_decides_what_is_at_the_root() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    assert_eq!(fixture.root().await, "404");
    let (server, project) = (&fixture.server, &fixture.project);
    fixture.owner.frontend(server, project, "room").await;
    assert_eq!(fixture.root().await, "to /room");
    let site = json!({ "type": "site", "files": texts(&FILES), "requested_slug": "site" });
    let made = fixture.create(&site).await.expect(201).json();
    let (origin, at_slug) = (fixture.origin(), format!("{}/site", fixture.origin()));
    assert_eq!(made["url"], at_slug);
    assert_eq!(made.get("warnings"), None);
    // The oldest frontend is a page: nothing is at the root.
    assert_eq!(fixture.root().await, "to /room");
    fixture.get("/about").await.problem(404, "not_found");
    fixture.set_home("site").await;
    assert_eq!(fixture.root().await, "home");
    assert_eq!(fixture.read("/about").await, "about");
    let at_root = (format!("{origin}/"), format!("{origin}/api"));
    assert_eq!(fixture.addresses("site").await, at_root);
    let (room, _) = fixture.addresses("room").await;
    assert_eq!(room, format!("{origin}/room"));
    // Another release, and another site that is younger, change nothing of it.
    let second = json!({ "files": texts(&[("index.html", "second"), ("room/x", "")]) });
    let put = fixture.send(Method::PUT, "", Some(&second)).await;
    let put = put.expect(200).json();
    assert_eq!(put["url"], at_root.0);
    assert_eq!(put["warnings"][0]["code"], "path_hidden");
    let detail = text(&put["warnings"][0]["detail"]);
    assert!(detail.contains("`room/x`"), "{detail}");
    assert_eq!(fixture.root().await, "second");
    let other = json!({
        "type": "site", "files": texts(&[("index.html", "other")]), "requested_slug": "other",
    });
    fixture.create(&other).await.expect(201);
    assert_eq!(fixture.root().await, "second");
    assert_eq!(fixture.read("/other/").await, "other");
    fixture.set_home("other").await;
    assert_eq!(fixture.root().await, "other");
    assert_eq!(fixture.addresses("site").await.0, at_slug);
    // The home that has ended, and none, are the oldest.
    let path = format!("/{}/frontends/other", fixture.project);
    fixture.owner.delete(server, &path).await.expect(204);
    assert_eq!(fixture.root().await, "to /room");
    fixture.set_home("").await;
    let path = format!("/{}/frontends/room", fixture.project);
    fixture.owner.delete(server, &path).await.expect(204);
    assert_eq!(fixture.root().await, "second");
    fixture.send(Method::DELETE, "", None).await.expect(204);
    assert_eq!(fixture.root().await, "404");
    let made = fixture.create(&site).await.expect(201).json();
    assert_eq!(made["url"], at_root.0);
}

#[tokio::test]
async fn a_site_that_ends_or_is_disabled_is_gone_from_the_root() {
    let fixture = start_with_page().await;
    let disable = ["deployment", "disable", "site"];
    let done = fixture.server.command(&crate::svc(), &disable).await;
    assert!(done.success);
    for path in ["/", "/about", "/site/about"] {
        let page = fixture.get(path).await.expect(403);
        assert!(page.text().contains("disabled"), "{path}");
    }
    assert!(fixture.read("/room").await.contains("One"));
    let enable = ["deployment", "enable", "site"];
    let done = fixture.server.command(&crate::svc(), &enable).await;
    assert!(done.success);
    assert_eq!(fixture.root().await, "home");
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    for path in ["/", "/about", "/site/"] {
        fixture.get(path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn the_runtime_answers_at_both_mounts() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let backend = json!({ "ddl": "CREATE TABLE words (word TEXT)" });
    let path = format!("/{}/backend", fixture.project);
    let made = fixture.owner.post(&fixture.server, &path, &backend).await;
    made.expect(201);
    let actions = json!({ "actions": [
        { "name": "say", "sql": "INSERT INTO words (word) VALUES (:word) RETURNING word" },
        { "name": "all", "sql": "SELECT word FROM words" },
    ] });
    let path = format!("/{}/backend/actions", fixture.project);
    let put = fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &actions)
        .await;
    put.expect(200);
    let files = texts(&[
        ("index.html", "app"),
        ("api/op", "hidden"),
        ("ws/x", "file"),
    ]);
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let made = fixture.create(&site).await.expect(201).json();
    assert_eq!(made["warnings"][0]["code"], "path_hidden");
    let host = fixture.host();
    for (number, mount) in ["", "/site"].into_iter().enumerate() {
        let body = json!({ "action": "say", "params": { "word": mount } }).to_string();
        let length = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let request = format!("POST {mount}/api/op");
        let said = fixture
            .ask(&host, &request, &length)
            .await
            .expect(200)
            .json();
        assert_eq!(said["rows"][0]["word"], mount);
        let schema = fixture.get(&format!("{mount}/api/schema")).await;
        // Its handler answers, whatever the site has there.
        schema.problem(401, "unauthorized");
        let live = format!("{mount}/api/live?action=all");
        fixture.get(&live).await.problem(400, "invalid_request");
        let status = fixture.get(&format!("{mount}/auth/status")).await;
        assert_eq!(status.header("access-control-allow-origin"), None);
        assert_eq!(status.expect(200).json(), json!({ "user": null }));
        let paid = fixture.get(&format!("{mount}/payments/status")).await;
        assert_eq!(paid.expect(200).json(), json!({ "payments": [] }));
        fixture
            .get(&format!("{mount}/mcp"))
            .await
            .problem(405, "method_not_allowed");
        assert_eq!(fixture.read(&format!("{mount}/ws/x")).await, "file");
        let all = format!("{mount}/api/op");
        let body = json!({ "action": "all" }).to_string();
        let length = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let rows = fixture.ask(&host, &format!("POST {all}"), &length).await;
        let rows = rows.expect(200).json();
        assert_eq!(rows["rows"].as_array().unwrap().len(), number + 1);
    }
}

/// A project with a site, on a server with a provider for development.
async fn start_with_sign_in() -> SiteFixture {
    let server = TestServer::builder().settings(|settings| settings.dev = true);
    let fixture = SiteFixture::empty(server.start().await).await;
    let site = json!({ "type": "site", "files": texts(&FILES), "requested_slug": "site" });
    fixture.create(&site).await.expect(201);
    let (server, project) = (&fixture.server, &fixture.project);
    fixture.owner.frontend(server, project, "room").await;
    fixture
}

#[tokio::test]
async fn visitors_come_back_to_any_path_of_their_site() {
    let fixture = start_with_sign_in().await;
    for (mount, return_to, status) in [
        ("", "%2F", 302),
        ("", "%2Fabout%3Fx%3D1", 302),
        ("", "%2Fsite%2Fabout", 302),
        ("", "", 302),
        ("/site", "%2Fabout", 302),
        ("/site", "%2Fsite", 302),
        ("", "%2Froom", 400),
        ("", "%2Fx%2F..%2Froom%2Fy", 400),
        ("", "%2F%2572oom", 400),
        ("", "%2F_svc%2Fauth%2Fcallback%2Fdev", 400),
        ("", "%2Fauth%2Flogin", 400),
        ("", "%2Fauth%2Fpasskeys", 400),
        ("", "%2Fauth%2Fwelcome", 302),
        ("", "%2F%2Fevil.example%2F", 400),
        ("", "%2F.%2F%2Fevil.example", 400),
        ("", "%2F.%2F%2F%2Fevil.example", 400),
        ("", "%2Fabout%2F..%2F%2Fevil.example", 400),
        ("", "%2Fsite%2F..%2F%2Fevil.example", 400),
        ("", "%2F%252e%2F%2Fevil.example", 400),
        ("", "%2F%252Fevil.example", 400),
        ("", "%2F.%2F%252Fevil.example", 400),
        ("", "%2F%5Cevil.example", 400),
        ("", "%2F.%5C%5Cevil.example", 400),
        ("", "%2F%09%2Fevil.example", 400),
        ("", "%2F.%2F%0A%2Fevil.example", 400),
        ("", "https%3A%2F%2Fevil.example%2F", 400),
        ("", "about", 400),
        ("/room", "%2Fabout", 400),
        ("/room", "%2F", 400),
    ] {
        let path = format!("{mount}/auth/login?return_to={return_to}");
        let answer = fixture.get(&path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}

/// Returns who is signed in at a mount.
async fn user(fixture: &SiteFixture, browser: &mut Browser, mount: &str) -> Value {
    let status = format!("{}{mount}/auth/status", fixture.origin());
    browser.get(&status).await.expect(200).json()["user"].clone()
}

/// Signs in; returns where that leads.
async fn sign_in(fixture: &SiteFixture, browser: &mut Browser, login: &str) -> String {
    let (at, page) = browser.open(&format!("{}{login}", fixture.origin())).await;
    page.expect(200);
    let form = "name=Ada&email=ada%40example.com";
    let sent = browser.submit(&at, form).await.expect(303);
    browser.follow(&at, sent).await.0
}

#[tokio::test]
async fn a_session_counts_at_both_mounts_and_follows_the_home() {
    let fixture = start_with_sign_in().await;
    let origin = fixture.origin();
    let mut browser = Browser::new(fixture.server.address());
    let login = "/auth/login?return_to=%2Fabout";
    let back = sign_in(&fixture, &mut browser, login).await;
    assert_eq!(back, format!("{origin}/about"));
    let sessions = |browser: &Browser| {
        let sessions = browser.cookies.iter();
        let sessions = sessions.filter(|cookie| cookie.name.starts_with("svc_session_"));
        let paths: Vec<String> = sessions.map(|cookie| cookie.path.clone()).collect();
        paths
    };
    assert_eq!(sessions(&browser), ["/"]);
    for mount in ["", "/site"] {
        assert_eq!(user(&fixture, &mut browser, mount).await["name"], "Ada");
    }
    assert_eq!(user(&fixture, &mut browser, "/room").await, Value::Null);
    // The site leaves the root: its next session replaces the cookie there.
    fixture.set_home("room").await;
    assert_eq!(user(&fixture, &mut browser, "/site").await["name"], "Ada");
    let back = sign_in(&fixture, &mut browser, "/site/auth/login").await;
    assert_eq!(back, format!("{origin}/site/"));
    assert_eq!(sessions(&browser), ["/site"]);
    // It comes back, and so does the cookie.
    fixture.set_home("").await;
    assert_eq!(user(&fixture, &mut browser, "").await, Value::Null);
    let back = sign_in(&fixture, &mut browser, "/auth/login").await;
    assert_eq!(back, format!("{origin}/"));
    assert_eq!(sessions(&browser), ["/"]);
    assert_eq!(user(&fixture, &mut browser, "/site").await["name"], "Ada");
    let headers = HeaderMap::from_iter([("origin".parse().unwrap(), origin.parse().unwrap())]);
    let logout = format!("{origin}/auth/logout");
    let done = browser
        .send_request(Method::POST, &logout, headers, None)
        .await;
    done.expect(204);
    assert_eq!(sessions(&browser), Vec::<String>::new());
}

#[tokio::test]
async fn a_buyer_comes_back_to_the_root() {
    let fixture = start_with_sign_in().await;
    let origin = fixture.origin();
    let price =
        json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
    let path = format!("/{}/payments/catalog", fixture.project);
    let price = fixture.owner.post(&fixture.server, &path, &price).await;
    let price = text(&price.expect(201).json()["id"]);
    let mut browser = Browser::new(fixture.server.address());
    let mut headers = HeaderMap::from_iter([("origin".parse().unwrap(), origin.parse().unwrap())]);
    headers.insert("content-type", "application/json".parse().unwrap());
    let mut begin = async |mount: &str, return_to: Value| {
        let body = json!({ "price": price, "return_to": return_to }).to_string();
        let url = format!("{origin}{mount}/payments/checkout");
        let sent = browser.send_request(Method::POST, &url, headers.clone(), Some(body));
        let answer = sent.await;
        (url, answer)
    };
    for (mount, return_to, status) in [
        ("", json!("/about?x=1"), 303),
        ("", json!(null), 303),
        ("/site", json!("/about"), 303),
        ("", json!("/site/about"), 303),
        ("", json!("/room"), 400),
        ("/room", json!("/about"), 400),
    ] {
        let (_, answer) = begin(mount, return_to.clone()).await;
        assert_eq!(answer.status, status, "{mount} {return_to}");
    }
    let (url, answer) = begin("", json!("/about")).await;
    let pay = location(&url, &answer.expect(303));
    let paths = browser.cookies.iter().map(|cookie| cookie.path.as_str());
    assert!(paths.eq(["/"]), "{:?}", browser.cookies);
    let (at, page) = browser.open(&pay).await;
    page.expect(200);
    let form = "outcome=pay&email=ada%40example.com";
    let back = browser.submit(&at, form).await.expect(303);
    let expected = format!("{origin}/about?checkout=success");
    assert_eq!(back.header("location"), Some(&*expected));
}

#[tokio::test]
async fn without_a_sites_domain_a_site_answers_below_its_slug() {
    let server = TestServer::builder()
        .settings(|settings| settings.base_url = Some("http://svc.test".parse().unwrap()))
        .start()
        .await;
    let fixture = SiteFixture::empty(server).await;
    let files = texts(&[("index.html", "home"), ("site/x", "no slug hides it")]);
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let made = fixture.create(&site).await.expect(201).json();
    assert_eq!(made["url"], "http://svc.test/site");
    assert_eq!(made["api_base"], "http://svc.test/site/api");
    assert_eq!(made.get("warnings"), None);
    let home = fixture
        .server
        .get_raw("svc.test", "/site/")
        .await
        .expect(200);
    assert_eq!((home.text(), home.header("link")), ("home", None));
    let start = fixture.server.get_raw("svc.test", "/").await;
    assert_ne!(start.text(), "home");
}
