//! Answers beside pages: problems, probes, metrics, request ids.

use super::*;

#[tokio::test]
async fn an_error_is_a_page_for_browsers_and_a_problem_for_others() {
    let server = start_with_page().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (method, path, status, code) in [
        (Method::GET, "/nothing", 404, "not_found"),
        (Method::GET, "/nothing/", 404, "not_found"),
        (Method::GET, "/a/b/c/d", 404, "not_found"),
        (Method::POST, "/page", 405, "method_not_allowed"),
        (Method::DELETE, "/page", 405, "method_not_allowed"),
    ] {
        for accept in [None, Some("*/*"), Some("application/json")] {
            let mut request = server.request(method.clone(), path);
            if let Some(accept) = accept {
                request = request.header("accept", accept);
            }
            request.answer().await.problem(status, code);
        }
        let request = server.request(method, path).header("accept", browser);
        let answer = request.answer().await.expect(status);
        assert!(answer.html().contains(code), "{path}");
        assert!(answer.html().starts_with("<!DOCTYPE html>"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert!(answer.header("x-request-id").is_some());
    }
    for path in ["/nothing/raw", "/api/v1/nothing", "/nothing/api/other"] {
        let answer = server.get(path).header("accept", browser).answer().await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn what_exists_for_another_method_says_for_which() {
    let server = start_with_page().await;
    for (method, path, allowed) in [
        (Method::PUT, "/page", &["GET", "HEAD", "POST"][..]),
        (Method::POST, "/page", &["GET", "HEAD"]),
        (Method::POST, "/page/raw", &["GET", "HEAD"]),
        (Method::GET, "/api/v1/deploy", &["POST"]),
        (Method::GET, "/api/v1/auth/page", &["POST"]),
        (Method::DELETE, "/api/v1/reports", &["POST"]),
        (Method::POST, "/api/v1/openapi.json", &["GET", "HEAD"]),
        (Method::POST, "/healthz", &["GET", "HEAD"]),
        (Method::POST, "/", &["GET", "HEAD"]),
    ] {
        let answer = server.request(method, path).answer().await;
        answer.problem(405, "method_not_allowed");
        let allow = answer.header("allow").unwrap();
        let found: HashSet<_> = allow.split(',').map(str::trim).collect();
        assert_eq!(found, allowed.iter().copied().collect(), "{path}");
    }
}

#[tokio::test]
async fn probes_and_problem_pages_answer() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/healthz").answer().await.status, 200);
    let ready = async || (server.get("/readyz").answer().await.status == 200).then_some(());
    svc_tests::wait_until("readiness", ready).await;
    for code in svc::http::problem::ProblemCode::ALL {
        let path = format!("/problems/{}", code.as_str());
        let page = server.get(&path).answer().await.expect(200);
        assert!(
            page.html()
                .contains(code.about().split('\'').next().unwrap())
        );
    }
    let answer = server.get("/problems/nothing").answer().await;
    answer.problem(404, "not_found");
    let page = server.get("/").answer().await.expect(200);
    assert!(page.html().contains("/api/v1/deploy"));
}

#[tokio::test]
async fn request_ids_are_everywhere_and_differ() {
    let server = start_with_page().await;
    let mut ids = HashSet::new();
    for path in [
        "/page",
        "/nothing",
        "/healthz",
        "/api/v1/openapi.json",
        "/page/",
    ] {
        let answer = server.get(path).answer().await;
        ids.insert(answer.header("x-request-id").unwrap().to_owned());
    }
    assert_eq!(ids.len(), 5);
}

#[tokio::test]
async fn operators_numbers_are_on_their_own_listener() {
    let server = TestServer::builder()
        .settings(|s| s.ops_listen = Some(([127, 0, 0, 1], 0).into()))
        .start()
        .await;
    server
        .publish_slug(&json!({ "content": "x", "name": "page" }))
        .await;
    server.get("/page").answer().await.expect(200);
    let ops = server.server().ops_address().unwrap();
    let url = format!("http://{ops}/metrics");
    let ops = svc_tests::http_client().build().unwrap();
    let numbers = ops.get(&url).answer().await.expect(200);
    assert!(numbers.header("x-request-id").is_some());
    // Those of a node of several are not those of one machine.
    for prefix in [
        "svc_ledger_",
        "svc_cluster_",
        "svc_feed_",
        "svc_takeovers",
        "svc_proxied_",
    ] {
        assert!(!numbers.text().contains(prefix), "{prefix}");
    }
    for (request, status, code) in [
        (ops.get(format!("{url}/x")), 404, "not_found"),
        (ops.post(&url), 405, "method_not_allowed"),
    ] {
        let answer = request.answer().await;
        answer.problem(status, code);
        assert!(answer.header("x-request-id").is_some());
    }
    // A page under a foreign name that resolves to this address cannot read them.
    let port = server.server().ops_address().unwrap().port();
    for (host, status) in [
        (format!("127.0.0.1:{port}"), 200),
        ("127.0.0.1".to_owned(), 200),
        (format!("localhost:{port}"), 200),
        ("LOCALHOST:9999".to_owned(), 200),
        (format!("evil.example:{port}"), 421),
        (format!("127.0.0.2:{port}"), 421),
        (format!("localhost.evil.example:{port}"), 421),
        (format!("[::1]:{port}"), 421),
    ] {
        let answer = ops.get(&url).header("host", &host).answer().await;
        assert_eq!(answer.status, status, "{host}");
        if status == 421 {
            let problem = answer.problem(421, "misdirected");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("`Host: localhost`"), "{detail}");
        }
    }
    for line in [
        "svc_http_requests_total{route=\"/{slug}\",status=\"200\"} 1",
        "svc_http_requests_total{route=\"/api/v1/deploy\",status=\"201\"} 1",
        "svc_visits_total 1",
    ] {
        assert!(numbers.text().contains(line), "{line}\n{}", numbers.text());
    }
    // On the main listener the name is a slug that nobody has.
    server
        .get("/metrics")
        .answer()
        .await
        .problem(404, "not_found");
}
