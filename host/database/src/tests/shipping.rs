//! Commits that are shipped and loaded elsewhere: the same database, or a refusal.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, MAIN_DB};
use svc_base::disk;
use svc_base::positions::{AcknowledgeFn, Checksum, CommitPosition, Durable, Entry};
use svc_base::sync::lock;
use tempfile::TempDir;

use super::*;

pub(super) const NAME: &str = DatabasesDirectory::NAME;
const TABLES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB);
    CREATE INDEX by_a ON t (a);
    CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;";
/// Number of the last commit before the first that is shipped.
const FIRST: u64 = 7;

/// A base, as the bucket and the ledger have it.
#[derive(Clone)]
pub(super) struct StoredBase {
    bytes: Vec<u8>,
    position: CommitPosition,
    state: Checksum,
}

impl StoredBase {
    /// Finishes a snapshot.
    fn of(snapshot: BaseSnapshot, directory: &Path) -> (Self, DatabaseState) {
        let file = directory.join("base");
        let state = snapshot.write_to(&file).unwrap();
        let base = Self {
            bytes: fs::read(file).unwrap(),
            position: state.position(),
            state: state.checksum(),
        };
        assert!(!directory.join("base.plain").exists());
        (base, state)
    }
}

/// A database whose commits are shipped.
pub(super) struct Source {
    directory: TempDir,
    pub(super) connection: Connection,
    commits: Arc<AtomicU64>,
    pub(super) shipper: LogShipper,
    pub(super) bases: Vec<StoredBase>,
    pub(super) entries: Vec<Entry>,
    /// Content of the database after some commits.
    images: Vec<(CommitPosition, Vec<u8>)>,
}

pub(super) fn connect(directory: &Path, commits: &Arc<AtomicU64>) -> Connection {
    let mut connection = Connection::open(directory.join(NAME)).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
            PRAGMA cache_size = 20;",
        )
        .unwrap();
    let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep_log, true).unwrap();
    let counted = Arc::clone(commits);
    let count = move |_: &mut Wal, _: i32| -> rusqlite::Result<()> {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    connection.wal_hook(Some(count)).unwrap();
    connection
}

impl Source {
    /// Makes a database, whose log already has commits.
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let commits = Arc::new(AtomicU64::new(0));
        let connection = connect(directory.path(), &commits);
        connection.execute_batch(TABLES).unwrap();
        commits.store(FIRST, Ordering::Relaxed);
        let path = directory.path().join(NAME);
        let first = BaseSnapshot::begin(&path, CommitPosition(FIRST), None).unwrap();
        let (base, state) = StoredBase::of(first, directory.path());
        let dir = disk::open_directory(directory.path()).unwrap();
        Self {
            shipper: LogShipper::new(dir, DatabasesDirectory::LOG_NAME, state),
            directory,
            connection,
            commits,
            bases: vec![base],
            entries: Vec::new(),
            images: Vec::new(),
        }
    }

    pub(super) fn run(&self, sql: &str) {
        self.connection
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn position(&self) -> CommitPosition {
        CommitPosition(self.commits.load(Ordering::Relaxed))
    }

    /// Ships the commits up to `position`, and notes what the database has.
    fn ship_up_to(&mut self, position: CommitPosition) {
        let before = self.shipper.state().position();
        let entries = self.shipper.ship(position, Timestamp(9)).unwrap();
        assert_eq!(entries.len() as u64, position.0 - before.0);
        assert_eq!(self.shipper.state().position(), position);
        self.entries.extend(entries);
        let image = self.connection.serialize(MAIN_DB).unwrap().to_vec();
        self.images.push((position, image));
    }

    pub(super) fn ship(&mut self) {
        self.ship_up_to(self.position());
    }

    pub(super) fn copy_log(&self, how: &str) {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        let busy: i64 = self
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap();
        assert_eq!(busy, 0);
    }

    fn reopen(&mut self, keep_log: bool) {
        let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        self.connection.set_db_config(config, keep_log).unwrap();
        // The first is closed before the second is opened.
        self.connection = Connection::open_in_memory().unwrap();
        self.connection = connect(self.directory.path(), &self.commits);
    }

    fn begin_base(&self) -> BaseSnapshot {
        let path = self.directory.path().join(NAME);
        let state = self.shipper.state();
        BaseSnapshot::begin(&path, state.position(), Some(state.checksum())).unwrap()
    }

    /// Commits after `base` up to `last`.
    fn tail(&self, base: &StoredBase, last: CommitPosition) -> Vec<Entry> {
        let between = |entry: &&Entry| base.position < entry.position && entry.position <= last;
        self.entries.iter().filter(between).cloned().collect()
    }

    /// Loads the database as it was at the end of image number `image`, from `base`.
    fn check_load(&self, base: &StoredBase, image: usize) {
        let (position, image) = &self.images[image];
        let directory = tempfile::tempdir().unwrap();
        let state = load(base, &self.tail(base, *position), directory.path()).unwrap();
        assert_eq!(state.position(), *position);
        let path = directory.path().join(NAME);
        let found = masked(fs::read(&path).unwrap());
        assert!(found == masked(image.clone()), "{position:?}");
        let loaded = Connection::open(path).unwrap();
        let check: String = loaded
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
    }
}

