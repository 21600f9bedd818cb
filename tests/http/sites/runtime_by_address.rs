//! The runtime that a site's files ask for by its address.

use serde_json::json;
use svc_tests::{Answer, TestServer};

use super::{SiteFixture, texts};

const PAGE: &str = "<!doctype html><title>App</title><script src=\"/_svc/runtime.js\"></script>";

/// Returns the script's own words about its mount.
fn mount_of(answer: &Answer) -> String {
    let script = answer.text();
    let line = |name: &str| {
        let begin = format!("const {name} = ");
        let from = script.find(&begin).expect("a mount") + begin.len();
        let (value, _) = script[from..].split_once(';').unwrap();
        value.to_owned()
    };
    format!("{} {}", line("slug"), line("base"))
}

#[tokio::test]
async fn a_script_is_bound_to_the_site_that_asks_for_it() {
    let fixture = SiteFixture::with_files(&[("index.html", PAGE)]).await;
    let other = json!({
        "type": "site", "files": texts(&[("index.html", "x")]), "requested_slug": "other",
    });
    fixture.create(&other).await.expect(201);
    let (server, project) = (&fixture.server, &fixture.project);
    fixture.owner.frontend(server, project, "room").await;
    // HTML is the author's, byte for byte.
    assert_eq!(fixture.read("/").await, PAGE);
    assert_eq!(fixture.read("/site/").await, PAGE);
    let port = server.address().port();
    let (own, sites) = (
        format!("house-acme.localhost:{port}"),
        format!("localhost:{port}"),
    );
    let mut tags = Vec::new();
    for (host, path, mount) in [
        (&own, "/_svc/runtime.js", "'site' ''"),
        (&own, "/site/_svc/runtime.js", "'site' '/site'"),
        (&own, "/other/_svc/runtime.js", "'other' '/other'"),
        (&sites, "/site/_svc/runtime.js", "'site' '/site'"),
    ] {
        let script = server.get_raw(host, path).await.expect(200);
        assert_eq!(mount_of(&script), mount, "{host}{path}");
        for (name, value) in [
            ("content-type", "text/javascript; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(script.header(name), Some(value), "{path}");
        }
        assert_eq!(script.header("cdn-cache-control"), None, "{path}");
        let tag = script.header("etag").unwrap().to_owned();
        let again = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nIf-None-Match: {tag}\r\n\r\n"
        );
        server.raw(again).await.expect(304);
        tags.push(tag);
    }
    let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
    assert_eq!(distinct.len(), 3, "{tags:?}");
    for (host, path) in [
        // Pages have theirs in their heads, and shares have none.
        (&own, "/room/_svc/runtime.js"),
        (&own, "/nobody/_svc/runtime.js"),
        (&own, "/_svc/runtime.js/x"),
        (&sites, "/_svc/runtime.js"),
    ] {
        let missing = server.get_raw(host, path).await;
        missing.problem(404, "not_found");
    }
}

#[tokio::test]
async fn the_modules_that_it_loads_are_served_on_the_same_origin() {
    let fixture = SiteFixture::with_files(&[("index.html", PAGE)]).await;
    let script = fixture.read("/_svc/runtime.js").await;
    let modules: Vec<&str> = script
        .split("import('")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next())
        .collect();
    assert_eq!(modules.len(), 2, "{modules:?}");
    for module in modules {
        assert!(module.starts_with("/_svc/runtime/"), "{module}");
        let answer = fixture.get(module).await.expect(200);
        assert!(answer.text().contains("export const"), "{module}");
        let name = module.trim_start_matches("/_svc/runtime/").to_owned();
        let name = name.trim_end_matches(".js").to_owned();
        // It outlives this release of the server.
        let kept = fixture.server.server().app().control.read(move |c| {
            c.query_row(
                "SELECT count(*) FROM runtimes WHERE name = ?1",
                [name],
                |row| row.get::<_, i64>(0),
            )
        });
        assert_eq!(kept.await.unwrap(), 1, "{module}");
    }
}

#[tokio::test]
async fn without_a_sites_domain_it_is_below_the_slug() {
    let server = TestServer::builder()
        .settings(|settings| settings.base_url = Some("http://svc.test".parse().unwrap()))
        .start()
        .await;
    let fixture = SiteFixture::empty(server).await;
    let site = json!({
        "type": "site", "files": texts(&[("index.html", PAGE)]), "requested_slug": "site",
    });
    fixture.create(&site).await.expect(201);
    let path = "/site/_svc/runtime.js";
    let script = fixture.server.get_raw("svc.test", path).await.expect(200);
    assert_eq!(mount_of(&script), "'site' '/site'");
    let missing = fixture.server.get_raw("svc.test", "/_svc/runtime.js").await;
    missing.problem(404, "not_found");
}

#[tokio::test]
async fn a_share_and_a_preview_have_none() {
    let fixture = SiteFixture::with_files(&[("index.html", PAGE)]).await;
    let share = json!({ "type": "site", "files": texts(&[("index.html", PAGE)]), "name": "share" });
    fixture.server.deploy(&share).await;
    let port = fixture.server.address().port();
    let sites = format!("localhost:{port}");
    let missing = fixture
        .server
        .get_raw(&sites, "/share/_svc/runtime.js")
        .await;
    missing.problem(404, "not_found");
    let files = json!({ "title": "Draft", "files": texts(&[("index.html", PAGE)]) });
    let draft = fixture.draft(&files).await;
    let preview = crate::owner::text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let script = format!("{preview}_svc/runtime.js");
    let missing = fixture.server.get_raw(&sites, &script).await;
    missing.problem(404, "not_found");
}
