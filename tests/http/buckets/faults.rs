//! A store of other machines that is away, refuses, or gives what was never put there.

use serde_json::json;
use svc::deployments::publication::runtime::newest_path;
use svc_tests::bucket::{Bucket, BucketFault};
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tempfile::TempDir;

use super::{evict_from_cache, get_page, publish, start_on_bucket};
use crate::svc;

#[tokio::test]
async fn while_the_store_is_away_pages_in_memory_are_served_and_the_rest_waits() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "").await;
    for name in ["seen", "unseen"] {
        publish(&server, name).await.expect(201);
        get_page(&server, name).await.expect(200);
    }
    evict_from_cache(&server, "unseen");
    bucket.set_fault(BucketFault::Unavailable);
    let refused = publish(&server, "new").await;
    let problem = refused.problem(503, "capacity_reached");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("cannot reach its storage")
    );
    assert_eq!(refused.header("retry-after"), Some("60"));
    for path in ["/unseen", "/unseen/raw", "/seen/raw"] {
        let answer = server.get(path).answer().await;
        answer.problem(503, "capacity_reached");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    assert!(
        get_page(&server, "seen")
            .await
            .expect(200)
            .text()
            .contains("of seen")
    );
    get_page(&server, "new").await.problem(404, "not_found");
    // Trials are few, and who comes together does not wait in turns.
    bucket.take_requests();
    let views = (0..20).map(|_| get_page(&server, "unseen"));
    for answer in futures_util::future::join_all(views).await {
        answer.problem(503, "capacity_reached");
    }
    let asked = bucket.take_requests();
    assert!(asked.len() <= 4, "{asked:?}");
    bucket.set_fault(BucketFault::None);
    let back = async || (get_page(&server, "unseen").await.status == 200).then_some(());
    wait_until("the store to be asked again", back).await;
    publish(&server, "new").await.expect(201);
    get_page(&server, "new").await.expect(200);
    let found = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(found["errors"], json!([]));
}

#[tokio::test]
async fn what_fails_for_a_moment_is_tried_again() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    bucket.take_requests();
    bucket.set_fault(BucketFault::EveryOtherFails);
    publish(&server, "one").await.expect(201);
    get_page(&server, "one").await.expect(200);
    evict_from_cache(&server, "one");
    bucket.take_requests();
    get_page(&server, "one").await.expect(200);
    assert_eq!(bucket.take_requests().len(), 2);
}

/// A write is done when the store says so, and a conflict says nothing of the kind.
#[tokio::test]
async fn what_the_store_did_not_take_is_not_published() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    bucket.set_fault(BucketFault::WriteConflict);
    publish(&server, "one")
        .await
        .problem(503, "capacity_reached");
    assert_eq!(bucket.objects(|objects| objects.len()), 1, "the claim");
    bucket.set_fault(BucketFault::None);
    let taken = async || (publish(&server, "one").await.status == 201).then_some(());
    wait_until("the store to be asked again", taken).await;
    get_page(&server, "one").await.expect(200);
}

/// Damage in the store is served to nobody, kept in no memory, and told.
#[tokio::test]
async fn what_the_store_has_damaged_is_not_served() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    evict_from_cache(&server, "one");
    let before = bucket.objects(|objects| {
        let before = objects.clone();
        let pages = objects.iter_mut();
        for (_, object) in pages.filter(|(name, _)| !name.ends_with("installation")) {
            let mut bytes = object.to_vec();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            *object = bytes.into();
        }
        before
    });
    for path in ["/one", "/one/raw"] {
        server.get(path).answer().await.problem(500, "internal");
    }
    let found = server.command(&svc(), &["check", "--json"]).await;
    assert!(
        !found.success && found.stdout.contains("is damaged"),
        "{found:?}"
    );
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("backup");
    let arguments = ["backup", to.to_str().unwrap(), "--json"];
    let made = server.command(&svc(), &arguments).await;
    assert!(!made.success && made.stdout.contains("damaged"), "{made:?}");
    bucket.objects(|objects| *objects = before);
    get_page(&server, "one").await.expect(200);
}

/// Has what was published expire, and its content be due.
async fn expire(server: &TestServer) {
    let app = server.server().app();
    server.advance(7 * 24 * 3600);
    app.expiry.sweep().await.unwrap();
    server.advance(3600);
}