/// Leaves out what SQLite counts in each copy for itself.
pub(super) fn masked(mut image: Vec<u8>) -> Vec<u8> {
    for range in [18..20, 24..28, 92..100] {
        image[range].fill(0);
    }
    image
}

/// Loads a database, with its commits in pieces.
pub(super) fn load(
    base: &StoredBase,
    tail: &[Entry],
    into: &Path,
) -> Result<DatabaseState, LoadError> {
    let dir = disk::open_directory(into).unwrap();
    let mut loader = DatabaseLoader::start(dir, NAME, &*base.bytes, base.position, base.state)?;
    for piece in tail.chunks(3) {
        loader = loader.apply(piece)?;
    }
    loader.finish()
}

/// Numbers below bounds, the same for each seed.
pub(super) fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |bound| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    }
}

pub(super) fn random_change(next: &mut impl FnMut(u64) -> u64) -> String {
    let (n, bytes, k) = (next(1000), next(9000), next(4));
    let many = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO t (a, b) SELECT i * {n} % 91, printf('%.*c', 600 + i, 'm') FROM n"
    );
    match next(14) {
        0 | 1 => format!("INSERT INTO t (a, b) VALUES ({n}, printf('%.*c', {bytes}, 'x'))"),
        2 => format!("REPLACE INTO w VALUES ({n} % 60, printf('%d%.*c', {n}, {bytes}, 'w'))"),
        3 => format!("UPDATE t SET a = a || 'u' WHERE id % 5 = {n} % 5"),
        4 => format!("DELETE FROM t WHERE id % 3 = {n} % 3; DELETE FROM w WHERE k > '{n}'"),
        5 => format!("INSERT INTO t (a, b) VALUES ('big', zeroblob(200000 + {n}))"),
        6 => format!("BEGIN; {many}; DELETE FROM t WHERE id % 7 = {n} % 7; COMMIT"),
        // Its pages are in the log, and no commit.
        7 => format!("BEGIN; {many}; ROLLBACK"),
        8 => "VACUUM".to_owned(),
        9 => "DELETE FROM t; VACUUM".to_owned(),
        10 => format!(
            "CREATE TABLE IF NOT EXISTS x{k} (a UNIQUE, b);
            INSERT OR IGNORE INTO x{k} VALUES ({n}, zeroblob({bytes}))"
        ),
        11 => format!("DROP TABLE IF EXISTS x{k}"),
        12 => format!("CREATE INDEX IF NOT EXISTS i{k} ON t (length(b), a)"),
        _ => format!("DROP INDEX IF EXISTS i{k}"),
    }
}

#[test]
fn what_is_shipped_is_loaded_as_the_same_database() {
    for seed in 0..4 {
        let mut next = numbers(seed);
        let mut source = Source::new();
        for _ in 0..30 {
            let snapshot = (next(5) == 0).then(|| source.begin_base());
            for _ in 0..=next(3) {
                source.run(&random_change(&mut next));
            }
            source.ship();
            // Later commits are not in it.
            if let Some(snapshot) = snapshot {
                let (base, _) = StoredBase::of(snapshot, source.directory.path());
                source.bases.push(base);
            }
            match next(8) {
                0 => source.copy_log("PASSIVE"),
                1 => source.copy_log("RESTART"),
                2 => (0..=next(2)).for_each(|_| source.copy_log("TRUNCATE")),
                3 => source.reopen(true),
                4 => source.reopen(false),
                _ => {}
            }
        }
        let last = source.images.len() - 1;
        for base in &source.bases {
            let later = source.images.iter();
            let later = later.filter(|(position, _)| *position >= base.position);
            let earlier = source.images.len() - later.count();
            let between = usize::try_from(next((last - earlier) as u64 + 1)).unwrap();
            source.check_load(base, earlier + between);
            source.check_load(base, last);
        }
    }
}

