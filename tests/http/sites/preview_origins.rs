//! Previews of sites: below the sites host, and each revision at the root of an origin of its own.

use http::Method;
use serde_json::json;
use svc::config::EdgeCacheSettings;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, texts};
use crate::owner::text;

/// Files of the draft.
const DRAFT: [(&str, &str); 5] = [
    ("index.html", "draft"),
    ("docs/index.html", "docs of the draft"),
    ("docs/404.html", "no such doc"),
    ("healthz", "a file"),
    ("site/x", "no slug hides it"),
];

/// A project with a site that has a draft.
struct Draft {
    fixture: SiteFixture,
    revision: String,
    /// Path of the preview below the sites host.
    path: String,
    /// Host of the preview's own origin.
    host: String,
}

impl Draft {
    async fn make() -> Self {
        let fixture = SiteFixture::with_files(&[("index.html", "live")]).await;
        Self::of(fixture, &DRAFT).await
    }

    /// Makes a draft of these texts.
    async fn of(fixture: SiteFixture, files: &[(&str, &str)]) -> Self {
        let draft = fixture.draft(&json!({ "files": texts(files) })).await;
        let url = text(&draft["preview_url"]);
        let origin = text(&draft["revision"]["preview_origin"]);
        let host = origin.strip_prefix("http://").unwrap();
        Self {
            revision: text(&draft["revision"]["revision_id"]),
            path: url[url.find("/_preview/").unwrap()..].to_owned(),
            host: host.strip_suffix('/').unwrap().to_owned(),
            fixture,
        }
    }

    /// Asks the preview's own origin.
    async fn on_origin(&self, path: &str) -> Answer {
        self.fixture.server.get_raw(&self.host, path).await
    }

    /// Asks below the sites host.
    async fn below(&self, path: &str) -> Answer {
        let sites = format!("localhost:{}", self.fixture.server.address().port());
        let path = format!("{}{path}", self.path);
        self.fixture.server.get_raw(&sites, &path).await
    }
}

#[tokio::test]
async fn a_draft_is_seen_at_both_its_addresses() {
    let draft = Draft::make().await;
    let port = draft.fixture.server.address().port();
    let label = draft.host.strip_suffix(&format!(".localhost:{port}"));
    let characters = label.unwrap().strip_prefix("r-").unwrap();
    assert_eq!(characters.len(), 26);
    for (path, expected) in [
        ("", "draft"),
        ("docs/", "docs of the draft"),
        ("healthz", "a file"),
        ("site/x", "no slug hides it"),
    ] {
        assert_eq!(
            draft.below(path).await.expect(200).text(),
            expected,
            "{path}"
        );
        let at_root = draft.on_origin(&format!("/{path}")).await;
        assert_eq!(at_root.expect(200).text(), expected, "{path}");
    }
    let redirected = draft.below("docs").await.expect(308);
    let target = format!("{}docs/", draft.path);
    assert_eq!(redirected.header("location"), Some(&*target));
    let redirected = draft.on_origin("/docs").await.expect(308);
    assert_eq!(redirected.header("location"), Some("/docs/"));
    for path in ["docs/none", "docs/a/b"] {
        assert_eq!(draft.below(path).await.expect(404).text(), "no such doc");
        let missing = draft.on_origin(&format!("/{path}")).await.expect(404);
        assert_eq!(missing.text(), "no such doc");
    }
    // The live page is what it was.
    assert_eq!(draft.fixture.read("/").await, "live");
}

#[tokio::test]
async fn nothing_of_a_preview_is_listed() {
    let draft = Draft::make().await;
    for (path, status) in [
        ("", 200),
        ("docs", 308),
        ("docs/none", 404),
        ("none", 404),
        ("_svc/runtime.js", 404),
    ] {
        let at_root = format!("/{path}");
        for answer in [draft.below(path).await, draft.on_origin(&at_root).await] {
            let answer = answer.expect(status);
            assert_eq!(answer.header("x-robots-tag"), Some("noindex"), "{path}");
        }
    }
    let bare = draft.path.trim_end_matches('/');
    let bare = draft.fixture.server.get(bare).answer().await.expect(308);
    assert_eq!(bare.header("x-robots-tag"), Some("noindex"));
}

