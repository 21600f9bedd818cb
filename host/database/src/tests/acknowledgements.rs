//! Tests of commits that another machine acknowledges later: everybody who may see one waits for that.

use std::pin::pin;
use std::sync::{Barrier, Mutex};
use std::thread;

use svc_base::positions::{AcknowledgeFn, CommitPosition, Durable};
use svc_base::sync::lock;
use tokio::sync::{oneshot, watch};

use super::*;
use crate::changed_tables::CommitListener;
use crate::database::QueuedWriterWork;
use crate::pending_commits::{CommitAnnouncer, PendingCommits, SharedCommits};
use crate::writer::DatabaseWriter;

const TABLES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
    CREATE TABLE tags (note INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);";
const COUNT: &str = "SELECT count(*) FROM notes";
const HISTORY_BYTES: u64 = 64 << 20;

/// Acknowledger that waits until the test says so.
struct LateAcknowledger {
    last: watch::Sender<CommitPosition>,
    acknowledge: Mutex<Option<AcknowledgeFn>>,
}

impl Durable for LateAcknowledger {
    fn append(&self, position: CommitPosition, _at: Timestamp) {
        assert!(*self.last.borrow() < position, "each is handed over once");
        self.last.send_replace(position);
    }

    fn on_acknowledged(&self, acknowledge: AcknowledgeFn) {
        *lock(&self.acknowledge) = Some(acknowledge);
    }
}

impl LateAcknowledger {
    /// Begins after commit number `last`.
    fn after(last: u64) -> Arc<Self> {
        Arc::new(Self {
            last: watch::Sender::new(CommitPosition(last)),
            acknowledge: Mutex::default(),
        })
    }

    /// Number of the last commit that was handed over.
    fn last(&self) -> u64 {
        self.last.borrow().0
    }

    /// Waits until commit number `position` is handed over.
    async fn has(&self, position: u64) {
        let mut last = self.last.subscribe();
        last.wait_for(|last| last.0 >= position).await.unwrap();
    }

    fn acknowledge(&self, position: u64) {
        let acknowledge = lock(&self.acknowledge);
        acknowledge.as_ref().unwrap()(CommitPosition(position));
    }

    fn source(self: &Arc<Self>) -> DurableSource {
        let me = Arc::clone(self);
        DurableSource::new(move |_| {
            let durable: Arc<dyn Durable> = me.clone();
            (durable, CommitPosition(me.last()))
        })
    }
}

/// A database of several machines.
struct SharedFixture {
    fixture: Fixture,
    late: Arc<LateAcknowledger>,
    clock: Clock,
}

impl std::ops::Deref for SharedFixture {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl SharedFixture {
    /// Opens the databases in `data`.
    fn open(
        data: tempfile::TempDir,
        id: BackendId,
        late: Arc<LateAcknowledger>,
        history_bytes: u64,
    ) -> Self {
        let limits = DatabaseLimits {
            history_bytes,
            free_disk_bytes: 0,
            ..DatabaseLimits::default()
        };
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let durable = Some(late.source());
        let databases =
            Databases::open_with_durable(data.path(), &limits, clock.clone(), durable).unwrap();
        let fixture = Fixture {
            databases: Arc::new(databases),
            id,
            _data: data,
        };
        Self {
            fixture,
            late,
            clock,
        }
    }

    /// Makes a database, which is its first commit.
    async fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let id = BackendId::new(&Clock::system(), &Random::system()).unwrap();
        let shared = Self::open(data, id, LateAcknowledger::after(0), HISTORY_BYTES);
        {
            let mut made = pin!(shared.databases.create(id, script(TABLES)));
            assert!(waits(&mut made).await);
            shared.late.has(1).await;
            assert!(waits(&mut made).await, "not only its file must be there");
            shared.late.acknowledge(1);
            made.await.unwrap();
        }
        shared
    }

    /// Waits until the writer has finished what was queued before.
    async fn finish_jobs(&self) {
        let (done, is_done) = oneshot::channel();
        let job = Box::new(move |_: &mut DatabaseWriter| done.send(()).unwrap());
        let database = self.databases.get(self.id).unwrap();
        database.enqueue(QueuedWriterWork::Exclusive(job)).unwrap();
        is_done.await.unwrap();
    }

    /// Inserts a note, which is commit number `position`.
    async fn insert_acknowledged(&self, text: &str, position: u64) {
        let sql = insert(text);
        let mut write = pin!(self.run(&sql, true));
        assert!(waits(&mut write).await);
        self.late.has(position).await;
        self.late.acknowledge(position);
        write.await.unwrap();
    }
}

fn insert(text: &str) -> String {
    format!("INSERT INTO notes (text) VALUES ('{text}') RETURNING id")
}