#[test]
fn a_commit_is_as_large_as_the_pages_that_it_wrote() {
    let mut source = Source::new();
    for _ in 0..20 {
        source.run("INSERT INTO t (a, b) VALUES ('big', zeroblob(100000))");
    }
    source.ship();
    source.run("INSERT INTO w VALUES ('small', 1)");
    source.ship();
    let last = source.entries.last().unwrap();
    let content = crate::entry_body::UnpackedBody::of(&last.body).unwrap();
    let pages = content.commit_pages().unwrap();
    assert!(pages.pages() > 480, "{}", pages.pages());
    assert!(pages.written().count() < 5);
    assert_eq!(last.at, Timestamp(9));
}

#[test]
fn a_database_without_new_commits_ships_none() {
    let mut source = Source::new();
    source.ship();
    source.run("BEGIN; SELECT 1; COMMIT");
    source.ship();
    source.reopen(false);
    source.ship();
    assert!(source.entries.is_empty());
}

#[test]
fn commits_that_nobody_counted_are_in_the_first_entry() {
    let mut source = Source::new();
    source.run("INSERT INTO t (a) VALUES (1)");
    source.ship();
    for n in 2..5 {
        source.run(&format!("INSERT INTO t (a) VALUES ({n})"));
    }
    source.ship_up_to(CommitPosition(FIRST + 3));
    source.check_load(&source.bases[0], 1);
    let directory = tempfile::tempdir().unwrap();
    load(&source.bases[0], &source.entries[..2], directory.path()).unwrap();
    let loaded = Connection::open(directory.path().join(NAME)).unwrap();
    let rows: i64 = loaded
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 3);
}

#[test]
fn a_log_that_lost_commits_before_they_were_read_is_an_error() {
    let mut source = Source::new();
    source.run("INSERT INTO t (a) VALUES (1)");
    source.ship();
    source.run("INSERT INTO t (a) VALUES (2)");
    source.copy_log("TRUNCATE");
    let state = source.shipper.state().clone();
    for found in 0..2 {
        let position = source.position();
        let error = source.shipper.ship(position, Timestamp(0)).unwrap_err();
        let lost = matches!(error, ShipError::MissingCommits { found: f, .. } if f == found);
        assert!(lost, "{error}");
        assert_eq!(*source.shipper.state(), state);
        source.run("INSERT INTO t (a) VALUES (3)");
    }
}

#[test]
fn a_snapshot_in_another_state_than_it_should_have_leaves_no_base() {
    let mut source = Source::new();
    source.run("INSERT INTO t (a) VALUES (1)");
    let early = source.begin_base();
    let file = source.directory.path().join("base");
    early.write_to(&file).unwrap_err();
    assert!(!file.exists());
    source.ship();
    source.begin_base().write_to(&file).unwrap();
    assert!(file.exists());
}

/// Loads what cannot be loaded, over an earlier file, which must stay.
#[track_caller]
fn refused(base: &StoredBase, tail: &[Entry]) -> LoadError {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(NAME), "earlier").unwrap();
    let error = load(base, tail, directory.path()).unwrap_err();
    let kept = fs::read(directory.path().join(NAME)).unwrap();
    assert_eq!(kept, b"earlier");
    error
}

/// A database of six commits after its base, of one page or more each.
fn six_commits() -> Source {
    let mut source = Source::new();
    for n in 0..6 {
        source.run(&format!("INSERT INTO t (a) VALUES ({n})"));
        source.ship();
    }
    source.check_load(&source.bases[0], 5);
    source
}

