//! Plain HTTP beside HTTPS: sent to the same address, and nowhere else.

use std::net::SocketAddr;

use svc_tests::{Answer, TestServer, exchange};

use super::{local, paths, tls_options};

pub(super) async fn send_request(address: SocketAddr, request: String) -> Answer {
    let exchange = move || Answer::parse(&exchange(address, request.as_bytes()));
    tokio::task::spawn_blocking(exchange).await.unwrap()
}

#[tokio::test]
async fn plain_http_is_sent_to_the_same_address_over_tls() {
    let pair = local();
    let server = TestServer::builder().https(&pair).settings(|settings| {
        settings.redirect_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.base_url = Some("https://share.example.test".parse().unwrap());
        settings.sites_domain = Some("pages.example.test:8443".to_owned());
    });
    let server = server.start().await;
    let plain = server.server().redirect_address().unwrap();
    for (request, status, location) in [
        (
            "GET /a?b=c%20d HTTP/1.1\r\nHost: share.example.test",
            308,
            Some("https://share.example.test/a?b=c%20d"),
        ),
        (
            "POST /api/v1/deploy HTTP/1.1\r\nHost: SHARE.example.test:80\r\nContent-Length: 2\r\n\r\n{}",
            308,
            Some("https://share.example.test/api/v1/deploy"),
        ),
        (
            "GET //evil.example/ HTTP/1.1\r\nHost: shop-acme.pages.example.test",
            308,
            Some("https://shop-acme.pages.example.test:8443//evil.example/"),
        ),
        (
            "GET http://share.example.test/x HTTP/1.1\r\nHost: evil.example",
            308,
            Some("https://share.example.test/x"),
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: share.example.test",
            308,
            Some("https://share.example.test/"),
        ),
        ("GET / HTTP/1.1\r\nHost: evil.example", 421, None),
        (
            "GET http://evil.example/ HTTP/1.1\r\nHost: share.example.test",
            421,
            None,
        ),
        ("GET / HTTP/1.0", 421, None),
    ] {
        let answer = send_request(plain, format!("{request}\r\n\r\n")).await;
        assert_eq!(answer.status, status, "{request}");
        assert_eq!(answer.header("location"), location, "{request}");
        assert_eq!(answer.header("connection"), Some("close"), "{request}");
    }
}

#[tokio::test]
async fn a_port_that_was_asked_for_must_be_free() {
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().to_string();
    let pair = local();
    let (cert, key) = paths(&pair);
    let data = tempfile::TempDir::new().unwrap();
    let addresses = ["--listen", "127.0.0.1:0", "--redirect-listen", &taken];
    let arguments = [&["serve"][..], &tls_options(&cert, &key), &addresses].concat();
    let output = crate::svc()
        .run(&data.path().join("data"), &arguments)
        .await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("redirect_listen"),
        "{}",
        output.stderr
    );
}
