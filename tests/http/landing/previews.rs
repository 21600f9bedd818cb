//! Previews: what would be published, in a frame that can do nothing.

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, wait_until};

pub(super) async fn preview(server: &TestServer, body: &Value) -> Answer {
    server.post("/_svc/preview").json(body).answer().await
}

#[tokio::test]
async fn a_preview_is_what_would_be_published() {
    let server = TestServer::start().await;
    let before = server.snapshot();
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
    assert_eq!(server.snapshot(), before, "nothing is stored");
    for ((kind, content), preview) in sources.into_iter().zip(previews) {
        let body = json!({ "type": kind, "content": content, "title": "A title" });
        let slug = server.publish_slug(&body).await;
        let page = server.get(&format!("/{slug}")).answer().await;
        // A preview has no address, and so no footer.
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
async fn a_preview_is_no_larger_as_json_than_a_page_may_be() {
    let server = TestServer::builder()
        .limits(|limits| limits.page_bytes = 4_096)
        .start()
        .await;
    // Each of these is two bytes as JSON.
    let mut body = json!({ "content": "\"".repeat(3_000) });
    let problem = preview(&server, &body).await.problem(400, "render_failed");
    assert_eq!(problem["budget"], "page_bytes");
    server.deploy(&body).await;
    body["content"] = "\"".repeat(1_000).into();
    preview(&server, &body).await.expect(200);
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

#[tokio::test]
async fn previews_that_nobody_reads_wait_in_bounded_memory() {
    let server = TestServer::builder()
        .limits(|limits| limits.page_work_bytes = 100_000)
        .start()
        .await;
    // More than a client's tenth, which one page may be.
    let large = json!({ "content": "x".repeat(20_000) });
    // Its reader takes a byte, and no more.
    let reader = svc_tests::http_client()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(1)
        .no_proxy()
        .build()
        .unwrap();
    let unread = reader.post(server.url("/_svc/preview")).json(&large);
    let unread = unread.send().await.unwrap();
    assert_eq!(unread.status(), 200);
    let refused = preview(&server, &json!({ "content": "x" })).await;
    refused.problem(503, "capacity_reached");
    assert!(refused.header("retry-after").is_some());
    // What is published does not wait for those who look.
    server.deploy(&large).await;
    drop(unread);
    let free = async || {
        let answer = preview(&server, &large).await;
        (answer.status == 200).then_some(())
    };
    wait_until("the unread preview to be forgotten", free).await;
}