#[test]
fn a_missing_commit_is_refused() {
    let source = six_commits();
    let (base, tail) = (&source.bases[0], &source.entries);
    let missing = |tail: &[Entry]| match refused(base, tail) {
        LoadError::MissingCommit { position, found } => (position.0 - FIRST, found.0 - FIRST),
        other => panic!("{other}"),
    };
    assert_eq!(missing(&tail[1..]), (1, 2));
    let without = |left_out: usize| [&tail[..left_out], &tail[left_out + 1..]].concat();
    assert_eq!(missing(&without(2)), (3, 4));
    assert_eq!(missing(&without(4)), (5, 6));
    let twice = [&tail[..2], &tail[1..]].concat();
    assert_eq!(missing(&twice), (3, 2));
    let mut swapped = tail.clone();
    swapped.swap(1, 2);
    assert_eq!(missing(&swapped), (2, 3));
}

#[test]
fn a_damaged_commit_is_refused_by_its_number() {
    let source = six_commits();
    let (base, tail) = (&source.bases[0], &source.entries);
    let third = CommitPosition(FIRST + 3);
    let with = |change: &dyn Fn(&mut Entry)| {
        let mut tail = tail.clone();
        change(&mut tail[2]);
        refused(base, &tail)
    };
    for length in [0, 7, 8, tail[2].body.len() - 1] {
        let error = with(&|entry: &mut Entry| entry.body = Arc::from(&tail[2].body[..length]));
        let is_named = matches!(error, LoadError::DamagedBody { position } if position == third);
        assert!(is_named, "{length}: {error}");
    }
    for place in (0..tail[2].body.len()).step_by(9) {
        let error = with(&|entry: &mut Entry| {
            let mut body = entry.body.to_vec();
            body[place] ^= 0x5a;
            entry.body = body.into();
        });
        let is_named = matches!(error, LoadError::DamagedBody { position }
            | LoadError::WrongState { position } if position == third);
        assert!(is_named, "{place}: {error}");
    }
    let others = with(&|entry: &mut Entry| entry.body = Arc::clone(&tail[1].body));
    let elsewhere = with(&|entry: &mut Entry| entry.after = Checksum(7));
    for error in [others, elsewhere] {
        let is_named = matches!(error, LoadError::WrongState { position } if position == third);
        assert!(is_named, "{error}");
    }
    let error = with(&|entry: &mut Entry| entry.before = Checksum(7));
    let is_named = matches!(error, LoadError::OtherState { position } if position == third);
    assert!(is_named, "{error}");
}

#[test]
fn a_wrong_base_is_refused() {
    let source = six_commits();
    let (base, tail) = (&source.bases[0], &source.entries);
    let (later, _) = StoredBase::of(source.begin_base(), source.directory.path());
    let last = later.position;
    assert!(load_alone(&later) == last);
    // Of a later state, under the earlier number.
    let renamed = StoredBase {
        position: base.position,
        ..later.clone()
    };
    let error = refused(&renamed, tail);
    assert!(matches!(error, LoadError::OtherState { position } if position.0 == FIRST + 1));
    let other = StoredBase {
        bytes: later.bytes.clone(),
        ..base.clone()
    };
    let error = refused(&other, tail);
    assert!(matches!(error, LoadError::WrongBase { position } if position == base.position));
    let error = refused(&later, tail);
    assert!(matches!(error, LoadError::MissingCommit { position, .. } if position == last.next()));
    let length = base.bytes.len();
    for end in [0, 3, length / 2, length - 1] {
        let cut = StoredBase {
            bytes: base.bytes[..end].to_vec(),
            ..base.clone()
        };
        refused(&cut, tail);
    }
    for place in (0..length).step_by(13) {
        let mut damaged = base.clone();
        damaged.bytes[place] ^= 0x5a;
        refused(&damaged, tail);
    }
}

/// Loads a base without commits; returns its position.
fn load_alone(base: &StoredBase) -> CommitPosition {
    let directory = tempfile::tempdir().unwrap();
    load(base, &[], directory.path()).unwrap().position()
}

#[test]
fn what_an_earlier_file_left_is_no_part_of_what_is_loaded() {
    let source = six_commits();
    // As after a crash: a file, its log with commits, and half a load.
    let directory = tempfile::tempdir().unwrap();
    for name in [NAME, DatabasesDirectory::LOG_NAME] {
        fs::copy(
            source.directory.path().join(name),
            directory.path().join(name),
        )
        .unwrap();
    }
    fs::write(directory.path().join(format!(".{NAME}.loading")), "half").unwrap();
    load(&source.bases[0], &source.entries[..2], directory.path()).unwrap();
    let names = fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [NAME]);
    let loaded = Connection::open(directory.path().join(NAME)).unwrap();
    let rows: i64 = loaded
        .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2);
}

