//! `_redirects` and `_headers` of sites, as they are applied.

use http::Method;
use serde_json::{Value, json};
use svc::config::EdgeCacheSettings;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::{SiteFixture, publish, sha256, texts};
use crate::owner::text;

/// Starts a site with a page and with rules.
async fn with_rules(redirects: &str, headers: &str) -> SiteFixture {
    SiteFixture::with_files(&[
        ("index.html", "home"),
        ("about.html", "about"),
        ("app/index.html", "app"),
        ("assets/a.js", "script"),
        ("data.json", "{}"),
        ("404.html", "none"),
        ("_redirects", redirects),
        ("_headers", headers),
    ])
    .await
}

/// Returns all values of a header, joined.
fn values(answer: &Answer, name: &str) -> String {
    let values = answer.headers.get_all(name).iter();
    let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
    values.join(" | ")
}

#[tokio::test]
async fn redirects_come_first_and_rewrites_after_files() {
    let rules = "\
# moved
/old /new
/old-301 /new 301
/see /new 303
/kept /new 307
/forever /new 308
/about /elsewhere 301
/query /new?fixed=1
/part /new#part
/blog/:year/:slug /news/:slug-:year
/docs/* /manual/:splat
/out/* https://example.com/x/:splat 302
/host https://example.com:8443
/caf%C3%A9 /th\u{e9}
/dir/ /new
/loop /loop 301
/self/* /self/:splat 302
/prefix* /new/:splat
/rewritten /app 200
/page /about/ 200
/about/* /index.html 200
/assets/* /data.json 200
/chain /rewritten 200
/nowhere /missing 200
/secret /_headers 200
";
    let fixture = with_rules(rules, "").await;
    for (path, status, location) in [
        ("/site/old", 302, "/site/new"),
        ("/site/old?a=b&c", 302, "/site/new?a=b&c"),
        ("/site/old-301", 301, "/site/new"),
        ("/site/see", 303, "/site/new"),
        ("/site/kept", 307, "/site/new"),
        ("/site/forever", 308, "/site/new"),
        ("/site/about", 301, "/site/elsewhere"),
        ("/site/query?a=b", 302, "/site/new?fixed=1"),
        ("/site/part?a=b", 302, "/site/new?a=b#part"),
        ("/site/blog/2026/x%20y", 302, "/site/news/x%20y-2026"),
        ("/site/docs", 302, "/site/manual/"),
        ("/site/docs/", 302, "/site/manual/"),
        ("/site/docs/a/b?q", 302, "/site/manual/a/b?q"),
        ("/site/out/a?q", 302, "https://example.com/x/a?q"),
        ("/site/out/a%3Fb", 302, "https://example.com/x/a%3Fb"),
        ("/site/host", 302, "https://example.com:8443/"),
        ("/site/caf%C3%A9", 302, "/site/th%C3%A9"),
        ("/site/dir/", 302, "/site/new"),
        ("/site/prefixed", 302, "/site/new/ed"),
        // Those of files themselves.
        ("/site/app", 308, "/site/app/"),
    ] {
        let answer = fixture.get(path).await.expect(status);
        assert_eq!(answer.header("location"), Some(location), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    for (path, expected) in [
        ("/site/", "home"),
        ("/site/about.html", "about"),
        ("/site/rewritten?a=b", "app"),
        ("/site/page", "about"),
        ("/site/about/x", "home"),
        ("/site/assets/a.js", "script"),
        ("/site/assets/b.js", "{}"),
    ] {
        assert_eq!(fixture.read(path).await, expected, "{path}");
    }
    for path in [
        "/site/dir",
        "/site/docs-old",
        "/site/blog/2026",
        "/site/blog/2026/",
        "/site/blog/2026/a/b",
        "/site/OLD",
        "/site/loop",
        "/site/self/a",
        "/site/chain",
        "/site/nowhere",
        "/site/secret",
        "/site/_redirects",
        "/site/_headers",
    ] {
        assert_eq!(fixture.get(path).await.expect(404).text(), "none", "{path}");
    }
    // An app whose rule is for all paths is no endless redirect.
    let app = [("index.html", "app"), ("_redirects", "/* /index.html 302")];
    publish(&fixture, &app).await.expect(200);
    let sent_on = fixture.get("/site/users/7").await.expect(302);
    assert_eq!(sent_on.header("location"), Some("/site/index.html"));
    assert_eq!(fixture.read("/site/index.html").await, "app");
    let app = [("index.html", "app"), ("_redirects", "/* /index.html 200")];
    publish(&fixture, &app).await.expect(200);
    assert_eq!(fixture.read("/site/users/7").await, "app");
    assert_eq!(fixture.read("/site/_redirects").await, "app");
}

#[tokio::test]
async fn no_request_makes_a_rule_lead_out_of_the_site() {
    let rules = "/r/* /:splat\n/s/:a/:b /:a/:b\n/t/* /x/%2e:splat\n/u/* https://example.com/:splat";
    let fixture = with_rules(rules, "").await;
    for (path, location) in [
        ("/site/r/%5cexample.com", "/site/%5Cexample.com"),
        ("/site/r/%0d%0aX-A:%20b", "/site/%0D%0AX-A%3A%20b"),
        ("/site/r/%252e%252e/x", "/site/%252e%252e/x"),
        ("/site/u/@other", "https://example.com/%40other"),
    ] {
        let answer = fixture.get(path).await;
        // What the front refuses itself never reaches a rule.
        if answer.status == 302 {
            assert_eq!(answer.header("location"), Some(location), "{path}");
        } else {
            assert_eq!(answer.status, 404, "{path}");
        }
        assert_eq!(answer.header("x-a"), None);
    }
    for path in [
        "/site/r//example.com",
        "/site/r/%2fexample.com",
        "/site/r/../x",
        "/site/s/%2e%2e/x",
        "/site/s/../x",
        "/site/t/./x",
    ] {
        let answer = fixture.get(path).await;
        let location = answer.header("location").unwrap_or("/site/");
        assert!(location.starts_with("/site/"), "{path}: {location}");
        assert!(
            !location.contains("/.") && !location[1..].contains("//"),
            "{location}"
        );
    }
    let many = format!("/* /{}", ":splat".repeat(32));
    publish(&fixture, &[("index.html", "x"), ("_redirects", &many)])
        .await
        .expect(200);
    let long = format!("/site/{}", "a".repeat(2_000));
    assert_eq!(fixture.get(&long).await.status, 404);
}

#[tokio::test]
async fn long_paths_cost_little() {
    let many = format!("/* /{}\n/* /later", ":splat".repeat(32));
    let fixture = with_rules(&many, "").await;
    let asked = async |length: usize| {
        let path = format!("/site/{}", "a".repeat(length));
        fixture.get(&path).await
    };
    asked(100).await.expect(302);
    // The first rule for the path counts, and leads to nothing.
    assert_eq!(asked(2_000).await.expect(404).text(), "none");
    let all = [
        ("index.html", "x"),
        ("404.html", "none"),
        ("_redirects", "/* /x"),
    ];
    publish(&fixture, &all).await.expect(200);
    asked(2_048).await.expect(302);
    assert_eq!(asked(2_049).await.expect(404).text(), "none");
}

#[tokio::test]
async fn rules_are_relative_to_the_mount() {
    let rules = "/old /new\n/r/* /:splat\n/app/* /index.html 200\n/ /start 303\n";
    let fixture = with_rules(rules, "/about\n X-A: b").await;
    for (path, location) in [
        ("/old?a", "/new?a"),
        ("/site/old?a", "/site/new?a"),
        ("/r/x/y", "/x/y"),
        ("/r/%5cexample.com", "/%5Cexample.com"),
        ("/", "/start"),
        ("/site/", "/site/start"),
    ] {
        let answer = fixture.get(path).await;
        let found = answer.header("location");
        // A backslash is refused before any rule.
        assert!(
            found == Some(location) || path.contains("%5c"),
            "{path}: {found:?}"
        );
    }
    for path in ["/r//example.com", "/r/%2fexample.com", "/r///example.com"] {
        let answer = fixture.get(path).await;
        let location = answer.header("location").unwrap_or("/");
        assert!(
            !location[1..].starts_with(['/', '\\']),
            "{path}: {location}"
        );
    }
    for mount in ["", "/site"] {
        let about = fixture.get(&format!("{mount}/about")).await.expect(200);
        assert_eq!(about.header("x-a"), Some("b"));
        let path = format!("{mount}/app/x");
        assert_eq!(fixture.read(&path).await, "home");
    }
    for path in ["/_headers", "/_redirects"] {
        fixture.get(path).await.expect(404);
    }
}

#[tokio::test]
async fn headers_replace_defaults_and_never_the_platforms() {
    let headers = "\
/*
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Embedder-Policy: require-corp
  Content-Security-Policy: default-src 'self'
  X-Frame-Options: DENY
  X-Mine: one
  Service-Worker-Allowed: /
/assets/:file
  Cache-Control: max-age=60
  Cache-Control: public
  Content-Type: text/plain
  X-Frame-Options: SAMEORIGIN
  X-Mine: two
/about
  x-robots-tag: nosnippet
  Cache-Control: private
/assets/missing.js
  Content-Type: text/javascript
/data.json
  Content-Disposition: attachment
  Content-Language: en
  Cross-Origin-Resource-Policy: cross-origin
  Content-Security-Policy-Report-Only: default-src 'none'
  Link: </a>; rel=\"preload\"
  Permissions-Policy: camera=()
  Referrer-Policy: no-referrer
  Timing-Allow-Origin: *
";
    let fixture = with_rules("/rewritten /assets/a.js 200", headers).await;
    let page = fixture.get("/site/").await.expect(200);
    for (name, expected) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("content-security-policy", "default-src 'self'"),
        ("service-worker-allowed", "/"),
        ("x-frame-options", "DENY"),
        ("x-mine", "one"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "public, max-age=0, must-revalidate"),
        ("content-type", "text/html; charset=utf-8"),
        ("vary", "Accept-Encoding"),
    ] {
        assert_eq!(values(&page, name), expected, "{name}");
    }
    let script = fixture.get("/site/assets/a.js").await.expect(200);
    for (name, expected) in [
        ("cache-control", "max-age=60, public"),
        ("content-type", "text/plain"),
        ("x-frame-options", "SAMEORIGIN"),
        ("x-mine", "one | two"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(values(&script, name), expected, "{name}");
    }
    let data = fixture.get("/site/data.json").await.expect(200);
    for (name, expected) in [
        ("content-disposition", "attachment"),
        ("content-language", "en"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("content-security-policy-report-only", "default-src 'none'"),
        ("permissions-policy", "camera=()"),
        ("referrer-policy", "no-referrer"),
        ("timing-allow-origin", "*"),
    ] {
        assert_eq!(values(&data, name), expected, "{name}");
    }
    let links = values(&data, "link");
    let canonical = "/data.json>; rel=\"canonical\"";
    assert!(
        links.starts_with("</a>; rel=\"preload\" | <") && links.ends_with(canonical),
        "{links}"
    );
    // The path that was asked for counts, and not that of the file.
    let rewritten = fixture.get("/site/rewritten").await.expect(200);
    assert_eq!(values(&rewritten, "x-mine"), "one");
    let rewritten_type = rewritten.header("content-type");
    assert_eq!(rewritten_type, Some("text/javascript; charset=utf-8"));
    let about = fixture.get("/site/about").await.expect(200);
    assert_eq!(about.header("cache-control"), Some("private"));
    assert_eq!(about.header("x-robots-tag"), Some("nosnippet"));
    let missing = fixture.get("/site/assets/missing.js").await.expect(404);
    assert_eq!(values(&missing, "cache-control"), "no-store");
    assert_eq!(values(&missing, "content-type"), "text/html; charset=utf-8");
    assert_eq!(values(&missing, "x-mine"), "one | two");
    // An answer that has not changed carries them, too.
    let port = fixture.server.address().port();
    let again = format!(
        "GET /site/assets/a.js HTTP/1.1\r\nHost: house-acme.localhost:{port}\r\nConnection: close\r\nIf-None-Match: {}\r\n\r\n",
        script.header("etag").unwrap()
    );
    let again = fixture.server.raw(again).await.expect(304);
    assert_eq!(values(&again, "cache-control"), "max-age=60, public");
    assert_eq!(
        values(&again, "cross-origin-embedder-policy"),
        "require-corp"
    );
    // Where the site is a stranger the sandbox stays, and no worker reaches beyond it.
    let stranger = fixture.server.get("/site/").answer().await.expect(200);
    let policies: Vec<_> = stranger
        .headers
        .get_all("content-security-policy")
        .iter()
        .collect();
    assert_eq!(policies.len(), 2);
    assert!(policies[0].to_str().unwrap().starts_with("sandbox"));
    for name in [
        "service-worker-allowed",
        "cross-origin-opener-policy",
        "cross-origin-embedder-policy",
    ] {
        assert_eq!(stranger.header(name), None, "{name}");
    }
    assert_eq!(stranger.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn headers_are_for_paths_with_an_ending_or_in_a_folder() {
    let headers = "/*.js\n X-Ending: yes\n/assets/*.js\n X-Both: yes\n/app/*\n X-Folder: yes\n/*/a.js\n X-Name: yes\n";
    let fixture = with_rules("# none", headers).await;
    for (path, expected) in [
        ("/site/assets/a.js", ["yes", "yes", "", "yes"]),
        ("/site/assets/none.js", ["yes", "yes", "", ""]),
        ("/site/a.js", ["yes", "", "", ""]),
        ("/site/assets/a.jsx", ["", "", "", ""]),
        ("/site/data.json", ["", "", "", ""]),
        ("/site/app/", ["", "", "yes", ""]),
        ("/site/apple", ["", "", "", ""]),
    ] {
        let answer = fixture.get(path).await;
        let names = ["x-ending", "x-both", "x-folder", "x-name"];
        assert_eq!(names.map(|name| values(&answer, name)), expected, "{path}");
    }
    let files = [
        ("index.html", "x"),
        ("app.html", "page"),
        ("_headers", headers),
    ];
    publish(&fixture, &files).await.expect(200);
    let page = fixture.get("/site/app").await.expect(200);
    assert_eq!(values(&page, "x-folder"), "yes");
}