#[tokio::test]
async fn a_preview_is_read_once_and_counts_with_pages() {
    let paths: Vec<String> = (0..1_000)
        .map(|number| format!("assets/{number:060}.js"))
        .collect();
    let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "1")).collect();
    files.push(("index.html", "x"));
    let fixture = SiteFixture::with_files(&[("index.html", "live")]).await;
    let draft = Draft::of(fixture, &files).await;
    let pages = draft.fixture.server.server().app().serving.pages();
    let before = pages.size().1;
    draft.below("").await.expect(200);
    let (entries, bytes) = pages.size();
    assert!(bytes - before > 100_000, "{bytes}");
    // Both addresses have it from there.
    draft.below("").await.expect(200);
    draft.on_origin("/").await.expect(200);
    assert_eq!(pages.size(), (entries, bytes));
}

#[tokio::test]
async fn no_edge_keeps_what_no_purge_reaches() {
    let edge = EdgeCacheSettings {
        zone_id: "zone".into(),
        api_token: "token".into(),
        api_base: "http://127.0.0.1:9/client/v4".parse().unwrap(),
    };
    let server = TestServer::builder().settings(|settings| settings.edge = Some(edge));
    let fixture = SiteFixture::empty(server.start().await).await;
    let site = |files: &[(&str, &str)]| json!({ "files": texts(files), "options": { "fallback": "index.html", "immutable": ["/a/*"] } });
    let mut first = site(&[("index.html", "live"), ("a/old.js", "1")]);
    first["type"] = "site".into();
    first["requested_slug"] = "site".into();
    fixture.create(&first).await.expect(201);
    let second = site(&[("index.html", "live"), ("a/new.js", "2")]);
    let published = fixture.send(Method::PUT, "", Some(&second)).await;
    published.expect(200);
    let draft = Draft::of(fixture, &DRAFT).await;
    let fixture = &draft.fixture;
    let kept = |answer: Answer| {
        let said = answer
            .expect(200)
            .header("cdn-cache-control")
            .map(str::to_owned);
        said.unwrap_or_default()
    };
    for path in ["/site/", "/site/a/new.js"] {
        assert_eq!(kept(fixture.get(path).await), "max-age=31536000", "{path}");
    }
    let page = draft.below("").await;
    let forever = "public, max-age=31536000, immutable";
    assert_eq!(page.header("cache-control"), Some(forever));
    let routed = format!(
        "GET /site/users HTTP/1.1\r\nHost: house-acme.localhost:{}\r\nConnection: close\r\nAccept: text/html\r\n\r\n",
        fixture.server.address().port()
    );
    for (what, answer) in [
        ("a preview", page),
        ("a former file", fixture.get("/site/a/old.js").await),
        ("a fallback", fixture.server.raw(routed).await),
        ("the API host", fixture.server.get("/site/").answer().await),
    ] {
        assert_eq!(kept(answer), "no-store", "{what}");
    }
}

#[tokio::test]
async fn an_origin_of_a_preview_is_nobody_elses() {
    let draft = Draft::make().await;
    let page = draft.on_origin("/").await.expect(200);
    for (name, value) in [
        ("x-robots-tag", Some("noindex")),
        ("cache-control", Some("private, max-age=0, must-revalidate")),
        ("x-content-type-options", Some("nosniff")),
        ("content-security-policy", None),
        ("cdn-cache-control", None),
        ("set-cookie", None),
        ("link", None),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let tag = page.header("etag").unwrap();
    let known = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nIf-None-Match: {tag}\r\n\r\n",
        draft.host
    );
    draft.fixture.server.raw(known).await.expect(304);
    // It has no runtime, no sign-in and no other address of the platform.
    for path in [
        "/_svc/runtime.js",
        "/_svc/runtime.d.ts",
        "/api/schema",
        "/auth/login",
        "/auth/status",
        "/llms.txt",
        "/api/v1/projects",
        "/readyz",
    ] {
        draft.on_origin(path).await.problem(404, "not_found");
    }
    let posted = format!(
        "POST /api/op HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}",
        draft.host
    );
    let refused = draft.fixture.server.raw(posted).await;
    refused.problem(405, "method_not_allowed");
    assert_eq!(draft.fixture.server.visits("site").await, 0);
}

