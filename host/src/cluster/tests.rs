//! Bases through crashes, and foundings that are interrupted.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use svc_base::clock::{Clock, Timestamp};
use svc_base::disk;
use svc_base::ids::DeploymentId;
use svc_base::positions::CommitPosition;
use svc_base::random::Random;
use svc_database::{BaseSnapshot, DatabaseState, LoadError, LogShipper};
use svc_ledger::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, KeptBases, Ledger, MemoryLedger,
    Node, NodeState, RunId,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::bases::{self, BaseError, Bases, LiveDatabases};
use super::bucket::{Bucket, BucketError};
use super::found::{self, Founding};
use super::loads::{self, LoadTarget};
use super::run::SeenNode;
use crate::config::ClusterSettings;
use crate::content::{ContentStore, OneTimeFileDirectory};
use crate::control::{self, ControlDatabase};

/// Bytes of a commit after which a released database gets a base.
const ENOUGH: u64 = 1 << 20;

/// Settings of a node, which listens on a port of its own.
pub(super) fn settings(name: &str) -> ClusterSettings {
    ClusterSettings {
        name: name.to_owned(),
        ledger: "postgresql://svc@pg/svc".to_owned().into(),
        bucket: "file:///bucket".parse().unwrap(),
        peer_listen: "127.0.0.1:0".parse().unwrap(),
        peer_url: None,
        synced_standbys: 1,
        suspect_seconds: 5,
        stale_pages_seconds: 600,
        standby: false,
    }
}

/// Run that was started as the one with this number.
pub(super) fn node(number: u128, name: &str) -> Node {
    Node {
        run: Uuid::from_u128(number).into(),
        name: name.to_owned(),
        suspect_after: Duration::from_secs(5),
        peer_url: String::new(),
        peer_key: Vec::new(),
        version: String::new(),
        schema: 1,
    }
}

/// Run that lives and serves.
pub(super) fn live_state(node: Node) -> NodeState {
    NodeState {
        node,
        live: true,
        beat: BeatCount(1),
        leaving: false,
        serves: true,
        removed: false,
    }
}

/// Run that lives and serves, as another run sees it.
pub(super) fn seen_node(number: u128, name: &str) -> SeenNode {
    SeenNode {
        state: live_state(node(number, name)),
        since: Duration::from_secs(100),
    }
}

fn clock() -> Clock {
    Clock::manual(Timestamp(1_790_000_000_000))
}

/// A database of this machine, and its commits as others get them.
struct Source {
    directory: TempDir,
    control: ControlDatabase,
    shipper: LogShipper,
}

impl Source {
    fn path(&self) -> PathBuf {
        self.directory.path().join("control.db")
    }

    /// Makes a database, and the state of a base of it at commit 0 with its file.
    async fn new() -> (Self, DatabaseState, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let file = directory.path().join("base");
        let position = CommitPosition::default();
        let snapshot = BaseSnapshot::begin(&directory.path().join("control.db"), position, None);
        let state = bases::write_base(snapshot.unwrap(), &file).await.unwrap();
        let dir = disk::open_directory(directory.path()).unwrap();
        let shipper = LogShipper::new(dir, "control.db-wal", state.clone());
        let source = Self {
            directory,
            control,
            shipper,
        };
        (source, state, file)
    }

    /// Makes a commit and appends it to the ledger.
    async fn commit(&mut self, at: &Place) {
        let insert = "INSERT INTO operator_events (kind, subject, at) VALUES ('', 'x', 0)";
        let done: Result<(), control::Error> = self
            .control
            .write(move |tx| {
                tx.execute(insert, []).map_err(control::Error::from)?;
                Ok(())
            })
            .await;
        done.unwrap();
        assert!(!self.shipper.is_up_to_date().unwrap());
        let position = self.shipper.state().position().next();
        let entries = self.shipper.ship(position, Timestamp(1)).unwrap();
        assert!(self.shipper.is_up_to_date().unwrap());
        let database = at.database;
        let entries: Vec<_> = entries
            .into_iter()
            .map(|entry| DatabaseEntry { database, entry })
            .collect();
        at.ledger.append(at.run, &entries).await.unwrap();
    }

