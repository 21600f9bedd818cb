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

use super::authorizer::{Authorizer, StatementRole};
use super::changed_tables::{ChangedTables, StatementTables};
use super::commit_counter::CommitCounter;
use super::cost::StatementCost;
use super::error::{RunError, internal};
use super::limits::{PAGE_BYTES, VALUE_BYTES};
use super::meter::{Deadline, ExceededLimit, StatementMeter, WatchMode};
use super::statements::{StatementFacts, StatementFactsCache};
use super::watchdog::Watchdog;
use svc_base::clock::Clock;
use svc_base::disk;

/// A connection's page cache, in KiB; all of them together have a bound of their own.
const CACHE_KIB: i64 = 2048;
/// Statements that a connection keeps prepared.
const MAX_CACHED_STATEMENTS: usize = 32;
/// A disk with less room than this, in bytes, is what a write has failed for.
const DISK_FULL_BELOW_BYTES: u64 = 256 << 10;
/// The write-ahead log is cut back to this when it starts anew, in bytes.
const WAL_SIZE_LIMIT_BYTES: i64 = 4 << 20;
/// How long the writer waits for readers when it cuts the log: longer than any statement runs.
pub(super) const READER_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection behind its walls.
#[derive(Debug)]
pub(super) struct TenantConnection {
    pub(super) connection: Connection,
    pub(super) authorizer: Authorizer,
    meter: StatementMeter,
    statements: StatementFactsCache,
    /// Tables written since somebody last asked.
    touched: RefCell<ChangedTables>,
    /// The longest value that SQLite takes at the moment, in bytes.
    value_limit: Cell<i32>,
    /// Pages in the write-ahead log after the last commit.
    log_pages: Arc<AtomicI32>,
}

/// Settings that a database file is opened with.
#[derive(Clone, Debug)]
pub(super) struct OpenSettings {
    /// The absolute path, made of names of the host's own alone.
    pub(super) path: PathBuf,
    /// How large the database may become, in bytes.
    pub(super) max_bytes: u64,
    /// How often its schema has changed.
    schema: Arc<AtomicU64>,
    /// Clock of the functions that tell the time.
    clock: Clock,
    watchdog: Watchdog,
}

impl OpenSettings {
    /// Those of a database of an installation.
    pub(super) fn new(path: PathBuf, max_bytes: u64, clock: Clock, watchdog: &Watchdog) -> Self {
        Self {
            path,
            max_bytes,
            schema: Arc::default(),
            clock,
            watchdog: watchdog.clone(),
        }
    }

    /// Those of a database that no tenant calls.
    pub(super) fn standalone(path: PathBuf, max_bytes: u64) -> Self {
        Self::new(path, max_bytes, Clock::system(), &Watchdog::default())
    }

    /// Notes that the schema may have changed: what is known of statements holds no longer.
    pub(super) fn schema_changed(&self) {
        self.schema.fetch_add(1, Ordering::Release);
    }

    /// Builds the walls around a connection, and its meter.
    pub(super) fn install_guards(
        &self,
        connection: &mut Connection,
    ) -> rusqlite::Result<(StatementMeter, Authorizer)> {
        let meter = StatementMeter::install(connection, &self.watchdog)?;
        let authorizer = Authorizer::install(connection, &meter.deadline(), &self.clock)?;
        Ok((meter, authorizer))
    }

    /// SQLite has one error for a full database and a full disk: the disk says which it was.
    pub(super) fn distinguish_full_disk(&self, error: RunError) -> RunError {
        match error {
            RunError::DatabaseFull if self.disk_is_full() => RunError::DiskFull,
            other => other,
        }
    }

    fn disk_is_full(&self) -> bool {
        let directory = self.path.parent().unwrap_or(&self.path);
        disk::free_bytes(directory).is_ok_and(|free| free < DISK_FULL_BELOW_BYTES)
    }
}

