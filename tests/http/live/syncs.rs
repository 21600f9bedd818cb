//! A disk that is slow, or that fails: what is not synced is seen by nobody, and told to nobody.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, Socket, SyncGate, TestServer};

use super::crashes::{PollInstallation, Voter, count_votes, last_heard_count, subscribe_to_votes};
use super::subscribe;

/// Asks for a query that nobody has asked for before, so that it is evaluated now; answers its rows.
async fn subscribe_new_query(process: &Process) -> (Socket, Value) {
    let mut socket = Socket::open(process.address(), "/room/api/live", &[])
        .await
        .unwrap();
    let counts = subscribe("c", "counts", &json!({ "poll": 1 }));
    socket.send(counts).await;
    let rows = socket.envelope().await["result"]["rows"].take();
    (socket, rows)
}

/// The votes that the next frame of a socket tells of.
async fn next_votes(socket: &mut Socket) -> Value {
    socket.envelope().await["result"]["rows"][0]["n"].take()
}

#[tokio::test]
async fn a_commit_that_waits_for_the_disk_is_seen_by_nobody() {
    let _warm = TestServer::start().await.stop().await;
    let (syncs, installation) = (SyncGate::new(), PollInstallation::new().await);
    let environment = syncs.environment();
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, &**value));
    let site = installation.owner_process(installation.serve(&environment).await);
    let project = installation.create_polls(&site).await;
    let process = &site.process;
    let mut ada = subscribe_to_votes(process).await;

    syncs.hold();
    let voter = Voter::for_process(process);
    let vote = tokio::spawn({
        let voter = voter.clone();
        async move { voter.vote().await }
    });
    syncs.wait_until_held().await;
    assert_eq!(count_votes(process).await, 0);
    let (mut bob, rows) = subscribe_new_query(process).await;
    assert_eq!(rows, json!([]));
    assert_eq!(ada.drain_envelopes().await, [] as [Value; 0]);
    assert!(!vote.is_finished(), "answered before it was durable");
    syncs.release();
    assert_eq!(vote.await.unwrap(), Some(200));
    assert_eq!(next_votes(&mut ada).await, 1);
    assert_eq!(next_votes(&mut bob).await, 1);

    // A migration whose seed rows a live query reads behaves alike.
    syncs.hold();
    let ddl = "CREATE TABLE more (a); INSERT INTO votes (poll, choice) VALUES (1, 'tea')";
    let path = format!("/{project}/backend");
    let migration = site.send_request(Method::PATCH, &path, Some(json!({ "ddl": ddl })));
    let looks = async {
        syncs.wait_until_held().await;
        assert_eq!(count_votes(process).await, 1);
        assert_eq!(ada.drain_envelopes().await, [] as [Value; 0]);
        syncs.release();
    };
    let (migrated, ()) = tokio::join!(migration, looks);
    assert_eq!(migrated.unwrap().0, 200);
    assert_eq!(next_votes(&mut ada).await, 2);
    assert_eq!(next_votes(&mut bob).await, 2);

    // A disk that fails takes the commit back, and nobody hears of it.
    syncs.fail();
    let refused = voter.vote().await.unwrap();
    assert!(refused >= 500, "{refused}");
    assert_eq!(count_votes(process).await, 2);
    assert_eq!(ada.drain_envelopes().await, [] as [Value; 0]);
    syncs.release();
    assert_eq!(voter.vote().await, Some(200));
    assert_eq!(next_votes(&mut ada).await, 3);
    assert_eq!(next_votes(&mut bob).await, 3);
    assert_eq!(count_votes(process).await, 3);
    site.process.kill().await;
}

#[tokio::test]
async fn a_kill_before_the_sync_takes_nothing_back_that_was_seen() {
    let _warm = TestServer::start().await.stop().await;
    let (syncs, installation) = (SyncGate::new(), PollInstallation::new().await);
    let environment = syncs.environment();
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, &**value));
    let site = installation.owner_process(installation.serve(&environment).await);
    installation.create_polls(&site).await;
    let ada = subscribe_to_votes(&site.process).await;
    let voter = Voter::for_process(&site.process);
    for _ in 0..3 {
        assert_eq!(voter.vote().await, Some(200));
    }
    syncs.hold();
    let votes: Vec<_> = (0..8)
        .map(|_| {
            let voter = voter.clone();
            tokio::spawn(async move { voter.vote().await })
        })
        .collect();
    syncs.wait_until_held().await;
    let (_bob, seen) = subscribe_new_query(&site.process).await;
    assert_eq!(seen, json!([{ "choice": "tea", "n": 3 }]));
    site.process.kill().await;
    for vote in votes {
        assert_eq!(vote.await.unwrap(), None);
    }
    assert_eq!(last_heard_count(ada).await, 3);
    syncs.release();
    let process = installation.serve(&[]).await;
    // The votes that nobody was answered may be there or not.
    assert!(count_votes(&process).await >= 3);
    process.kill().await;
}
