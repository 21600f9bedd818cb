//! An open connection to a tenant's database, with its authorizer and its meter.

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

use super::authorizer::{Authorizer, AuthorizerRole};
use super::changed_tables::{ChangedTables, StatementTables};
use super::commit_counter::LastCommitTracker;
use super::cost::StatementCost;
use super::error::{StatementRunError, internal_error};
use super::limits::{PAGE_BYTES, VALUE_BYTES};
use super::meter::{ExceededLimit, LimitCheckFrequency, StatementDeadline, StatementMeter};
use super::statements::{StatementAnalysis, StatementAnalysisCache};
use super::watchdog::Watchdog;
use svc_base::clock::Clock;
use svc_base::disk;

/// Page cache of a connection, in KiB. All connections together have a bound of their own.
const CACHE_KIB: i64 = 2048;
/// Statements that a connection keeps prepared.
const MAX_CACHED_STATEMENTS: usize = 32;
/// Free disk, in bytes, below which a failed write is taken for a full disk.
const DISK_FULL_BELOW_BYTES: u64 = 256 << 10;
/// Size to which the write-ahead log is truncated when it starts anew, in bytes.
const WAL_SIZE_LIMIT_BYTES: i64 = 4 << 20;
/// Wait of the writer for readers when it truncates the log: longer than any statement runs.
pub(super) const READER_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection to a tenant's database, guarded by authorizer and meter.
#[derive(Debug)]
pub(super) struct TenantConnection {
    pub(super) connection: Connection,
    pub(super) authorizer: Authorizer,
    meter: StatementMeter,
    statements: StatementAnalysisCache,
    /// Tables written since the last [`TenantConnection::take_changed_tables`].
    touched: RefCell<ChangedTables>,
    /// The longest value that SQLite takes at present, in bytes.
    value_limit: Cell<i32>,
    /// Pages in the write-ahead log after the last commit.
    log_pages: Arc<AtomicI32>,
}

/// Settings that a database file is opened with.
#[derive(Clone, Debug)]
pub(super) struct DatabaseOpenSettings {
    /// Absolute path, made only of names that the host chose.
    pub(super) path: PathBuf,
    /// The largest size of the database, in bytes.
    pub(super) max_bytes: u64,
    /// Whether commits are synced here, so that this machine may acknowledge them.
    is_synced: bool,
    /// Number of schema changes so far.
    schema: Arc<AtomicU64>,
    /// Clock of the SQL functions for date and time.
    clock: Clock,
    watchdog: Watchdog,
}

impl DatabaseOpenSettings {
    /// Settings for a database of an installation.
    pub(super) fn new(path: PathBuf, max_bytes: u64, clock: Clock, watchdog: &Watchdog) -> Self {
        Self {
            path,
            max_bytes,
            is_synced: true,
            schema: Arc::default(),
            clock,
            watchdog: watchdog.clone(),
        }
    }

    /// Has commits be synced elsewhere: other machines have what this one's disk loses.
    pub(super) fn synced_elsewhere(self) -> Self {
        Self {
            is_synced: false,
            ..self
        }
    }

    /// Settings for a database that no tenant calls: with the system's clock and without a watchdog.
    pub(super) fn standalone(path: PathBuf, max_bytes: u64) -> Self {
        Self::new(path, max_bytes, Clock::system(), &Watchdog::default())
    }

    /// Notes that the schema may have changed, so that cached facts about statements are dropped.
    pub(super) fn record_schema_change(&self) {
        self.schema.fetch_add(1, Ordering::Release);
    }

    /// Installs the authorizer and the meter on a connection.
    pub(super) fn install_guards(
        &self,
        connection: &mut Connection,
    ) -> rusqlite::Result<(StatementMeter, Authorizer)> {
        let meter = StatementMeter::install(connection, &self.watchdog)?;
        let authorizer = Authorizer::install(connection, &meter.deadline(), &self.clock)?;
        Ok((meter, authorizer))
    }

    /// Tells a full disk from a full database, for which SQLite has one error, by the free space of the disk.
    pub(super) fn distinguish_full_disk(&self, error: StatementRunError) -> StatementRunError {
        match error {
            StatementRunError::DatabaseFull if self.disk_is_full() => StatementRunError::DiskFull,
            other => other,
        }
    }

    fn disk_is_full(&self) -> bool {
        let directory = self.path.parent().unwrap_or(&self.path);
        disk::free_bytes(directory).is_ok_and(|free| free < DISK_FULL_BELOW_BYTES)
    }
}

