//! Values that the tests of the ledger hand in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};
use svc_ledger::{
    Base, ClaimOutcome, DatabaseEntry, DatabaseName, Ledger, Node, Place, PostgresLedger, RunId,
};
use svc_tests::postgres::Postgres;
use uuid::Uuid;

/// Position and state of the base that a database begins with. A state may be any 64 bits.
pub(crate) const BEGIN: (u64, u64) = (5, u64::MAX);

/// A number that no other test has.
fn fresh() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).into()
}

/// A client of a ledger that is founded.
pub(crate) async fn ledger(servers: &Postgres, synced_standbys: u16) -> Arc<PostgresLedger> {
    let ledger = PostgresLedger::new(&servers.url(), synced_standbys).unwrap();
    if ledger.installation().await.unwrap().is_none() {
        assert!(ledger.found(Uuid::from_u128(1)).await.unwrap());
    }
    assert!(!ledger.found(Uuid::from_u128(2)).await.unwrap());
    let found = ledger.installation().await.unwrap();
    assert_eq!(found, Some(Uuid::from_u128(1)));
    Arc::new(ledger)
}

pub(crate) fn run() -> RunId {
    Uuid::from_u128(fresh()).into()
}

pub(crate) fn database() -> DatabaseName {
    Uuid::from_u128(fresh()).to_string().parse().unwrap()
}

pub(crate) fn node(run: RunId) -> Node {
    Node {
        run,
        name: format!("node of {run}"),
        suspect_after: Duration::from_secs(7),
        peer_url: "https://10.0.0.1:9443".to_owned(),
        peer_key: vec![0, 1, 255],
        version: "0.1.0".to_owned(),
        schema: 14,
    }
}

pub(crate) async fn joined(ledger: &impl Ledger) -> RunId {
    let run = run();
    ledger.join(&node(run)).await.unwrap();
    run
}

/// Claims a place that is free.
pub(crate) async fn claimed(ledger: &impl Ledger, run: RunId, database: DatabaseName) -> Place {
    match ledger.claim(run, database).await.unwrap() {
        ClaimOutcome::Claimed(place) => place,
        ClaimOutcome::Held(place) => panic!("{place:?} has it"),
    }
}

pub(crate) fn base(database: DatabaseName, position: u64, state: u64) -> Base {
    Base {
        database,
        position: CommitPosition(position),
        state: Checksum(state),
        object: format!("bases/{database}/{position}-{state}"),
        bytes: 4096,
        at: Timestamp(1_790_000_000_000),
    }
}

/// Makes a database with a base, whose place the run has.
pub(crate) async fn begun(ledger: &impl Ledger, run: RunId) -> DatabaseName {
    let database = database();
    claimed(ledger, run, database).await;
    let (position, state) = BEGIN;
    let base = base(database, position, state);
    ledger.add_base(run, &base).await.unwrap();
    database
}

/// A commit from one state to another. Its body has ten bytes.
pub(crate) fn entry(
    database: DatabaseName,
    position: u64,
    before: u64,
    after: u64,
) -> DatabaseEntry {
    let entry = Entry {
        position: CommitPosition(position),
        at: Timestamp(1_790_000_000_000 + i64::try_from(position).unwrap()),
        before: Checksum(before),
        after: Checksum(after),
        body: Arc::from([u8::try_from(after % 256).unwrap(); 10]),
        // None, or some bytes.
        changes: Arc::from(vec![7; usize::try_from(after % 3).unwrap()]),
    };
    DatabaseEntry { database, entry }
}

/// The first commit after [`BEGIN`].
pub(crate) fn first(database: DatabaseName, after: u64) -> DatabaseEntry {
    entry(database, BEGIN.0 + 1, BEGIN.1, after)
}