impl TenantConnection {
    /// Opens the one connection that writes; the file is there already.
    pub(super) fn writer(settings: &OpenSettings) -> Result<Self, RunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(internal)
    }

    /// Makes the file and opens it to write.
    pub(super) fn create(settings: &OpenSettings) -> Result<Self, RunError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open(settings, flags).map_err(internal)
    }

    /// Opens a connection that cannot write.
    pub(super) fn reader(settings: &OpenSettings) -> Result<Self, RunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(internal)
    }

    /// Makes a database in memory that nobody else sees, of what `fill` puts into it.
    pub(super) fn in_memory(
        settings: &OpenSettings,
        fill: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, RunError> {
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            fill(&mut connection)?;
            limit_pages(&connection, settings)?;
            Self::build(connection, settings)
        };
        open().map_err(internal)
    }

    fn open(settings: &OpenSettings, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&settings.path, flags)?;
        connection.busy_timeout(READER_TIMEOUT)?;
        // The last connection to close would copy the log, and history might not have it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        let pragma = |name, value: i64| connection.pragma_update(None, name, value);
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
            pragma("query_only", 1)?;
        } else {
            pragma("page_size", PAGE_BYTES.cast_signed())?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES)?;
            // The executor decides when: after it has answered.
            pragma("wal_autocheckpoint", 0)?;
            limit_pages(&connection, settings)?;
        }
        pragma("cache_size", -CACHE_KIB)?;
        Self::build(connection, settings)
    }

    /// Builds the walls around a connection, and its meter.
    fn build(mut connection: Connection, settings: &OpenSettings) -> rusqlite::Result<Self> {
        connection.pragma_update(None, "cell_size_check", 1)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        let (meter, authorizer) = settings.install_guards(&mut connection)?;
        let log_pages = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&log_pages);
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            connection,
            authorizer,
            meter,
            statements: StatementFactsCache::new(Arc::clone(&settings.schema)),
            touched: RefCell::default(),
            value_limit: Cell::new(VALUE_BYTES),
            log_pages,
        })
    }

    /// Has every commit counted, with its time, before anybody is told of it: where that is to be found.
    pub(super) fn count_commits(&mut self, clock: Clock) -> rusqlite::Result<Arc<CommitCounter>> {
        let commits = CommitCounter::new(clock.now());
        let (log_pages, counted) = (Arc::clone(&self.log_pages), Arc::clone(&commits));
        self.connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.add(clock.now());
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
        let (in_log, copied) = self.checkpoint_pages(mode)?;
        let wholly = copied >= in_log;
        let left = if wholly { 0 } else { in_log };
        self.log_pages.store(left, Ordering::Relaxed);
        Ok(wholly)
    }

    /// Copies the log; returns how many pages are in it, and how many of them are copied.
    pub(super) fn checkpoint_pages(&self, mode: CheckpointMode) -> rusqlite::Result<(i32, i32)> {
        self.connection.wal_checkpoint_v2(None::<&str>, mode)
    }

    /// Notes that all of the log is copied.
    pub(super) fn note_log_checkpointed(&self) {
        self.log_pages.store(0, Ordering::Relaxed);
    }

    /// Closes, and removes an empty log if nobody else has the database open.
    pub(super) fn close_removing_log(self) {
        // Where that fails, the empty log stays.
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }

    /// Runs `work` for a tenant: in a role, and measured against a budget.
    pub(super) fn run_as_tenant<T>(
        &self,
        role: StatementRole,
        budget: Duration,
        work: impl FnOnce(&Connection) -> Result<T, StatementFailure>,
    ) -> Result<T, RunError> {
        self.run_metered(role, budget, WatchMode::InLane, work)
    }

    /// Runs `work`, watched as closely as a statement.
    pub(super) fn run_metered<T>(
        &self,
        role: StatementRole,
        budget: Duration,
        watch: WatchMode,
        work: impl FnOnce(&Connection) -> Result<T, StatementFailure>,
    ) -> Result<T, RunError> {
        self.authorizer.set_role(role);
        self.meter.start(budget, watch);
        let result = work(&self.connection);
        let exceeded = self.meter.stop();
        self.authorizer.set_role(StatementRole::Platform);
        let value_limit = self.value_limit.get();
        let whole = self.limit_value_length(VALUE_BYTES);
        let result = result.map_err(|failure| match failure {
            StatementFailure::Sqlite(error) | StatementFailure::Running(error)
                if value_limit < VALUE_BYTES && is_too_big(&error) =>
            {
                match watch {
                    WatchMode::Closely => RunError::NeedsLane,
                    WatchMode::InLane => RunError::Failed(too_long_message(value_limit)),
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
    pub(super) fn cost(&self, sql: &str) -> Result<StatementCost, StatementFailure> {
        if let Some(cost) = self.known_cost(sql) {
            return Ok(cost);
        }
        let facts = StatementFacts::of(&self.connection, &self.authorizer, sql)?;
        let cost = facts.cost;
        self.statements.put(sql, facts);
        Ok(cost)
    }

    /// The cost of a statement, if it is known on this connection.
    pub(super) fn known_cost(&self, sql: &str) -> Option<StatementCost> {
        self.statements.get(sql, |known| known.cost)
    }

    /// The tables of a statement that has just run, if they are known.
    pub(super) fn known_tables(&self, sql: &str) -> Option<Arc<StatementTables>> {
        let tables = |facts: &StatementFacts| Arc::clone(&facts.tables);
        self.statements.get(sql, tables)
    }

    /// Notes what a statement may have written.
    pub(super) fn note_changed_tables(&self, sql: &str) {
        let tables = self.known_tables(sql);
        self.touched.borrow_mut().add(tables);
    }

    /// Takes the tables written since this was last asked.
    pub(super) fn take_changed_tables(&self) -> ChangedTables {
        self.touched.take()
    }

    /// Has SQLite take values of so many bytes and no longer, until the statement ends.
    pub(super) fn limit_value_length(&self, bytes: i32) -> rusqlite::Result<()> {
        if self.value_limit.get() != bytes {
            self.connection
                .set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes)?;
            self.value_limit.set(bytes);
        }
        Ok(())
    }

    /// The deadline of the statement that runs.
    pub(super) fn deadline(&self) -> Deadline {
        self.meter.deadline()
    }

    /// Runs a statement of the platform's own.
    pub(super) fn execute_as_platform(&self, sql: &str) -> rusqlite::Result<()> {
        // Never from the cache, which a tenant's statement of the same text would find.
        self.connection.execute_batch(sql)
    }

    /// Has SQLite know the schema as it is now.
    pub(super) fn refresh_schema(&self) -> rusqlite::Result<()> {
        self.execute_as_platform("SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    /// How many bytes its pages have.
    pub(super) fn bytes(&self) -> rusqlite::Result<u64> {
        database_bytes(&self.connection)
    }

    /// Whether no transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_autocommit()
    }
}

/// How many bytes the pages of the database that a connection sees have.
pub(super) fn database_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let count = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
    let pages = connection.pragma_query_value(None, "page_count", count)?;
    Ok(u64::from(pages) * PAGE_BYTES)
}

fn is_too_big(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::TooBig)
}

fn too_long_message(bytes: i32) -> String {
    format!(
        "a value is longer than {bytes} bytes, which is the most for a statement with so many costly parts, those of views, \
         constraints, generated columns and indexes included: let it do less with each row, or give it shorter values"
    )
}

/// Lets a database grow so large and no larger.
fn limit_pages(connection: &Connection, settings: &OpenSettings) -> rusqlite::Result<()> {
    let pages = settings.max_bytes / PAGE_BYTES;
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    connection.pragma_update(None, "max_page_count", pages)
}

/// Why a tenant's statement failed, before it is known what the meter says.
#[derive(Debug)]
pub(super) enum StatementFailure {
    Sqlite(rusqlite::Error),
    /// That of a statement which had been prepared.
    Running(rusqlite::Error),
    Run(RunError),
}

impl From<rusqlite::Error> for StatementFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<RunError> for StatementFailure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl StatementFailure {
    fn into_run_error(self, exceeded: Option<ExceededLimit>) -> RunError {
        match self {
            Self::Sqlite(error) => RunError::from_sqlite(error, exceeded),
            Self::Running(error) => RunError::from_running(error, exceeded),
            Self::Run(error) => error,
        }
    }
}
