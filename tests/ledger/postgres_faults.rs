//! Faults that a server of PostgreSQL has: standbys that are away, waits that are cut, crashes, and a standby that goes on.

use std::sync::Arc;

use svc_base::positions::CommitPosition;
use svc_ledger::{DatabaseEntry, DatabaseName, Ledger, LedgerError, PostgresLedger, RunId};
use svc_tests::postgres::{Postgres, SYNCED};
use svc_tests::wait_until;
use tokio::task::JoinHandle;

use crate::fixture::{begun, claimed, entry, first, joined, ledger, node};

type Appending = JoinHandle<Result<(), LedgerError>>;

/// Begins an append, and waits until the server waits for its standbys. Returns the id of the process there, too.
async fn appending(
    servers: &Postgres,
    ledger: &Arc<PostgresLedger>,
    run: RunId,
    commit: &DatabaseEntry,
) -> (Appending, i32) {
    let (ledger, commit) = (Arc::clone(ledger), commit.clone());
    let append = tokio::spawn(async move { ledger.append(run, &[commit]).await });
    (append, servers.waiting(0, "svc.append").await)
}

fn is_unknown<T>(answer: &Result<T, LedgerError>) -> bool {
    matches!(answer, Err(LedgerError::Unknown(_)))
}

/// Whether a commit can be read, by whoever asks.
async fn is_read(ledger: &PostgresLedger, commit: &DatabaseEntry) -> bool {
    let before = CommitPosition(commit.entry.position.0 - 1);
    let tail = wait_until("a server that is read from", async || {
        let tail = ledger.tail(None, commit.database, before, 0).await;
        tail.ok()
    });
    tail.await.first() == Some(&commit.entry)
}

