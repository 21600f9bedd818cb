//! Visits: what counts as one, and that none is counted twice.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    let body = json!({ "content": "0123456789", "name": "page" });
    server.publish_slug(&body).await;
    server
}

#[tokio::test]
async fn a_get_answered_200_or_304_is_a_visit() {
    let server = start_with_page().await;
    let etag = server.get("/page").answer().await;
    let etag = etag.header("etag").unwrap();
    assert_eq!(server.visits("page").await, 1);
    let cached = server.get("/page").header("if-none-match", etag);
    cached.answer().await.expect(304);
    assert_eq!(server.visits("page").await, 2);
    for (method, path, header, status) in [
        (Method::HEAD, "/page", ("accept", "*/*"), 200),
        (Method::HEAD, "/page", ("if-none-match", etag), 304),
        (Method::GET, "/page", ("range", "bytes=0-3"), 206),
        (Method::GET, "/page", ("range", "bytes=99-"), 416),
        (Method::GET, "/page", ("range", "bytes=0-1,4-5"), 200),
        (Method::GET, "/page", ("range", "items=0-1"), 200),
        (Method::GET, "/page/raw", ("accept", "*/*"), 200),
        (Method::GET, "/page/", ("accept", "*/*"), 308),
        (Method::POST, "/page", ("accept", "*/*"), 405),
        (Method::OPTIONS, "/page", ("accept", "*/*"), 204),
    ] {
        let request = server.request(method.clone(), path);
        request
            .header(header.0, header.1)
            .answer()
            .await
            .expect(status);
        assert_eq!(server.visits("page").await, 2, "{method} {path} {header:?}");
    }
}

#[tokio::test]
async fn forms_are_no_visits_but_what_they_open_is() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "safe", "password": "p" });
    server.publish_slug(&body).await;
    let once = json!({ "content": "x", "name": "once", "one_time": true });
    server.publish_slug(&once).await;
    server.get("/safe").answer().await.expect(401);
    server.get("/once").answer().await.expect(200);
    assert_eq!(server.visits("safe").await, 0);
    assert_eq!(server.visits("once").await, 0);
    let cookie = server.unlock("safe", "p").await;
    assert_eq!(server.visits("safe").await, 0);
    server
        .get("/safe")
        .header("cookie", cookie)
        .answer()
        .await
        .expect(200);
    assert_eq!(server.visits("safe").await, 1);
}

#[tokio::test]
async fn visits_survive_a_stop_and_are_never_doubled() {
    let mut server = start_with_page().await;
    for round in 1..=3 {
        for _ in 0..5 {
            server.get("/page").answer().await.expect(200);
        }
        server = server.restart().await;
        assert_eq!(server.visits("page").await, 5 * round);
    }
    for _ in 0..3 {
        assert_eq!(server.visits("page").await, 15);
    }
}

#[tokio::test]
async fn visits_at_once_are_all_counted() {
    let server = start_with_page().await;
    let mut visitors = tokio::task::JoinSet::new();
    for _ in 0..100 {
        visitors.spawn(server.get("/page").answer());
        if visitors.len() % 10 == 0 {
            // A flush in the middle of it.
            server.visits("page").await;
        }
    }
    for answer in visitors.join_all().await {
        answer.expect(200);
    }
    assert_eq!(server.visits("page").await, 100);
}

#[tokio::test]
async fn a_slugs_next_owner_begins_at_nothing() {
    let server = start_with_page().await;
    server.get("/page").answer().await.expect(200);
    server.advance(604_800);
    server.get("/page").answer().await.expect(404);
    server
        .publish_slug(&json!({ "content": "y", "name": "page" }))
        .await;
    assert_eq!(server.visits("page").await, 0);
}

#[tokio::test]
async fn visits_are_written_down_by_themselves() {
    let server = start_with_page().await;
    server.get("/page").answer().await.expect(200);
    let written = async || (server.written_visits("page").await == 1).then_some(());
    svc_tests::wait_until("the flush", written).await;
}

#[tokio::test]
async fn a_stop_writes_down_what_was_counted_after_a_flush_that_failed() {
    let server = start_with_page().await;
    let rows = rusqlite::Connection::open(server.data().join("counters.db")).unwrap();
    let broken = "CREATE TRIGGER broken BEFORE INSERT ON visits
        BEGIN SELECT RAISE(ABORT, 'broken'); END";
    rows.execute_batch(broken).unwrap();
    server.get("/page").answer().await.expect(200);
    let failed = server.server().app().serving.flush_visits().await;
    assert!(failed.is_err());
    server.get("/page").answer().await.expect(200);
    rows.execute_batch("DROP TRIGGER broken").unwrap();
    let server = server.restart().await;
    assert_eq!(server.visits("page").await, 2);
}