impl TenantConnection {
    /// Opens the one connection that writes. The file must exist.
    pub(super) fn writer(settings: &DatabaseOpenSettings) -> Result<Self, StatementRunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(internal_error)
    }

    /// Creates the file and opens it for writing.
    pub(super) fn create(settings: &DatabaseOpenSettings) -> Result<Self, StatementRunError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open(settings, flags).map_err(internal_error)
    }

    /// Opens a connection that only reads.
    pub(super) fn reader(settings: &DatabaseOpenSettings) -> Result<Self, StatementRunError> {
        Self::open(settings, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(internal_error)
    }

    /// Opens a private database in memory, with the content that `fill` puts into it.
    pub(super) fn in_memory(
        settings: &DatabaseOpenSettings,
        fill: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, StatementRunError> {
        let open = || {
            let mut connection = Connection::open_in_memory()?;
            fill(&mut connection)?;
            limit_pages(&connection, settings)?;
            Self::build(connection, settings)
        };
        open().map_err(internal_error)
    }

    fn open(settings: &DatabaseOpenSettings, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&settings.path, flags)?;
        connection.busy_timeout(READER_TIMEOUT)?;
        // Without this, the last connection to close would checkpoint the log before the history has recorded it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        let pragma = |name, value: i64| connection.pragma_update(None, name, value);
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
            pragma("query_only", 1)?;
        } else {
            pragma("page_size", PAGE_BYTES.cast_signed())?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            let synchronous = if settings.is_synced { "FULL" } else { "NORMAL" };
            connection.pragma_update(None, "synchronous", synchronous)?;
            pragma("journal_size_limit", WAL_SIZE_LIMIT_BYTES)?;
            // The writer checkpoints by itself, after callers are answered.
            pragma("wal_autocheckpoint", 0)?;
            limit_pages(&connection, settings)?;
        }
        pragma("cache_size", -CACHE_KIB)?;
        Self::build(connection, settings)
    }

    /// Sets the pragmas of every connection and installs its guards.
    fn build(
        mut connection: Connection,
        settings: &DatabaseOpenSettings,
    ) -> rusqlite::Result<Self> {
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
            statements: StatementAnalysisCache::new(Arc::clone(&settings.schema)),
            touched: RefCell::default(),
            value_limit: Cell::new(VALUE_BYTES),
            log_pages,
        })
    }

    /// Counts each commit, with its time, as soon as SQLite has written it to the log.
    pub(super) fn count_commits(
        &mut self,
        clock: Clock,
    ) -> rusqlite::Result<Arc<LastCommitTracker>> {
        let commits = LastCommitTracker::new(clock.now());
        let (log_pages, counted) = (Arc::clone(&self.log_pages), Arc::clone(&commits));
        self.connection.wal_hook(Some(move |_: &mut Wal, pages| {
            counted.add(clock.now());
            log_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(commits)
    }

    /// Calls `begins` before each commit that a statement makes, while no reader can see it.
    pub(super) fn on_commit_begin(
        &mut self,
        mut begins: impl FnMut() + Send + 'static,
    ) -> rusqlite::Result<()> {
        self.connection.commit_hook(Some(move || {
            begins();
            // `true` would roll the transaction back.
            false
        }))
    }

    /// Pages in the write-ahead log after the last commit.
    pub(super) fn log_pages(&self) -> i32 {
        self.log_pages.load(Ordering::Relaxed)
    }

    /// Checkpoints the write-ahead log; returns whether all of it is copied. The next write then starts the log anew.
    pub(super) fn checkpoint(&self, mode: CheckpointMode) -> rusqlite::Result<bool> {
        let (in_log, copied) = self.checkpoint_pages(mode)?;
        let wholly = copied >= in_log;
        let left = if wholly { 0 } else { in_log };
        self.log_pages.store(left, Ordering::Relaxed);
        Ok(wholly)
    }

    /// Checkpoints the log; returns how many pages it has, and how many of them are copied.
    pub(super) fn checkpoint_pages(&self, mode: CheckpointMode) -> rusqlite::Result<(i32, i32)> {
        self.connection.wal_checkpoint_v2(None::<&str>, mode)
    }

    /// Notes that the whole log is checkpointed.
    pub(super) fn note_log_checkpointed(&self) {
        self.log_pages.store(0, Ordering::Relaxed);
    }

    /// Closes the connection, and removes an empty log if no other connection has the database open.
    pub(super) fn close_removing_log(self) {
        // If this fails, the empty log stays.
        let _ = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    }

    /// Runs `work` in a tenant's role, metered against `budget`, in a lane.
    pub(super) fn run_as_tenant<T>(
        &self,
        role: AuthorizerRole,
        budget: Duration,
        work: impl FnOnce(&Connection) -> Result<T, UnclassifiedStatementFailure>,
    ) -> Result<T, StatementRunError> {
        self.run_metered(role, budget, LimitCheckFrequency::InLane, work)
    }

    /// Runs `work` in a role, metered against `budget`.
    pub(super) fn run_metered<T>(
        &self,
        role: AuthorizerRole,
        budget: Duration,
        watch: LimitCheckFrequency,
        work: impl FnOnce(&Connection) -> Result<T, UnclassifiedStatementFailure>,
    ) -> Result<T, StatementRunError> {
        self.authorizer.set_role(role);
        self.meter.start(budget, watch);
        let result = work(&self.connection);
        let exceeded = self.meter.stop();
        self.authorizer.set_role(AuthorizerRole::Platform);
        let value_limit = self.value_limit.get();
        let whole = self.limit_value_length(VALUE_BYTES);
        let result = result.map_err(|failure| match failure {
            UnclassifiedStatementFailure::Sqlite(error)
            | UnclassifiedStatementFailure::Running(error)
                if value_limit < VALUE_BYTES && is_too_big(&error) =>
            {
                match watch {
                    LimitCheckFrequency::Closely => StatementRunError::NeedsLane,
                    LimitCheckFrequency::InLane => {
                        StatementRunError::Failed(too_long_message(value_limit))
                    }
                }
            }
            failure => failure.into_run_error(exceeded),
        });
        whole.map_err(internal_error)?;
        result
    }

    /// Cost of a statement. It is computed once for each connection and schema version.
    ///
    /// # Errors
    /// SQLite's error of preparing the statement.
    pub(super) fn cost(&self, sql: &str) -> Result<StatementCost, UnclassifiedStatementFailure> {
        if let Some(cost) = self.known_cost(sql) {
            return Ok(cost);
        }
        let facts = StatementAnalysis::of(&self.connection, &self.authorizer, sql)?;
        let cost = facts.cost;
        self.statements.put(sql, facts);
        Ok(cost)
    }

    /// Cost of a statement, if this connection has computed it.
    pub(super) fn known_cost(&self, sql: &str) -> Option<StatementCost> {
        self.statements.get(sql, |known| known.cost)
    }

    /// Tables of a statement that has just run, if they are known.
    pub(super) fn known_tables(&self, sql: &str) -> Option<Arc<StatementTables>> {
        let tables = |facts: &StatementAnalysis| Arc::clone(&facts.tables);
        self.statements.get(sql, tables)
    }

    /// Adds the tables that a statement may write to those that have changed.
    pub(super) fn note_changed_tables(&self, sql: &str) {
        let tables = self.known_tables(sql);
        self.touched.borrow_mut().add(tables);
    }

    /// Adds a table to which the platform has written to those that have changed.
    pub(super) fn note_platform_write(&self, table: &str) {
        let mut tables = StatementTables::default();
        tables.add_write(table);
        self.touched.borrow_mut().add(Some(Arc::new(tables)));
    }

    /// Returns the tables written since the last call.
    pub(super) fn take_changed_tables(&self) -> ChangedTables {
        self.touched.take()
    }

    /// Limits the length of values in SQLite to `bytes`, until the statement ends.
    pub(super) fn limit_value_length(&self, bytes: i32) -> rusqlite::Result<()> {
        if self.value_limit.get() != bytes {
            self.connection
                .set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes)?;
            self.value_limit.set(bytes);
        }
        Ok(())
    }

    /// Deadline of the running statement.
    pub(super) fn deadline(&self) -> StatementDeadline {
        self.meter.deadline()
    }

    /// Runs SQL of the platform itself.
    pub(super) fn execute_as_platform(&self, sql: &str) -> rusqlite::Result<()> {
        // Not from the statement cache: a tenant's statement of the same text would find it there.
        self.connection.execute_batch(sql)
    }

    /// Makes SQLite load the present schema.
    pub(super) fn refresh_schema(&self) -> rusqlite::Result<()> {
        self.execute_as_platform("SELECT 1 FROM sqlite_schema LIMIT 1")
    }

    /// Size of the database, in bytes.
    pub(super) fn bytes(&self) -> rusqlite::Result<u64> {
        database_bytes(&self.connection)
    }

    /// Whether no transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_autocommit()
    }
}

/// Size of the database that a connection sees, in bytes.
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

/// Bounds the size of a database.
fn limit_pages(connection: &Connection, settings: &DatabaseOpenSettings) -> rusqlite::Result<()> {
    let pages = settings.max_bytes / PAGE_BYTES;
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    connection.pragma_update(None, "max_page_count", pages)
}

/// Failure of a tenant's statement, before it is known whether the meter stopped it.
#[derive(Debug)]
pub(super) enum UnclassifiedStatementFailure {
    Sqlite(rusqlite::Error),
    /// Error of a statement that SQLite had already prepared.
    Running(rusqlite::Error),
    Run(StatementRunError),
}

impl From<rusqlite::Error> for UnclassifiedStatementFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StatementRunError> for UnclassifiedStatementFailure {
    fn from(error: StatementRunError) -> Self {
        Self::Run(error)
    }
}

impl UnclassifiedStatementFailure {
    fn into_run_error(self, exceeded: Option<ExceededLimit>) -> StatementRunError {
        match self {
            Self::Sqlite(error) => StatementRunError::from_sqlite(error, exceeded),
            Self::Running(error) => StatementRunError::from_running(error, exceeded),
            Self::Run(error) => error,
        }
    }
}
