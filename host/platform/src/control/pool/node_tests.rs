//! The control database of a node: it follows, and becomes the owner.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use svc_base::disk;
use svc_base::positions::CommitPosition;
use svc_database::{BaseSnapshot, DatabaseLoader, DatabaseState, LogShipper};
use tempfile::TempDir;

use super::shipping_tests::ShippingDurable;
use super::*;

const LOG: &str = "control.db-wal";
const COUNT: &str = "SELECT count(*) FROM operator_events";

/// Freshness as a test says.
struct SetFreshness(AtomicBool);

impl Freshness for SetFreshness {
    fn is_fresh(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Changes that an owner has noted.
#[derive(Default)]
struct KeptChanges(Mutex<Vec<(u64, Vec<ControlChange>)>>);

impl ChangeFeed for KeptChanges {
    fn note_changes(&self, position: CommitPosition, changes: &[ControlChange]) {
        self.0.lock().unwrap().push((position.0, changes.to_vec()));
    }
}

/// The owner that others follow.
struct OwnerFixture {
    data: TempDir,
    first: DatabaseState,
    control: ControlDatabase,
    shipping: Arc<ShippingDurable>,
}

/// A machine that follows.
struct NodeFixture {
    data: TempDir,
    control: ControlDatabase,
    fresh: Arc<SetFreshness>,
}

impl OwnerFixture {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        ControlDatabase::open(data.path()).unwrap().close();
        let snapshot = BaseSnapshot::begin(&data.path().join(FILE), CommitPosition(7), None);
        let base = data.path().join("base");
        let first = snapshot.unwrap().write_to(&base).unwrap();
        let dir = disk::open_directory(data.path()).unwrap();
        let shipping = ShippingDurable::new(LogShipper::new(dir, LOG, first.clone()));
        let opened = ControlDatabase::open_owner(data.path(), shipping.clone(), shipping.clone());
        let control = opened.unwrap();
        Self {
            data,
            first,
            control,
            shipping,
        }
    }

    fn follower(&self) -> NodeFixture {
        let data = tempfile::tempdir().unwrap();
        let dir = disk::open_directory(data.path()).unwrap();
        let base = File::open(self.data.path().join("base")).unwrap();
        let (position, checksum) = (self.first.position(), self.first.checksum());
        let loader = DatabaseLoader::start(dir, FILE, base, position, checksum);
        let state = loader.unwrap().finish().unwrap();
        let fresh = Arc::new(SetFreshness(AtomicBool::new(true)));
        let freshness: Arc<dyn Freshness> = fresh.clone();
        let control = ControlDatabase::open_follower(data.path(), state, freshness).unwrap();
        assert!(control.is_follower());
        NodeFixture {
            data,
            control,
            fresh,
        }
    }

    /// Returns all commits, with changes of these slugs.
    fn commits(&self, slugs: &[&str]) -> FollowedCommits {
        FollowedCommits {
            entries: self.shipping.entries(),
            changes: slugs.iter().copied().map(slug_change).collect(),
        }
    }
}

fn slug_change(slug: &str) -> ControlChange {
    ControlChange::Slug(slug.to_owned())
}

async fn count(control: &ControlDatabase) -> Result<i64, Error> {
    control
        .read(|c| c.query_row(COUNT, [], |row| row.get(0)))
        .await
}

/// Adds a row, and notes a change.
async fn add(control: &ControlDatabase, slug: &'static str) -> Result<(), Error> {
    control
        .write(move |tx| {
            tx.note(slug_change(slug));
            let add = "INSERT INTO operator_events (kind, subject, at) VALUES ('', ?1, 0)";
            tx.execute(add, [slug])?;
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_follower_answers_what_it_has_while_it_is_fresh() {
    let owner = OwnerFixture::new();
    let node = owner.follower();
    for slug in ["one", "two"] {
        add(&owner.control, slug).await.unwrap();
    }
    assert_eq!(count(&node.control).await.unwrap(), 0);
    let last = node.control.follow(owner.commits(&[])).await.unwrap();
    assert_eq!(last, CommitPosition(9));
    assert_eq!(count(&node.control).await.unwrap(), 2);
    let refused = add(&node.control, "three").await;
    assert!(matches!(refused, Err(Error::Elsewhere)));
    node.fresh.0.store(false, Ordering::SeqCst);
    assert!(matches!(count(&node.control).await, Err(Error::Stale)));
    assert!(matches!(node.control.check_fresh(), Err(Error::Stale)));
    assert!(owner.control.check_fresh().is_ok());
    node.fresh.0.store(true, Ordering::SeqCst);
    assert!(node.control.check_fresh().is_ok());
    assert_eq!(count(&node.control).await.unwrap(), 2);
    // Rows that others have deleted go from the log, too.
    let log = node.data.path().join(LOG);
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    node.control.empty_log_if_deleted().unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    node.control.close();
    let closed = node.control.follow(FollowedCommits::default()).await;
    assert!(matches!(closed, Err(Error::Closed)));
}

#[tokio::test]
async fn changes_are_delivered_in_their_order_after_the_rows() {
    let owner = OwnerFixture::new();
    let node = owner.follower();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, file) = (Arc::clone(&seen), node.data.path().join(FILE));
    node.control.on_change(move |change| {
        let reader = Connection::open(&file).unwrap();
        let rows: i64 = reader.query_row(COUNT, [], |row| row.get(0)).unwrap();
        noted.lock().unwrap().push((change.clone(), rows));
    });
    for slug in ["one", "two"] {
        add(&owner.control, slug).await.unwrap();
    }
    let followed = node.control.follow(owner.commits(&["one", "two"])).await;
    followed.unwrap();
    let expected = ["one", "two"].map(|slug| (slug_change(slug), 2));
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_follower_learns_changes_from_the_commits() {
    let owner = OwnerFixture::new();
    let node = owner.follower();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    node.control
        .on_change(move |change| noted.lock().unwrap().push(change.clone()));
    for slug in ["one", "two"] {
        add(&owner.control, slug).await.unwrap();
    }
    let commits = FollowedCommits::of(owner.shipping.entries()).unwrap();
    node.control.follow(commits).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["one", "two"].map(slug_change));
    // A change that only a later program knows.
    let mut entries = owner.shipping.entries();
    entries[0].changes = Arc::from(*br#"[{"from_later":1}]"#);
    let refused = FollowedCommits::of(entries);
    assert!(matches!(refused, Err(Error::Changes(_))), "{refused:?}");
}

#[tokio::test]
async fn commits_that_do_not_fit_end_the_following() {
    let owner = OwnerFixture::new();
    let node = owner.follower();
    for slug in ["one", "two"] {
        add(&owner.control, slug).await.unwrap();
    }
    let mut commits = owner.commits(&["two"]);
    commits.entries.remove(0);
    node.control
        .on_change(|change| panic!("{change:?} is not known"));
    let refused = node.control.follow(commits).await;
    assert!(matches!(refused, Err(Error::Replica(_))), "{refused:?}");
    let later = node.control.follow(owner.commits(&[])).await;
    assert!(matches!(later, Err(Error::Closed)), "{later:?}");
    assert_eq!(count(&node.control).await.unwrap(), 0);
    node.control.empty_log_if_deleted().unwrap();
    assert!(matches!(
        node.control.end_following().await,
        Err(Error::Closed)
    ));
}

#[tokio::test]
async fn a_follower_becomes_the_owner_and_others_go_on_with_it() {
    let owner = OwnerFixture::new();
    let (node, other) = (owner.follower(), owner.follower());
    add(&owner.control, "one").await.unwrap();
    for node in [&node, &other] {
        node.control.follow(owner.commits(&[])).await.unwrap();
    }
    owner.control.close();
    // A reader keeps the file and its log open.
    let snapshot = node.control.snapshot().unwrap();
    let state = node.control.end_following().await.unwrap();
    assert!(matches!(count(&node.control).await, Err(Error::Stale)));
    let dir = disk::open_directory(node.data.path()).unwrap();
    let shipping = ShippingDurable::new(LogShipper::after_log(dir, LOG, state).unwrap());
    let feed = Arc::new(KeptChanges::default());
    let opened = node
        .control
        .become_owner(shipping.clone(), feed.clone())
        .await;
    opened.unwrap();
    assert!(!node.control.is_follower());
    let early = add(&node.control, "early").await;
    assert!(matches!(early, Err(Error::Elsewhere)));
    let duties = add(&node.control, "duty");
    node.control.open_for_writes(duties).await.unwrap();
    add(&node.control, "two").await.unwrap();
    assert_eq!(count(&node.control).await.unwrap(), 3);
    drop(snapshot);
    let followed = FollowedCommits {
        entries: shipping.entries(),
        changes: Vec::new(),
    };
    assert_eq!(followed.entries.len(), 2);
    other.control.follow(followed).await.unwrap();
    assert_eq!(count(&other.control).await.unwrap(), 3);
    let noted = feed.0.lock().unwrap().clone();
    let expected = [
        (1, vec![slug_change("duty")]),
        (2, vec![slug_change("two")]),
    ];
    assert_eq!(noted, expected);
    node.control.close();
}

#[tokio::test]
async fn an_owner_is_one_that_has_ended_its_following() {
    let owner = OwnerFixture::new();
    let node = owner.follower();
    let durable: Arc<dyn Durable> = owner.shipping.clone();
    let feed = Arc::new(KeptChanges::default());
    let refused = node.control.become_owner(durable, feed).await;
    assert!(matches!(refused, Err(Error::Elsewhere)));
    let last = node.control.follow(owner.commits(&[])).await;
    assert_eq!(last.unwrap(), CommitPosition(7));
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_not_followed() {
    let owner = OwnerFixture::new();
    let newer = owner.control.write(|tx| {
        tx.pragma_update(None, "user_version", 1000)?;
        Ok::<_, Error>(())
    });
    newer.await.unwrap();
    let data = tempfile::tempdir().unwrap();
    let dir = disk::open_directory(data.path()).unwrap();
    let base = File::open(owner.data.path().join("base")).unwrap();
    let (position, checksum) = (owner.first.position(), owner.first.checksum());
    let loader = DatabaseLoader::start(dir, FILE, base, position, checksum).unwrap();
    let loader = loader.apply(&owner.shipping.entries()).unwrap();
    let fresh = Arc::new(SetFreshness(AtomicBool::new(true)));
    let refused =
        ControlDatabase::open_follower(data.path(), loader.finish().unwrap(), fresh).unwrap_err();
    assert!(matches!(refused, Error::Newer(1000)), "{refused}");
}