#[tokio::test]
async fn an_edge_keeps_nothing_that_its_author_calls_private() {
    let edge = EdgeCacheSettings {
        zone_id: "zone".into(),
        api_token: "token".into(),
        api_base: "http://127.0.0.1:9/client/v4".parse().unwrap(),
    };
    let server = TestServer::builder().settings(|settings| settings.edge = Some(edge));
    let fixture = SiteFixture::empty(server.start().await).await;
    let headers = "/private\n Cache-Control: max-age=1, Private\n/never\n Cache-Control: no-store\n\
        /short\n Cache-Control: no-cache\n";
    let files = texts(&[
        ("plain.html", "x"),
        ("private.html", "x"),
        ("never.html", "x"),
        ("short.html", "x"),
        ("_headers", headers),
    ]);
    let body = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    for (path, kept) in [
        ("/site/plain", true),
        ("/site/short", true),
        ("/site/private", false),
        ("/site/never", false),
    ] {
        let answer = fixture.get(path).await.expect(200);
        let said = answer.header("cdn-cache-control");
        assert_eq!(said.is_some(), kept, "{path}: {said:?}");
    }
}

#[tokio::test]
async fn files_of_rules_are_files_of_the_site_and_are_not_served() {
    let redirects = "/a /_headers 200\n/b /_redirects 200\n";
    let fixture = with_rules(redirects, "/*\n X-A: b\n").await;
    let content = fixture.send(Method::GET, "/content", None).await;
    let content = content.expect(200).json();
    assert_eq!(
        content["files"]["_headers"]["sha256"],
        sha256(b"/*\n X-A: b\n")
    );
    assert_eq!(content["files"].as_object().unwrap().len(), 8);
    let detail = fixture.send(Method::GET, "", None).await.expect(200).json();
    assert_eq!(detail["site"]["files"], 8);
    let file = fixture.send(Method::GET, "/files/_redirects", None).await;
    assert_eq!(file.expect(200).text(), redirects);
    let archive = fixture
        .send(Method::GET, "/archive", None)
        .await
        .expect(200);
    let has = |name: &[u8]| {
        archive
            .body
            .windows(name.len())
            .any(|window| window == name)
    };
    assert!(has(b"_headers\0") && has(b"_redirects\0"));
    for path in [
        "/site/_headers",
        "/site/_redirects",
        "/site/a",
        "/site/b",
        "/site/_headers/",
    ] {
        fixture.get(path).await.expect(404);
    }
    let fallback = json!({
        "files": texts(&[("index.html", "x"), ("_headers", "/*\n X-A: b")]),
        "options": { "fallback": "_headers" },
    });
    let refused = fixture.send(Method::PUT, "", Some(&fallback)).await;
    refused.problem(400, "invalid_request");
}

