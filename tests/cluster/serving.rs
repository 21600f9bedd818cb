//! Three nodes that all serve, for a few rounds: names, one-time pages, and authorities that end. `tests/slow` has many rounds.

use svc_tests::scenarios::{end_authorities, open_one_time_pages, race_for_names};

use crate::svc;

/// Seed of what is random, which is the same each time.
const SEED: u64 = 7;

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_one_winner_who_is_the_same_at_every_node() {
    race_for_names(svc(), 4, SEED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_one_time_page_is_for_one_reader_of_many_at_three_nodes() {
    open_one_time_pages(svc(), 8, SEED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_is_refused_by_nodes_that_are_cut_off_too() {
    end_authorities(svc(), 4, SEED).await;
}
