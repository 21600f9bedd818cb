//! Tenants' databases of an owner, from their making to their end.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::random::Random;
use svc_database::{BaseSnapshot, Databases, DatabasesDirectory, EndedChain, MigrationScript};
use svc_ledger::{ClaimOutcome, DatabaseName, Ledger, MemoryLedger};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::bases::LiveDatabases as _;
use super::bucket::Bucket;
use super::found::Founding;
use super::histories;
use super::tests::{node, settings};
use super::{ClusterNode, ControlClaim, Run, ServingNode};
use crate::config::Limits;
use crate::content::ContentStore;

/// Times before and after everything that is stored: a store's clock is the machine's.
const BEFORE: Timestamp = Timestamp(1_600_000_000_000);
const AFTER: Timestamp = Timestamp(32_503_680_000_000);
/// Time after which an idle database is released.
const IDLE: Duration = Duration::from_secs(60);

/// An installation that was founded just now, and its owner.
struct Installation {
    clock: Clock,
    ledger: Arc<MemoryLedger>,
    bucket: Bucket,
    owner: Arc<ServingNode<MemoryLedger>>,
    databases: Arc<Databases>,
    data: TempDir,
}

/// Work of a node's tasks, done at once.
impl<L: Ledger> ServingNode<L> {
    /// Gives back the places of databases that nobody uses now.
    async fn release_unused(&self) {
        let databases = &**self.databases();
        databases.tenants().release_unused(databases).await;
    }

    /// Begins to read a database, as for a base.
    async fn snapshot(&self, name: DatabaseName) -> io::Result<Option<BaseSnapshot>> {
        self.databases().snapshot(name).await
    }

    /// Copies the chains of a database that have ended.
    async fn keep_history(&self, id: BackendId) -> anyhow::Result<()> {
        let databases = &**self.databases();
        databases.tenants().histories().keep(id, databases).await
    }
}

fn script(sql: &str) -> MigrationScript {
    MigrationScript {
        sql: sql.to_owned(),
        statements: vec![std::ops::Range {
            start: 0,
            end: sql.len(),
        }],
        checksum: sql.to_owned(),
    }
}

impl Installation {
    async fn start(at: Timestamp) -> Self {
        let (clock, random) = (Clock::manual(at), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        let founded = tempfile::tempdir().unwrap();
        let founding = Founding {
            data: founded.path(),
            guests: &founded.path().join("guests"),
            content: ContentStore::open(&founded.path().join("content")).unwrap(),
            ledger: &*ledger,
            bucket: &bucket,
            node: "n1",
            clock: &clock,
            random: &random,
        };
        founding.found().await.unwrap();
        Self::own(clock, ledger, bucket, false).await
    }

    /// Begins to own what is in the ledger, with an empty directory.
    async fn own(clock: Clock, ledger: Arc<MemoryLedger>, bucket: Bucket, took_over: bool) -> Self {
        let (settings, random) = (settings("n1"), Random::system());
        let run = Run::join(Arc::clone(&ledger), &settings, &clock, &random);
        let run = run.await.unwrap();
        let ClaimOutcome::Claimed(place) = run.claim_control().await.unwrap() else {
            panic!("somebody has control");
        };
        let claim = ControlClaim { place, took_over };
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("tmp")).unwrap();
        let (promotions, _) = mpsc::channel(1);
        let node = ClusterNode::new(run, bucket.clone(), promotions);
        let owner = ServingNode::begin(node, Some(claim), data.path());
        let owner = owner.await.unwrap();
        let limits = Limits {
            free_disk_bytes: 0,
            ..Limits::default()
        };
        let databases = Databases::open_with_durable(
            data.path(),
            &limits.database_limits(),
            clock.clone(),
            Some(owner.tenants(limits.history_bytes)),
        );
        Self {
            clock,
            ledger,
            bucket,
            owner,
            databases: Arc::new(databases.unwrap()),
            data,
        }
    }

