//! An open connection to a tenant's database, with its walls and its meter.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::limits::Limit;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::commits::Commits;
use super::cost::Cost;
use super::error::{RunError, internal};
use super::limits::{PAGE_BYTES, VALUE_BYTES};
use super::meter::{Deadline, Exceeded, Meter, Watch};
use super::statements::{KnownStatements, StatementFacts};
use super::touched::{Tables, Touched};
use super::walls::{Role, Walls};
use super::watchdog::Watchdog;
use svc_base::clock::Clock;
use svc_base::disk;

/// A connection's page cache, in KiB; all of them together have a bound of their own.
const CACHE_KIB: i64 = 2048;
/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 32;
/// A disk with less room than this, in bytes, is what a write has failed for.
const DISK_FULL: u64 = 256 << 10;
/// The write-ahead log is cut back to this when it starts anew, in bytes.
const WAL_BYTES: i64 = 4 << 20;
/// How long the writer waits for readers when it cuts the log: longer than any statement runs.
pub(super) const READERS: Duration = Duration::from_secs(3);

/// A connection behind its walls.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) connection: Connection,
    pub(super) walls: Walls,
    meter: Meter,
    statements: KnownStatements,
    /// Tables written since somebody last asked.
    touched: RefCell<Touched>,
    /// The longest value that SQLite takes at the moment, in bytes.
    longest: Cell<i32>,
    /// Pages in the write-ahead log after the last commit.
    log_pages: Arc<AtomicI32>,
}

/// Settings that a database file is opened with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The absolute path, made of names of the host's own alone.
    pub(super) path: PathBuf,
    /// How large the database may become, in bytes.
    pub(super) most_bytes: u64,
    /// How often its schema has changed.
    schema: Arc<AtomicU64>,
    /// Clock of the functions that tell the time.
    clock: Clock,
    watchdog: Watchdog,
}

impl Settings {
    /// Those of a database of an installation.
    pub(super) fn new(path: PathBuf, most_bytes: u64, clock: Clock, watchdog: &Watchdog) -> Self {
        Self {
            path,
            most_bytes,
            schema: Arc::default(),
            clock,
            watchdog: watchdog.clone(),
        }
    }

    /// Those of a database that no tenant calls.
    pub(super) fn alone(path: PathBuf, most_bytes: u64) -> Self {
        Self::new(path, most_bytes, Clock::system(), &Watchdog::default())
    }

    /// Notes that the schema may have changed: what is known of statements holds no longer.
    pub(super) fn schema_changed(&self) {
        self.schema.fetch_add(1, Ordering::Release);
    }

    /// Builds the walls around a connection, and its meter.
    pub(super) fn guard(&self, connection: &mut Connection) -> rusqlite::Result<(Meter, Walls)> {
        let meter = Meter::install(connection, &self.watchdog)?;
        let walls = Walls::build(connection, &meter.deadline(), &self.clock)?;
        Ok((meter, walls))
    }

    /// SQLite has one error for a full database and a full disk: the disk says which it was.
    pub(super) fn full_disk_or_database(&self, error: RunError) -> RunError {
        match error {
            RunError::DatabaseFull if self.disk_is_full() => RunError::DiskFull,
            other => other,
        }
    }

    fn disk_is_full(&self) -> bool {
        let directory = self.path.parent().unwrap_or(&self.path);
        disk::free_bytes(directory).is_ok_and(|free| free < DISK_FULL)
    }
}