/// A deletion that was never answered may come after what is put meanwhile.
#[tokio::test]
async fn what_may_still_be_deleted_is_not_put() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    expire(&server).await;
    let app = server.server().app();
    bucket.set_fault(BucketFault::Unavailable);
    assert!(app.collector.collect().await.is_err());
    bucket.set_fault(BucketFault::None);
    let other = async || (publish(&server, "two").await.status == 201).then_some(());
    wait_until("the store to be asked again", other).await;
    publish(&server, "one")
        .await
        .problem(503, "capacity_reached");
    app.collector.collect().await.unwrap();
    let found = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(
        (&found["errors"], &found["leftovers"]),
        (&json!([]), &json!([]))
    );
}

/// A deletion that was refused is not done later, and a store that refuses is not away.
#[tokio::test]
async fn what_the_store_refuses_to_delete_is_put_again() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    expire(&server).await;
    bucket.set_fault(BucketFault::DeletionForbidden);
    let app = server.server().app();
    assert!(app.collector.collect().await.is_err());
    publish(&server, "one").await.expect(201);
    get_page(&server, "one").await.expect(200);
}

/// A deletion that has failed is sent once, and a server that is started meanwhile remembers it.
#[tokio::test]
async fn what_may_still_be_deleted_is_not_put_after_a_restart() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    expire(&server).await;
    bucket.set_fault(BucketFault::DeletionFails);
    bucket.take_requests();
    let app = server.server().app();
    assert!(app.collector.collect().await.is_err());
    let mut asked = bucket.take_requests();
    asked.retain(|asked| asked.starts_with("DELETE"));
    let sent = asked.len();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), sent, "each once");
    let server = server.restart().await;
    bucket.set_fault(BucketFault::None);
    publish(&server, "one")
        .await
        .problem(503, "capacity_reached");
    publish(&server, "two").await.expect(201);
}

/// An object that cannot be deleted does not keep the rest.
#[tokio::test]
async fn one_deletion_that_fails_leaves_the_others_done() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    for page in 0..12 {
        publish(&server, &format!("page-{page}")).await.expect(201);
    }
    expire(&server).await;
    bucket.set_fault(BucketFault::DeletionForbidden);
    bucket.take_requests();
    let app = server.server().app();
    assert!(app.collector.collect().await.is_err());
    let asked = bucket.take_requests();
    let mut due = asked.iter().filter_map(|it| it.strip_prefix("DELETE "));
    let kept = due.next().unwrap();
    assert!(due.count() > 16, "more than one step: {asked:?}");
    bucket.set_fault(BucketFault::None);
    bucket.forbid_deletion(Some(kept));
    assert!(app.collector.collect().await.is_err());
    let deleted = asked.iter().filter_map(|it| it.strip_prefix("DELETE "));
    let left = bucket.objects(|objects| {
        let left = deleted.filter(|it| objects.contains_key(*it));
        left.collect::<Vec<_>>()
    });
    assert_eq!(left, [kept]);
    bucket.forbid_deletion(None);
    assert_eq!(app.collector.collect().await.unwrap(), 1);
}

/// Only an answer of the store itself means that an object is lost.
#[tokio::test]
async fn a_gateway_that_has_lost_the_store_has_lost_no_page() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    evict_from_cache(&server, "one");
    bucket.set_fault(BucketFault::ForeignNotFound);
    get_page(&server, "one")
        .await
        .problem(503, "capacity_reached");
    bucket.set_fault(BucketFault::None);
    let back = async || (get_page(&server, "one").await.status == 200).then_some(());
    wait_until("the store to be asked again", back).await;
}

/// The script of this program's pages is in the program, and one of an earlier program's is read once.
#[tokio::test]
async fn the_script_of_a_page_does_not_need_the_store() {
    let bucket = Bucket::start().await;
    let server = start_on_bucket(&bucket, "mine").await;
    publish(&server, "one").await.expect(201);
    let control = rusqlite::Connection::open(server.data().join("control.db")).unwrap();
    let older = "INSERT INTO runtimes (name, digest, since) SELECT 'older', source_digest, 0 FROM deployments";
    control.execute(older, []).unwrap();
    bucket.take_requests();
    for _ in 0..3 {
        let older = server.get("/_svc/runtime/older.js").answer().await;
        assert!(older.expect(200).text().contains("of one"));
    }
    assert_eq!(bucket.take_requests().len(), 1);
    bucket.set_fault(BucketFault::Unavailable);
    let script = server.get(&newest_path()).answer().await;
    assert!(script.expect(200).text().contains("/_svc/runtime/"));
    assert_eq!(bucket.take_requests(), [] as [&str; 0]);
}
