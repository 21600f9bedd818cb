//! Two nodes that serve one installation, in one process.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use object_store::memory::InMemory;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::{BackendId, DeploymentId};
use svc_base::random::Random;
use svc_database::{DatabasePlace, Databases, MigrationScript};
use svc_ledger::{ClaimOutcome, DatabaseName, Ledger, MemoryLedger, RunId};
use svc_sandbox::{GuestDigest, RolledBackGuest, World};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::bucket::Bucket;
use super::found::Founding;
use super::peers::PeerListener;
use super::tenants::handovers;
use super::tests::settings;
use super::{
    ClusterNode, ControlClaim, DatabaseUsers, ERRANDS_SERVICE, PeerBody, Run, ServingNode,
    full_body,
};
use crate::config::Limits;
use crate::content::ContentStore;
use crate::control::{self, ControlDatabase};
use crate::errands;
use crate::guests::WorldFolder;
use crate::guests::shared as guest_rows;

/// Ledger and bucket of all nodes of an installation.
struct Shared {
    ledger: Arc<MemoryLedger>,
    bucket: Bucket,
    stale_pages_seconds: u32,
    suspect_seconds: u16,
}

/// A node without an application.
struct TestNode {
    serving: Arc<ServingNode<MemoryLedger>>,
    control: ControlDatabase,
    databases: Arc<Databases>,
    users: Arc<Users>,
    data: TempDir,
}

/// Sockets of a node: databases are only closed.
struct Users {
    databases: Weak<Databases>,
    sent_away: AtomicUsize,
}

impl DatabaseUsers for Users {
    fn is_used(&self, _: &BackendId) -> bool {
        false
    }

    fn send_away(&self, id: &BackendId) {
        self.sent_away.fetch_add(1, Ordering::SeqCst);
        if let Some(databases) = self.databases.upgrade() {
            databases.close_one(id);
        }
    }

    fn note_arrival(&self, _: &BackendId) {}
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

impl Shared {
    async fn found() -> Self {
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
            clock: &Clock::system(),
            random: &Random::system(),
        };
        founding.found().await.unwrap();
        Self {
            ledger,
            bucket,
            stale_pages_seconds: 600,
            suspect_seconds: 5,
        }
    }

    /// Starts a node, which has control or follows.
    async fn start(&self, name: &str, owns: bool) -> TestNode {
        let (clock, random) = (Clock::system(), Random::system());
        let mut settings = settings(name);
        settings.stale_pages_seconds = self.stale_pages_seconds;
        settings.suspect_seconds = self.suspect_seconds;
        let listener = PeerListener::bind(settings.peer_listen).await.unwrap();
        settings.peer_listen = listener.address();
        let run = Run::join(Arc::clone(&self.ledger), &settings, &clock, &random);
        let run = run.await.unwrap();
        listener.start(run.peers()).unwrap();
        let claim = match owns {
            true => Some(claim_control(&run).await),
            false => None,
        };
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("tmp")).unwrap();
        let (promotions, _) = mpsc::channel(1);
        let node = ClusterNode::new(run, self.bucket.clone(), promotions);
        let serving = ServingNode::begin(node, claim, data.path());
        let serving = serving.await.unwrap();
        let control = serving.open_control().await.unwrap();
        let limits = Limits {
            free_disk_bytes: 0,
            ..Limits::default()
        };
        let databases = Databases::open_with_durable(
            data.path(),
            &limits.database_limits(),
            clock,
            Some(serving.tenants(limits.history_bytes)),
        );
        let databases = Arc::new(databases.unwrap());
        let users = Arc::new(Users {
            databases: Arc::downgrade(&databases),
            sent_away: AtomicUsize::new(0),
        });
        serving.set_database_users(Arc::clone(&users) as _);
        TestNode {
            serving,
            control,
            databases,
            users,
            data,
        }
    }

    /// Starts an owner and a follower that know each other.
    async fn start_two(&self) -> [TestNode; 2] {
        let owner = self.start("n1", true).await;
        let follower = self.start("n2", false).await;
        owner.serving.run().beat().await.unwrap();
        owner.wait_until_known(&follower).await;
        follower.wait_until_known(&owner).await;
        [owner, follower]
    }

    async fn has_place(&self, id: BackendId) -> bool {
        let places = self.ledger.places().await.unwrap();
        let name = DatabaseName::Backend(id);
        places.iter().any(|place| place.database == name)
    }
}

async fn claim_control(run: &Run<MemoryLedger>) -> ControlClaim {
    match run.claim_control().await.unwrap() {
        ClaimOutcome::Claimed(place) => ControlClaim {
            place,
            took_over: false,
        },
        ClaimOutcome::Held(_) => panic!("somebody has control"),
    }
}

impl TestNode {
    async fn wait_until_known(&self, other: &Self) {
        let known = self.serving.run().peers().known();
        let other = other.serving.run().id();
        wait_until(async || known.is_trusted(other)).await;
    }

