//! Installed guests between folders of one machine, rows of control, and the bucket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::memory::InMemory;
use tempfile::TempDir;

use super::bucket::Bucket;
use super::guests::{ClusterGuests, GuestFollower, bring_installed, restore_installed};
use crate::control::ControlDatabase;
use crate::guests::{GuestRecord, GuestRecordError, WorldFolder, shared};
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{GuestDigest, RolledBackGuest, World};

/// Control, the bucket, and the directory of a node.
struct Stores {
    directory: TempDir,
    control: ControlDatabase,
    bucket: Bucket,
    guests: ClusterGuests,
}

impl Stores {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        let guests = ClusterGuests::new(bucket.clone());
        Self {
            directory,
            control,
            bucket,
            guests,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn follower(&self, directory: &Path) -> GuestFollower {
        let clock = Clock::manual(Timestamp(100));
        GuestFollower::new(self.bucket.clone(), &self.control, directory, &clock)
    }

    /// Installs a gate that a command has stored in a folder.
    async fn install(
        &self,
        folder: &WorldFolder,
        component: &[u8],
        now: i64,
    ) -> Result<GuestRecord, GuestRecordError> {
        let _held = folder.store(component).unwrap();
        let chosen = (GuestDigest::of(component), "here".to_owned());
        self.guests
            .install(&self.control, folder, chosen, Timestamp(now))
            .await
    }

    async fn row(&self) -> GuestRecord {
        shared::read(&self.control, World::Gate).await.unwrap()
    }

    /// Number of components in the bucket.
    async fn components(&self) -> usize {
        self.bucket.list("guests").await.unwrap().len()
    }
}

fn gates(directory: &Path) -> WorldFolder {
    WorldFolder::new(directory, World::Gate)
}

fn digests(record: &GuestRecord) -> Vec<GuestDigest> {
    record.serving.iter().map(|one| one.digest).collect()
}

/// Whether a folder is as a row says, with all components.
fn follows(folder: &WorldFolder, row: &GuestRecord) -> bool {
    folder.read().unwrap() == *row && folder.missing_components(row).is_empty()
}

#[tokio::test]
async fn every_folder_becomes_as_the_row_says() {
    let stores = Stores::new();
    let [own, other] = [stores.path("own"), stores.path("other")];
    let (folder, mut follower) = (gates(&other), stores.follower(&other));
    follower.follow(Vec::new()).await;
    assert!(!folder.record_path().exists(), "nothing was installed");
    // One that was copied there by hand serves on one machine alone.
    std::fs::create_dir_all(other.join("gate")).unwrap();
    std::fs::write(other.join("gate/000001.wasm"), "by hand").unwrap();

    let [one, two] = [b"one", b"two"].map(|bytes| GuestDigest::of(bytes));
    let first = stores.install(&gates(&own), b"one", 1).await.unwrap();
    assert_eq!(digests(&first), [one]);
    let again = stores.install(&gates(&own), b"one", 2).await;
    assert!(matches!(again, Err(GuestRecordError::AlreadyServing)));
    follower.follow(Vec::new()).await;
    assert!(follows(&folder, &first));
    // The command is given at the other node.
    let held = folder.store(b"two").unwrap();
    stores.guests.upload(&folder, two).await.unwrap();
    drop(held);
    let chosen = (two, "there".to_owned());
    let gate = gates(&own);
    let install = stores
        .guests
        .install(&stores.control, &gate, chosen, Timestamp(3));
    let both = install.await.unwrap();
    assert_eq!(digests(&both), [one, two]);
    for directory in [&own, &other, &stores.path("later")] {
        let mut follower = stores.follower(directory);
        follower.follow(Vec::new()).await;
        assert!(follower.followed().failures.is_empty());
        assert!(follows(&gates(directory), &both), "{directory:?}");
    }
    let back = stores
        .guests
        .roll_back(&stores.control, World::Gate, two, Timestamp(4));
    let back = back.await.unwrap();
    assert_eq!(digests(&back), [one]);
    let refused = stores
        .guests
        .roll_back(&stores.control, World::Gate, two, Timestamp(5));
    assert!(refused.await.unwrap_err().is_refusal());
    follower.follow(Vec::new()).await;
    assert!(follows(&folder, &back));
}

#[tokio::test]
async fn a_component_that_no_row_names_is_removed_once_it_is_old() {
    let stores = Stores::new();
    let folder = gates(&stores.path("own"));
    for (component, now) in [(b"one", 1), (b"two", 2)] {
        stores.install(&folder, component, now).await.unwrap();
    }
    let two = GuestDigest::of(b"two");
    let back = stores
        .guests
        .roll_back(&stores.control, World::Gate, two, Timestamp(3));
    back.await.unwrap();
    for (before, left) in [(Timestamp(0), 2), (Timestamp(i64::MAX), 1)] {
        let removed = stores.guests.remove_unnamed(&stores.control, before);
        removed.await.unwrap();
        assert_eq!(stores.components().await, left);
    }
    let chosen = (two, "there".to_owned());
    let other = gates(&stores.path("other"));
    let gone = stores
        .guests
        .install(&stores.control, &other, chosen, Timestamp(4));
    let gone = gone.await;
    assert!(matches!(gone, Err(GuestRecordError::ComponentMissing(digest)) if digest == two));
    assert_eq!(stores.row().await.sequence, 3);
}

#[tokio::test]
async fn a_guest_that_fell_at_one_node_is_left_by_all() {
    let stores = Stores::new();
    let directory = stores.path("own");
    let (folder, mut follower) = (gates(&directory), stores.follower(&directory));
    let [one, two] = [b"one", b"two"].map(|bytes| GuestDigest::of(bytes));
    for (component, now) in [(b"one", 1), (b"two", 2)] {
        stores.install(&folder, component, now).await.unwrap();
    }
    follower.follow(Vec::new()).await;
    let fallen = || RolledBackGuest {
        world: World::Gate,
        guest: two,
        before: one,
        why: "trap".to_owned(),
    };
    follower.follow(vec![fallen()]).await;
    // The row does not list it any more; the folder does until it is looked at again.
    assert_eq!(digests(&stores.row().await), [one]);
    assert_eq!(follower.followed().fallen.len(), 1);
    follower.follow(Vec::new()).await;
    assert!(follower.followed().fallen.is_empty());
    assert!(follows(&folder, &stores.row().await));
    // It may be installed again, and one that is not installed changes nothing.
    let again = stores.install(&folder, b"two", 200).await.unwrap();
    follower.follow(Vec::new()).await;
    assert!(follower.followed().fallen.is_empty());
    assert!(follows(&folder, &again));
    let unknown = RolledBackGuest {
        guest: GuestDigest::of(b"three"),
        ..fallen()
    };
    follower.follow(vec![unknown]).await;
    assert_eq!(stores.row().await, again);
}

#[tokio::test]
async fn a_folder_is_brought_into_a_cluster_and_back() {
    let stores = Stores::new();
    let (from, to) = (stores.path("from"), stores.path("to"));
    let folder = gates(&from);
    std::fs::create_dir_all(from.join("gate")).unwrap();
    std::fs::write(from.join("gate/000001.wasm"), "by hand").unwrap();
    let [by_hand, one] = [&b"by hand"[..], b"one"].map(GuestDigest::of);
    drop(folder.store(b"one").unwrap());
    folder.choose(one, "here".to_owned(), Timestamp(1)).unwrap();
    for _ in 0..2 {
        let brought = bring_installed(&stores.bucket, &stores.control, &from).await;
        brought.unwrap();
        let row = stores.row().await;
        assert_eq!(digests(&row), [by_hand, one]);
        assert_eq!(row.sequence, 1);
        assert_eq!(stores.components().await, 2);
    }
    let row = stores.row().await;
    let damaged = format!("guests/{by_hand}");
    stores.bucket.put(&damaged, "damaged".into()).await.unwrap();
    let missing = restore_installed(&stores.bucket, &stores.control, &to).await;
    let missing = missing.unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains(&by_hand.to_string()), "{missing:?}");
    assert_eq!(gates(&to).read().unwrap(), row);
    // The folder decides from then on.
    assert_eq!(stores.row().await, GuestRecord::new());
}
