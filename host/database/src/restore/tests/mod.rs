//! Going back, as a whole: whatever was written, however often it was reopened or killed.

mod events;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::schema::MigrationMarker;
use super::super::*;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::random::Random;

const SCHEMA: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, n INTEGER); CREATE INDEX by_n ON t (n)";
/// The longest log: the length at which it is truncated, and one more commit.
const LONGEST_LOG: u64 = (4000 + 1280 + 128) * 4120;

/// Why there was no restore.
#[derive(Debug)]
enum NotRestored {
    TooOld,
    HistoryTooSmall,
}

/// A database, with all states that it has had.
struct Fixture {
    databases: Arc<Databases>,
    clock: Clock,
    limits: DatabaseLimits,
    id: BackendId,
    data: TempDir,
    /// States that were committed, in order.
    states: Vec<State>,
    restores: u32,
}

#[derive(Clone, Debug)]
struct State {
    at: Timestamp,
    rows: String,
    kept: Retention,
}

/// Whether a state can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retention {
    /// Recorded in the history.
    Recorded,
    /// Not recorded yet: a crash may lose it.
    Pending,
    /// A crash came before it was recorded.
    MaybeLost,
}

fn script(sql: &str) -> MigrationScript {
    let mut statements = Vec::new();
    let mut start = 0;
    for (end, _) in sql.match_indices(';') {
        statements.push(start..end);
        start = end + 1;
    }
    statements.push(start..sql.len());
    MigrationScript {
        sql: sql.to_owned(),
        statements,
        checksum: sql.to_owned(),
    }
}

impl Fixture {
    async fn new(history_bytes: u64) -> Self {
        let data = TempDir::new().unwrap();
        let limits = DatabaseLimits {
            history_bytes,
            free_disk_bytes: 0,
            ..DatabaseLimits::default()
        };
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let databases = Databases::open(data.path(), &limits, clock.clone()).unwrap();
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        let mut fixture = Self {
            databases: Arc::new(databases),
            clock,
            limits,
            id,
            data,
            states: Vec::new(),
            restores: 0,
        };
        fixture.databases.create(id, script(SCHEMA)).await.unwrap();
        fixture.committed().await;
        fixture.taken();
        fixture
    }

