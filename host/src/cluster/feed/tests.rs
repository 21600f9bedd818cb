//! Control's owner and the nodes that follow it, over loopback.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use svc_base::clock::{Clock, Timestamp};
use svc_base::disk;
use svc_base::positions::CommitPosition;
use svc_base::random::Random;
use svc_database::{BaseSnapshot, DatabaseLoader, DatabaseState, LogShipper};
use svc_ledger::{AppendEvent, Base, ClaimOutcome, DatabaseName, Ledger as _, MemoryLedger};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::super::known_places::KnownPlaces;
use super::super::peers::PeerListener;
use super::super::run::Run;
use super::super::shipped::{ShippedDatabase, ShippingRoutes};
use super::super::tests::settings;
use super::{ControlFeed, FeedFollower, FeedFreshness};
use crate::config::ClusterSettings;
use crate::control::{self, ControlChange, ControlDatabase, Freshness as _};

const FILE: &str = "control.db";
const LOG: &str = "control.db-wal";
/// Number of the last commit in the base.
const FIRST: CommitPosition = CommitPosition(7);

/// An installation whose control database has a base.
struct Installation {
    ledger: Arc<MemoryLedger>,
    founded: TempDir,
    first: DatabaseState,
}

/// A node that follows.
struct FollowingNode {
    run: Arc<Run<MemoryLedger>>,
    data: TempDir,
    control: ControlDatabase,
    freshness: Arc<FeedFreshness>,
    follower: FeedFollower<MemoryLedger>,
    /// Changes that were delivered, by their slugs.
    delivered: Arc<Mutex<Vec<String>>>,
}

impl Installation {
    fn new() -> Self {
        let founded = tempfile::tempdir().unwrap();
        ControlDatabase::open(founded.path()).unwrap().close();
        let snapshot = BaseSnapshot::begin(&founded.path().join(FILE), FIRST, None);
        let base = founded.path().join("base");
        let first = snapshot.unwrap().write_to(&base).unwrap();
        Self {
            ledger: Arc::new(MemoryLedger::default()),
            founded,
            first,
        }
    }

    /// Starts a run that answers other nodes.
    async fn join(&self, name: &str) -> Arc<Run<MemoryLedger>> {
        let listener = PeerListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.await.unwrap();
        let settings = ClusterSettings {
            peer_listen: listener.address(),
            ..settings(name)
        };
        let (clock, random) = (Clock::system(), Random::system());
        let run = Run::join(Arc::clone(&self.ledger), &settings, &clock, &random);
        let run = run.await.unwrap();
        listener.start(run.peers()).unwrap();
        run
    }

    /// Starts the owner, in the directory of the founding.
    async fn own(&self, name: &str) -> (Arc<Run<MemoryLedger>>, ControlDatabase) {
        let run = self.join(name).await;
        claim(&run).await;
        let base = Base {
            database: DatabaseName::Control,
            position: FIRST,
            state: self.first.checksum(),
            object: String::new(),
            bytes: 0,
            at: Timestamp(0),
        };
        self.ledger.add_base(run.id(), &base).await.unwrap();
        let data = self.founded.path();
        let dir = disk::open_directory(data).unwrap();
        let shipper = LogShipper::new(dir, LOG, self.first.clone());
        let shipped = ship(&run, data, shipper).await;
        let opened = ControlDatabase::open_owner(data, shipped.clone(), shipped);
        (run, opened.unwrap())
    }

    /// Starts a node that follows from the base on.
    async fn follow(&self, name: &str) -> FollowingNode {
        let (run, data) = (self.join(name).await, tempfile::tempdir().unwrap());
        let dir = disk::open_directory(data.path()).unwrap();
        let base = File::open(self.founded.path().join("base")).unwrap();
        let loader = DatabaseLoader::start(dir, FILE, base, FIRST, self.first.checksum());
        let state = loader.unwrap().finish().unwrap();
        let freshness = FeedFreshness::new(&run);
        let opened = ControlDatabase::open_follower(data.path(), state, freshness.clone());
        let control = opened.unwrap();
        let delivered: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&delivered);
        control.on_change(move |change| {
            let ControlChange::Slug(slug) = change else {
                panic!("nobody noted {change:?}");
            };
            noted.lock().unwrap().push(slug.clone());
        });
        let follower = FeedFollower::start(
            Arc::clone(&run),
            KnownPlaces::follow(Arc::clone(&run)),
            control.clone(),
            Arc::clone(&freshness),
            FIRST,
        );
        FollowingNode {
            run,
            data,
            control,
            freshness,
            follower,
            delivered,
        }
    }
}

impl FollowingNode {
    /// Waits until the node is fresh by the word of an owner.
    async fn wait_until_fresh(&self, owner: &Run<MemoryLedger>) {
        // Each of them knows the other by its next beat.
        for run in [owner, &*self.run] {
            run.beat().await.unwrap();
        }
        self.freshness.wait_until_fresh().await;
    }

