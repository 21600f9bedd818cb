//! Sizes of bodies and heads.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

#[tokio::test]
async fn a_body_is_a_megabyte_at_most() {
    let server = TestServer::start().await;
    let before = server.snapshot();
    for path in ["/api/v1/deploy", "/api/v1/reports", "/api/v1/auth/nothing"] {
        let answer = server
            .post(path)
            .body(body_of_size(BODY + 1))
            .answer()
            .await;
        let problem = answer.problem(413, "payload_too_large");
        assert!(problem["detail"].as_str().unwrap().contains("1048576"));
    }
    assert_eq!(server.snapshot(), before);
    let exactly = server.post("/api/v1/deploy").body(body_of_size(BODY));
    exactly.answer().await.expect(201);
}

#[tokio::test]
async fn a_declared_length_is_refused_before_the_body_comes() {
    let server = TestServer::start().await;
    let request = format!(
        "POST /api/v1/deploy HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        server.address(),
        BODY + 1
    );
    // Not one byte of the body is ever sent.
    server.raw(request).await.problem(413, "payload_too_large");
}

#[tokio::test]
async fn a_body_without_a_declared_length_is_counted_while_it_comes() {
    let server = TestServer::start().await;
    let chunked = |body: String| {
        let mut request = format!(
            "POST /api/v1/deploy HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
            server.address(),
        );
        for chunk in body.as_bytes().chunks(60_000) {
            request.push_str(&format!("{:x}\r\n", chunk.len()));
            request.push_str(std::str::from_utf8(chunk).unwrap());
            request.push_str("\r\n");
        }
        server.raw(request + "0\r\n\r\n")
    };
    chunked(body_of_size(BODY)).await.expect(201);
    let before = server.snapshot();
    let answer = chunked(body_of_size(BODY + 1)).await;
    answer.problem(413, "payload_too_large");
    assert_eq!(server.snapshot(), before);
}

#[tokio::test]
async fn a_head_has_64_kibibytes_at_most_in_either_version() {
    const HEAD: usize = 64 << 10;
    let server = TestServer::start().await;
    for (end, status) in [("\r\n\r\n", 200), ("", 431)] {
        let start = format!(
            "GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nX-Fill: ",
            server.address()
        );
        let fill = "x".repeat(HEAD - start.len() - end.len());
        let answer = server.raw(format!("{start}{fill}{end}")).await;
        assert_eq!(answer.status, status);
    }
    let client = svc_tests::http_client()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    for (fill, status) in [(HEAD - 1_000, 200), (HEAD, 431)] {
        let get = client.get(server.url("/healthz"));
        let answer = get.header("x-fill", "x".repeat(fill)).answer().await;
        assert_eq!(answer.status, status, "{fill}");
    }
}

#[tokio::test]
async fn bodies_that_arrive_slowly_take_bounded_memory() {
    let server = TestServer::builder()
        .limits(|limits| limits.page_work_bytes = 100_000)
        .start()
        .await;
    let address = server.address();
    // Half of a body, and then nothing.
    let request = format!(
        "POST /api/v1/deploy HTTP/1.1\r\nHost: {address}\r\nContent-Length: 60000\r\n\r\n{}",
        "x".repeat(30_000)
    );
    let slow = async || {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        status
    };
    // One of the two is waited for.
    let refused = tokio::select! {
        status = slow() => status,
        status = slow() => status,
    };
    assert_eq!(&refused, b"HTTP/1.1 503");
    let whole = json!({ "content": "x".repeat(500) });
    server.deploy(&whole).await;
}