/// Whether a commit is there for sure, once the ledger takes writes.
async fn is_kept(ledger: &PostgresLedger, run: RunId, at: (DatabaseName, u64)) -> bool {
    let at = [(at.0, CommitPosition(at.1))];
    let found = wait_until("a server that takes writes", async || {
        match ledger.find(run, &at).await {
            Err(LedgerError::Unavailable(_) | LedgerError::Unknown(_)) => None,
            answer => Some(answer.unwrap()),
        }
    });
    found.await[0].is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_standbys_the_ledger_acknowledges_nothing() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let database = begun(shared.as_ref(), run).await;

    // Settings are looked at by each statement: what was right at the start may be wrong now.
    let two = ledger(&servers, 2).await;
    let commit = first(database, 1);
    let append = two.append(run, std::slice::from_ref(&commit)).await;
    assert_eq!(append, Err(LedgerError::Unsynced));
    for (names, synced) in [("", false), ("a, b", true), ("ANY 2 (a, b, c)", true)] {
        servers.set_synced(0, names).await;
        assert_eq!(shared.beat(run).await.is_ok(), synced, "{names}");
        if !synced {
            let append = shared.append(run, std::slice::from_ref(&commit)).await;
            assert_eq!(append, Err(LedgerError::Unsynced));
            assert_eq!(
                shared.claim(run, database).await,
                Err(LedgerError::Unsynced)
            );
        }
    }
    servers.set_synced(0, SYNCED).await;
    shared
        .append(run, std::slice::from_ref(&commit))
        .await
        .unwrap();

    // A wait that is cut, in each way there is, is no acknowledgement.
    servers.stop_standbys().await;
    let (append, process) = appending(&servers, &shared, run, &entry(database, 7, 1, 2)).await;
    let cancel = format!("SELECT pg_cancel_backend({process})");
    servers.sql(0, &cancel).await;
    assert!(is_unknown(&append.await.unwrap()), "cancelled");
    let (append, process) = appending(&servers, &shared, run, &entry(database, 8, 2, 3)).await;
    let end = format!("SELECT pg_terminate_backend({process})");
    servers.sql(0, &end).await;
    assert!(is_unknown(&append.await.unwrap()), "ended");
    let (append, _) = appending(&servers, &shared, run, &entry(database, 9, 3, 4)).await;
    servers.set_synced(0, "").await;
    assert!(is_unknown(&append.await.unwrap()), "switched off");
    assert_eq!(shared.beat(run).await, Err(LedgerError::Unsynced));

    // All three were done, and count once the standbys are back.
    servers.set_synced(0, SYNCED).await;
    servers.run_standby(1, 0).await;
    for position in [7, 8, 9] {
        assert!(is_kept(&shared, run, (database, position)).await);
    }
    let next = entry(database, 10, 4, 5);
    shared.append(run, &[next]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_waits_no_more_takes_nothing_back() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let database = begun(shared.as_ref(), run).await;
    servers.stop_standbys().await;
    let commit = first(database, 1);
    let (append, process) = appending(&servers, &shared, run, &commit).await;
    append.abort();
    assert!(append.await.unwrap_err().is_cancelled());
    // The server goes on to wait, and whoever comes next, on a connection of its own, comes again.
    let found = shared.find(run, &[(database, CommitPosition(6))]).await;
    assert!(
        matches!(found, Err(LedgerError::Unavailable(_))),
        "{found:?}"
    );
    assert_eq!(servers.waiting(0, "svc.append").await, process);
    servers.run_standby(1, 0).await;
    assert!(is_kept(&shared, run, (database, 6)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stops_in_the_middle_of_a_request_stops_nobody_else() {
    let servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let (run, stopped) = (joined(shared.as_ref()).await, joined(shared.as_ref()).await);
    let database = begun(shared.as_ref(), stopped).await;
    let states = shared.beat(run).await.unwrap();
    let seen = states.iter().find(|state| state.node.run == stopped);
    let seen = seen.unwrap().beat;

    // It has locked its row and its place, and the server waits for it.
    let request = format!("SELECT svc.trim('{stopped}', 1, '{database}', 2)");
    let client = servers.stop_in(0, &request).await;
    let claim = shared.claim(run, database).await;
    assert!(
        matches!(claim, Err(LedgerError::Unavailable(_))),
        "{claim:?}"
    );
    assert!(shared.beat(run).await.is_ok());
    assert_eq!(shared.bury(run, stopped, Some(seen)).await, Ok(true));
    claimed(shared.as_ref(), run, database).await;
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_tells_of_the_living_and_of_those_that_died_last() {
    let servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let (run, other) = (joined(shared.as_ref()).await, joined(shared.as_ref()).await);
    let restarts =
        "INSERT INTO svc.nodes (run, name, live, suspect_ms, peer_url, peer_key, version, schema)
        SELECT gen_random_uuid(), '', false, 5000, '', '', '', 1 FROM generate_series(1, 1000)";
    servers.sql(0, restarts).await;
    let told = shared.beat(run).await.unwrap();
    assert!(told.is_sorted_by_key(|state| state.node.run));
    let (live, dead): (Vec<_>, Vec<_>) = told.iter().partition(|state| state.live);
    assert!(
        live.into_iter()
            .map(|state| state.node.run)
            .eq([run, other])
    );
    assert_eq!(dead.len(), 64);
    // It has lived longer than all of them, and may still answer.
    assert_eq!(shared.bury(run, other, None).await, Ok(true));
    let told = shared.beat(run).await.unwrap();
    assert!(told.iter().any(|it| it.node.run == other && !it.live));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_of_a_run_that_is_long_dead_goes_and_what_names_it_stays() {
    let servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let (old, recent) = (joined(shared.as_ref()).await, joined(shared.as_ref()).await);
    let database = begun(shared.as_ref(), old).await;
    let kept = first(database, 1);
    shared
        .append(old, std::slice::from_ref(&kept))
        .await
        .unwrap();
    for run in [old, recent] {
        assert_eq!(shared.bury(run, run, None).await, Ok(true));
    }
    let yesterday =
        format!("UPDATE svc.nodes SET buried_at = now() - interval '25 hours' WHERE run = '{old}'");
    servers.sql(0, &yesterday).await;
    // A late request of its own makes it neither new nor alive.
    shared.join(&node(old)).await.unwrap();
    assert_eq!(shared.beat(old).await, Err(LedgerError::Fenced));

    let run = joined(shared.as_ref()).await;
    let told = shared.beat(run).await.unwrap();
    let told = told.iter().map(|state| (state.node.run, state.live));
    assert!(told.eq([(recent, false), (run, true)]));
    assert_eq!(shared.beat(old).await, Err(LedgerError::Fenced));
    assert!(is_read(&shared, &kept).await);
    let places = shared.places().await.unwrap();
    let place = places.iter().find(|place| place.database == database);
    assert_eq!(place.unwrap().run, old);
    assert_eq!(shared.bury(run, old, None).await, Ok(true));
    assert_eq!(claimed(shared.as_ref(), run, database).await.run, run);
    assert!(is_kept(&shared, run, (database, 6)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_read_and_never_replicated_does_not_count() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let database = begun(shared.as_ref(), run).await;
    let place = claimed(shared.as_ref(), run, database).await;
    let kept = first(database, 1);
    shared
        .append(run, std::slice::from_ref(&kept))
        .await
        .unwrap();

    servers.stop_standbys().await;
    let lost = entry(database, 7, 1, 2);
    let (append, process) = appending(&servers, &shared, run, &lost).await;
    assert!(!is_read(&shared, &lost).await);
    let end = format!("SELECT pg_terminate_backend({process})");
    servers.sql(0, &end).await;
    assert!(is_unknown(&append.await.unwrap()));

    // It can be read, before a crash of the primary and after it, and nobody is told that it counts.
    for restarts in [true, false] {
        wait_until("the commit to be read", async || {
            is_read(&shared, &lost).await.then_some(())
        })
        .await;
        let find = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move { shared.find(run, &[(database, CommitPosition(7))]).await }
        });
        servers.waiting(0, "svc.find").await;
        servers.stop(0);
        assert!(is_unknown(&find.await.unwrap()));
        let beat = shared.beat(run).await;
        assert!(matches!(beat, Err(LedgerError::Unavailable(_))), "{beat:?}");
        if restarts {
            servers.run(0).await;
        }
    }

    // The standby that goes on has what was acknowledged, and not this.
    servers.run(1).await;
    servers.promote(1).await;
    servers.run_standby(2, 1).await;
    assert!(is_kept(&shared, run, (database, 6)).await);
    assert!(!is_kept(&shared, run, (database, 7)).await);
    assert!(shared.places().await.unwrap().contains(&place));
    assert!(!is_read(&shared, &lost).await);
    shared.append(run, &[lost]).await.unwrap();
    assert!(is_kept(&shared, run, (database, 7)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_servers_that_take_writes_the_one_that_acknowledges_is_found() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let database = begun(shared.as_ref(), run).await;
    servers.stop(2);
    shared.append(run, &[first(database, 1)]).await.unwrap();

    // Nobody has told the first server that it is replaced: it answers, and waits for ever.
    servers.set_synced(0, "nobody").await;
    servers.promote(1).await;
    servers.run_standby(2, 1).await;
    let commit = entry(database, 7, 1, 2);
    let append = shared.append(run, std::slice::from_ref(&commit)).await;
    assert!(is_unknown(&append), "{append:?}");
    assert!(!is_kept(&shared, run, (database, 7)).await);
    shared.append(run, &[commit]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_left_for_the_one_that_goes_on() {
    let mut servers = Postgres::start().await;
    let shared = ledger(&servers, 1).await;
    let run = joined(shared.as_ref()).await;
    let database = begun(shared.as_ref(), run).await;
    // The other standby has everything that is acknowledged from here on.
    servers.stop(2);
    shared.append(run, &[first(database, 1)]).await.unwrap();

    servers.pause(0);
    let commit = entry(database, 7, 1, 2);
    let append = tokio::spawn({
        let (shared, commit) = (Arc::clone(&shared), commit.clone());
        async move { shared.append(run, &[commit]).await }
    });
    servers.promote(1).await;
    servers.run_standby(2, 1).await;
    assert!(is_unknown(&append.await.unwrap()));
    assert!(is_kept(&shared, run, (database, 6)).await);
    assert!(!is_kept(&shared, run, (database, 7)).await);
    shared.append(run, &[commit]).await.unwrap();
}