#[tokio::test]
async fn a_write_is_answered_when_it_is_acknowledged_and_the_writer_goes_on_meanwhile() {
    let shared = SharedFixture::new().await;
    let told: Arc<Mutex<Vec<ChangedTables>>> = Arc::default();
    let list = Arc::clone(&told);
    let listen = move |_, touched| lock(&list).push(touched);
    shared.databases.set_commit_listener(listen);
    let (one, two) = (insert("one"), insert("two"));
    let mut first = pin!(shared.run(&one, true));
    assert!(waits(&mut first).await);
    shared.late.has(2).await;
    let mut second = pin!(shared.run(&two, true));
    assert!(waits(&mut second).await);
    shared.late.has(3).await;
    // The error of this one shows that the second is there.
    let mut failed = pin!(shared.run(&two, true));
    assert!(waits(&mut failed).await);
    shared.finish_jobs().await;
    assert!(waits(&mut first).await && waits(&mut second).await && waits(&mut failed).await);
    assert_eq!(lock(&told).len(), 0);
    shared.late.acknowledge(2);
    assert!(first.await.unwrap().contains(r#""id":1"#));
    assert_eq!(lock(&told).len(), 1);
    assert!(waits(&mut second).await && waits(&mut failed).await);
    shared.late.acknowledge(3);
    assert!(second.await.unwrap().contains(r#""id":2"#));
    assert!(failed.await.is_err());
    assert_eq!(lock(&told).len(), 2);
    assert_eq!(shared.late.last(), 3, "what failed has no position");
}

#[tokio::test]
async fn commits_that_are_acknowledged_together_keep_their_order() {
    let shared = SharedFixture::new().await;
    let told: Arc<Mutex<Vec<ChangedTables>>> = Arc::default();
    let list = Arc::clone(&told);
    let listen = move |_, touched| lock(&list).push(touched);
    shared.databases.set_commit_listener(listen);
    let read = StatementCall {
        sql: COUNT.into(),
        writes: false,
        params: Vec::new(),
    };
    let database = shared.databases.get(shared.id).unwrap();
    let timing = Arc::default();
    let watched = database.read_with_tables(read, &timing, drop).await;
    let ((), notes) = watched.unwrap();
    let one = insert("one");
    let mut first = pin!(shared.run(&one, true));
    assert!(waits(&mut first).await);
    shared.late.has(2).await;
    let mut second = pin!(shared.run("INSERT INTO tags VALUES (1)", true));
    assert!(waits(&mut second).await);
    shared.late.has(3).await;
    shared.late.acknowledge(3);
    first.await.unwrap();
    second.await.unwrap();
    shared.late.acknowledge(2);
    let told = lock(&told);
    let notes: Vec<bool> = told.iter().map(|t| t.affects(notes.as_deref())).collect();
    assert_eq!(notes, [true, false]);
}

#[tokio::test]
async fn an_answer_that_may_show_a_commit_waits_for_it() {
    let shared = SharedFixture::new().await;
    let database = shared.databases.get(shared.id).unwrap();
    let count = || StatementCall {
        sql: COUNT.into(),
        writes: false,
        params: Vec::new(),
    };
    let timing = Arc::default();
    // While nothing is under way each is answered.
    for _ in 0..2 {
        database.call(count(), &timing).await.unwrap();
    }
    let one = insert("one");
    let mut write = pin!(shared.run(&one, true));
    assert!(waits(&mut write).await);
    shared.late.has(2).await;
    let mut known = pin!(database.call(count(), &timing));
    let mut unknown = pin!(shared.run("SELECT text FROM notes", false));
    let live = database.read_with_tables(count(), &timing, |result| result.json);
    let mut live = pin!(live);
    let mut export = pin!(shared.databases.export(shared.id));
    let mut inventory = pin!(shared.databases.inventory(shared.id));
    let mut moments = pin!(shared.databases.list_moments(shared.id, None, 9));
    assert!(waits(&mut known).await && waits(&mut unknown).await && waits(&mut live).await);
    assert!(waits(&mut export).await && waits(&mut inventory).await);
    assert!(waits(&mut moments).await);
    shared.late.acknowledge(2);
    write.await.unwrap();
    let has = |json: &[u8], text: &[u8]| json.windows(text.len()).any(|part| part == text);
    assert!(has(&known.await.unwrap().json, b":1}"));
    assert!(unknown.await.unwrap().contains("one"));
    assert!(has(&live.await.unwrap().0, b":1}"));
    assert!(has(&export.await.unwrap(), b"one"));
    inventory.await.unwrap();
    moments.await.unwrap();
}

#[tokio::test]
async fn a_commit_that_fails_takes_no_position() {
    let shared = SharedFixture::new().await;
    let failed = shared.run("INSERT INTO tags VALUES (99)", true).await;
    assert!(failed.is_err(), "the foreign key is checked at the commit");
    assert_eq!(shared.late.last(), 1);
    shared.insert_acknowledged("one", 2).await;
    // A reader waits for a commit that has begun, until it has failed or is acknowledged.
    let late = LateAcknowledger::after(4);
    let announcer = CommitAnnouncer::new(shared.id, CommitListener::default());
    let commits = SharedCommits::start(announcer, &late.source());
    commits.wait_for_visible().await.unwrap();
    commits.begin_commit(CommitPosition(5));
    let mut reader = pin!(commits.wait_for_visible());
    assert!(waits(&mut reader).await);
    let failed = (CommitPosition(4), Timestamp(0));
    commits.hand_over(failed, &mut PendingCommits::default(), ());
    reader.await.unwrap();
    assert_eq!(late.last(), 4);
    commits.begin_commit(CommitPosition(5));
    let in_use = Arc::new(());
    let kept = Arc::clone(&in_use);
    let made = (CommitPosition(5), Timestamp(0));
    commits.hand_over(made, &mut PendingCommits::default(), kept);
    let mut reader = pin!(commits.wait_for_visible());
    assert!(waits(&mut reader).await);
    let given_up = commits.wait_within(Duration::ZERO).await;
    assert!(matches!(given_up, Err(StatementRunError::Busy)));
    assert_eq!(Arc::strong_count(&in_use), 2);
    late.acknowledge(5);
    reader.await.unwrap();
    assert_eq!(Arc::strong_count(&in_use), 1);
}

#[tokio::test]
async fn a_restore_is_one_commit_that_waits_like_any_other() {
    let shared = SharedFixture::new().await;
    shared.clock.advance(Duration::from_secs(1));
    shared.insert_acknowledged("one", 2).await;
    shared.clock.advance(Duration::from_secs(1));
    let (databases, id) = (&shared.databases, shared.id);
    let past = databases.list_moments(id, None, 9).await.unwrap();
    let rewound = databases.snapshot_at(id, past.oldest.unwrap()).await;
    let record = RestoreRecord {
        marker: MigrationMarker {
            version: 2,
            checksum: "2".to_owned(),
        },
        sql: "-- 2".to_owned(),
        made_at: shared.clock.now(),
        made_by: None,
    };
    let plan = RestorePlan {
        later_migrations: Vec::new(),
        record,
    };
    let mut restore = pin!(databases.restore_snapshot(id, rewound.unwrap(), plan));
    assert!(waits(&mut restore).await);
    shared.late.has(3).await;
    let mut read = pin!(shared.run(COUNT, false));
    assert!(waits(&mut read).await && waits(&mut restore).await);
    shared.late.acknowledge(3);
    restore.await.unwrap();
    assert!(read.await.unwrap().contains(":0}"));
}

#[tokio::test]
async fn commits_are_numbered_from_elsewhere_with_and_without_a_history() {
    for history_bytes in [0, HISTORY_BYTES] {
        // This machine alone has made it, and has numbered its commits.
        let set = |limits: &mut DatabaseLimits| {
            (limits.history_bytes, limits.free_disk_bytes) = (history_bytes, 0);
        };
        let alone = Fixture::with(TABLES, set).await;
        alone.run(&insert("alone"), true).await.unwrap();
        let Fixture {
            databases,
            id,
            _data: data,
        } = alone;
        databases.close_all();
        databases.await_closed();
        drop(databases);
        let late = LateAcknowledger::after(100);
        let shared = SharedFixture::open(data, id, late, history_bytes);
        for position in 101..103 {
            let text = position.to_string();
            shared.insert_acknowledged(&text, position).await;
            shared.databases.close_all();
            shared.databases.await_closed();
        }
        let database = shared.databases.get(id).unwrap();
        let numbers = database.with_writer_silently(|writer| {
            writer.record_history();
            Ok((writer.position().0, writer.history.last_commit_number()))
        });
        let recorded = if history_bytes > 0 { 102 } else { 0 };
        assert_eq!(numbers.await.unwrap(), (102, recorded));
        let report = check_integrity(shared.databases.files(), &id).unwrap();
        assert_eq!(report.damage, Vec::<String>::new());
    }
}

#[tokio::test]
async fn calls_that_open_a_database_at_once_share_its_acknowledgements() {
    let shared = SharedFixture::new().await;
    for round in 2..12 {
        shared.databases.close_all();
        let begin = Barrier::new(8);
        let get = || {
            begin.wait();
            shared.databases.get(shared.id).unwrap()
        };
        let opened: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(opened.iter().all(|one| Arc::ptr_eq(one, &opened[0])));
        drop(opened);
        shared.insert_acknowledged(&format!("{round}"), round).await;
    }
}
