//! Tests of several nodes, each a process of its own, with a real PostgreSQL: a standby takes over with everything that was
//! acknowledged.

mod broken_histories;
mod crashes;
mod faults;
mod founding_crashes;
mod guests;
mod guide;
mod nemesis;
mod operators;
mod payments;
mod relays;
mod restores;
mod serving;
mod several;
mod sign_in;
mod sockets;
mod standby;
mod tools;
mod views;

use svc_tests::Binary;
use svc_tests::cluster::{Cluster, Writers};

pub(crate) fn svc() -> Binary {
    Binary::new(env!("CARGO_BIN_EXE_svc-server"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_goes_on_with_everything_that_was_acknowledged() {
    let (cluster, mut owner) = Cluster::with_room(svc()).await;
    let writers = Writers::start(&owner);
    for round in 0..3 {
        // Each disk is new, and each name was that of a killed node.
        let standby = cluster.start(["n2", "n1"][round % 2], true).await;
        writers.wait_for(50).await;
        owner.lose().await;
        writers.turn_to(&standby);
        writers.wait_for(1).await;
        owner = standby;
    }
    writers.check(&cluster, &owner).await;
}