    /// Ends without a word, and has another node take over.
    async fn lose(self) -> Self {
        self.owner.run().leave().await;
        Self::own(self.clock, self.ledger, self.bucket, true).await
    }

    /// Waits until all of these moments can be restored.
    async fn wait_for_moments(&self, id: BackendId, made: &[Timestamp]) {
        for _ in 0..1000 {
            let there = self.databases.list_moments(id, None, 100).await.unwrap();
            if made.iter().all(|at| there.moments.contains(at)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("moments are missing");
    }

    async fn create(&self) -> BackendId {
        let id = BackendId::new(&self.clock, &Random::system()).unwrap();
        let made = script("CREATE TABLE a (x)");
        self.databases.create(id, made).await.unwrap();
        id
    }

    async fn migrate(&self, id: BackendId, sql: &str) {
        self.databases.migrate(id, script(sql)).await.unwrap();
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.owner.run().beat().await.unwrap();
    }

    async fn has_place(&self, id: BackendId) -> bool {
        let places = self.ledger.places().await.unwrap();
        let name = DatabaseName::Backend(id);
        places.iter().any(|place| place.database == name)
    }

    async fn objects(&self, id: BackendId) -> usize {
        let objects = self.bucket.list(&format!("bases/{id}")).await.unwrap();
        objects.len()
    }

    /// Whether nothing of a database is left.
    async fn is_gone(&self, id: BackendId) -> bool {
        let bases = self.ledger.bases(None, DatabaseName::Backend(id)).await;
        let rows = bases.unwrap().len();
        !self.has_place(id).await && rows == 0 && self.objects(id).await == 0
    }

    /// Closes all databases, and releases those that are idle. Another thread may be about to close one.
    async fn release(&self, id: BackendId) {
        self.databases.close_all();
        self.databases.await_closed();
        for _ in 0..1000 {
            self.owner.release_unused().await;
            if !self.has_place(id).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the place is not given back");
    }

    async fn wait_until_gone(&self, id: BackendId) {
        for _ in 0..1000 {
            if self.is_gone(id).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the database is still there");
    }

    /// Looks for leftovers, while control names these backends.
    async fn look(&self, named: &[BackendId]) {
        let named = named.to_vec();
        let named = async { Ok::<_, anyhow::Error>(named) };
        self.owner.leftovers().remove(named).await.unwrap();
    }
}

#[tokio::test]
async fn an_idle_database_gives_its_place_back_and_keeps_its_file() {
    let here = Installation::start(AFTER).await;
    let id = here.create().await;
    here.owner.release_unused().await;
    assert!(here.has_place(id).await, "it was used just now");
    here.migrate(id, "CREATE TABLE b (x)").await;
    here.advance(IDLE).await;
    here.owner.release_unused().await;
    assert!(here.has_place(id).await, "it is open");
    here.release(id).await;
    let places = here.ledger.places().await.unwrap();
    assert_eq!(places.len(), 1, "that of control");
    assert_eq!(here.objects(id).await, 1, "its tail is short");

    let marker = here.data.path().join(format!("backends/{id}/marker"));
    fs::write(&marker, "").unwrap();
    here.migrate(id, "CREATE TABLE c (x)").await;
    assert!(here.has_place(id).await);
    assert!(marker.exists(), "its file was used again");

    // A long tail becomes a base.
    for first in [0, 10_000] {
        let words = (first..first + 10_000_u64).map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let words: Vec<String> = words.map(|word| format!("{word:016x}")).collect();
        let insert = format!("INSERT INTO c VALUES ('{}')", words.concat());
        here.migrate(id, &insert).await;
    }
    here.advance(IDLE).await;
    here.release(id).await;
    assert_eq!(here.objects(id).await, 2);
    here.databases.inventory(id).await.unwrap();
}

#[tokio::test]
async fn a_released_database_is_used_by_whoever_claims_it_alone() {
    let here = Installation::start(AFTER).await;
    let id = here.create().await;
    let name = DatabaseName::Backend(id);
    here.advance(IDLE).await;
    here.release(id).await;
    let node = node(9, "n2");
    let other = node.run;
    here.ledger.join(&node).await.unwrap();
    here.ledger.claim(other, name).await.unwrap();
    assert!(here.databases.inventory(id).await.is_err());
    here.ledger.bury(other, other, None).await.unwrap();
    here.databases.inventory(id).await.unwrap();
}

#[tokio::test]
async fn a_database_that_rests_is_copied() {
    let here = Installation::start(AFTER).await;
    let id = here.create().await;
    let to = here.data.path().join("tmp/copy");
    let copy = async |name| {
        let snapshot = here.owner.snapshot(name).await.unwrap();
        snapshot.unwrap().write_to(&to).unwrap().position()
    };
    // Closed, and open without a writer under way.
    let made = copy(DatabaseName::Backend(id)).await;
    here.migrate(id, "CREATE TABLE b (x)").await;
    assert!(copy(DatabaseName::Backend(id)).await > made);
    copy(DatabaseName::Control).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_deleted_database() {
    let here = Installation::start(AFTER).await;
    for is_released in [false, true] {
        let id = here.create().await;
        here.migrate(id, "CREATE TABLE b (x)").await;
        if is_released {
            here.advance(IDLE).await;
            here.release(id).await;
        }
        let databases = Arc::clone(&here.databases);
        let removed = tokio::task::spawn_blocking(move || databases.remove(&id));
        removed.await.unwrap().unwrap();
        here.wait_until_gone(id).await;
        assert!(here.databases.inventory(id).await.is_err());
        assert!(!here.has_place(id).await, "who asks for it claims nothing");
    }
}

#[tokio::test]
async fn what_nobody_names_is_removed_at_the_second_look() {
    let here = Installation::start(AFTER).await;
    let (named, unnamed) = (here.create().await, here.create().await);
    let stray = format!("bases/{named}/{:020}-{:016x}", 99, 99);
    here.bucket.put(&stray, "stray".into()).await.unwrap();
    here.look(&[named]).await;
    assert_eq!(here.objects(named).await, 1, "the stray object is old");
    assert!(!here.is_gone(unnamed).await);
    // One that is named between two looks was only slow.
    here.look(&[named, unnamed]).await;
    here.look(&[named]).await;
    assert!(!here.is_gone(unnamed).await);
    here.look(&[named]).await;
    assert!(here.is_gone(unnamed).await);
    assert_eq!(here.objects(named).await, 1);
    here.databases.inventory(named).await.unwrap();
}

#[tokio::test]
async fn an_object_that_nobody_names_is_left_for_a_day() {
    let here = Installation::start(BEFORE).await;
    let id = here.create().await;
    let stray = format!("bases/{id}/{:020}-{:016x}", 99, 99);
    here.bucket.put(&stray, "stray".into()).await.unwrap();
    here.look(&[id]).await;
    assert_eq!(here.objects(id).await, 2);
}

#[tokio::test]
async fn a_chain_that_has_ended_is_copied_and_found_elsewhere() {
    // Histories take some of their times from files.
    let here = Installation::start(Clock::system().now()).await;
    let id = here.create().await;
    here.migrate(id, "CREATE TABLE b (x)").await;
    here.advance(Duration::from_secs(25 * 3600)).await;
    here.migrate(id, "CREATE TABLE c (x)").await;
    here.databases.close_all();
    here.databases.await_closed();
    let list = |files: &DatabasesDirectory, at_rest| -> Vec<_> {
        let dir = files.directory(&id).unwrap();
        let chains = EndedChain::list(&dir, at_rest).unwrap().into_iter();
        chains.map(|chain| (chain.first, chain.last)).collect()
    };
    let ended = list(here.databases.files(), false);
    assert!(!ended.is_empty());
    for _ in 0..2 {
        here.owner.keep_history(id).await.unwrap();
        let copied = here.bucket.list("histories").await.unwrap();
        assert_eq!(copied.len(), ended.len());
    }
    let other = tempfile::tempdir().unwrap();
    let files = DatabasesDirectory::open(other.path()).unwrap();
    files.create_directory(&id).unwrap();
    let now = here.clock.now();
    for brought in [ended.len() as u64, 0] {
        let fetched = histories::fetch_earlier(&here.bucket, &files, &id, now).await;
        assert_eq!(fetched.unwrap(), brought);
    }
    assert_eq!(list(&files, true), ended);
}

#[tokio::test]
async fn moments_outlive_the_node_that_made_them() {
    let mut here = Installation::start(Clock::system().now()).await;
    let id = here.create().await;
    let mut made = Vec::new();
    // The node that takes over has no chain of the bucket, and then those of the node before.
    for node in 0..3 {
        for moment in 0..5 {
            here.advance(Duration::from_secs(1)).await;
            here.migrate(id, &format!("CREATE TABLE t{node}{moment} (x)"))
                .await;
            let newest = here.databases.list_moments(id, None, 1).await.unwrap();
            made.push(newest.moments[0]);
        }
        if node == 1 {
            here.advance(IDLE).await;
            here.release(id).await;
            let copied = here.bucket.list("histories").await.unwrap();
            assert!(!copied.is_empty(), "it was given back");
        }
        here = here.lose().await;
        here.wait_for_moments(id, &made).await;
    }
    for (at, later) in [(made[12], 2), (made[2], 12)] {
        let past = here.databases.snapshot_at(id, at).await.unwrap();
        assert_eq!(past.at, at);
        assert_eq!(past.live_markers.len() - past.markers.len(), later);
    }
    let dir = here.databases.files().directory(&id).unwrap();
    let chains = EndedChain::list(&dir, true).unwrap();
    for (before, chain) in chains.iter().zip(&chains[1..]) {
        assert_eq!(before.last, chain.first, "each continues the one before");
    }
}

#[tokio::test]
async fn an_expired_history_of_a_database_that_nobody_loads_is_deleted() {
    let here = Installation::start(AFTER).await;
    let id = here.create().await;
    let day = 24 * 3600;
    for (first, days) in [(1, 9), (20, 2)] {
        let at = here.clock.now().plus_seconds(-days * day).0;
        let name = format!("histories/{id}/{first:020}-{:020}-{at}-{at}", first + 5);
        here.bucket.put(&name, "chain".into()).await.unwrap();
    }
    here.look(&[id]).await;
    let left = here.bucket.list("histories").await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].name.contains("/00000000000000000020-"), "{left:?}");
}

#[tokio::test]
async fn the_base_before_the_newest_goes_when_that_is_a_day_old() {
    let here = Installation::start(AFTER).await;
    let id = here.create().await;
    let words = (0..20_000_u64).map(|it| it.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let words: Vec<String> = words.map(|word| format!("{word:016x}")).collect();
    here.migrate(id, "CREATE TABLE b (x)").await;
    for words in words.chunks(10_000) {
        let insert = format!("INSERT INTO b VALUES ('{}')", words.concat());
        here.migrate(id, &insert).await;
    }
    here.advance(IDLE).await;
    here.release(id).await;
    here.look(&[id]).await;
    assert_eq!(here.objects(id).await, 2, "the newest is of today");
    here.advance(Duration::from_secs(25 * 3600)).await;
    here.look(&[id]).await;
    assert_eq!(here.objects(id).await, 1);
    let name = DatabaseName::Backend(id);
    assert_eq!(here.ledger.bases(None, name).await.unwrap().len(), 1);
    assert!(!here.has_place(id).await, "it was given back");
    here.databases.inventory(id).await.unwrap();
    let here = here.lose().await;
    here.databases.inventory(id).await.unwrap();
}
