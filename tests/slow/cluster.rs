//! A cluster through kills of its nodes and of its ledger, and through pauses, under 16 writers: what was acknowledged is there, once.
//!
//! `SVC_CLUSTER_KILLS`, `SVC_CLUSTER_FAILOVERS`, `SVC_CLUSTER_PAUSES` and `SVC_CLUSTER_OUTAGES` set the numbers of rounds, for a shorter or
//! a longer run.

use std::time::{Duration, Instant};

use reqwest::Error;
use rustix::process::Signal;
use serde_json::json;
use svc_tests::cluster::{Cluster, ClusterNode, Writers};
use svc_tests::postgres::SYNCED;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::svc;

/// Exit code of a node that was taken for dead.
const FENCED: i32 = 3;
/// Requests to a node that is paused.
const CALLS_IN_PAUSE: u64 = 8;
/// Writer of these requests, whose entries nobody may ever see.
const NOBODY: u64 = 1_000_000;

/// Number of rounds: a variable of the environment, or the default.
pub(crate) fn rounds(variable: &str, default: usize) -> usize {
    let set = std::env::var(variable).ok();
    set.map_or(default, |number| number.parse().unwrap())
}

/// Names of nodes, each of which was that of a node that is dead.
fn name(round: usize) -> &'static str {
    ["n2", "n1"][round % 2]
}

/// Has another node load everything from the ledger and the bucket, and compares it with what the writers know.
async fn check_at_another_node(cluster: &Cluster, owner: ClusterNode, writers: Writers) {
    let other = cluster.start("other", true).await;
    let promoted = cluster.promote(&other).await;
    assert!(promoted.success, "{promoted:?}");
    owner.lose().await;
    writers.turn_to(&other);
    writers.wait_for_answer().await;
    writers.check(cluster, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_of_the_owner_lose_nothing_that_was_acknowledged() {
    let (cluster, mut owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    let mut takeovers = Vec::new();
    for round in 0..rounds("SVC_CLUSTER_KILLS", 100) {
        let standby = cluster.start(name(round), true).await;
        writers.wait_for(1 + round % 5 * 40).await;
        let killed = Instant::now();
        owner.process.signal(Signal::KILL);
        writers.turn_to(&standby);
        owner.lose().await;
        let answered = writers.wait_for_answer().await;
        takeovers.push(answered.duration_since(killed));
        owner = standby;
    }
    writers.check(&cluster, &owner).await;
    takeovers.sort_unstable();
    // People judge the figures: they depend on the machine.
    let at = |percent: usize| {
        let rank = (takeovers.len() * percent).div_ceil(100);
        takeovers[rank.max(1) - 1]
    };
    println!("takeover p50 {:?} p99 {:?}", at(50), at(99));
}

#[tokio::test(flavor = "multi_thread")]
async fn failovers_of_the_ledger_lose_nothing_that_was_acknowledged() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    let mut primary = 0;
    for round in 0..rounds("SVC_CLUSTER_FAILOVERS", 20) {
        writers.wait_for(20 + round % 5 * 40).await;
        primary = cluster.postgres.fail_over(primary).await;
    }
    writers.wait_for(20).await;
    check_at_another_node(&cluster, owner, writers).await;
}

/// Sends entries to a node that is paused: they are in its socket when it wakes.
fn call_paused(node: &ClusterNode, round: usize) -> JoinSet<Result<u16, Error>> {
    let mut calls = JoinSet::new();
    for number in 0..CALLS_IN_PAUSE {
        let number = round as u64 * CALLS_IN_PAUSE + number;
        let params = json!({ "writer": NOBODY, "number": number });
        let call = json!({ "action": "add", "params": params });
        let post = node.process.client().post(node.process.url("/room/api/op"));
        let post = post.json(&call).send();
        calls.spawn(async move { post.await.map(|answer| answer.status().as_u16()) });
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_owner_answers_nothing_when_it_wakes() {
    let (cluster, mut owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    for round in 0..rounds("SVC_CLUSTER_PAUSES", 20) {
        let standby = cluster.start(name(round), true).await;
        writers.wait_for(1 + round % 5 * 40).await;
        owner.process.signal(Signal::STOP);
        writers.turn_to(&standby);
        let calls = call_paused(&owner, round);
        sleep(Duration::from_secs(6 + round as u64 % 5)).await;
        // On a busy machine it may take longer until the owner is taken for dead.
        standby.wait_until_ready().await;
        owner.process.signal(Signal::CONT);
        // An answer to a writer may be on its way since before the pause. That entry must be there, as any that is acknowledged.
        for answer in calls.join_all().await {
            assert!(matches!(answer, Ok(503) | Err(_)), "{answer:?}");
        }
        let (ended, said) = owner.process.wait_for_exit().await;
        assert_eq!(ended.code(), Some(FENCED), "{said}");
        std::fs::remove_dir_all(owner.data).unwrap();
        writers.wait_for_answer().await;
        owner = standby;
    }
    // Nobody knows of the entries that were sent in pauses, so none may be there.
    writers.check(&cluster, &owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_while_the_ledger_has_no_standby() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    for round in 0..rounds("SVC_CLUSTER_OUTAGES", 4) {
        writers.wait_for(100).await;
        let is_switched_off = round % 2 == 0;
        if is_switched_off {
            cluster.postgres.set_synced(0, "").await;
        } else {
            cluster.postgres.stop(1);
            cluster.postgres.stop(2);
        }
        // Answers that are on their way arrive.
        sleep(Duration::from_secs(1)).await;
        let before = writers.acknowledged();
        sleep(Duration::from_secs(4)).await;
        assert_eq!(writers.acknowledged(), before, "round {round}");
        if is_switched_off {
            cluster.postgres.set_synced(0, SYNCED).await;
        } else {
            cluster.postgres.run_standby(1, 0).await;
            cluster.postgres.run_standby(2, 0).await;
        }
    }
    writers.wait_for(100).await;
    check_at_another_node(&cluster, owner, writers).await;
}
