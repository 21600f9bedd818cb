//! The guides as a server shows them: each page, its links, and what becomes of it while guests come, go and fail.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::json;
use svc::guides::{GUIDES, IMAGES};
use svc_sandbox::World;
use svc_tests::guests::{RendererBehaviour, renderer, write};
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tempfile::TempDir;

use crate::guests::{install, page_signature};
use crate::openapi::{description, operations};
use crate::owner::{Owner, text};

/// Where the guides are.
const AT: &str = "/_svc/docs/";
/// The pages that no file of `docs/` is, without the parts of the reference.
const MADE: [&str; 2] = ["", "api-reference"];

/// Names of the parts of the reference.
async fn parts(server: &TestServer) -> Vec<String> {
    let description = description(server).await;
    let tags = description["tags"].as_array().unwrap().iter();
    let tags = tags.map(|tag| text(&tag["name"]).replace(' ', "-"));
    tags.chain(["types".to_owned()])
        .map(|part| format!("api-reference-{part}"))
        .collect()
}

/// Names of all pages, in the order of the list.
async fn all_names(server: &TestServer) -> Vec<String> {
    let names = GUIDES.iter().map(|guide| guide.name).chain(MADE);
    let names: Vec<String> = names.map(str::to_owned).collect();
    [names, parts(server).await].concat()
}

/// A server whose guests are loaded, so that a page is one.
async fn start(builder: svc_tests::Builder) -> TestServer {
    let server = builder.start().await;
    let ready = async || (server.get("/readyz").answer().await.status == 200).then_some(());
    wait_until("the guests to load", ready).await;
    server
}

async fn page(server: &TestServer, name: &str) -> String {
    let page = server
        .get(&format!("{AT}{name}"))
        .answer()
        .await
        .expect(200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    page.text().to_owned()
}

#[test]
fn every_picture_is_served_and_small() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files: BTreeSet<_> = files
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    let served: BTreeSet<_> = IMAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, served);
    for (name, bytes) in IMAGES {
        assert!(bytes.len() < 60_000, "{name} has {} bytes", bytes.len());
    }
}