#[tokio::test]
async fn every_revision_of_a_site_says_its_origin_and_no_page_does() {
    let draft = Draft::make().await;
    let fixture = &draft.fixture;
    let list = fixture.send(Method::GET, "/revisions", None).await;
    let list = list.expect(200).json();
    for revision in list["revisions"].as_array().unwrap() {
        let origin = text(&revision["preview_origin"]);
        let path = format!("/revisions/{}", text(&revision["revision_id"]));
        let one = fixture.send(Method::GET, &path, None).await.expect(200);
        assert_eq!(one.json()["preview_origin"], origin);
        let host = origin.strip_prefix("http://").unwrap();
        let host = host.strip_suffix('/').unwrap();
        fixture.server.get_raw(host, "/").await.expect(200);
    }
    let promoted = fixture.release("promote", &json!(draft.revision)).await;
    let promoted = promoted.expect(200).json();
    let origin = format!("http://{}/", draft.host);
    assert_eq!(promoted["revision"]["preview_origin"], origin);
    let (server, project) = (&fixture.server, &fixture.project);
    fixture.owner.frontend(server, project, "room").await;
    let path = format!("/{project}/frontends/room/revisions");
    let page = fixture.owner.get(server, &path).await.expect(200).json();
    assert_eq!(page["revisions"][0].get("preview_origin"), None);
}

#[tokio::test]
async fn a_preview_ends_with_its_revision() {
    let draft = Draft::make().await;
    let fixture = &draft.fixture;
    let command = async |verb: &str| {
        let arguments = ["deployment", verb, "site"];
        let done = fixture.server.command(&crate::svc(), &arguments).await;
        assert!(done.success);
    };
    command("disable").await;
    for answer in [draft.on_origin("/").await, draft.below("").await] {
        assert_eq!(answer.status, 403);
    }
    command("enable").await;
    draft.on_origin("/").await.expect(200);
    let path = format!("/revisions/{}", draft.revision);
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    for answer in [draft.on_origin("/").await, draft.below("").await] {
        answer.problem(404, "not_found");
    }
    // What stands for no revision is a label that no project has.
    let port = fixture.server.address().port();
    for label in ["r-00000000000000000000000000", "r-0", "r-"] {
        let host = format!("{label}.localhost:{port}");
        let answer = fixture.server.get_raw(&host, "/").await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_proxy_gets_certificates_for_previews_that_are_there() {
    let server = TestServer::builder()
        .settings(|settings| settings.ops_listen = Some(([127, 0, 0, 1], 0).into()));
    let fixture = SiteFixture::empty(server.start().await).await;
    let site = json!({
        "type": "site", "files": texts(&[("index.html", "live")]), "requested_slug": "site",
    });
    fixture.create(&site).await.expect(201);
    let draft = Draft::of(fixture, &DRAFT).await;
    let (name, _) = draft.host.rsplit_once(':').unwrap();
    let ops = draft.fixture.server.server().ops_address().unwrap();
    for (name, status) in [
        (name, 200),
        ("r-00000000000000000000000000.localhost", 404),
        ("r-0.localhost", 404),
    ] {
        let client = svc_tests::http_client().no_proxy().build().unwrap();
        let url = format!("http://{ops}/tls/ask?domain={name}");
        let answer = client.request(Method::GET, url).answer().await;
        assert_eq!(answer.status, status, "{name}");
    }
}

#[tokio::test]
async fn without_a_sites_domain_there_is_no_such_origin() {
    let server = TestServer::builder()
        .settings(|settings| settings.base_url = Some("http://svc.test".parse().unwrap()))
        .start()
        .await;
    let fixture = SiteFixture::empty(server).await;
    let site = json!({
        "type": "site", "files": texts(&[("index.html", "live")]), "requested_slug": "site",
    });
    fixture.create(&site).await.expect(201);
    let draft = fixture.draft(&json!({ "files": texts(&DRAFT) })).await;
    assert_eq!(draft["revision"].get("preview_origin"), None);
    let url = text(&draft["preview_url"]);
    let path = url.strip_prefix("http://svc.test").unwrap();
    let page = fixture.server.get_raw("svc.test", path).await.expect(200);
    assert_eq!(page.text(), "draft");
}
