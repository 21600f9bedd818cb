//! A hundred kills of the node that has control, under 16 writers, with its disk thrown away each time.

use std::time::{Duration, Instant};

use svc_tests::cluster::{Cluster, Writers};

use crate::svc;

const KILLS: usize = 100;
/// Longest takeover, of 99 in 100.
const TAKEOVER: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_lose_nothing_that_was_acknowledged() {
    let (cluster, mut owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    let mut takeovers = Vec::new();
    for round in 0..KILLS {
        let standby = cluster.start(["n2", "n1"][round % 2], true).await;
        writers.wait_for(1 + round % 5 * 40).await;
        let killed = Instant::now();
        owner.lose().await;
        writers.turn_to(&standby);
        writers.wait_for(1).await;
        takeovers.push(killed.elapsed());
        owner = standby;
    }
    writers.check(&cluster, &owner).await;
    takeovers.sort_unstable();
    let (middle, last) = (takeovers[KILLS / 2], takeovers[KILLS * 99 / 100 - 1]);
    println!("takeovers: p50 {middle:?}, p99 {last:?}");
    assert!(last <= TAKEOVER, "{takeovers:?}");
}