    async fn rows(&self) -> String {
        let database = self.databases.get(self.id).unwrap();
        let rows = database.inspect(|c| {
            let mut read = c.prepare("SELECT id, a, n FROM t ORDER BY id")?;
            let rows = read.query_map([], |row| {
                let (id, a, n): (i64, String, i64) = row.try_into()?;
                Ok(format!("{id}={a}/{n}"))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        });
        let rows = rows.await.unwrap().join(";");
        if rows.len() < 2000 {
            return rows;
        }
        let digest = crc32fast::hash(rows.as_bytes());
        format!("{} bytes, {digest:08x}", rows.len())
    }

    /// Notes the present state as committed now.
    async fn committed(&mut self) {
        let now = self.clock.now();
        let at = self.states.last().map_or(now, |last| last.at.max(now));
        self.push(at, Retention::Pending).await;
    }

    async fn push(&mut self, at: Timestamp, kept: Retention) {
        let rows = self.rows().await;
        self.states.push(State { at, rows, kept });
    }

    /// Notes that all pending states are recorded in the history.
    fn taken(&mut self) {
        let waiting = self
            .states
            .iter_mut()
            .filter(|s| s.kept == Retention::Pending);
        waiting.for_each(|state| state.kept = Retention::Recorded);
    }

    async fn write(&mut self, sql: &str) {
        let call = StatementCall {
            sql: sql.into(),
            writes: true,
            params: Vec::new(),
        };
        let database = self.databases.get(self.id).unwrap();
        match database.call(call, &Arc::default()).await {
            // A write without an effect makes no commit.
            Ok(_) if self.states.last().unwrap().rows == self.rows().await => {}
            Ok(_) => self.committed().await,
            Err(error) => assert!(matches!(error, StatementRunError::DatabaseFull), "{error}"),
        }
    }

    fn open(&self, data: &Path) -> Arc<Databases> {
        Arc::new(Databases::open(data, &self.limits, self.clock.clone()).unwrap())
    }

    fn reopen(&mut self) {
        self.databases.close_all();
        self.databases.await_closed();
        self.databases = self.open(self.data.path());
        self.taken();
    }

    /// Kills the process in effect: only the files remain.
    async fn die(&mut self) {
        // Copying takes longer than a death does: nothing moves meanwhile.
        let database = self.databases.get(self.id).unwrap();
        database.with_writer(|_| Ok(())).await.unwrap();
        drop(database);
        let copy = TempDir::new().unwrap();
        copy_all(self.data.path(), copy.path());
        let before = std::mem::replace(&mut self.data, copy);
        self.databases = self.open(self.data.path());
        drop(before);
        let waiting = self
            .states
            .iter_mut()
            .filter(|s| s.kept == Retention::Pending);
        let mut blurred = false;
        waiting.for_each(|state| {
            state.kept = Retention::MaybeLost;
            blurred = true;
        });
        // The database is opened here, and not only at the next write.
        let past = self.databases.list_moments(self.id, None, 1).await.unwrap();
        let newest = past.newest.unwrap();
        if blurred || self.states.last().is_none_or(|state| state.at != newest) {
            self.push(newest, Retention::Recorded).await;
        }
    }

    /// Whether what is there now is what was committed last at `at`.
    #[track_caller]
    fn check(&self, at: Timestamp, rows: &str) {
        let mut then = self.states.iter().rev().filter(|state| state.at == at);
        let perhaps = then.clone().any(|state| state.kept == Retention::MaybeLost);
        let last = then.next().expect("there was something");
        let same = last.rows == rows || (perhaps && then.any(|state| state.rows == rows));
        assert!(same, "at {at} there was {last:?}, and not {rows}");
    }

    /// Goes back; returns what was restored and what undoes it. `None` if it is too long ago.
    async fn restore(&mut self, at: Timestamp) -> Result<(Timestamp, Timestamp), NotRestored> {
        let rewound = match self.databases.snapshot_at(self.id, at).await {
            Err(SnapshotError::TooOld { oldest }) => {
                assert!(oldest.unwrap() > at);
                return Err(NotRestored::TooOld);
            }
            rewound => rewound.unwrap(),
        };
        self.taken();
        let restored = rewound.at;
        self.restores += 1;
        let version = 1000 + self.restores;
        let record = RestoreRecord {
            marker: MigrationMarker {
                version,
                checksum: version.to_string(),
            },
            sql: format!("-- {version}"),
            made_at: self.clock.now(),
            made_by: None,
        };
        let plan = RestorePlan {
            later_migrations: Vec::new(),
            record,
        };
        let before = self.rows().await;
        let previous = match self
            .databases
            .restore_snapshot(self.id, rewound, plan)
            .await
        {
            Ok(done) => done.previous,
            Err(refused) => {
                assert!(matches!(
                    refused.error.error,
                    StatementRunError::HistoryTooSmall
                ));
                assert_eq!(self.rows().await, before, "nothing has changed");
                return Err(NotRestored::HistoryTooSmall);
            }
        };
        let at = self.clock.now().max(Timestamp(previous.0 + 1));
        self.push(at, Retention::Pending).await;
        Ok((restored, previous))
    }

    /// Restores `at`, compares row for row, and undoes it.
    async fn restore_and_undo(&mut self, at: Timestamp) {
        let before = self.rows().await;
        let Ok((restored, previous)) = self.restore(at).await else {
            return;
        };
        assert!(restored <= at);
        self.check(restored, &self.rows().await);
        let skipped = self.states.iter().find(|state| {
            state.kept == Retention::Recorded && state.at > restored && state.at <= at
        });
        assert!(
            skipped.is_none(),
            "{restored} for {at}: {skipped:?} was later"
        );
        match self.restore(previous).await {
            Ok(_) => assert_eq!(self.rows().await, before, "the undo"),
            // The restore is done, and it cannot be undone.
            Err(NotRestored::HistoryTooSmall) => {}
            Err(NotRestored::TooOld) => panic!("the undo is gone"),
        }
    }

    fn bytes(&self) -> (u64, u64) {
        let directory = self.data.path().join("backends").join(self.id.to_string());
        let (mut history, mut log) = (0, 0);
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let bytes = entry.metadata().unwrap().len();
            if name.ends_with(".history") {
                history += bytes;
            } else if name.ends_with("-wal") {
                log = bytes;
            }
        }
        (history, log)
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        if path.is_dir() {
            copy_all(&path, &to.join(name));
        } else if path.extension().is_none_or(|e| e != "db-shm") {
            let copy = to.join(name);
            std::fs::copy(&path, &copy).unwrap();
            // A crash does not change a file's time of modification.
            let written = path.metadata().unwrap().modified().unwrap();
            let copy = std::fs::File::options().write(true).open(copy).unwrap();
            copy.set_modified(written).unwrap();
        }
    }
}

/// Simulates a day with constant writes and reads, in steps of five minutes.
#[tokio::test]
async fn a_busy_day_keeps_within_its_bounds() {
    const HISTORY: u64 = 3 << 19;
    let mut fixture = Fixture::new(HISTORY).await;
    fixture
        .write(
            "INSERT INTO t (a, n) WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 800)
             SELECT hex(randomblob(200)), x FROM c",
        )
        .await;
    let started = fixture.clock.now();
    let mut oldest = started;
    for step in 0..288 {
        for turn in 0..4 {
            let sql = format!(
                "UPDATE t SET a = hex(randomblob(200)) WHERE id % 97 = {}",
                (step * 4 + turn) % 97
            );
            fixture.write(&sql).await;
        }
        fixture.clock.advance(Duration::from_secs(300));
        fixture.databases.record_all_histories();
        if step % 24 == 23 {
            fixture.databases.prune_histories().await.unwrap();
            let past = fixture
                .databases
                .list_moments(fixture.id, None, 1)
                .await
                .unwrap();
            assert!(past.oldest >= Some(oldest), "what is gone stays gone");
            oldest = past.oldest.unwrap();
        }
        let (history, log) = fixture.bytes();
        assert!(history <= HISTORY, "step {step}: {history}");
        assert!(log <= LONGEST_LOG, "step {step}: {log}");
    }
    assert!(oldest > started, "more was written than is kept");
    fixture.taken();
    fixture
        .restore_and_undo(Timestamp(fixture.clock.now().0 - 600_000))
        .await;
}

/// A call that comes while a database is being closed waits for that, so that its history has one writer at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_and_opening_at_once_leave_no_gap() {
    let mut fixture = Fixture::new(64 << 20).await;
    let (databases, done) = (
        Arc::clone(&fixture.databases),
        Arc::new(AtomicBool::new(false)),
    );
    let stop = Arc::clone(&done);
    let closer = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            databases.close_all();
        }
    });
    for n in 0..100 {
        fixture.clock.advance(Duration::from_millis(5));
        let sql = format!("INSERT INTO t (a, n) VALUES ('row', {n})");
        fixture.write(&sql).await;
    }
    done.store(true, Ordering::Relaxed);
    closer.join().unwrap();
    fixture.taken();
    let past = fixture
        .databases
        .list_moments(fixture.id, None, 1000)
        .await
        .unwrap();
    let moments: Vec<_> = past.moments.into_iter().rev().collect();
    let made: Vec<_> = fixture.states.iter().map(|state| state.at).collect();
    assert_eq!(moments, made);
    let chains = std::fs::read_dir(
        fixture
            .data
            .path()
            .join("backends")
            .join(fixture.id.to_string()),
    );
    let names = chains
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".history")).count(), 1);
    for at in [made[10], made[50], made[99]] {
        fixture.restore_and_undo(at).await;
    }
}