    fn delivered(&self) -> Vec<String> {
        self.delivered.lock().unwrap().clone()
    }
}

async fn claim(run: &Run<MemoryLedger>) {
    let claimed = run.claim_control().await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "{claimed:?}");
}

/// Has commits go to the ledger, and then to the nodes that follow.
async fn ship(
    run: &Arc<Run<MemoryLedger>>,
    data: &Path,
    shipper: LogShipper,
) -> Arc<ShippedDatabase> {
    let (made, _) = mpsc::unbounded_channel();
    let routes = ShippingRoutes {
        queue: Arc::clone(run.queue()),
        gate: Arc::clone(run.gate()),
        made,
    };
    let (name, offset) = (DatabaseName::Control, shipper.state().position());
    let shipped = ShippedDatabase::new(name, data.join(FILE), routes, offset, Some(shipper));
    let shipped = Arc::new(shipped);
    let feed = ControlFeed::start(run, Arc::clone(&shipped), offset).await;
    let run = Arc::clone(run);
    tokio::spawn(async move {
        let (queue, ledger) = (Arc::clone(run.queue()), Arc::clone(run.ledger()));
        let tell = |event: AppendEvent<'_>| {
            if let AppendEvent::Acknowledged(commits) = event {
                feed.acknowledged(commits);
            }
        };
        queue.send_all(&*ledger, tell).await
    });
    shipped
}

/// Adds a row, and notes a change.
async fn add(control: &ControlDatabase, slug: &'static str) {
    let added: Result<(), control::Error> = control
        .write(move |tx| {
            tx.note(ControlChange::Slug(slug.to_owned()));
            let add = "INSERT INTO operator_events (kind, subject, at) VALUES ('', ?1, 0)";
            tx.execute(add, [slug]).map_err(control::Error::from)?;
            Ok(())
        })
        .await;
    added.unwrap();
}

async fn count(control: &ControlDatabase) -> i64 {
    let count = control.read(|c| {
        let sql = "SELECT count(*) FROM operator_events";
        c.query_row(sql, [], |row| row.get(0))
    });
    count.await.unwrap()
}

#[tokio::test]
async fn a_write_that_is_answered_is_at_every_fresh_node() {
    let installation = Installation::new();
    let (owner, control) = installation.own("n1").await;
    add(&control, "zero").await;
    let node = installation.follow("n2").await;
    node.wait_until_fresh(&owner).await;
    assert_eq!(owner.feed_lags().of(owner.id()), None);
    for (rows, slug) in [(2, "one"), (3, "two"), (4, "three")] {
        add(&control, slug).await;
        assert_eq!(count(&node.control).await, rows);
        assert_eq!(node.delivered().last().unwrap(), slug);
        assert_eq!(owner.feed_lags().of(node.run.id()), Some(0));
    }
    assert_eq!(node.delivered(), ["zero", "one", "two", "three"]);
    // A node that follows no more is waited for until it is not fresh.
    drop(node.follower);
    add(&control, "late").await;
    let is_there = node.delivered.lock().unwrap().len() == 5;
    assert!(is_there || !node.freshness.is_fresh());
    tokio::task::spawn_blocking(move || control.close())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_node_takes_over_and_others_follow_it() {
    let installation = Installation::new();
    let (owner, control) = installation.own("n1").await;
    let node = installation.follow("n2").await;
    node.wait_until_fresh(&owner).await;
    add(&control, "one").await;
    tokio::task::spawn_blocking(move || control.close())
        .await
        .unwrap();
    owner.leave().await;
    node.run.beat().await.unwrap();
    claim(&node.run).await;
    let state = node.follower.take_over().await.unwrap();
    assert!(!node.freshness.is_fresh());
    assert_eq!(*node.delivered.lock().unwrap(), ["one"]);

    let dir = disk::open_directory(node.data.path()).unwrap();
    let shipper = LogShipper::after_log(dir, LOG, state).unwrap();
    let shipped = ship(&node.run, node.data.path(), shipper).await;
    let owning = node.control.become_owner(shipped.clone(), shipped);
    owning.await.unwrap();
    let duties = async { Ok::<_, control::Error>(()) };
    node.control.open_for_writes(duties).await.unwrap();
    // The feed of this owner has nothing of what was before it: the ledger does, with the changes.
    let other = installation.follow("n3").await;
    other.wait_until_fresh(&node.run).await;
    assert_eq!(count(&other.control).await, 1);
    add(&node.control, "two").await;
    assert_eq!(count(&other.control).await, 2);
    assert_eq!(other.delivered(), ["one", "two"]);
    tokio::task::spawn_blocking(move || node.control.close())
        .await
        .unwrap();
}
