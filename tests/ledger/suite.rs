//! Behaviour of a ledger, whichever engine it has.

use std::sync::Arc;

use svc_base::positions::{Checksum, CommitPosition};
use svc_ledger::{
    BeatCount, ClaimOutcome, DatabaseName, FoundEntry, KeptBases, Ledger, LedgerError, Node,
    NodeState, Place, RunId,
};
use tokio::task::JoinSet;

use crate::fixture::{BEGIN, base, begun, claimed, database, entry, first, joined, node, run};

/// Runs that race.
const RUNS: usize = 32;
/// Clients that race for keys.
const WRITERS: usize = 4;
/// Keys that are raced for, one after the other.
const KEYS: u64 = 100;

/// Runs all of it. The clients share a ledger, and each has connections of its own.
pub(crate) async fn everything<L: Ledger>(clients: &[Arc<L>]) {
    let ledger = clients[0].as_ref();
    runs_live_until_they_are_buried(ledger).await;
    a_run_says_that_it_serves(ledger).await;
    a_node_is_removed_once_its_runs_are_dead(ledger).await;
    the_dead_are_refused_everything(ledger).await;
    commits_continue_the_last_one(ledger).await;
    an_append_is_whole_or_nothing(ledger).await;
    the_tail_comes_in_pieces(ledger).await;
    places_go_from_one_to_another(ledger).await;
    bases_let_commits_go(ledger).await;
    a_database_is_forgotten(ledger).await;
    one_of_many_gets_a_place(clients).await;
    one_of_many_writes_a_commit(&clients[..WRITERS]).await;
}

async fn state(ledger: &impl Ledger, run: RunId, of: RunId) -> Option<NodeState> {
    let states = ledger.beat(run).await.unwrap();
    assert!(states.is_sorted_by_key(|state| state.node.run));
    states.into_iter().find(|state| state.node.run == of)
}

async fn runs_live_until_they_are_buried(ledger: &impl Ledger) {
    let (one, two) = (joined(ledger).await, joined(ledger).await);
    ledger.join(&node(one)).await.unwrap();
    let seen = state(ledger, one, two).await.unwrap();
    assert_eq!(seen.node, node(two));
    assert!(seen.live && !seen.leaving && !seen.serves && !seen.removed);
    // Its own row has this very beat.
    let own = state(ledger, one, one).await.unwrap();
    let next = state(ledger, one, one).await.unwrap();
    assert_eq!(next.beat, BeatCount(own.beat.0 + 1));

    ledger.beat(two).await.unwrap();
    assert!(!ledger.bury(one, two, Some(seen.beat)).await.unwrap());
    let seen = state(ledger, one, two).await.unwrap();
    assert!(seen.live);
    assert!(ledger.bury(one, two, Some(seen.beat)).await.unwrap());
    let dead = state(ledger, one, two).await.unwrap();
    assert!(!dead.live && dead.beat == seen.beat);
    // Whoever is dead or was never there does not live, whatever was seen.
    for dead in [two, run()] {
        assert!(ledger.bury(one, dead, Some(BeatCount(0))).await.unwrap());
    }
    // A run is not revived.
    ledger.join(&node(two)).await.unwrap();
    assert_eq!(ledger.beat(two).await, Err(LedgerError::Fenced));
    assert_eq!(ledger.beat(run()).await, Err(LedgerError::Fenced));
    // A run that buries itself has the beat that was seen before.
    let own = state(ledger, one, one).await.unwrap().beat;
    assert!(
        !ledger
            .bury(one, one, Some(BeatCount(own.0 + 1)))
            .await
            .unwrap()
    );
    let counted = state(ledger, one, one).await.unwrap().beat;
    assert_eq!(counted, BeatCount(own.0 + 2));
    assert!(ledger.bury(one, one, Some(counted)).await.unwrap());
    assert_eq!(ledger.beat(one).await, Err(LedgerError::Fenced));
}

async fn a_run_says_that_it_serves(ledger: &impl Ledger) {
    let (one, two) = (joined(ledger).await, joined(ledger).await);
    for _ in 0..2 {
        ledger.note_serving(two).await.unwrap();
        assert!(state(ledger, one, two).await.unwrap().serves);
    }
    assert!(!state(ledger, one, one).await.unwrap().serves);
    // A join that comes late does not take it back.
    ledger.join(&node(two)).await.unwrap();
    assert!(state(ledger, one, two).await.unwrap().serves);
    assert!(ledger.bury(one, two, None).await.unwrap());
    let refused = ledger.note_serving(two).await;
    assert_eq!(refused, Err(LedgerError::Fenced));
}

