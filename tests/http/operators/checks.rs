//! `svc check`: damage is found, and nothing else is taken for it.

use http::Method;
use serde_json::json;
use svc::content::{ContentStore, OneTimeFileDirectory};
use svc_tests::{ReadAnswer, TestServer};

use crate::owner::Owner;
use crate::svc;

#[tokio::test]
async fn a_check_finds_damage() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "words-to-damage", "name": "page" }))
        .await;
    server
        .publish_slug(&json!({ "content": "x", "name": "once", "one_time": true }))
        .await;
    let check = async || server.command(&svc(), &["check", "--json"]).await;
    let sound = check().await.json();
    assert_eq!(
        (&sound["errors"], &sound["leftovers"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&sound["deployments"], &sound["objects"]),
        (&json!(2), &json!(2))
    );
    let source = svc_tests::disk::holding(&server.data().join("content"), "words-to-damage");
    let path = server.data().join("content").join(&source[0]);
    let whole = std::fs::read(&path).unwrap();
    for damage in [&b"words-to-damagf"[..], b"words", b""] {
        std::fs::write(&path, damage).unwrap();
        let output = check().await;
        assert!(
            !output.success && output.stdout.contains("damaged"),
            "{output:?}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    let output = check().await;
    assert!(
        !output.success && output.stdout.contains("missing"),
        "{output:?}"
    );
    std::fs::write(&path, whole).unwrap();
    assert!(check().await.success);
    let once = server.data().join("once");
    for name in svc_tests::disk::names(&once) {
        std::fs::remove_file(once.join(name)).unwrap();
    }
    let output = check().await;
    assert!(
        !output.success && output.stdout.contains("no file"),
        "{output:?}"
    );
}

/// Shares that are burnt and frontends that are replaced and collected while the check looks are no damage.
#[tokio::test]
async fn a_check_finds_no_damage_in_what_changes_meanwhile() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let app = server.server().app();
    let collector = &app.collector;
    let content = ContentStore::open(&server.data().join("content")).unwrap();
    let once = OneTimeFileDirectory::open(&server.data().join("once")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let more = || !done.load(std::sync::atomic::Ordering::Relaxed);
    let burn = async || {
        while more() {
            let once = json!({ "content": "x", "one_time": true });
            let slug = server.publish_slug(&once).await;
            server.post(&format!("/{slug}")).answer().await.expect(200);
        }
    };
    let replacing = async {
        let mut number = 0;
        while more() {
            number += 1;
            let room = format!("passing-{number}");
            owner.frontend(&server, &project, &room).await;
            let path = format!("/{project}/frontends/{room}");
            let put = json!({ "content": format!("# {number}") });
            owner
                .send(&server, Method::PUT, &path, &put)
                .await
                .expect(200);
            owner.delete(&server, &path).await.expect(204);
            server.advance(120);
            collector.collect().await.unwrap();
        }
    };
    let checking = async {
        for _ in 0..100 {
            let found = svc::deployments::operators::check(&app.control, &content, Some(&once));
            assert_eq!(found.await.unwrap().errors, [] as [String; 0]);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    tokio::join!(burn(), burn(), replacing, checking);
}
