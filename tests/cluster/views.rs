//! Views over a takeover: what was written down is there, and no view is counted twice.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use svc_tests::cluster::Cluster;
use svc_tests::postgres::Postgres;
use svc_tests::{Process, wait_until};
use tempfile::TempDir;

use crate::svc;

/// Views a page at `path` so often.
async fn view(node: &Process, path: &str, times: u64) {
    for _ in 0..times {
        node.get(path).await.expect(200);
    }
}

/// Texts for operators while a ledger is away: before a command, and of one that was under way.
const LEDGER_IS_AWAY: [&str; 2] = ["does not reach the ledger", "the ledger does not answer"];

/// Views of the only page, as operators at a data directory see them; `None` while the node does not reach its ledger.
async fn try_views(data: &Path) -> Option<u64> {
    let listed = svc().run(data, &["deployment", "list", "--json"]).await;
    let is_away = LEDGER_IS_AWAY
        .iter()
        .any(|words| listed.stderr.contains(words));
    if !listed.success && is_away {
        return None;
    }
    let listed = listed.json();
    listed["deployments"][0]["visits"].as_u64()
}

/// Views of the only page at a node that serves.
async fn views(data: &Path) -> u64 {
    try_views(data).await.expect("the page is there")
}

/// Waits until so many views are written down, and never more.
async fn wait_for_views(data: &Path, expected: u64) {
    wait_until("views that are written down", async || {
        let written = try_views(data).await?;
        assert!(written <= expected, "{written} of {expected}");
        (written == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_goes_on_with_the_views_of_the_dead_and_of_the_stopped() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    view(&owner.process, "/room", 5).await;
    wait_for_views(&owner.data, 5).await;
    owner.lose().await;
    standby.wait_until_ready().await;
    assert_eq!(views(&standby.data).await, 5);
    view(&standby.process, "/room", 2).await;
    wait_for_views(&standby.data, 7).await;

    // A stop writes down what was counted in its last moments.
    let next = cluster.start("n3", true).await;
    view(&standby.process, "/room", 4).await;
    standby.process.signal(Signal::TERM);
    let (ended, _) = standby.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(0));
    next.wait_until_ready().await;
    assert_eq!(views(&next.data).await, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_wait_for_a_ledger_that_is_away() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    view(&owner.process, "/room", 3).await;
    wait_for_views(&owner.data, 3).await;
    cluster.postgres.stop_standbys().await;
    view(&owner.process, "/room", 4).await;
    // A flush that waits for a standby is cut: nobody knows how it went.
    for _ in 0..2 {
        let process = cluster.postgres.waiting(0, "svc.").await;
        let end = format!("SELECT pg_terminate_backend({process})");
        cluster.postgres.sql(0, &end).await;
        view(&owner.process, "/room", 1).await;
    }
    cluster.postgres.run_standby(1, 0).await;
    owner.wait_until_ready().await;
    view(&owner.process, "/room", 1).await;
    wait_for_views(&owner.data, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_founding_brings_views_and_a_restore_takes_them_along() {
    let (postgres, root) = (Postgres::start().await, TempDir::new().unwrap());
    let [data, bucket, restored] =
        ["data", "bucket", "restored"].map(|name| root.path().join(name));
    let (url, from) = (postgres.url(), format!("file://{}", bucket.display()));
    let config = root.path().join("svc.toml");
    let text = format!(
        "[limits]\nfree_disk_bytes = 0\n[cluster]\nname = 'n1'\nledger = '{url}'\nbucket = '{from}'\n\
         peer_listen = '127.0.0.1:0'\nsuspect_seconds = 4\n"
    );
    fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();

    let single = svc().serve(&data, &[]).await;
    let page = json!({ "content": "x", "name": "page" });
    single.json("/api/v1/deploy", &page).await.expect(201);
    view(&single, "/page", 3).await;
    single.signal(Signal::TERM);
    single.wait_for_exit().await;
    for _ in 0..2 {
        let found = ["cluster", "found", "--config", config];
        let founded = svc().run(&data, &found).await;
        assert!(founded.success, "{founded:?}");
    }
    let node = svc().serve(&data, &["--config", config]).await;
    assert_eq!(views(&data).await, 3);
    view(&node, "/page", 2).await;
    wait_for_views(&data, 5).await;

    let restore = ["restore", "--from", &from, "--ledger", &url];
    let done = svc().run(&restored, &restore).await;
    assert!(done.success, "{done:?}");
    assert_eq!(views(&restored).await, 5);
}