async fn a_node_is_removed_once_its_runs_are_dead(ledger: &impl Ledger) {
    let (one, other) = (joined(ledger).await, joined(ledger).await);
    let runs = [run(), run(), run()];
    let name = node(runs[0]).name;
    let join = async |run| {
        let named = Node {
            name: name.clone(),
            ..node(run)
        };
        ledger.join(&named).await.unwrap();
    };
    let is_removed = async |run| state(ledger, one, run).await.unwrap().removed;
    for run in &runs[..2] {
        join(*run).await;
        assert!(!ledger.remove_node(one, &name).await.unwrap());
        assert!(ledger.bury(one, *run, None).await.unwrap());
        assert!(!is_removed(*run).await);
    }
    for _ in 0..2 {
        assert!(ledger.remove_node(one, &name).await.unwrap());
    }
    // The next run of the name is there, and those that are dead stay removed and dead.
    join(runs[0]).await;
    join(runs[2]).await;
    for (run, removed) in runs.into_iter().zip([true, true, false]) {
        let state = state(ledger, one, run).await.unwrap();
        assert_eq!((state.removed, state.live), (removed, !removed));
    }
    assert!(!is_removed(other).await);
    assert!(ledger.remove_node(one, "nobody's").await.unwrap());
    assert!(ledger.bury(one, other, None).await.unwrap());
    let refused = ledger.remove_node(other, "nobody's").await;
    assert_eq!(refused, Err(LedgerError::Fenced));
}

async fn the_dead_are_refused_everything(ledger: &impl Ledger) {
    let (one, two) = (joined(ledger).await, joined(ledger).await);
    let database = begun(ledger, one).await;
    let place = claimed(ledger, one, database).await;
    let commit = first(database, 1);
    ledger
        .append(one, std::slice::from_ref(&commit))
        .await
        .unwrap();
    let at = commit.entry.position;
    assert!(ledger.bury(two, one, None).await.unwrap());

    let next = entry(database, 7, 1, 2);
    let none = CommitPosition(0);
    let fenced = Err(LedgerError::Fenced);
    assert_eq!(ledger.append(one, &[next]).await, fenced);
    assert_eq!(ledger.release(place).await, fenced);
    let later = base(database, 6, 1);
    assert_eq!(ledger.add_base(one, &later).await, fenced);
    assert_eq!(ledger.forget(one, database).await, fenced);
    let found = ledger.find(one, &[(database, at)]).await;
    assert_eq!(found, Err(LedgerError::Fenced));
    let read = ledger.tail(Some(one), database, none, 9).await;
    assert_eq!(read, Err(LedgerError::Fenced));
    let read = ledger.bases(Some(one), database).await;
    assert_eq!(read, Err(LedgerError::Fenced));
    let claim = ledger.claim(one, database).await;
    assert_eq!(claim, Err(LedgerError::Fenced));
    assert_eq!(
        ledger.trim(one, database, KeptBases::Two).await,
        Err(LedgerError::Fenced)
    );
    assert_eq!(ledger.bury(one, two, None).await, Err(LedgerError::Fenced));

    // Its commit is there, and its place is free for the living.
    let tail = ledger.tail(Some(two), database, none, 9).await.unwrap();
    assert_eq!(tail, [commit.entry]);
    assert_eq!(claimed(ledger, two, database).await.run, two);
}