/// The values of an attribute.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    let parts = page.split(begin.as_str()).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn every_link_of_every_page_leads_somewhere() {
    let server = start(TestServer::builder()).await;
    let names = all_names(&server).await;
    let mut pages = BTreeMap::new();
    for name in &names {
        pages.insert(name.as_str(), page(&server, name).await);
    }
    let mut reached = BTreeSet::new();
    for (name, page) in &pages {
        for link in attributes(page, "href") {
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = match path {
                "" => name,
                "./" => "",
                path => path,
            };
            let Some(target) = pages.get(to) else {
                panic!("{name} links {link}");
            };
            let found = anchor.is_empty() || attributes(target, "id").contains(&anchor);
            assert!(found, "{name} links {link}, and there is no such heading");
            reached.insert(to);
        }
        for image in attributes(page, "src") {
            let image = server.get(&format!("{AT}{image}")).answer().await;
            let kind = image.expect(200).header("content-type").map(str::to_owned);
            assert_eq!(kind.as_deref(), Some("image/webp"), "{name}");
        }
        assert!(!page.contains("](") && !page.contains("<!-- "), "{name}");
        assert!(page.contains("<html lang=\"en\">"), "{name}");
    }
    assert_eq!(reached.len(), names.len(), "{reached:?} are linked");
    let landing = server.get("/").answer().await.expect(200);
    let guide = server.get("/llms.txt").answer().await.expect(200);
    for (place, links) in [("/", landing.text()), ("llms.txt", guide.text())] {
        assert!(links.contains(AT), "{place} links the guides");
    }
    for link in guide.text().split(AT).skip(1) {
        let name = link.split(')').next().unwrap();
        server
            .get(&format!("{AT}{name}"))
            .answer()
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn they_are_answered_like_pages() {
    let server = start(TestServer::builder()).await;
    for (path, kind) in [
        ("", "text/html; charset=utf-8"),
        ("share", "text/html; charset=utf-8"),
        ("share.md", "text/markdown; charset=utf-8"),
        ("api-reference.md", "text/markdown; charset=utf-8"),
        ("images/page.webp", "image/webp"),
    ] {
        let path = &format!("{AT}{path}");
        let whole = server.get(path).answer().await.expect(200);
        assert_eq!(whole.header("content-type"), Some(kind), "{path}");
        assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
        let cache = whole.header("cache-control").unwrap();
        assert_eq!(cache, "public, max-age=0, must-revalidate");
        let etag = whole.header("etag").unwrap().to_owned();
        let send_request =
            |method, name, value: &str| server.request(method, path).header(name, value);
        let held = send_request(Method::GET, "if-none-match", &etag)
            .answer()
            .await;
        assert!(held.expect(304).body.is_empty(), "{path}");
        let part = send_request(Method::GET, "range", "bytes=0-3")
            .answer()
            .await;
        assert_eq!(part.expect(206).body, whole.body.slice(0..4), "{path}");
        let small = send_request(Method::GET, "accept-encoding", "br")
            .answer()
            .await;
        let is_small = small.header("content-encoding") == Some("br");
        assert!(is_small || !kind.starts_with("text/"), "{path}");
        let post = server.post(path).answer().await;
        post.problem(405, "method_not_allowed");
    }
    let share = server.get("/_svc/docs/share").answer().await;
    let policy = share.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    // Only the search's own script runs.
    let scripts = policy.split("script-src ").nth(1).unwrap();
    let scripts = scripts.split(';').next().unwrap();
    assert!(
        scripts.starts_with("'sha256-") && !scripts.contains(' '),
        "{policy}"
    );
    let short = server.get("/_svc/docs").answer().await.expect(308);
    assert_eq!(short.header("location"), Some(AT));
    for path in [
        "nothing",
        "nothing.md",
        "images/nothing.webp",
        "share/",
        "SHARE",
        "../share.md",
    ] {
        let none = server.get(&format!("{AT}{path}")).answer().await;
        none.problem(404, "not_found");
    }
}

#[tokio::test]
async fn their_addresses_are_those_of_the_server() {
    let server = TestServer::builder().settings(|settings| {
        settings.base_url = Some("https://share.example.com".parse().unwrap());
        settings.sites_domain = Some("pages.example.com".to_owned());
    });
    let server = start(server).await;
    let host = "share.example.com";
    let guide = server.get_raw(host, "/_svc/docs/apps.md").await.expect(200);
    for address in [
        "S=https://share.example.com;",
        " https://web-shop-dev.pages.example.com/shop\n",
    ] {
        assert!(guide.text().contains(address), "{address}");
    }
    assert!(
        !guide.text().contains("http://localhost"),
        "a sample's address"
    );
    let reference = server.get_raw(host, "/_svc/docs/api-reference.md").await;
    let call = "curl -fsS \"https://share.example.com/api/v1/deploy\" -d '{";
    assert!(reference.text().contains(call), "{}", reference.text());
}

#[tokio::test]
async fn the_reference_has_every_operation_and_every_type() {
    let server = start(TestServer::builder()).await;
    let description = description(&server).await;
    let overview = page(&server, "api-reference").await;
    let mut reference = String::new();
    for part in parts(&server).await {
        reference += &page(&server, &part).await;
    }
    let ids = attributes(&reference, "id");
    for (path, method, operation) in operations(&description) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.contains(&id), "{method} {path}");
        let line = format!("<code>{method} {path}</code>");
        assert!(reference.contains(&line), "{line}");
        let part = text(&operation["tags"][0]).replace(' ', "-");
        let link = format!("href=\"api-reference-{part}#{id}\"");
        assert!(overview.contains(&link), "{link}");
    }
    for name in description["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(ids.contains(&format!("type-{name}").as_str()), "{name}");
    }
    assert!(!reference.contains("[object") && !reference.contains("null,null"));
    // As Markdown it is one text, for whoever reads all of it.
    let whole = server.get("/_svc/docs/api-reference.md").answer().await;
    let whole = whole.expect(200).text().to_owned();
    for (path, method, _) in operations(&description) {
        let line = format!("`{method} {path}`");
        assert!(whole.contains(&line), "{line}");
    }
}

#[tokio::test]
async fn each_page_lists_all_and_leads_on() {
    let server = start(TestServer::builder()).await;
    let names = all_names(&server).await;
    let listed: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    for (at, name) in listed.iter().enumerate() {
        let page = page(&server, name).await;
        let (_, side) = page.split_once("<nav class=\"side\"").unwrap();
        let links = attributes(side.split("</nav>").next().unwrap(), "href");
        assert_eq!(links[0], "./", "{name}");
        assert_eq!(links[1..], listed, "{name}");
        let current = format!("<a href=\"{name}\" aria-current=\"page\">");
        assert_eq!(side.matches(&current).count(), 1, "{name}");
        for (rel, expected) in [
            ("prev", at.checked_sub(1).map(|before| listed[before])),
            ("next", listed.get(at + 1).copied()),
        ] {
            let begin = format!("<a rel=\"{rel}\" href=\"");
            let link = page.split_once(&begin);
            let link = link.map(|(_, link)| link.split('"').next().unwrap());
            assert_eq!(link, expected, "{name}, {rel}");
        }
    }
    let apps = page(&server, "apps").await;
    let (_, contents) = apps.split_once("<details class=\"toc\">").unwrap();
    let contents = attributes(contents.split("</details>").next().unwrap(), "href");
    let ids = attributes(&apps, "id");
    assert!(contents.len() > 5, "{contents:?}");
    assert!(contents.iter().all(|link| ids.contains(&&link[1..])));
    // The list itself has the search alone.
    let index = page(&server, "").await;
    assert!(!index.contains("<nav class=\"side\"") && index.contains("role=\"search\""));
}

