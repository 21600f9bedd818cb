//! The document of all screens, its policy, and the files that it names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, header};
use ring::digest::{SHA256, digest};
use svc_base::digest::Digest;
use svc_tests::{ReadAnswer, TestServer};

use super::ConsoleFixture;

/// Returns the text between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap();
    rest.split_once(end).unwrap().0
}

#[tokio::test]
async fn every_screen_is_the_same_document_with_its_policy() {
    let fixture = ConsoleFixture::start().await;
    let first = fixture.get("/").await.expect(200);
    let sites = &fixture.server.server().app().config.sites_url;
    let html = first.html();
    let import_map = between(html, "<script type=\"importmap\">", "</script>");
    let digest = STANDARD.encode(digest(&SHA256, import_map.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; \
         connect-src 'self'; frame-src {sites}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    for path in ["/", "/login", "/p/a/sql", "/w/a/keys"] {
        let answer = fixture.get(path).await.expect(200);
        assert_eq!(answer.body, first.body, "{path}");
        for (name, value) in [
            ("content-security-policy", policy.as_str()),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("origin-agent-cluster", "?1"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-robots-tag", "noindex"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
    }
}

#[tokio::test]
async fn the_document_is_revalidated_and_compressed_and_an_unknown_address_is_none() {
    let fixture = ConsoleFixture::start().await;
    let etag = fixture.get("/").await.expect(200);
    let etag = etag.header("etag").unwrap().to_owned();
    for (path, held, part) in [("/login", 304, 206), ("/nothing", 404, 404)] {
        let request = || fixture.request(Method::GET, path);
        let again = request().header(header::IF_NONE_MATCH, &etag);
        assert_eq!(again.answer().await.status, held, "{path}");
        let range = request().header(header::RANGE, "bytes=0-3");
        assert_eq!(range.answer().await.status, part, "{path}");
        let compressed = request().header(header::ACCEPT_ENCODING, "br");
        let compressed = compressed.answer().await;
        assert_eq!(compressed.header("content-encoding"), Some("br"), "{path}");
    }
    let head = fixture.request(Method::HEAD, "/").answer().await;
    assert!(head.expect(200).body.is_empty());
    let unknown = fixture.get("/nothing").await.expect(404);
    assert_eq!(unknown.html(), fixture.get("/").await.html());
    let post = fixture.request(Method::POST, "/login").answer().await;
    post.problem(405, "method_not_allowed");
    let post = fixture.request(Method::POST, "/nothing").answer().await;
    post.problem(404, "not_found");
}

#[tokio::test]
async fn every_file_that_the_document_names_never_changes() {
    let fixture = ConsoleFixture::start().await;
    let document = fixture.get("/").await.expect(200);
    let mut names: Vec<&str> = document.text().split("\"/_svc/console/").skip(1).collect();
    for name in &mut names {
        *name = name.split('"').next().unwrap();
    }
    assert!(names.len() > 1, "{names:?}");
    for name in names {
        let path = format!("/_svc/console/{name}");
        let (digest, extension) = name.split_once('.').unwrap();
        let kind = match extension {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            other => panic!("{other}"),
        };
        let file = fixture.get(&path).await.expect(200);
        assert_eq!(file.header("content-type"), Some(kind), "{path}");
        let cache = "public, max-age=31536000, immutable";
        assert_eq!(file.header("cache-control"), Some(cache), "{path}");
        let own = Digest::of(&file.body).to_string();
        assert!(own.starts_with(digest) && digest.len() == 32, "{path}");
        let other = format!("/_svc/console/{}.{extension}", "0".repeat(32));
        fixture.get(&other).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn settings_for_browsers_are_the_servers() {
    let fixture = ConsoleFixture::start().await;
    let answer = fixture.get("/config.json").await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let said = answer.json();
    let config = &fixture.server.server().app().config;
    let members: Vec<&String> = said.as_object().unwrap().keys().collect();
    for name in [
        "version",
        "base_url",
        "sites_url",
        "sites_domain",
        "dev",
        "limits",
        "oauth",
    ] {
        assert!(members.iter().any(|member| *member == name), "{name}");
    }
    assert_eq!(said["base_url"], config.base_url);
    assert_eq!(said["sites_url"], config.sites_url);
    assert_eq!(
        said["sites_domain"].as_str(),
        config.sites_domain.as_deref()
    );
    assert_eq!(said["dev"], false);
    assert_eq!(said["limits"]["query_rows"], config.limits.query_rows);
    assert!(said["oauth"].is_null());
}

/// An answer that is no document of the console shows nothing, should a browser be led to it.
#[tokio::test]
async fn all_else_is_inert() {
    let fixture = ConsoleFixture::start().await;
    for path in ["/config.json", "/api/v1/me", "/favicon.svg", "/mcp"] {
        let answer = fixture.get(path).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("sandbox"), "{path}: {policy}");
        let resource = answer.header("cross-origin-resource-policy");
        assert_eq!(resource, Some("same-origin"), "{path}");
    }
}

#[tokio::test]
async fn the_landing_page_leads_to_it() {
    let fixture = ConsoleFixture::start().await;
    let landing = fixture.server.get("/").answer().await.expect(200);
    assert!(landing.text().contains(&fixture.origin()));
    let none = TestServer::builder().settings(|s| s.console_url = Some(String::new()));
    let none = none.start().await;
    let landing = none.get("/").answer().await.expect(200);
    assert!(!landing.text().contains("console"));
}
