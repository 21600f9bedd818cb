//! Three nodes that all serve, for many rounds: kills, names, one-time pages, and authorities that end.
//!
//! `SVC_SERVING_KILLS`, `SVC_SERVING_NAMES`, `SVC_SERVING_OPENINGS` and `SVC_SERVING_ENDS` set the numbers of rounds, and
//! `SVC_SERVING_SEED` repeats a run.

use std::hash::{BuildHasher as _, RandomState};

use svc_tests::scenarios::{end_authorities, kill_nodes, open_one_time_pages, race_for_names};

use crate::cluster::rounds;
use crate::svc;

/// Returns the seed of a run, and prints it.
fn seed() -> u64 {
    let set = std::env::var("SVC_SERVING_SEED").ok();
    let random = || RandomState::new().hash_one(0) % 1_000_000;
    let seed = set.map_or_else(random, |number| number.parse().unwrap());
    println!("SVC_SERVING_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_of_serving_nodes_lose_nothing_that_was_acknowledged() {
    kill_nodes(svc(), rounds("SVC_SERVING_KILLS", 100), seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_have_one_winner_each() {
    race_for_names(svc(), rounds("SVC_SERVING_NAMES", 50), seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_time_pages_are_for_one_reader_each() {
    open_one_time_pages(svc(), rounds("SVC_SERVING_OPENINGS", 200), seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_that_have_ended_are_refused_everywhere() {
    end_authorities(svc(), rounds("SVC_SERVING_ENDS", 60), seed()).await;
}