#[tokio::test]
async fn a_preview_has_its_own_rules() {
    let fixture = with_rules("/a /b", "/*\n X-A: live").await;
    let draft = json!({ "changes": { "set": {
        "_redirects": { "text": "/a /c 301" },
        "_headers": { "text": "/*\n X-A: draft\n Cache-Control: max-age=5" },
    } } });
    let draft = fixture.draft(&draft).await;
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    let moved = fixture
        .server
        .get(&format!("{preview}a"))
        .answer()
        .await
        .expect(301);
    assert_eq!(moved.header("location"), Some(&*format!("{preview}c")));
    let page = fixture.server.get(preview).answer().await.expect(200);
    assert_eq!(page.header("x-a"), Some("draft"));
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("sandbox")
    );
    // For how long a preview is kept is not for rules to say.
    let forever = "public, max-age=31536000, immutable";
    assert_eq!(page.header("cache-control"), Some(forever));
    let origin = text(&draft["revision"]["preview_origin"]);
    let host = origin.trim_start_matches("http://").trim_end_matches('/');
    let at_root = fixture.server.get_raw(host, "/").await.expect(200);
    assert_eq!(at_root.header("x-a"), Some("draft"));
    let asked = "private, max-age=0, must-revalidate";
    assert_eq!(at_root.header("cache-control"), Some(asked));
    assert_eq!(fixture.get("/site/").await.header("x-a"), Some("live"));
    let id = &draft["revision"]["revision_id"];
    fixture.release("promote", id).await.expect(200);
    assert_eq!(fixture.get("/site/").await.header("x-a"), Some("draft"));
    let moved = fixture.get("/site/a").await.expect(301);
    assert_eq!(moved.header("location"), Some("/site/c"));
}