async fn commits_continue_the_last_one(ledger: &impl Ledger) {
    let run = joined(ledger).await;
    let database = begun(ledger, run).await;
    let refused = async |position, before| {
        let commit = entry(database, position, before, 9);
        let answer = ledger.append(run, &[commit]).await;
        assert_eq!(answer, Err(LedgerError::NotNext), "{position}, {before}");
    };
    for (position, before) in [(5, BEGIN.1), (6, 1), (7, BEGIN.1), (1, 0)] {
        refused(position, before).await;
    }
    ledger.append(run, &[first(database, 1)]).await.unwrap();
    for (position, before) in [(6, BEGIN.1), (6, 1), (7, 2), (8, 1)] {
        refused(position, before).await;
    }
    let two = [entry(database, 7, 1, 2), entry(database, 8, 2, 3)];
    ledger.append(run, &two).await.unwrap();

    // What was trimmed is not written again.
    for (position, state) in [(7, 2), (8, 3)] {
        let named = base(database, position, state);
        ledger.add_base(run, &named).await.unwrap();
    }
    assert_eq!(ledger.trim(run, database, KeptBases::Two).await, Ok(1));
    for (position, before) in [(6, BEGIN.1), (7, 1), (8, 2)] {
        refused(position, before).await;
    }
    ledger
        .append(run, &[entry(database, 9, 3, 4)])
        .await
        .unwrap();
    // A run without the place appends what continues the last commit: the chain decides, and burying keeps others away.
    let other = joined(ledger).await;
    ledger
        .append(other, &[entry(database, 10, 4, 5)])
        .await
        .unwrap();
    refused(10, 4).await;
    // A database without a base has no first commit.
    let nothing = entry(crate::fixture::database(), 1, 0, 1);
    let answer = ledger.append(run, &[nothing]).await;
    assert_eq!(answer, Err(LedgerError::NotNext));
}

async fn an_append_is_whole_or_nothing(ledger: &impl Ledger) {
    let run = joined(ledger).await;
    let (one, two) = (begun(ledger, run).await, begun(ledger, run).await);
    let at = |database, position| (database, CommitPosition(position));
    let looked = [at(two, 6), at(one, 7), at(one, 6)];

    let gap = [first(one, 1), entry(one, 7, 1, 2), entry(two, 7, 1, 2)];
    assert_eq!(ledger.append(run, &gap).await, Err(LedgerError::NotNext));
    let found = ledger.find(run, &looked).await.unwrap();
    assert_eq!(found, [None, None, None]);

    let whole = [first(one, 1), first(two, 3), entry(one, 7, 1, 2)];
    ledger.append(run, &whole).await.unwrap();
    let ours = |after| {
        let after = Checksum(after);
        Some(FoundEntry { run, after })
    };
    let found = ledger.find(run, &looked).await.unwrap();
    assert_eq!(found, [ours(3), ours(2), ours(1)]);
    let found = ledger.find(run, &[at(one, 8), at(two, 6)]).await.unwrap();
    assert_eq!(found, [None, ours(3)]);
    // Nothing is nothing, and a beat.
    let before = state(ledger, run, run).await.unwrap().beat;
    ledger.append(run, &[]).await.unwrap();
    let after = state(ledger, run, run).await.unwrap().beat;
    assert_eq!(after, BeatCount(before.0 + 2));
}

async fn the_tail_comes_in_pieces(ledger: &impl Ledger) {
    let run = joined(ledger).await;
    let database = begun(ledger, run).await;
    let commits: Vec<_> = (0..5)
        .map(|nth| match nth {
            0 => first(database, 1),
            nth => entry(database, 6 + nth, nth, nth + 1),
        })
        .collect();
    ledger.append(run, &commits).await.unwrap();
    let entries: Vec<_> = commits.into_iter().map(|commit| commit.entry).collect();
    // Each body has ten bytes.
    for (after, bytes, expected) in [
        (0, 1 << 20, 0..5),
        (5, 25, 0..2),
        (6, 30, 1..4),
        (8, 0, 3..4),
        (8, usize::MAX, 3..5),
        (10, 99, 5..5),
    ] {
        for reader in [Some(run), None] {
            let tail = ledger.tail(reader, database, CommitPosition(after), bytes);
            assert_eq!(tail.await.unwrap(), entries[expected.clone()], "{after}");
        }
    }
}

