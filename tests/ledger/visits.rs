//! Views in the ledger: added once, however often a flush is sent.

use std::sync::Arc;

use svc_base::ids::DeploymentId;
use svc_ledger::{Ledger, LedgerError, MemoryLedger};
use svc_tests::postgres::Postgres;
use svc_tests::wait_until;
use uuid::Uuid;

use crate::fixture::{database, joined, ledger, run};

/// Largest sum.
const MOST: u64 = u64::MAX >> 1;

/// Runs what every engine must do.
pub(crate) async fn everything(ledger: &impl Ledger) {
    a_flush_adds_once(ledger).await;
    views_are_read_in_pieces_and_forgotten(ledger).await;
    the_dead_add_nothing(ledger).await;
}

/// Makes the id of a deployment that comes after those of all others.
fn deployment() -> DeploymentId {
    database().to_string().parse().unwrap()
}

/// Makes the id of a flush.
fn flush() -> Uuid {
    run().into()
}

async fn a_flush_adds_once(ledger: &impl Ledger) {
    let run = joined(ledger).await;
    let [one, two] = [(); 2].map(|()| deployment());
    let (first, second) = (flush(), flush());
    let counts = [(two, 1), (one, 3), (two, 1)];
    for _ in 0..2 {
        let there = ledger.add_visits(run, first, &counts).await;
        assert_eq!(there, Ok(vec![(one, 3), (two, 2)]));
    }
    let there = ledger.add_visits(run, second, &[(one, 2)]).await;
    assert_eq!(there, Ok(vec![(one, 5)]));
    // The first one comes once more, late.
    let there = ledger.add_visits(run, first, &counts).await;
    assert_eq!(there, Ok(vec![(one, 5), (two, 2)]));
    let there = ledger.add_visits(run, flush(), &[]).await;
    assert_eq!(there, Ok(Vec::new()));
    for more in [u64::MAX, 1] {
        let counts = [(one, more), (one, more)];
        let there = ledger.add_visits(run, flush(), &counts).await;
        assert_eq!(there, Ok(vec![(one, MOST)]), "{more}");
    }
}

async fn views_are_read_in_pieces_and_forgotten(ledger: &impl Ledger) {
    let run = joined(ledger).await;
    let counts: [(DeploymentId, u64); 5] = [1, 2, 3, 4, 5].map(|count| (deployment(), count));
    let (ids, added) = (counts.map(|(id, _)| id), flush());
    ledger.add_visits(run, added, &counts).await.unwrap();
    for reader in [Some(run), None] {
        for (after, most, expected) in [(0, 2, 1..3), (2, 9, 3..5), (4, 9, 5..5), (1, 0, 2..2)] {
            let found = ledger.visits(reader, Some(ids[after]), most).await;
            assert_eq!(found.unwrap(), counts[expected], "{after}");
        }
        let all = ledger.visits(reader, None, usize::MAX).await.unwrap();
        assert!(all.ends_with(&counts) && all.is_sorted());
    }
    for _ in 0..2 {
        ledger.forget_visits(run, &[ids[3], ids[1]]).await.unwrap();
        let found = ledger.visits(None, Some(ids[0]), 9).await.unwrap();
        assert_eq!(found, [counts[2], counts[4]]);
    }
    // A flush that comes late brings nothing back.
    let there = ledger.add_visits(run, added, &counts).await;
    assert_eq!(there, Ok(vec![counts[0], counts[2], counts[4]]));
}

async fn the_dead_add_nothing(ledger: &impl Ledger) {
    let (one, two) = (joined(ledger).await, joined(ledger).await);
    let page = deployment();
    let counts = [(page, 3)];
    ledger.add_visits(one, flush(), &counts).await.unwrap();
    assert!(ledger.bury(two, one, None).await.unwrap());
    let added = ledger.add_visits(one, flush(), &counts).await;
    assert_eq!(added, Err(LedgerError::Fenced));
    let read = ledger.visits(Some(one), None, 1).await;
    assert_eq!(read, Err(LedgerError::Fenced));
    let forgotten = ledger.forget_visits(one, &[page]).await;
    assert_eq!(forgotten, Err(LedgerError::Fenced));
    let there = ledger.add_visits(two, flush(), &counts).await;
    assert_eq!(there, Ok(vec![(page, 6)]));
}

#[tokio::test]
async fn a_flush_whose_answer_is_lost_is_sent_again() {
    let shared = MemoryLedger::default();
    let run = joined(&shared).await;
    let (counts, added) = ([(deployment(), 3)], flush());
    shared.lose_answers(1);
    let lost = shared.add_visits(run, added, &counts).await;
    assert!(matches!(lost, Err(LedgerError::Unknown(_))), "{lost:?}");
    for _ in 0..2 {
        let there = shared.add_visits(run, added, &counts).await;
        assert_eq!(there, Ok(counts.to_vec()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_cut_counts_nothing_twice() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let (counts, id) = ([(deployment(), 3)], flush());
    servers.stop_standbys().await;
    let waiting = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { shared.add_visits(run, id, &counts).await }
    });
    let process = servers.waiting(0, "svc.add_visits").await;
    let end = format!("SELECT pg_terminate_backend({process})");
    servers.sql(0, &end).await;
    let lost = waiting.await.unwrap();
    assert!(matches!(lost, Err(LedgerError::Unknown(_))), "{lost:?}");
    servers.run_standby(1, 0).await;
    let there = wait_until("a server that takes writes", async || {
        match shared.add_visits(run, id, &counts).await {
            Err(LedgerError::Unavailable(_) | LedgerError::Unknown(_)) => None,
            answer => Some(answer),
        }
    });
    assert_eq!(there.await, Ok(counts.to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_is_known_for_a_day() {
    let servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let (page, first) = (deployment(), flush());
    // Hours that pass, and the sums after another flush and after the first one.
    for (hours, sums) in [(0, [1, 1]), (23, [2, 2]), (2, [3, 4])] {
        let age = format!("UPDATE svc.flushes SET at = at - interval '{hours} hours'");
        servers.sql(0, &age).await;
        let next = if hours == 0 { first } else { flush() };
        for (id, sum) in [next, first].into_iter().zip(sums) {
            let there = shared.add_visits(run, id, &[(page, 1)]).await;
            assert_eq!(there, Ok(vec![(page, sum)]), "{hours}");
        }
    }
}