    fn snapshot_now(&self) -> BaseSnapshot {
        let state = self.shipper.state();
        let checksum = Some(state.checksum());
        BaseSnapshot::begin(&self.path(), state.position(), checksum).unwrap()
    }
}

impl LiveDatabases for Source {
    async fn snapshot(&self, _: DatabaseName) -> std::io::Result<Option<BaseSnapshot>> {
        Ok(Some(self.snapshot_now()))
    }

    async fn acknowledged(&self, _: DatabaseName, position: CommitPosition) -> bool {
        position != CommitPosition(1)
    }

    async fn keep_history(&self, _: DatabaseName, _: CommitPosition) {}
}

/// A database's place in a cluster.
struct Place {
    ledger: MemoryLedger,
    bucket: Bucket,
    run: RunId,
    database: DatabaseName,
}

impl Place {
    /// Makes an empty cluster, in which a run has the place of control.
    async fn of_control() -> Self {
        let (ledger, database) = (MemoryLedger::default(), DatabaseName::Control);
        let run = joined_run(&ledger).await;
        let claimed = ledger.claim(run, database).await.unwrap();
        assert!(matches!(claimed, ClaimOutcome::Claimed(_)));
        Self {
            ledger,
            bucket: Bucket::from_store(Arc::new(InMemory::new())),
            run,
            database,
        }
    }

    /// Returns the keeper of the run's bases, which has stored a first one.
    async fn keeper(&self, tmp: &Path, state: &DatabaseState, file: &Path) -> Bases<MemoryLedger> {
        let (ledger, bucket) = (Arc::new(self.ledger.clone()), self.bucket.clone());
        let kept = Bases::new(ledger, self.run, bucket, tmp.to_owned(), clock());
        kept.store_first(self.database, state, file).await.unwrap();
        kept
    }

    /// Stores a base, which nothing names yet.
    async fn upload(&self, state: &DatabaseState, file: &Path) -> Base {
        let stored = bases::upload(&self.bucket, self.database, state, file, Timestamp(0)).await;
        stored.unwrap()
    }

    /// Names a base, and deletes what it makes needless.
    async fn name(&self, base: &Base) {
        let named = bases::name_base(&self.ledger, self.run, &self.bucket, base).await;
        named.unwrap();
    }

    /// Loads the database into an empty directory.
    async fn load(&self) -> Result<DatabaseState, BaseError> {
        let directory = tempfile::tempdir().unwrap();
        let to = LoadTarget {
            dir: disk::open_directory(directory.path()).unwrap(),
            name: "loaded.db".to_owned(),
        };
        let run = Some(self.run);
        let loaded = loads::load_database(&self.ledger, run, &self.bucket, self.database, &to);
        loaded.await.map(|loaded| loaded.state)
    }

    async fn objects(&self) -> usize {
        self.bucket.list("bases").await.unwrap().len()
    }

    async fn commits(&self) -> usize {
        let tail = self.ledger.tail(
            None,
            self.database,
            CommitPosition::default(),
            usize::MAX / 2,
        );
        tail.await.unwrap().len()
    }
}

/// Joins a run that lives.
pub(super) async fn joined_run(ledger: &MemoryLedger) -> RunId {
    let node = node(7, "n1");
    ledger.join(&node).await.unwrap();
    node.run
}