impl Handle {
    /// Opens the one connection that writes; the file is there already.
    pub(super) fn writer(settings: &Settings) -> Result<Self, RunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(internal)
    }

    /// Makes the file and opens it to write.
    pub(super) fn create(settings: &Settings) -> Result<Self, RunError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open(settings, flags).map_err(internal)
    }

    /// Opens a connection that cannot write.
    pub(super) fn reader(settings: &Settings) -> Result<Self, RunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(internal)
    }

    /// Makes a database in memory that nobody else sees, of what `fill` puts into it.
    pub(super) fn in_memory(
        settings: &Settings,
        fill: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, RunError> {
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            fill(&mut connection)?;
            bound_pages(&connection, settings)?;
            Self::build(connection, settings)
        };
        open().map_err(internal)
    }

    fn open(settings: &Settings, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&settings.path, flags)?;
        connection.busy_timeout(READERS)?;
        // The last connection to close would copy the log, and history might not have it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let pragma = |name, value: i64| connection.pragma_update(None, name, value);
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
            pragma("query_only", 1)?;
        } else {
            pragma("page_size", PAGE_BYTES.cast_signed())?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            pragma("journal_size_limit", WAL_BYTES)?;
            // The executor decides when: after it has answered.
            pragma("wal_autocheckpoint", 0)?;
            bound_pages(&connection, settings)?;
        }
        pragma("cache_size", -CACHE_KIB)?;
        Self::build(connection, settings)
    }

    /// Builds the walls around a connection, and its meter.
    fn build(mut connection: Connection, settings: &Settings) -> rusqlite::Result<Self> {
        connection.pragma_update(None, "cell_size_check", 1)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        let (meter, walls) = settings.guard(&mut connection)?;
        let log_pages = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&log_pages);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            connection,
            walls,
            meter,
            statements: KnownStatements::new(Arc::clone(&settings.schema)),
            touched: RefCell::default(),
            longest: Cell::new(VALUE_BYTES),
            log_pages,
        })
    }

    /// Has every commit counted, with its time, before anybody is told of it: where that is to be found.
    pub(super) fn count_commits(&mut self, clock: Clock) -> rusqlite::Result<Arc<Commits>> {
        let commits = Commits::none(clock.now());
        let (log_pages, counted) = (Arc::clone(&self.log_pages), Arc::clone(&commits));
        self.connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.count(clock.now());
            log_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(commits)
    }

    /// How many pages the write-ahead log had after the last commit.
    pub(super) fn log_pages(&self) -> i32 {
        self.log_pages.load(Ordering::Relaxed)
    }

    /// Copies the write-ahead log into the database; returns whether all of it is there. One that is wholly copied is
    /// begun anew by the next write.
    pub(super) fn checkpoint(&self, mode: CheckpointMode) -> rusqlite::Result<bool> {
        let (in_log, copied) = self.copy_log(mode)?;
        let wholly = copied >= in_log;
        let left = if wholly { 0 } else { in_log };
        self.log_pages.store(left, Ordering::Relaxed);
        Ok(wholly)
    }

    /// Copies the log; returns how many pages are in it, and how many of them are copied.
    pub(super) fn copy_log(&self, mode: CheckpointMode) -> rusqlite::Result<(i32, i32)> {
        self.connection.wal_checkpoint_v2(None::<&str>, mode)
    }

    /// Notes that all of the log is copied.
    pub(super) fn log_is_copied(&self) {
        self.log_pages.store(0, Ordering::Relaxed);
    }

    /// Closes, and removes an empty log if nobody else has the database open.
    pub(super) fn leave_no_log(self) {
        // Where that fails, the empty log stays.
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }

    /// Runs `work` for a tenant: in a role, and measured against a budget.
    pub(super) fn tenant<T>(
        &self,
        role: Role,
        budget: Duration,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, RunError> {
        self.watched(role, budget, Watch::InLane, work)
    }

    /// Runs `work`, watched as closely as a statement.
    pub(super) fn watched<T>(
        &self,
        role: Role,
        budget: Duration,
        watch: Watch,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, RunError> {
        self.walls.play(role);
        self.meter.start(budget, watch);
        let result = work(&self.connection);
        let exceeded = self.meter.stop();
        self.walls.play(Role::Platform);
        let longest = self.longest.get();
        let whole = self.bound_values(VALUE_BYTES);
        let result = result.map_err(|failure| match failure {
            Failure::Sqlite(error) | Failure::Running(error)
                if longest < VALUE_BYTES && is_too_big(&error) =>
            {
                match watch {
                    Watch::Closely => RunError::Elsewhere,
                    Watch::InLane => RunError::Failed(too_long(longest)),
                }
            }
            failure => failure.into_run_error(exceeded),
        });
        whole.map_err(internal)?;
        result
    }

    /// The cost of a statement that is prepared on this connection. One whose cost is not known is looked into.
    ///
    /// # Errors
    /// SQLite's.
    pub(super) fn cost(&self, sql: &str) -> Result<Cost, Failure> {
        if let Some(cost) = self.known_cost(sql) {
            return Ok(cost);
        }
        let facts = StatementFacts::of(&self.connection, &self.walls, sql)?;
        let cost = facts.cost;
        self.statements.put(sql, facts);
        Ok(cost)
    }

    /// The cost of a statement, if it is known on this connection.
    pub(super) fn known_cost(&self, sql: &str) -> Option<Cost> {
        self.statements.get(sql, |known| known.cost)
    }

    /// The tables of a statement that has just run, if they are known.
    pub(super) fn tables(&self, sql: &str) -> Option<Arc<Tables>> {
        let tables = |facts: &StatementFacts| Arc::clone(&facts.tables);
        self.statements.get(sql, tables)
    }

    /// Notes what a statement may have written.
    pub(super) fn touch(&self, sql: &str) {
        let tables = self.tables(sql);
        self.touched.borrow_mut().add(tables);
    }

    /// Takes the tables written since this was last asked.
    pub(super) fn take_touched(&self) -> Touched {
        self.touched.take()
    }

    /// Has SQLite take values of so many bytes and no longer, until the statement ends.
    pub(super) fn bound_values(&self, bytes: i32) -> rusqlite::Result<()> {
        if self.longest.get() != bytes {
            self.connection
                .set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes)?;
            self.longest.set(bytes);
        }
        Ok(())
    }

    /// The deadline of the statement that runs.
    pub(super) fn deadline(&self) -> Deadline {
        self.meter.deadline()
    }

    /// Runs a statement of the platform's own.
    pub(super) fn platform(&self, sql: &str) -> rusqlite::Result<()> {
        // Never from the cache, which a tenant's statement of the same text would find.
        self.connection.execute_batch(sql)
    }

    /// Has SQLite know the schema as it is now.
    pub(super) fn read_schema(&self) -> rusqlite::Result<()> {
        self.platform("SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    /// How many bytes its pages have.
    pub(super) fn bytes(&self) -> rusqlite::Result<u64> {
        bytes_of(&self.connection)
    }

    /// Whether no transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_autocommit()
    }
}

/// How many bytes the pages of the database that a connection sees have.
pub(super) fn bytes_of(connection: &Connection) -> rusqlite::Result<u64> {
    let count = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
    let pages = connection.pragma_query_value(None, "page_count", count)?;
    Ok(u64::from(pages) * PAGE_BYTES)
}

fn is_too_big(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::TooBig)
}

fn too_long(bytes: i32) -> String {
    format!(
        "a value is longer than {bytes} bytes, which is the most for a statement with so many costly parts, those of views, \
         constraints, generated columns and indexes included: let it do less with each row, or give it shorter values"
    )
}

/// Lets a database grow so large and no larger.
fn bound_pages(connection: &Connection, settings: &Settings) -> rusqlite::Result<()> {
    let pages = settings.most_bytes / PAGE_BYTES;
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    connection.pragma_update(None, "max_page_count", pages)
}

/// Why a tenant's statement failed, before it is known what the meter says.
#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(rusqlite::Error),
    /// That of a statement which had been prepared.
    Running(rusqlite::Error),
    Run(RunError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl Failure {
    fn into_run_error(self, exceeded: Option<Exceeded>) -> RunError {
        match self {
            Self::Sqlite(error) => RunError::from_sqlite(error, exceeded),
            Self::Running(error) => RunError::from_running(error, exceeded),
            Self::Run(error) => error,
        }
    }
}
