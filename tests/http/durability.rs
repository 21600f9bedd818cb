//! Durability: the promise of a 201 holds through `kill -9`. A few kills here; many in the slow tests.

use std::collections::BTreeSet;

use serde_json::json;
use svc_tests::{Installation, ReadAnswer, TestServer, disk};

use crate::svc;

#[tokio::test]
async fn every_promised_share_survives_a_kill() {
    let mut installation = Installation::new(svc());
    for answers in [1, 20, 60] {
        let before = installation.acknowledged_shares();
        installation.kill_while_publishing(answers).await;
        assert!(installation.acknowledged_shares() >= before + answers);
    }
}

#[tokio::test]
async fn a_burnt_share_is_in_no_file_whenever_the_server_dies() {
    let installation = Installation::new(svc());
    for readers in [1, 2, 20] {
        installation.kill_while_burning(readers).await;
    }
}

#[tokio::test]
async fn burnt_bytes_are_in_no_file() {
    let server = TestServer::start().await;
    let mut secrets = BTreeSet::new();
    for (number, kind) in ["html", "markdown", "json", "csv", "mermaid"]
        .into_iter()
        .enumerate()
    {
        let secret = format!("burning-words-{number}");
        let content = match kind {
            "json" => format!("[\"{secret}\"]"),
            "mermaid" => format!("flowchart TD\n  a[{secret}]"),
            _ => secret.clone(),
        };
        let body = json!({
            "type": kind, "content": content, "title": format!("titled-{secret}"), "one_time": true,
        });
        let request = server
            .json("/api/v1/deploy", &body)
            .header("idempotency-key", format!("key-{number}"));
        let slug = request.answer().await.expect(201).json()["slug"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(disk::holding(server.data(), &secret).len(), 1, "{kind}");
        let opened = server.post(&format!("/{slug}")).answer().await.expect(200);
        assert!(opened.text().contains(&secret), "{kind}");
        secrets.insert(secret);
    }
    let wal = disk::names(server.data())
        .into_iter()
        .any(|name| name.ends_with("-wal"));
    assert!(wal, "the write-ahead log is among what is searched");
    for secret in &secrets {
        // The title contains it too.
        let held = disk::holding(server.data(), secret);
        assert!(held.is_empty(), "{held:?}");
    }
}

/// A crash between the file and the row of a one-time share, and between an object and its row.
#[tokio::test]
async fn a_start_repairs_what_was_half_done() {
    let server = TestServer::start().await;
    server
        .publish_slug(&json!({ "content": "kept", "name": "kept" }))
        .await;
    server
        .publish_slug(&json!({ "content": "kept once", "name": "once", "one_time": true }))
        .await;
    let (once, content) = (server.data().join("once"), server.data().join("content"));
    let kept = disk::names(&once);
    let name = "01a1f8d3-ea00-767d-88f1-12e081193cab";
    std::fs::write(once.join(name), "half-done-words").unwrap();
    let digest = svc::content::Digest::of(b"half-done-words").to_string();
    let source = disk::holding(&content, "kept").remove(0);
    // Where objects lie is the store's to say: this one goes where its digest would put it.
    let held = svc::content::Digest::of(b"kept").to_string();
    let orphan = content.join(
        source
            .replace(&held, &digest)
            .replace(&held[..2], &digest[..2]),
    );
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::write(&orphan, "half-done-words").unwrap();
    let server = server.restart().await;
    assert_eq!(
        disk::names(&once),
        kept,
        "a file without a row is gone before anything is served"
    );
    let repaired = async || {
        server.advance(3600);
        server.server().app().collector.collect().await.unwrap();
        disk::holding(server.data(), "half-done-words")
            .is_empty()
            .then_some(())
    };
    svc_tests::wait_until("the orphan to be collected", repaired).await;
    assert_eq!(server.get("/kept").answer().await.text(), "kept");
    assert_eq!(server.post("/once").answer().await.text(), "kept once");
    let checked = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(
        (&checked["errors"], &checked["leftovers"]),
        (&json!([]), &json!([]))
    );
}