#[tokio::test]
async fn a_base_that_is_made_halfway_loses_nothing() {
    // Steps that are done before the process dies: object, row, trimming, deletion.
    for steps in 0..=4 {
        let at = Place::of_control().await;
        let (mut source, state, file) = Source::new().await;
        at.name(&at.upload(&state, &file).await).await;
        for _ in 0..3 {
            source.commit(&at).await;
        }
        let state = bases::write_base(source.snapshot_now(), &file)
            .await
            .unwrap();
        assert_eq!(state, *source.shipper.state());
        if steps > 0 {
            let base = at.upload(&state, &file).await;
            if steps > 1 {
                at.ledger.add_base(at.run, &base).await.unwrap();
            }
            if steps > 2 {
                let trimmed = at.ledger.trim(at.run, at.database, KeptBases::Two).await;
                assert_eq!(trimmed, Ok(0), "{steps}");
            }
            if steps > 3 {
                at.name(&base).await;
            }
        }
        assert_eq!(at.load().await.unwrap(), *source.shipper.state(), "{steps}");
        assert_eq!(at.commits().await, 3, "{steps}");
        source.commit(&at).await;
        assert_eq!(at.load().await.unwrap(), *source.shipper.state(), "{steps}");

        // The next base makes everything before the last one needless, whatever was left.
        let state = bases::write_base(source.snapshot_now(), &file)
            .await
            .unwrap();
        let base = at.upload(&state, &file).await;
        at.name(&base).await;
        let commits = if steps > 1 { 2 } else { 4 };
        assert_eq!(at.objects().await, 2, "{steps}");
        assert_eq!(at.commits().await, commits, "{steps}");
        assert_eq!(at.load().await.unwrap(), *source.shipper.state(), "{steps}");
        let stored = bases::stored_bases(&at.bucket).await.unwrap();
        assert_eq!(stored[&at.database][0].object, base.object);
    }
}

#[tokio::test]
async fn a_base_that_does_not_load_is_left_for_an_older_one() {
    let at = Place::of_control().await;
    let (ledger, bucket) = (&at.ledger, &at.bucket);
    assert!(matches!(at.load().await, Err(BaseError::Missing(_))));
    let (mut source, state, file) = Source::new().await;
    let first = at.upload(&state, &file).await;
    ledger.add_base(at.run, &first).await.unwrap();
    source.commit(&at).await;
    let state = bases::write_base(source.snapshot_now(), &file)
        .await
        .unwrap();
    let base = at.upload(&state, &file).await;
    ledger.add_base(at.run, &base).await.unwrap();
    let damaged = vec![0; usize::try_from(base.bytes).unwrap()];
    bucket.put(&base.object, damaged.into()).await.unwrap();
    assert_eq!(at.load().await.unwrap(), state);
    bucket.delete(&base.object).await.unwrap();
    assert_eq!(at.load().await.unwrap(), state);
    // Trimming leaves the older base with all commits after it.
    ledger
        .trim(at.run, at.database, KeptBases::Two)
        .await
        .unwrap();
    assert_eq!(at.load().await.unwrap(), state);
    // Without either, nothing is loaded, rather than less.
    bucket.delete(&first.object).await.unwrap();
    assert!(matches!(at.load().await, Err(BaseError::Bucket(_))));
}

#[test]
fn a_full_disk_says_nothing_of_a_base() {
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert!(!loads::is_damage(&LoadError::Io(full()).into()));
    assert!(!loads::is_damage(&BaseError::Io(full())));
    let position = CommitPosition(1);
    assert!(loads::is_damage(&LoadError::WrongBase { position }.into()));
    assert!(loads::is_damage(
        &BucketError::Missing(String::new()).into()
    ));
}

#[tokio::test]
async fn a_damaged_base_is_replaced_at_once() {
    let at = Place::of_control().await;
    let (mut source, state, file) = Source::new().await;
    let kept = at.keeper(source.directory.path(), &state, &file).await;
    source.commit(&at).await;
    source.commit(&at).await;
    kept.note_commit(at.database, ENOUGH);
    assert!(kept.store_on_release(at.database, &source).await.unwrap());
    let stored = bases::stored_bases(&at.bucket).await.unwrap();
    let newest = &stored[&at.database][0].object;
    at.bucket.put(newest, "damaged".into()).await.unwrap();

    let directory = tempfile::tempdir().unwrap();
    let to = LoadTarget {
        dir: disk::open_directory(directory.path()).unwrap(),
        name: "loaded.db".to_owned(),
    };
    for is_damaged in [true, false] {
        let loaded = kept.load(at.database, &to).await.unwrap();
        assert_eq!(loaded.state, *source.shipper.state());
        assert_eq!(loaded.is_newest_damaged, is_damaged);
        assert!(kept.store_on_release(at.database, &source).await.unwrap());
    }
}

