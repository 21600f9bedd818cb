//! `svc stats` and `svc tail`: what pages did, in a shell, and what they do, as it comes.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::Signal;
use serde_json::json;

use super::{ClientFixture, RunningCommand};

/// Starts a project with a page that calls actions.
async fn start() -> ClientFixture {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Book"]).await;
    fixture.write(
        "notes.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);",
    );
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    fixture.write(
        "add.sql",
        "INSERT INTO notes (text) VALUES (:text) RETURNING id",
    );
    fixture
        .run_for_stdout(&["action", "define", "add.sql"])
        .await;
    fixture.write("book.md", "# Book");
    fixture
        .run_for_stdout(&["publish", "book.md", "--project", "Book"])
        .await;
    fixture
}

impl ClientFixture {
    /// Calls an action as a visitor; returns the status.
    async fn visit(&self, action: &str, params: serde_json::Value) -> u16 {
        let body = json!({ "action": action, "params": params });
        self.server.json("/book/api/op", &body).await.status
    }
}

#[tokio::test]
async fn counts_are_tables_and_documents() {
    let fixture = start().await;
    for _ in 0..3 {
        fixture.server.get("/book").await.expect(200);
    }
    assert_eq!(fixture.visit("add", json!({ "text": "a" })).await, 200);
    assert_eq!(fixture.visit("add", json!({ "text": null })).await, 409);
    let stats = fixture.json(&["stats"]).await;
    assert_eq!(stats["series"].as_array().unwrap().len(), 7);
    assert_eq!(stats["pages"], json!([{ "slug": "book", "views": 3 }]));
    assert_eq!(stats["actions"][0]["errors"], 1);
    let shown = fixture.run_for_stdout(&["stats", "--step", "hour"]).await;
    for text in ["limited", "sign_ins", "p95_ms", "book", "add"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let refused = fixture
        .run_for_failure(1, &["stats", "--from", "yesterday"])
        .await;
    assert!(refused.contains("RFC 3339"), "{refused}");
}

#[tokio::test]
async fn requests_are_shown_as_they_come() {
    let fixture = start().await;
    assert_eq!(fixture.visit("add", json!({ "text": "a" })).await, 200);
    assert_eq!(fixture.visit("none", json!({})).await, 404);
    let shown = fixture.run_for_stdout(&["tail", "--no-follow"]).await;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].contains("200  book/add"), "{shown}");
    assert!(lines[1].contains("404  book/none") && lines[1].contains("not_found"));
    let failed = fixture
        .run_for_stdout(&["tail", "--no-follow", "--errors", "--json"])
        .await;
    let failed: serde_json::Value = serde_json::from_str(&failed).unwrap();
    assert_eq!(failed["action"], "none");
    let mut following =
        RunningCommand::start(&fixture.command(&["tail", "-n", "0", "--action", "add"]));
    // Whoever follows has asked for the newest entry before.
    let mut seen = 0;
    while seen < 3 {
        fixture.visit("none", json!({})).await;
        fixture.visit("add", json!({ "text": "b" })).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        seen = following.stdout().lines().count();
    }
    let lines = following.wait_for_lines(3).await;
    assert!(
        lines.iter().all(|line| line.contains("200  book/add")),
        "{lines:?}"
    );
    following.signal(Signal::INT);
    let end = following.wait_for_exit().await;
    assert_eq!(end.signal(), Some(Signal::INT.as_raw()));
}