/// Acknowledger that ships each commit of a tenant's database.
#[derive(Default)]
struct ShippingAcknowledger {
    database: Mutex<Option<PathBuf>>,
    shipped: Mutex<Option<(LogShipper, StoredBase)>>,
    entries: Mutex<Vec<Entry>>,
    acknowledge: Mutex<Option<AcknowledgeFn>>,
}

impl Durable for ShippingAcknowledger {
    fn append(&self, position: CommitPosition, at: Timestamp) {
        let database = lock(&self.database).clone().unwrap();
        let directory = database.parent().unwrap();
        let mut shipped = lock(&self.shipped);
        if let Some((shipper, _)) = &mut *shipped {
            lock(&self.entries).extend(shipper.ship(position, at).unwrap());
        } else {
            let snapshot = BaseSnapshot::begin(&database, position, None).unwrap();
            let (base, state) = StoredBase::of(snapshot, directory);
            let dir = disk::open_directory(directory).unwrap();
            let shipper = LogShipper::new(dir, DatabasesDirectory::LOG_NAME, state);
            *shipped = Some((shipper, base));
        }
        lock(&self.acknowledge).as_ref().unwrap()(position);
    }

    fn on_acknowledged(&self, acknowledge: AcknowledgeFn) {
        *lock(&self.acknowledge) = Some(acknowledge);
    }
}

impl ShippingAcknowledger {
    /// Acknowledges the commits of all databases below `data`, which are one.
    fn source(self: &Arc<Self>, data: &Path) -> DurableSource {
        let (me, data) = (Arc::clone(self), data.canonicalize().unwrap());
        DurableSource::new(move |id| {
            let directory = data.join("backends").join(id.to_string());
            *lock(&me.database) = Some(directory.join(NAME));
            let shipped = lock(&me.shipped);
            let last = shipped
                .as_ref()
                .map(|(shipper, _)| shipper.state().position());
            let durable: Arc<dyn Durable> = me.clone();
            (durable, last.unwrap_or_default())
        })
    }
}

#[tokio::test]
async fn a_tenants_database_is_shipped_from_its_making_on() {
    let data = tempfile::tempdir().unwrap();
    let shipping = Arc::new(ShippingAcknowledger::default());
    let limits = DatabaseLimits {
        free_disk_bytes: 0,
        ..DatabaseLimits::default()
    };
    let clock = Clock::manual(Timestamp(1_795_262_400_000));
    let durable = Some(shipping.source(data.path()));
    let databases =
        Databases::open_with_durable(data.path(), &limits, clock.clone(), durable).unwrap();
    let id = BackendId::new(&clock, &Random::system()).unwrap();
    let fixture = Fixture {
        databases: Arc::new(databases),
        id,
        _data: data,
    };
    fixture.databases.create(id, script(SCHEMA)).await.unwrap();
    for round in 0..4 {
        for number in 0..3 {
            clock.advance(Duration::from_secs(1));
            let insert = format!("INSERT INTO notes (text) VALUES ('{round} {number}')");
            fixture.run(&insert, true).await.unwrap();
            let last = lock(&shipping.entries).last().map(|entry| entry.at);
            assert_eq!(last, Some(clock.now()));
        }
        let index = format!("CREATE INDEX i{round} ON notes (n, text);");
        fixture.migrate(&index).await.unwrap();
        // The log is copied and removed, and another begins.
        fixture.databases.close_all();
        fixture.databases.await_closed();
    }
    let moments = fixture.databases.list_moments(id, None, 99).await.unwrap();
    let rows = fixture.number("SELECT count(*) FROM notes").await;
    let entries = lock(&shipping.entries).clone();
    assert!(entries.len() >= 16, "{}", entries.len());
    let is_listed = |entry: &Entry| moments.moments.contains(&entry.at);
    assert!(entries.iter().all(is_listed));
    let directory = tempfile::tempdir().unwrap();
    let shipped = lock(&shipping.shipped);
    let (shipper, base) = shipped.as_ref().unwrap();
    let state = load(base, &entries, directory.path()).unwrap();
    assert_eq!(state, *shipper.state());
    let loaded = Connection::open(directory.path().join(NAME)).unwrap();
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let found = loaded.query_row("SELECT count(*) FROM notes", [], count);
    assert_eq!(found.unwrap(), rows);
}