#[tokio::test]
async fn only_a_state_that_was_acknowledged_becomes_a_base() {
    let at = Place::of_control().await;
    let (mut source, state, file) = Source::new().await;
    let kept = at.keeper(source.directory.path(), &state, &file).await;
    for (stored, newest) in [(1, "00-"), (2, "02-")] {
        source.commit(&at).await;
        kept.note_commit(at.database, ENOUGH);
        kept.store_on_release(at.database, &source).await.unwrap();
        let there = at.bucket.list("bases").await.unwrap();
        assert_eq!(there.len(), stored);
        assert!(there[stored - 1].name.contains(newest), "{there:?}");
    }
    assert_eq!(at.load().await.unwrap(), *source.shipper.state());
    kept.forget(at.database).await.unwrap();
    assert_eq!((at.objects().await, at.commits().await), (0, 0));
}

/// Polls a future so many times at most, as a process does that dies in between.
async fn cut<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn a_founding_that_was_interrupted_is_finished_by_another() {
    let root = tempfile::tempdir().unwrap();
    let [data, other, shared] = ["data", "other", "shared"].map(|name| root.path().join(name));
    for directory in [&data, &other, &shared] {
        std::fs::create_dir(directory).unwrap();
    }
    let ledger = MemoryLedger::default();
    // Each of its requests is a point at which the process may die.
    let bucket = LocalFileSystem::new_with_prefix(&shared).unwrap();
    let bucket = Bucket::from_store(Arc::new(bucket));
    let (clock, random) = (clock(), Random::system());
    let content = ContentStore::open(&data.join("content")).unwrap();
    let once = OneTimeFileDirectory::open(&data.join("once")).unwrap();
    let share = DeploymentId::new(&clock, &random).unwrap();
    once.write(&share, b"secret").unwrap();
    let guests = data.join("guests");
    let founding = |data| Founding {
        data,
        guests: &guests,
        content: content.clone(),
        ledger: &ledger,
        bucket: &bucket,
        node: "n1",
        clock: &clock,
        random: &random,
    };
    let mut polls = 1;
    let founded = loop {
        if let Some(founded) = cut(founding(data.as_path()).found(), polls).await {
            break founded.unwrap();
        }
        polls += 1;
    };
    assert!(polls > 3, "{polls}");
    // One that died before its answer, with all done, is not repeated.
    assert_eq!(founded.databases, usize::from(!founded.was_founded));
    let own = found::installation_id(&data).unwrap().unwrap();
    assert_eq!(founded.installation, own.to_string());
    assert_eq!(ledger.installation().await.unwrap(), Some(own));
    assert!(found::is_founded(&ledger).await.unwrap());
    // A one-time share is where it is read, and nowhere else.
    let pages = bucket.one_time_pages();
    let page = pages.read(&share).await.unwrap();
    assert_eq!(page.as_deref(), Some(&b"secret"[..]));
    assert!(once.list().unwrap().is_empty());
    if !founded.was_founded {
        assert!(ledger.places().await.unwrap().is_empty());
        let run = joined_run(&ledger).await;
        let runs = ledger.beat(run).await.unwrap();
        assert!(runs.iter().all(|it| it.live == (it.node.run == run)));
    }

    // From then on nothing is done: by its own directory, and by an empty one.
    for directory in [&data, &other] {
        let again = founding(directory.as_path()).found().await.unwrap();
        assert!(again.was_founded);
        assert_eq!(again.installation, own.to_string());
    }
    // Another installation is told apart.
    ControlDatabase::open(&other).unwrap().close();
    let refused = founding(other.as_path()).found().await.unwrap_err();
    assert!(
        format!("{refused:#}").contains("belongs to another"),
        "{refused:#}"
    );
    // A ledger that was lost is not founded anew from what a machine has.
    let empty = MemoryLedger::default();
    let anew = Founding {
        ledger: &empty,
        ..founding(data.as_path())
    };
    let refused = anew.found().await.unwrap_err();
    assert!(
        format!("{refused:#}").contains("svc restore --from"),
        "{refused:#}"
    );
    assert_eq!(empty.installation().await.unwrap(), None);
}
