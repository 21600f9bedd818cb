//! The order of checks, and bodies that are not JSON.

use super::*;

#[tokio::test]
async fn bad_forms_are_refused_by_name() {
    let server = start_with_pages().await;
    for (body, word) in [
        ("", "password"),
        ("pass=p", "pass"),
        ("password=p&user=u", "user"),
        ("password=p&password=q", "password"),
    ] {
        let request = server.post(AUTH);
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        let answer = request
            .header("content-type", kind)
            .body(body)
            .answer()
            .await;
        assert_detail_names(&answer, 400, "invalid_request", word);
    }
}

#[tokio::test]
async fn encoded_bodies_are_not_read() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    for path in [DEPLOY, REPORTS, AUTH] {
        for coding in ["gzip", "br", "x"] {
            let request = server.post(path).header("content-encoding", coding);
            let answer = request.body("{}").answer().await;
            answer.problem(415, "unsupported_media_type");
        }
    }
    assert_eq!(server.snapshot(), before);
    let request = server.post(DEPLOY).header("content-encoding", "identity");
    request
        .body("{\"content\":\"x\"}")
        .answer()
        .await
        .expect(201);
}

#[tokio::test]
async fn content_that_cannot_be_rendered_says_where() {
    let server = start_with_pages().await;
    let before = server.snapshot();
    for (kind, content, line, column) in [
        ("json", "{\n  \"a\": 1,\n  oops\n}", 3, 3),
        ("json", "[1,\n2", 2, 2),
        ("csv", "a,b\n1,\"2", 2, 3),
    ] {
        let body = json!({ "content": content, "type": kind });
        let answer = server.json(DEPLOY, &body).answer().await;
        let problem = answer.problem(400, "render_failed");
        let place = (&problem["line"], &problem["column"]);
        assert_eq!(place, (&json!(line), &json!(column)), "{problem}");
    }
    assert_eq!(server.snapshot(), before);
}

/// Host, path, method, rate limit, credential, declared length, existence, query and body: of two mistakes the
/// earlier is the one that is told.
#[tokio::test]
async fn checks_run_in_their_order() {
    let server = TestServer::builder()
        .limits(|l| l.auth_burst = 1)
        .start()
        .await;
    let big = "9999999".to_owned();
    let bearer = "Bearer nonsense".to_owned();
    let raw = async |method: Method, path: &str, host: &str, headers: &[(&str, &str)]| {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        server.raw(request + "\r\n").await
    };
    let ours = server.address().to_string();
    let everything = [("Authorization", &*bearer), ("Content-Length", &*big)];
    let misdirected = raw(
        Method::PUT,
        "/api/v1/nothing?x",
        "evil.example",
        &everything,
    )
    .await;
    misdirected.problem(421, "misdirected");
    let unknown = raw(Method::PUT, "/api/v1/nothing?x", &ours, &everything).await;
    unknown.problem(404, "not_found");
    let method = raw(Method::PUT, "/api/v1/deploy?x", &ours, &everything).await;
    method.problem(405, "method_not_allowed");
    let credential = raw(Method::POST, "/api/v1/deploy?x", &ours, &everything).await;
    credential.problem(401, "unauthorized");
    let length = raw(Method::POST, "/api/v1/deploy?x", &ours, &everything[1..]).await;
    length.problem(413, "payload_too_large");
    let length = raw(
        Method::POST,
        "/api/v1/auth/nothing?x",
        &ours,
        &everything[1..],
    )
    .await;
    length.problem(413, "payload_too_large");
    // The one token is spent: now the limit comes first.
    let limited = raw(
        Method::POST,
        "/api/v1/auth/nothing?x",
        &ours,
        &everything[1..],
    )
    .await;
    limited.problem(429, "rate_limited");
    server.advance(3600);
    let existence = raw(Method::POST, "/api/v1/auth/nothing?x", &ours, &[]).await;
    existence.problem(404, "not_found");
    let query = raw(Method::POST, "/api/v1/deploy?x", &ours, &[]).await;
    query.problem(400, "invalid_request");
}

#[tokio::test]
async fn a_call_that_is_too_long_is_told_before_its_project_is_looked_for() {
    let server = TestServer::start().await;
    let owner = crate::owner::Owner::new(&server, "acme").await;
    let (host, credential) = (server.address(), &owner.credential);
    for route in ["query", "batch"] {
        for (bytes, status, code) in [
            (65_537, 413, "payload_too_large"),
            (65_536, 404, "not_found"),
        ] {
            let request = format!(
                "POST /api/v1/projects/nobodys/backend/{route} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
                 Authorization: Bearer {credential}\r\nContent-Length: {bytes}\r\n\r\n"
            );
            server.raw(request).await.problem(status, code);
        }
    }
}
