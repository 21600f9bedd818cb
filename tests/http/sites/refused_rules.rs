//! `_redirects` and `_headers` that are refused, whatever way they come.

use http::Method;
use serde_json::json;
use svc_tests::guests::RendererBehaviour;
use svc_tests::{Answer, ReadAnswer, TestServer};
use tempfile::TempDir;

use super::{SiteFixture, publish, texts};
use crate::guests::{install, write_renderer};
use crate::owner::text;

#[tokio::test]
async fn faults_are_named_with_file_line_and_reason() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let before = fixture.active().await;
    let lines = "\n".repeat(1_000) + "/a /b";
    let long = "#".repeat((64 << 10) + 1);
    let crowded: String = (0..101)
        .map(|number| format!("/{number}\n X-A: b\n"))
        .collect();
    for (file, rules, line, said) in [
        ("_redirects", "/a", 1, "a path and a target"),
        ("_redirects", "/a /b\n/c /d 200!", 2, "`!`"),
        ("_redirects", "/a?x=1 /b", 1, "Query strings"),
        ("_redirects", "/a x=:x /b/:x", 1, "Query strings"),
        ("_redirects", "/a /b 404", 1, "`404`"),
        ("_redirects", "/a /b 302 Country=de", 1, "no conditions"),
        ("_redirects", "/a/*/b /c", 1, "at the end"),
        ("_redirects", "/(a+)+*b /c", 1, "at the end"),
        ("_redirects", "/a //example.com", 1, "two slashes"),
        ("_redirects", "/a http://example.com", 1, "https://"),
        ("_redirects", "/a javascript:alert(1)", 1, "https://"),
        (
            "_redirects",
            "/a https://example.com/ 200",
            1,
            "Nothing is fetched",
        ),
        ("_redirects", "/a /x/../../b", 1, "`..`"),
        ("_redirects", "/a /%2e%2e/b", 1, "`..`"),
        (
            "_redirects",
            "\n\n/a /b\rSet-Cookie:a=b",
            3,
            "control character",
        ),
        ("_redirects", "/a\u{0} /b", 1, "control character"),
        ("_redirects", lines.as_str(), 1_001, "1000 lines"),
        ("_redirects", long.as_str(), 1, "65536 bytes"),
        ("_headers", "X-A: b", 1, "write the path first"),
        ("_headers", "/a\n/b\n X-A: b", 1, "no headers"),
        ("_headers", "/a\n X-A", 2, "no header"),
        ("_headers", "/a\n ! X-A", 2, "takes no header away"),
        (
            "_headers",
            "/a\n X-A: b\r Set-Cookie: a=b",
            2,
            "control character",
        ),
        ("_headers", "/a\n X-A: \u{e4}", 2, "none of ASCII's"),
        (
            "_headers",
            "/a\n X-A: b\u{2028}Set-Cookie: a=b",
            2,
            "none of ASCII's",
        ),
        ("_headers", "/a\n sEt-cOOkie: a=b", 2, "none of the headers"),
        ("_headers", "/a\n Location: /b", 2, "none of the headers"),
        (
            "_headers",
            "/a\n Content-Length: 0",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n Transfer-Encoding: chunked",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n Content-Encoding: br",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n Strict-Transport-Security: max-age=0",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n Access-Control-Allow-Origin: *",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n CDN-Cache-Control: max-age=9",
            2,
            "none of the headers",
        ),
        (
            "_headers",
            "/a\n X-Content-Type-Options: none",
            2,
            "platform's own",
        ),
        ("_headers", "/a\n x-request-ID: 1", 2, "platform's own"),
        ("_headers", "/a\n X-Accel-Redirect: /x", 2, "platform's own"),
        (
            "_headers",
            "/a\n X-Sendfile: /etc/passwd",
            2,
            "platform's own",
        ),
        ("_headers", crowded.as_str(), 201, "100 paths"),
        ("_headers", long.as_str(), 1, "65536 bytes"),
    ] {
        let refused = publish(&fixture, &[("index.html", "y"), (file, rules)]).await;
        let problem = refused.problem(400, "rules_refused");
        assert_eq!(problem["file"], file, "{problem}");
        assert_eq!(problem["line"], line, "{problem}");
        assert!(text(&problem["reason"]).contains(said), "{said}: {problem}");
        assert!(text(&problem["detail"]).contains(file), "{problem}");
    }
    assert_eq!(fixture.active().await, before);
    assert_eq!(fixture.read("/site/").await, "x");
    let no_text = json!({ "files": { "_headers": { "base64": "L2EKIFgtQTog/w==" } } });
    let refused = fixture.send(Method::PUT, "", Some(&no_text)).await;
    assert_eq!(refused.problem(400, "rules_refused")["line"], 2);
}