#[tokio::test]
async fn quick_shares_redirect_within_themselves_and_set_no_headers() {
    let server = TestServer::start().await;
    let deploy = async |files: &[(&str, &str)]| {
        let body = json!({ "type": "site", "files": texts(files), "name": "share" });
        server.json("/api/v1/deploy", &body).answer().await
    };
    let page = ("index.html", "x");
    for (file, rules, line) in [
        ("_headers", "", 1),
        ("_headers", "/*\n X-A: b", 1),
        ("_redirects", "/a /b\n/c https://example.com/", 2),
        ("_redirects", "/a /../other", 1),
        ("_redirects", "/a //example.com", 1),
    ] {
        let refused = deploy(&[page, (file, rules)]).await;
        let problem = refused.problem(400, "rules_refused");
        assert_eq!(
            (&problem["file"], &problem["line"]),
            (&json!(file), &json!(line))
        );
    }
    assert_eq!(server.get("/share/").answer().await.status, 404);
    let rules = ("_redirects", "/a /b\n/c/* /index.html 200");
    let shared: Value = deploy(&[page, rules]).await.expect(201).json();
    let slug = text(&shared["slug"]);
    let moved = server.get(&format!("/{slug}/a")).answer().await.expect(302);
    assert_eq!(moved.header("location"), Some(&*format!("/{slug}/b")));
    let page = server
        .get(&format!("/{slug}/c/x"))
        .answer()
        .await
        .expect(200);
    assert_eq!(page.text(), "x");
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("sandbox")
    );
}

#[tokio::test]
async fn the_largest_rules_are_judged_and_applied() {
    let redirects: String = (0..1_000)
        .map(|number| match number % 2 {
            0 => format!("/r/{number} /to/{number} 301\n"),
            _ => format!("/p{number}/:a/:b/* /to/:b/:a/:splat\n"),
        })
        .collect();
    let headers: String = (0..100)
        .map(|number| format!("/{}*\n X-N{number}: {number}\n", "a".repeat(number % 50)))
        .collect();
    let fixture = with_rules(&redirects, &headers).await;
    for (path, location) in [
        ("/site/r/0", "/site/to/0"),
        ("/site/r/998", "/site/to/998"),
        ("/site/p999/x/y/z/w", "/site/to/y/x/z/w"),
    ] {
        let answer = fixture.get(path).await;
        assert_eq!(answer.header("location"), Some(location), "{path}");
    }
    let page = fixture.get("/site/about").await.expect(200);
    assert_eq!(page.header("x-n1"), Some("1"));
    assert_eq!(page.header("x-n51"), Some("51"));
    assert_eq!(page.header("x-n2"), None);
    let long = format!("/site/{}", "a/".repeat(2_000));
    fixture.get(&long).await.expect(404);
}
