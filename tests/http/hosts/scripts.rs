//! Answers that scripts of other origins may read.

use super::*;

#[track_caller]
fn assert_header_lists(answer: &Answer, header: &str, wanted: &[&str]) {
    let value = answer.header(header).unwrap();
    let has = |name: &&str| {
        value
            .split(',')
            .any(|v| v.trim().eq_ignore_ascii_case(name))
    };
    assert!(wanted.iter().all(has), "{header}: {value}");
}

#[tokio::test]
async fn any_origin_may_read_but_never_with_credentials() {
    let server = start_with_page().await;
    for (method, path) in [
        (Method::GET, "/page"),
        (Method::GET, "/page/raw"),
        (Method::GET, "/page/"),
        (Method::GET, "/nothing"),
        (Method::PUT, "/page"),
        (Method::POST, "/api/v1/deploy"),
        (Method::POST, "/api/v1/auth/page"),
        (Method::GET, "/api/v1/openapi.json"),
        (Method::GET, "/healthz"),
        (Method::GET, "/"),
        (Method::GET, "/problems/internal"),
    ] {
        let request = server
            .request(method, path)
            .header("origin", "https://a.example");
        let answer = request.answer().await;
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, Some("*"), "{path}");
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        assert_header_lists(&answer, "access-control-expose-headers", &EXPOSED);
    }
    for path in [
        "/page/auth/status",
        "/page/payments/status",
        "/page/payments/catalog",
        "/x/auth/login",
    ] {
        let answer = server
            .get(path)
            .header("origin", "https://a.example")
            .answer()
            .await;
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[tokio::test]
async fn preflights_are_answered_for_every_path() {
    let server = start_with_page().await;
    for path in [
        "/api/v1/deploy",
        "/page",
        "/api/v1/projects",
        "/nothing/api/op",
    ] {
        let answer = server
            .request(Method::OPTIONS, path)
            .header("origin", "https://a.example")
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "authorization, idempotency-key",
            )
            .answer()
            .await;
        assert!(matches!(answer.status, 200 | 204), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_header_lists(&answer, "access-control-allow-headers", &ALLOWED);
        let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        assert_header_lists(&answer, "access-control-allow-methods", &methods);
    }
    let private = server
        .request(Method::OPTIONS, "/page/auth/logout")
        .answer()
        .await;
    assert_eq!(private.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_limit_that_refuses_can_be_read_by_scripts() {
    let server = TestServer::builder()
        .limits(|l| l.report_burst = 1)
        .start()
        .await;
    server.post("/api/v1/reports").answer().await.expect(400);
    let answer = server.post("/api/v1/reports").answer().await.expect(429);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}
