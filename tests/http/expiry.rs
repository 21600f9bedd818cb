//! The end of quick shares: after seven days they are gone, their slugs free, and their content collected.

use std::time::Duration;

use serde_json::json;
use svc::control::ControlChange;
use svc::deployments::collection::ContentGarbageCollector;
use svc_tests::{ReadAnswer, TestServer, disk};

const WEEK: u64 = 7 * 24 * 3600;

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    let body = json!({ "content": "words-that-expire", "name": "page" });
    server.publish_slug(&body).await;
    server.get("/page").answer().await.expect(200);
    server
}

#[tokio::test]
async fn a_share_lives_for_seven_days_to_the_second() {
    let server = start_with_page().await;
    server.advance(WEEK - 1);
    server.get("/page").answer().await.expect(200);
    server.get("/page/raw").answer().await.expect(200);
    server.advance(1);
    for path in ["/page", "/page/raw", "/page/"] {
        server.get(path).answer().await.problem(404, "not_found");
    }
    server
        .post("/page")
        .answer()
        .await
        .problem(404, "not_found");
    let report = json!({ "slug": "page", "reason": "other" });
    let answer = server.json("/api/v1/reports", &report).answer().await;
    answer.problem(404, "not_found");
}

#[tokio::test]
async fn what_is_over_is_told_like_what_never_was() {
    let server = start_with_page().await;
    server.advance(WEEK);
    let (over, never) = (
        server.get("/page").answer().await,
        server.get("/never").answer().await,
    );
    assert_eq!(over.text(), never.text());
    assert_eq!(over.status, never.status);
    let names = |answer: &svc_tests::Answer| {
        let mut names: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(names(&over), names(&never));
}

#[tokio::test]
async fn the_slug_is_free_at_once() {
    let server = start_with_page().await;
    server.advance(WEEK);
    let body = json!({ "content": "the next", "name": "page" });
    assert_eq!(server.publish_slug(&body).await, "page");
    assert_eq!(server.get("/page").answer().await.text(), "the next");
}

#[tokio::test]
async fn a_protected_share_ends_for_those_who_unlocked_it() {
    let server = TestServer::builder()
        .limits(|l| l.quick_share_seconds = 60)
        .start()
        .await;
    let body = json!({ "content": "x", "name": "safe", "password": "p" });
    server.publish_slug(&body).await;
    let cookie = server.unlock("safe", "p").await;
    server.advance(60);
    let answer = server.get("/safe").header("cookie", cookie).answer().await;
    answer.problem(404, "not_found");
    let unlock = server.json("/api/v1/auth/safe", &json!({ "password": "p" }));
    unlock.answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn content_goes_after_a_grace_and_only_if_nobody_needs_it() {
    let server = start_with_page().await;
    server.advance(WEEK / 2);
    let body = json!({ "content": "words-that-expire", "name": "younger" });
    server.publish_slug(&body).await;
    let other = json!({ "content": "other-words-that-go", "name": "other" });
    server.publish_slug(&other).await;
    server.advance(WEEK / 2);
    let app = server.server().app();
    app.expiry.sweep().await.unwrap();
    server.advance(3600);
    app.collector.collect().await.unwrap();
    let page = server.get("/younger").answer().await.expect(200);
    assert_eq!(page.text(), "words-that-expire");
    server.advance(WEEK / 2);
    app.expiry.sweep().await.unwrap();
    let held = disk::holding(server.data().join("content").as_path(), "words-that");
    assert!(!held.is_empty(), "content has its grace");
    let sources = disk::holding(&server.data().join("content"), "other-words-that-go");
    assert!(!sources.is_empty());
    server.advance(3600);
    app.collector.collect().await.unwrap();
    let content = server.data().join("content");
    let held = disk::holding(&content, "words-that");
    assert!(held.is_empty(), "{held:?}");
    let checked = server
        .command(&crate::svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(checked["errors"], json!([]));
    assert_eq!(checked["deployments"], 0);
}

#[tokio::test]
async fn publishing_again_what_is_about_to_go_keeps_it() {
    let server = start_with_page().await;
    server.advance(WEEK);
    let app = server.server().app();
    app.expiry.sweep().await.unwrap();
    server.advance(3600);
    let body = json!({ "content": "words-that-expire", "name": "again" });
    server.publish_slug(&body).await;
    app.collector.collect().await.unwrap();
    let changed = ControlChange::Slug("again".to_owned());
    app.control.deliver_changes(&[changed]);
    let page = server.get("/again").answer().await.expect(200);
    assert_eq!(page.text(), "words-that-expire");
}

#[tokio::test]
async fn content_that_was_needed_again_has_its_grace_again() {
    let server = start_with_page().await;
    let app = server.server().app();
    server.advance(WEEK);
    app.expiry.sweep().await.unwrap();
    let body = json!({ "content": "words-that-expire", "name": "again" });
    server.publish_slug(&body).await;
    server.advance(WEEK);
    app.expiry.sweep().await.unwrap();
    assert_eq!(app.collector.collect().await.unwrap(), 0);
    server.advance(3600);
    assert_ne!(app.collector.collect().await.unwrap(), 0);
}

#[tokio::test]
async fn content_that_nodes_share_has_a_day_and_goes_just_after_a_commit() {
    let server = start_with_page().await;
    let app = server.server().app();
    let collector = ContentGarbageCollector::new(app.infra.clone(), app.content.clone());
    let collector = collector.shared_by_nodes();
    server.advance(WEEK);
    app.expiry.sweep().await.unwrap();
    server.advance(24 * 3600 - 1);
    assert_eq!(collector.collect().await.unwrap(), 0);
    server.advance(1);
    // A process that is paused before it deletes may have lost control by then.
    let pause = || {
        app.clock.advance(Duration::from_secs(2));
        false
    };
    let held = app.content.sizes().await.unwrap();
    assert!(collector.collect_until(pause).await.is_err());
    assert_eq!(app.content.sizes().await.unwrap(), held);
    assert_ne!(collector.collect().await.unwrap(), 0);
    assert!(app.content.sizes().await.unwrap().len() < held.len());
}
