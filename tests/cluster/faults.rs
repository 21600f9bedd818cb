//! Faults of nodes and of the ledger: what is not acknowledged is not answered.

use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::json;
use svc_tests::cluster::Cluster;
use svc_tests::postgres::SYNCED;
use svc_tests::{ReadAnswer, Socket, wait_until};

use crate::svc;

/// Longest time of a request to a node that runs.
const LONGEST: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_owner_that_wakes_answers_nothing_and_ends() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    owner.process.signal(Signal::STOP);
    standby.wait_until_ready().await;
    standby.add((1, 2)).await.expect(200);
    // These are in its socket when it wakes.
    let (client, url) = (owner.process.client().clone(), owner.process.url(""));
    let waiting: Vec<_> = ["/room", "/room/api/op"]
        .map(|path| {
            let post = client.post(format!("{url}/room/api/op"));
            let add = r#"{"action":"add","params":{"writer":9,"number":9}}"#;
            let add = post.header("content-type", "application/json").body(add);
            let request = match path {
                "/room" => client.get(format!("{url}/room")),
                _ => add,
            };
            tokio::spawn(request.send())
        })
        .into_iter()
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    owner.process.signal(Signal::CONT);
    for request in waiting {
        if let Ok(answer) = request.await.unwrap() {
            assert_eq!(answer.status(), 503);
        }
    }
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(3));
    let entries = cluster.entries(&standby).await;
    assert!(entries.keys().eq(&[(1, 1), (1, 2)]), "{entries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_while_the_ledger_is_not_synced() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    owner.process.get("/room").await.expect(200);
    cluster.postgres.set_synced(0, "").await;
    let refused = tokio::time::timeout(LONGEST, owner.add((1, 2)))
        .await
        .unwrap();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Pages that are open are shown, and nobody is buried.
    owner.process.get("/room").await.expect(200);
    assert_eq!(owner.process.get("/readyz").await.status, 503);
    let refused = cluster.try_start("n2", true).await.unwrap_err();
    assert!(refused.contains("standbys"), "{refused}");
    cluster.postgres.set_synced(0, SYNCED).await;
    owner.wait_until_ready().await;
    // What waited is written before.
    wait_until("a write to be answered", async || {
        let added = owner.add((1, 3)).await;
        (added.status == 200).then_some(())
    })
    .await;
    let entries = cluster.entries(&owner).await;
    assert!(
        entries.contains_key(&(1, 1)) && entries.contains_key(&(1, 3)),
        "{entries:?}"
    );
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_ledger_has_lost_a_commit_stops_and_says_so() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    // As after the promotion of a standby that lacks it.
    let lose = "DELETE FROM svc.commits c WHERE db <> 'control' \
        AND commit = (SELECT max(commit) FROM svc.commits o WHERE o.db = c.db)";
    cluster.postgres.sql(0, lose).await;
    let add = json!({ "action": "add", "params": { "writer": 1, "number": 2 } });
    let add = owner
        .process
        .client()
        .post(owner.process.url("/room/api/op"))
        .json(&add);
    let answered = add.send().await.map(|answer| answer.status().as_u16());
    assert!(matches!(answered, Ok(503) | Err(_)), "{answered:?}");
    wait_until("a node that says why it ends", async || {
        let said = owner.process.stderr();
        said.contains("the ledger goes on from another state")
            .then_some(())
    })
    .await;
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_told_that_a_write_may_be_done() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    cluster.postgres.stop_standbys().await;
    let refused = tokio::time::timeout(LONGEST, owner.add((1, 2)))
        .await
        .unwrap();
    refused.problem(503, "interrupted");
    // The next one is not begun.
    let refused = tokio::time::timeout(LONGEST, owner.add((1, 3)))
        .await
        .unwrap();
    assert_eq!(refused.status, 503, "{}", refused.text());
    // Nor does an operator wait without end.
    let command = cluster.run(&owner.data, &["namespace", "list"]);
    let refused = tokio::time::timeout(LONGEST, command).await.unwrap();
    assert!(!refused.success, "{refused:?}");
    cluster.postgres.run_standby(1, 0).await;
    owner.wait_until_ready().await;
    let entries = cluster.entries(&owner).await;
    assert!(entries.keys().eq(&[(1, 1), (1, 2)]), "{entries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_leave_a_node_that_is_cut_off() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    let mut socket = Socket::open(owner.process.address(), "/room/api/live", &[])
        .await
        .unwrap();
    let url = "/room/api/live?action=page&params=%7B%22after%22%3A0%7D";
    let stream = owner.process.client().get(owner.process.url(url));
    let stream = stream.header("accept", "text/event-stream").send().await;
    let stream = stream.unwrap();
    assert_eq!(stream.status(), 200);
    cluster.postgres.stop_standbys().await;
    assert_eq!(socket.wait_for_close().await, Some(1012));
    // It ends as one does whose server stops, with no error.
    let events = stream.text().await.unwrap();
    assert!(events.contains("event: result"), "{events}");
    assert!(!events.contains("event: error"), "{events}");
    cluster.postgres.run_standby(1, 0).await;
    owner.wait_until_ready().await;
    let again = Socket::open(owner.process.address(), "/room/api/live", &[]).await;
    assert!(again.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_hangs_keeps_neither_a_caller_nor_the_end() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let share = json!({ "content": "# Once", "one_time": true });
    let published = owner.process.json("/api/v1/deploy", &share).await;
    let published = published.expect(201).json();
    let id = published["id"].as_str().unwrap();
    let object = cluster.bucket().join("once").join(id);
    std::fs::remove_file(&object).unwrap();
    // Whoever opens it to read waits until somebody opens it to write.
    mkfifoat(CWD, &object, Mode::RUSR | Mode::WUSR).unwrap();
    let slug = published["slug"].as_str().unwrap();
    let url = owner.process.url(&format!("/{slug}"));
    let opening = owner.process.client().post(url);
    let refused = tokio::time::timeout(LONGEST, opening.answer()).await;
    assert_eq!(refused.unwrap().status, 503);
    owner.process.signal(Signal::TERM);
    let (ended, _) = owner.process.wait_for_exit().await;
    assert_eq!(ended.code(), Some(0));
}