async fn places_go_from_one_to_another(ledger: &impl Ledger) {
    let (one, two) = (joined(ledger).await, joined(ledger).await);
    let (database, other) = (database(), database());
    let first = claimed(ledger, one, database).await;
    assert_eq!((first.run, first.database), (one, database));
    assert_eq!(claim(ledger, two, database).await, Err(first));
    let again = claimed(ledger, one, database).await;
    assert!(again.epoch > first.epoch);

    // The first claim has been replaced: giving it back comes too late.
    ledger.release(first).await.unwrap();
    assert_eq!(claim(ledger, two, database).await, Err(again));
    claimed(ledger, two, other).await;
    claimed(ledger, two, DatabaseName::Control).await;
    let places = ledger.places().await.unwrap();
    assert!(places.contains(&again));
    assert!(places.is_sorted_by_key(|place| place.database));
    assert_eq!(places[0].database, DatabaseName::Control);

    for _ in 0..2 {
        ledger.release(again).await.unwrap();
    }
    assert!(!ledger.places().await.unwrap().contains(&again));
    let taken = claimed(ledger, two, database).await;
    ledger.release(again).await.unwrap();
    assert_eq!(claim(ledger, one, database).await, Err(taken));

    // From the dead, a place is taken; from whoever has come back, it is not.
    assert!(ledger.bury(one, two, None).await.unwrap());
    let taken = claimed(ledger, one, database).await;
    let three = joined(ledger).await;
    assert_eq!(claim(ledger, three, database).await, Err(taken));
    claimed(ledger, three, DatabaseName::Control).await;
}

/// Claims a place; an error is the place of whoever has it.
async fn claim(ledger: &impl Ledger, run: RunId, database: DatabaseName) -> Result<Place, Place> {
    match ledger.claim(run, database).await.unwrap() {
        ClaimOutcome::Claimed(place) => Ok(place),
        ClaimOutcome::Held(place) => Err(place),
    }
}

async fn bases_let_commits_go(ledger: &impl Ledger) {
    let (run, other) = (joined(ledger).await, joined(ledger).await);
    let database = begun(ledger, run).await;
    let commits = [first(database, 1), entry(database, 7, 1, 2)];
    ledger.append(run, &commits).await.unwrap();

    // Without the place nothing is done, nor for a state that the ledger does not have there.
    let later = base(database, 7, 2);
    let unplaced = Err(LedgerError::NotPlaced);
    assert_eq!(ledger.add_base(other, &later).await, unplaced);
    let unplaced = Err(LedgerError::NotPlaced);
    assert_eq!(ledger.trim(other, database, KeptBases::Two).await, unplaced);
    for wrong in [
        base(database, 7, 1),
        base(database, 5, 1),
        base(database, 8, 3),
    ] {
        let answer = ledger.add_base(run, &wrong).await;
        assert_eq!(answer, Err(LedgerError::NotNext));
    }
    assert_eq!(ledger.trim(run, database, KeptBases::Two).await, Ok(0));

    for _ in 0..2 {
        ledger.add_base(run, &later).await.unwrap();
    }
    let bases = [later, base(database, BEGIN.0, BEGIN.1)];
    for reader in [Some(other), None] {
        assert_eq!(ledger.bases(reader, database).await.unwrap(), bases);
    }
    // The base before the newest is kept, with all after it.
    assert_eq!(ledger.trim(run, database, KeptBases::Two).await, Ok(0));
    assert_eq!(ledger.bases(None, database).await.unwrap(), bases);
    let last = entry(database, 8, 2, 3);
    ledger
        .append(run, std::slice::from_ref(&last))
        .await
        .unwrap();
    let newest = base(database, 8, 3);
    ledger.add_base(run, &newest).await.unwrap();
    assert_eq!(ledger.trim(run, database, KeptBases::Two).await, Ok(1));
    assert_eq!(ledger.trim(run, database, KeptBases::Two).await, Ok(0));
    let [later, _] = bases;
    assert_eq!(ledger.bases(None, database).await.unwrap(), [newest, later]);
    let [_, kept] = commits;
    let tail = ledger.tail(None, database, CommitPosition(0), 99).await;
    assert_eq!(tail.unwrap(), [kept.entry, last.entry.clone()]);
    // Or the newest alone, with its commit and all after it.
    for deleted in [1, 0] {
        let trimmed = ledger.trim(run, database, KeptBases::Newest).await;
        assert_eq!(trimmed, Ok(deleted));
    }
    let newest = base(database, 8, 3);
    assert_eq!(ledger.bases(None, database).await.unwrap(), [newest]);
    let tail = ledger.tail(None, database, CommitPosition(0), 99).await;
    assert_eq!(tail.unwrap(), [last.entry]);
}