    /// Writes a row of control.
    async fn write(&self) -> Result<(), control::Error> {
        let insert = "INSERT INTO operator_events (kind, subject, at) VALUES ('', 'x', 0)";
        let written = self.control.write(move |tx| {
            tx.execute(insert, [])?;
            Ok::<_, control::Error>(())
        });
        written.await
    }

    /// Number of rows that were written, as soon as this node may say.
    async fn rows(&self) -> u64 {
        let count = "SELECT count(*) FROM operator_events WHERE subject = 'x'";
        loop {
            let read = self
                .control
                .read(move |c| c.query_row(count, [], |row| row.get::<_, i64>(0)));
            match read.await {
                Ok(rows) => return rows.unsigned_abs(),
                // A machine with much to do may be late with a poll.
                Err(control::Error::Stale) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn create(&self) -> BackendId {
        let id = BackendId::new(&Clock::system(), &Random::system()).unwrap();
        let made = script("CREATE TABLE a (x)");
        self.databases.create(id, made).await.unwrap();
        id
    }

    async fn has(&self, id: BackendId) -> bool {
        self.databases.inventory(id).await.is_ok()
    }
}

async fn wait_until(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is never so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_has_what_the_owner_has_answered_and_writes_nothing() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    wait_until(async || !follower.serving.is_behind()).await;
    for rows in 1..=5 {
        owner.write().await.unwrap();
        assert_eq!(follower.rows().await, rows);
    }
    assert!(matches!(
        follower.write().await,
        Err(control::Error::Elsewhere)
    ));
    assert!(!owner.serving.is_behind());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_becomes_the_owner_in_the_running_process() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    wait_until(async || !follower.serving.is_behind()).await;
    owner.write().await.unwrap();
    let id = owner.create().await;
    owner.serving.run().leave().await;
    follower.serving.run().beat().await.unwrap();
    wait_until(async || follower.serving.is_behind()).await;
    // Open pages go on.
    assert!(follower.serving.may_show_pages() && !follower.serving.is_long_behind());

    let claim = claim_control(follower.serving.run()).await;
    let owned = follower.serving.own_control(claim, &follower.control);
    owned.await.unwrap();
    assert!(matches!(
        follower.write().await,
        Err(control::Error::Elsewhere)
    ));
    let duties = async { Ok::<_, control::Error>(()) };
    follower.control.open_for_writes(duties).await.unwrap();
    follower.serving.note_owning();
    follower.serving.wait_for_control().await;
    follower.write().await.unwrap();
    assert_eq!(follower.rows().await, 2);
    assert!(follower.has(id).await);

    // A third one follows it, with everything.
    let third = shared.start("n3", false).await;
    third.wait_until_known(&follower).await;
    wait_until(async || !third.serving.is_behind()).await;
    follower.write().await.unwrap();
    assert_eq!(third.rows().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_memory_is_not_used_for_ever() {
    let mut shared = Shared::found().await;
    shared.stale_pages_seconds = 0;
    let [owner, follower] = shared.start_two().await;
    wait_until(async || !follower.serving.is_behind()).await;
    owner.serving.run().leave().await;
    wait_until(async || follower.serving.is_behind()).await;
    // It reaches the ledger, so its own databases would go on.
    follower.serving.run().beat().await.unwrap();
    assert!(follower.serving.gate().may_answer());
    assert!(follower.serving.is_long_behind() && !follower.serving.may_show_pages());
    assert!(!owner.serving.is_long_behind());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_at_one_node_and_brought_to_another_on_demand() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let id = owner.create().await;
    assert_eq!(owner.databases.place(id), DatabasePlace::Here);
    assert!(!follower.has(id).await, "another node has it");
    follower.databases.bring(id).await.unwrap();
    let more = script("CREATE TABLE b (x)");
    follower.databases.migrate(id, more).await.unwrap();
    assert_eq!(follower.databases.place(id), DatabasePlace::Here);
    assert!(owner.users.sent_away.load(Ordering::SeqCst) > 0);
    assert!(!owner.has(id).await, "it was given up");
    wait_until(async || owner.databases.place(id) == DatabasePlace::Elsewhere).await;
    // Back again, with what was written there.
    owner.databases.bring(id).await.unwrap();
    let tables = owner.databases.inventory(id).await.unwrap().markers.len();
    assert_eq!(tables, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn background_work_of_a_database_is_for_the_node_with_its_place_whether_it_has_loaded() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let id = BackendId::new(&Clock::system(), &Random::system()).unwrap();
    for node in [&owner, &follower] {
        assert_eq!(node.databases.place(id), DatabasePlace::Nobody);
    }
    let (name, run) = (DatabaseName::Backend(id), follower.serving.run().id());
    shared.ledger.claim(run, name).await.unwrap();
    wait_until(async || follower.databases.place(id) == DatabasePlace::Here).await;
    wait_until(async || owner.databases.place(id) == DatabasePlace::Elsewhere).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_run_that_was_buried_is_claimed_when_that_answers_nothing_any_more() {
    let mut shared = Shared::found().await;
    shared.suspect_seconds = 4;
    let [owner, follower] = shared.start_two().await;
    let id = owner.create().await;
    wait_until(async || follower.databases.place(id) == DatabasePlace::Elsewhere).await;
    let (dead, burier) = (owner.serving.run(), follower.serving.run());
    // It would end this process when it hears of its end.
    dead.leaving().store(true, Ordering::SeqCst);
    assert!(burier.bury(dead.id(), None).await.unwrap());
    assert!(dead.gate().may_answer());
    assert!(follower.has(id).await);
    assert!(!dead.gate().may_answer());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_given_up_is_left_to_the_node_that_asks() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let id = owner.create().await;
    let (run, holder) = (follower.serving.run(), owner.serving.run().id());
    handovers::ask_for(run, holder, id).await.unwrap();
    // Calls at the node that had it are quicker than the one that asks for it.
    assert!(!owner.has(id).await);
    assert!(!shared.has_place(id).await);
    follower.databases.bring(id).await.unwrap();
    assert!(follower.has(id).await);
    // Who needs it back asks for it, and has it for its calls.
    owner.databases.bring(id).await.unwrap();
    assert!(owner.has(id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_a_node_has_without_knowing_it_is_given_up() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let id = owner.create().await;
    let (run, holder) = (follower.serving.run(), owner.serving.run().id());
    handovers::ask_for(run, holder, id).await.unwrap();
    // A release whose answer was lost, and that was not done.
    let name = DatabaseName::Backend(id);
    shared.ledger.claim(holder, name).await.unwrap();
    follower.databases.bring(id).await.unwrap();
    assert!(follower.has(id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_deleted_wherever_it_is() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let id = owner.create().await;
    follower.databases.bring(id).await.unwrap();
    let databases = Arc::clone(&owner.databases);
    let removed = tokio::task::spawn_blocking(move || databases.remove(&id));
    removed.await.unwrap().unwrap();
    wait_until(async || !shared.has_place(id).await).await;
    assert!(!follower.has(id).await && !owner.has(id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_of_all_nodes_are_shown() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    let (clock, random) = (Clock::system(), Random::system());
    let id = DeploymentId::new(&clock, &random).unwrap();
    for (flush, node, views) in [(1, &owner, 2), (2, &follower, 3)] {
        let added = node
            .control
            .counters()
            .add(flush, vec![(id, views)], clock.now());
        added.await.unwrap();
    }
    let counters = owner.control.counters();
    tokio::select! {
        () = owner.serving.follow_views(&counters) => {}
        () = wait_until(async || counters.visits(&id) == 5) => {}
    }
}

/// Has a node that has control do errands of others, as its application does.
fn do_errands(node: &TestNode) {
    let control = node.control.clone();
    let handler =
        move |_: RunId, request: Request<Incoming>| -> BoxFuture<'static, Response<PeerBody>> {
            let control = control.clone();
            Box::pin(async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let message = String::from_utf8(body.into()).unwrap();
                let answer = errands::perform_message(&control, &message).await;
                Response::new(full_body(answer.unwrap()))
            })
        };
    let peers = node.serving.run().peers();
    peers.serve(ERRANDS_SERVICE, Arc::new(handler));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_falls_at_a_follower_is_left_by_all() {
    let shared = Shared::found().await;
    let [owner, follower] = shared.start_two().await;
    do_errands(&owner);
    let digest = GuestDigest::of(b"gate");
    let [own, guests] = [&owner, &follower].map(|node| node.data.path().join("guests"));
    let folder = WorldFolder::new(&own, World::Gate);
    let held = folder.store(b"gate").unwrap();
    let chosen = (digest, "here".to_owned());
    let installing = owner.serving.guests();
    let installed = installing.install(&owner.control, &folder, chosen, Timestamp(1));
    installed.await.unwrap();
    drop(held);

    let (control, clock) = (&follower.control, Clock::system());
    let mut following = follower.serving.follow_guests(control, &guests, &clock);
    let folder = WorldFolder::new(&guests, World::Gate);
    let serving = || {
        let record = folder.read().unwrap();
        record.current_guest().map(|top| top.digest)
    };
    wait_until(async || {
        following.follow(Vec::new()).await;
        serving() == Some(digest)
    })
    .await;
    let fallen = RolledBackGuest {
        world: World::Gate,
        guest: digest,
        before: digest,
        why: "trap".to_owned(),
    };
    following.follow(vec![fallen]).await;
    wait_until(async || {
        following.follow(Vec::new()).await;
        serving().is_none()
    })
    .await;
    assert!(following.followed().fallen.is_empty());
    let row = guest_rows::read(&owner.control, World::Gate).await.unwrap();
    assert_eq!((row.serving.len(), row.sequence), (0, 2));
}