#[tokio::test]
async fn every_way_to_publish_judges_rules() {
    let fixture = SiteFixture::with_files(&[("index.html", "x"), ("_redirects", "/a /b")]).await;
    let refused = |answer: Answer| {
        let problem = answer.problem(400, "rules_refused");
        (text(&problem["file"]), problem["line"].clone())
    };
    let line = |number: u64| json!(number);
    let new = texts(&[("index.html", "x"), ("_redirects", "#\n/a")]);
    let new = json!({ "type": "site", "files": new, "requested_slug": "other" });
    let created = fixture.create(&new).await;
    assert_eq!(refused(created), ("_redirects".to_owned(), line(2)));
    assert_eq!(fixture.get("/other/").await.status, 404);
    let base = fixture.active().await;
    for changes in [
        json!({ "edits": [{ "path": "_redirects", "find": "/b", "replace": "/b\n/c" }] }),
        json!({ "set": { "_redirects": { "text": "/a /b\n/c" } } }),
        json!({ "set": { "_redirects": { "base64": "L2EgL2IKL2M=" } } }),
        json!({ "set": { "_redirects": { "sha256": fixture.put(b"/a /b\n/c").await } } }),
    ] {
        let draft = json!({ "base_revision_id": base, "changes": changes });
        let drafted = fixture.send(Method::POST, "/revisions", Some(&draft)).await;
        assert_eq!(refused(drafted), ("_redirects".to_owned(), line(2)));
    }
    let path = format!(
        "/api/v1/projects/{}/frontends/site/files/_redirects",
        fixture.project
    );
    let put = async |rules: &'static str| {
        let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
        let request = request.header("content-length", rules.len());
        request.body(rules).answer().await
    };
    assert_eq!(
        refused(put("\n\n/c").await),
        ("_redirects".to_owned(), line(3))
    );
    let large = vec![b'#'; 1_100_000];
    let set = json!({ "set": { "_headers": { "sha256": fixture.put(&large).await } } });
    let draft = json!({ "base_revision_id": base, "changes": set });
    let drafted = fixture.send(Method::POST, "/revisions", Some(&draft)).await;
    assert_eq!(refused(drafted), ("_headers".to_owned(), line(1)));
    assert_eq!(fixture.active().await, base);
    put("/a /c").await.expect(200);
    let moved = fixture.get("/site/a").await.expect(302);
    assert_eq!(moved.header("location"), Some("/site/c"));
    fixture
        .send(Method::DELETE, "/files/_redirects", None)
        .await
        .expect(200);
    assert_eq!(fixture.get("/site/a").await.status, 404);
    // Back to where they were, nothing is judged.
    let back = fixture.release("rollback", &json!(base)).await;
    back.expect(200);
    let moved = fixture.get("/site/a").await.expect(302);
    assert_eq!(moved.header("location"), Some("/site/b"));
}

#[tokio::test]
async fn a_renderer_that_judges_no_rules_says_so() {
    let server = TestServer::builder().system_clock().start().await;
    let fixture = SiteFixture::empty(server).await;
    let site = |slug: &str, rules: bool| {
        let files = match rules {
            true => texts(&[("index.html", "x"), ("_redirects", "/a /b")]),
            false => texts(&[("index.html", "x")]),
        };
        json!({ "type": "site", "files": files, "requested_slug": slug })
    };
    let folder = TempDir::new().unwrap();
    // Both the guest and the one that stands by for it.
    for sign in ["one", "two"] {
        let file = write_renderer(&folder, sign, RendererBehaviour::Good);
        install(&fixture.server, &file).await;
    }
    let refused = fixture.create(&site("site", true)).await;
    let problem = refused.problem(400, "render_failed");
    assert!(
        text(&problem["detail"]).contains("`_redirects`"),
        "{problem}"
    );
    fixture.create(&site("site", false)).await.expect(201);
    assert_eq!(fixture.read("/site/").await, "x");
}