async fn a_database_is_forgotten(ledger: &impl Ledger) {
    let (run, other) = (joined(ledger).await, joined(ledger).await);
    let (database, neighbour) = (begun(ledger, run).await, begun(ledger, run).await);
    let commits = [first(database, 1), first(neighbour, 1)];
    ledger.append(run, &commits).await.unwrap();
    let answer = ledger.forget(other, database).await;
    assert_eq!(answer, Err(LedgerError::NotPlaced));
    for _ in 0..2 {
        ledger.forget(run, database).await.unwrap();
    }
    let nothing = CommitPosition(0);
    for (database, commits, bases) in [(database, 0, 0), (neighbour, 1, 1)] {
        let tail = ledger.tail(None, database, nothing, 99).await.unwrap();
        assert_eq!(tail.len(), commits);
        assert_eq!(ledger.bases(None, database).await.unwrap().len(), bases);
    }
    // A commit that comes late begins nothing.
    let late = entry(database, 7, 1, 2);
    let answer = ledger.append(run, &[late]).await;
    assert_eq!(answer, Err(LedgerError::NotNext));
    claimed(ledger, other, database).await;
}

/// Has many runs claim one place at once, and returns who got it.
async fn race<L: Ledger>(
    clients: &[Arc<L>],
    runs: &[RunId],
    database: DatabaseName,
) -> Option<RunId> {
    let mut claims = JoinSet::new();
    for (nth, run) in runs.iter().copied().enumerate() {
        let ledger = Arc::clone(&clients[nth % clients.len()]);
        claims.spawn(async move {
            loop {
                match ledger.claim(run, database).await {
                    // The others have had the place for too long, and nothing was done.
                    Err(LedgerError::Unavailable(_)) => {}
                    outcome => return (run, outcome),
                }
            }
        });
    }
    let mut winner = None;
    let mut holders = Vec::new();
    for (run, outcome) in claims.join_all().await {
        match outcome.unwrap() {
            ClaimOutcome::Claimed(place) => {
                assert_eq!(place.run, run);
                assert_eq!(winner.replace(run), None, "two have the place");
            }
            ClaimOutcome::Held(place) => holders.push(place.run),
        }
    }
    assert!(holders.into_iter().all(|holder| Some(holder) == winner));
    winner
}

async fn one_of_many_gets_a_place<L: Ledger>(clients: &[Arc<L>]) {
    let ledger = clients[0].as_ref();
    let database = database();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(joined(ledger).await);
    }
    let burier = joined(ledger).await;
    for _ in 0..3 {
        let winner = race(clients, &runs, database).await.unwrap();
        runs.retain(|run| *run != winner);
        assert!(ledger.bury(burier, winner, None).await.unwrap());
    }
}

async fn one_of_many_writes_a_commit<L: Ledger>(clients: &[Arc<L>]) {
    let ledger = clients[0].as_ref();
    let mut runs = Vec::new();
    for _ in clients {
        runs.push(joined(ledger).await);
    }
    let database = begun(ledger, runs[0]).await;
    let (begin, mut before) = BEGIN;
    for key in 1..=KEYS {
        let mut appends = JoinSet::new();
        for (nth, (ledger, run)) in clients.iter().zip(&runs).enumerate() {
            let (ledger, run) = (Arc::clone(ledger), *run);
            let after = key * 10 + u64::try_from(nth).unwrap();
            let commit = entry(database, begin + key, before, after);
            appends.spawn(async move {
                loop {
                    match ledger.append(run, std::slice::from_ref(&commit)).await {
                        Err(LedgerError::Unavailable(_)) => {}
                        answer => return (after, answer),
                    }
                }
            });
        }
        let mut written = Vec::new();
        for (after, answer) in appends.join_all().await {
            match answer {
                Ok(()) => written.push(after),
                Err(error) => assert_eq!(error, LedgerError::NotNext),
            }
        }
        assert_eq!(written.len(), 1, "one of all appends of a number is done");
        before = written[0];
    }
    let tail = ledger.tail(Some(runs[0]), database, CommitPosition(0), usize::MAX);
    let tail = tail.await.unwrap();
    assert_eq!(u64::try_from(tail.len()).unwrap(), KEYS);
    let chained = tail.windows(2).all(|two| two[0].after == two[1].before);
    assert!(chained && tail.last().unwrap().after == Checksum(before));
}
