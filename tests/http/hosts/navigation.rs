//! A browser that opens a frontend elsewhere than on its project's origin.

use http::{Method, header};
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::Owner;
use crate::svc;

const OPENED: [(&str, &str); 2] = [
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

async fn send_request(
    server: &TestServer,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = server.get(path).header(header::HOST, host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.answer().await
}

/// A server with the frontend `room` and the share `share`.
async fn start_with_pages(server: TestServer) -> TestServer {
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let share = json!({ "content": "share", "name": "share" });
    server.deploy(&share).await;
    server
}

#[tokio::test]
async fn it_is_sent_home_and_nothing_else_is() {
    let server = start_with_pages(TestServer::start().await).await;
    let port = server.address().port();
    let home = format!("house-acme.localhost:{port}");
    let vary = "Sec-Fetch-Mode, Sec-Fetch-Dest";
    let etag = send_request(&server, &format!("localhost:{port}"), "/room", &[]).await;
    let etag = etag.header("etag").unwrap().to_owned();
    for host in [format!("localhost:{port}"), server.address().to_string()] {
        for (path, location) in [
            ("/room", format!("http://{home}/room")),
            ("/room?a=b&c=%20d", format!("http://{home}/room?a=b&c=%20d")),
        ] {
            let sent = send_request(&server, &host, path, &OPENED)
                .await
                .expect(302);
            assert_eq!(sent.header("location"), Some(&*location));
            assert_eq!(sent.header("cache-control"), Some("no-store"));
            assert_eq!(sent.header("vary"), Some(vary));
            assert_eq!(sent.header("cdn-cache-control"), None);
            assert_eq!(sent.text(), "");
        }
        // What a cache has of the other answers is none for it.
        let held = [OPENED[0], OPENED[1], ("if-none-match", &*etag)];
        send_request(&server, &host, "/room", &held)
            .await
            .expect(302);
        for headers in [
            &[][..],
            &OPENED[..1],
            &OPENED[1..],
            &[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")],
            &[("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")],
        ] {
            let page = send_request(&server, &host, "/room", headers)
                .await
                .expect(200);
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("sandbox "), "{policy}");
            let vary = page.header("vary");
            assert_eq!(
                vary,
                Some("Accept-Encoding, Sec-Fetch-Mode, Sec-Fetch-Dest")
            );
        }
        let unchanged = send_request(&server, &host, "/room", &[("if-none-match", &*etag)]).await;
        let vary = unchanged.expect(304).header("vary").map(str::to_owned);
        assert_eq!(
            vary.as_deref(),
            Some("Accept-Encoding, Sec-Fetch-Mode, Sec-Fetch-Dest")
        );
        for path in ["/room/raw", "/share", "/room/api/schema", "/healthz"] {
            let answer = send_request(&server, &host, path, &OPENED).await;
            assert_ne!(answer.status, 302, "{path}");
        }
        let share = send_request(&server, &host, "/share", &OPENED)
            .await
            .expect(200);
        assert_eq!(share.header("vary"), Some("Accept-Encoding"));
    }
    let page = send_request(&server, &home, "/room", &OPENED)
        .await
        .expect(200);
    assert_eq!(page.header("content-security-policy"), None);
    assert_eq!(page.header("vary"), Some("Accept-Encoding"));
    let visits = server.visits("room").await;
    send_request(&server, &format!("localhost:{port}"), "/room", &OPENED).await;
    assert_eq!(server.visits("room").await, visits, "no view");
    let disable = ["deployment", "disable", "room"];
    let program = svc();
    let disabled = server.command(&program, &disable);
    assert!(disabled.await.success);
    let host = format!("localhost:{port}");
    send_request(&server, &host, "/room", &OPENED)
        .await
        .expect(403);
    let missing = server
        .request(Method::GET, "/nothing")
        .header(OPENED[0].0, OPENED[0].1);
    missing.answer().await.expect(404);
}

#[tokio::test]
async fn without_a_sites_domain_it_is_at_home_there() {
    let server = TestServer::builder()
        .settings(|settings| settings.base_url = Some("https://svc.example".parse().unwrap()))
        .start()
        .await;
    let server = start_with_pages(server).await;
    let page = send_request(&server, "svc.example", "/room", &OPENED)
        .await
        .expect(200);
    assert_eq!(page.header("content-security-policy"), None);
    assert_eq!(page.header("vary"), Some("Accept-Encoding"));
}