#[tokio::test]
async fn the_search_finds_each_section_where_it_is() {
    let server = start(TestServer::builder()).await;
    let index = server.get("/_svc/docs/search.json").answer().await;
    let index = index.expect(200);
    assert_eq!(index.header("content-type"), Some("application/json"));
    let index = index.json();
    let mut found = Vec::new();
    for one in index["pages"].as_array().unwrap() {
        let name = text(&one["name"]);
        let page = page(&server, &name).await;
        let ids = attributes(&page, "id");
        let sections = one["sections"].as_array().unwrap();
        assert!(!sections.is_empty(), "{name}");
        for section in sections {
            let id = section["id"].as_str().unwrap();
            assert!(id.is_empty() || ids.contains(&id), "{name}#{id}");
            let said = section["text"].as_str().unwrap();
            assert!(!said.contains("](") && !said.contains("<a id"), "{said}");
        }
        found.push(name);
    }
    let mut names = all_names(&server).await;
    names.retain(|name| !name.is_empty());
    assert_eq!(found, names);
}

#[tokio::test]
async fn a_page_is_made_once_for_each_guest() {
    let server = start(TestServer::builder().system_clock()).await;
    let folder = TempDir::new().unwrap();
    let calls = || {
        let usage = server.server().app().sandbox.usage(World::Render);
        usage.unwrap().1.calls
    };
    let before = calls();
    let first = page(&server, "share").await;
    assert_eq!(page_signature(&first), None);
    let made = calls();
    assert!(made > before, "the guest makes it");
    assert_eq!(page(&server, "share").await, first);
    assert_eq!(calls(), made, "and once");

    let component = renderer("one", RendererBehaviour::Good);
    install(&server, &write(folder.path(), "one", &component)).await;
    let second = page(&server, "share").await;
    assert!(second.contains("begun by one<"), "{second}");
    let made = calls();
    assert_eq!(page(&server, "share").await, second);
    assert_eq!(calls(), made);
}

#[tokio::test]
async fn a_guest_that_fails_leaves_the_text() {
    // Fuel for no page at all: whatever is rendered fails.
    let server = TestServer::builder().limits(|limits| limits.render_fuel = 10);
    let server = start(server).await;
    for name in ["", "share", "api-reference"] {
        let page = server
            .get(&format!("{AT}{name}"))
            .answer()
            .await
            .expect(200);
        let kind = page.header("content-type");
        assert_eq!(kind, Some("text/plain; charset=utf-8"), "{name}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{name}");
        assert!(page.text().starts_with("# "), "{name}");
    }
    let written = server.get("/_svc/docs/share.md").answer().await;
    let kind = written
        .expect(200)
        .header("content-type")
        .map(str::to_owned);
    assert_eq!(kind.as_deref(), Some("text/markdown; charset=utf-8"));
}

/// Addresses become the server's, also where a default of the reader's own machine is meant: those stand without one.
#[tokio::test]
async fn a_readers_own_machine_is_not_the_server() {
    let server = start(TestServer::builder()).await;
    for (guide, said) in [
        (
            "install.md",
            "a service of the user `svc`, on port 8080 of this machine",
        ),
        ("client.md", "else on port 8080 of this machine"),
    ] {
        let path = format!("{AT}{guide}");
        let answer = server.get(&path).answer().await.expect(200);
        assert!(answer.text().contains(said), "{guide}");
    }
}

#[tokio::test]
async fn they_take_no_address_of_an_owner() {
    let server = start(TestServer::builder()).await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let made = owner.frontend(&server, &project, "docs").await;
    assert_eq!(text(&made["slug"]), "docs");
    let share = server
        .publish_slug(&json!({ "content": "x", "name": "svc" }))
        .await;
    assert_eq!(share, "svc");
    server.get("/docs").answer().await.expect(200);
    let origin = text(&made["url"]);
    let host = origin
        .split("://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    server.get_raw(host, "/docs").await.expect(200);
    for path in ["/_svc/docs/", "/_svc/docs/share", "/docs/share"] {
        server.get_raw(host, path).await.problem(404, "not_found");
    }
}
