//! An open connection to a tenant's database, with its walls and its meter.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};

use super::error::RunError;
use super::meter::{Exceeded, Meter};
use super::walls::{Role, Walls};

/// A connection's page cache, in KiB; all of them together have a bound of their own.
const CACHE_KIB: i64 = 2048;
/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 32;
/// The size of a database's pages, in bytes.
pub(super) const PAGE_BYTES: u64 = 4096;
/// A disk with less room than this, in bytes, is what a write has failed for.
const DISK_FULL: u64 = 256 << 10;
/// The write-ahead log is cut back to this when it starts anew, in bytes.
const WAL_BYTES: i64 = 4 << 20;
/// A log that readers keep from being begun anew is cut, which waits for them, once it is longer by so many pages.
const CUT_PAGES: i32 = 4000;
/// How long the writer waits for readers when it cuts the log: longer than any statement runs.
pub(super) const READERS: Duration = Duration::from_secs(3);

/// A connection behind its walls.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) connection: Connection,
    walls: Walls,
    meter: Meter,
    /// Pages in the write-ahead log after the last commit.
    log_pages: Arc<AtomicI32>,
    /// How many there were when the log could not be cut for a reader that stayed; 0 once it was wholly copied.
    uncut_pages: Cell<i32>,
}

/// What a database file is opened with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The absolute path, made of names of the host's own alone.
    pub(super) path: PathBuf,
    /// How large the database may become, in bytes.
    pub(super) most_bytes: u64,
}

impl Settings {
    /// SQLite has one error for a full database and a full disk: the disk says which it was.
    pub(super) fn told_full(&self, error: RunError) -> RunError {
        match error {
            RunError::DatabaseFull if self.disk_is_full() => RunError::DiskFull,
            other => other,
        }
    }

    fn disk_is_full(&self) -> bool {
        let directory = self.path.parent().unwrap_or(&self.path);
        rustix::fs::statvfs(directory)
            .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < DISK_FULL)
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
            Self::build(connection)
        };
        open().map_err(internal)
    }

    fn open(settings: &Settings, flags: OpenFlags) -> rusqlite::Result<Self> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&settings.path, flags)?;
        connection.busy_timeout(READERS)?;
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
        Self::build(connection)
    }

    /// Builds the walls around a connection, and its meter.
    fn build(mut connection: Connection) -> rusqlite::Result<Self> {
        connection.pragma_update(None, "cell_size_check", 1)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        let walls = Walls::build(&mut connection)?;
        let meter = Meter::install(&mut connection)?;
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
            log_pages,
            uncut_pages: Cell::new(0),
        })
    }

    /// How many pages the write-ahead log had after the last commit.
    pub(super) fn log_pages(&self) -> i32 {
        self.log_pages.load(Ordering::Relaxed)
    }

    /// Copies the write-ahead log into the database. One that is wholly copied is begun anew by the next write.
    pub(super) fn checkpoint(&self, mode: CheckpointMode) -> rusqlite::Result<()> {
        let (in_log, copied) = self.connection.wal_checkpoint_v2(None::<&str>, mode)?;
        let left = if copied < in_log { in_log } else { 0 };
        self.log_pages.store(left, Ordering::Relaxed);
        if left == 0 {
            self.uncut_pages.set(0);
        }
        Ok(())
    }

    /// Whether the log is so long that it is worth waiting for readers. One that could not be cut has to grow first: a
    /// backup may read for minutes, and writers would wait for it time and again.
    pub(super) fn is_log_to_be_cut(&self) -> bool {
        let (pages, uncut) = (self.log_pages(), self.uncut_pages.get());
        // A log that is shorter by now was begun anew.
        let grown = if pages < uncut { pages } else { pages - uncut };
        grown >= CUT_PAGES
    }

    /// Cuts the log. Readers pin it for no longer than a statement runs, but for a backup's.
    pub(super) fn cut_log(&self) -> rusqlite::Result<()> {
        self.checkpoint(CheckpointMode::TRUNCATE)
            .inspect_err(|_| self.uncut_pages.set(self.log_pages()))
    }

    /// Runs `work` for a tenant: in a role, and measured against a budget.
    pub(super) fn tenant<T>(
        &self,
        role: Role,
        budget: Duration,
        work: impl FnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, RunError> {
        self.walls.play(role);
        self.meter.start(budget);
        let result = work(&self.connection);
        let exceeded = self.meter.stop();
        self.walls.play(Role::Platform);
        result.map_err(|failure| failure.told(exceeded))
    }

    /// Runs a statement of the platform's own.
    pub(super) fn platform(&self, sql: &str) -> rusqlite::Result<()> {
        // Never from the cache, which a tenant's statement of the same text would find.
        self.connection.execute_batch(sql)
    }

    /// Whether no transaction is open.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.is_autocommit()
    }
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
    Told(RunError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Told(error)
    }
}

impl Failure {
    fn told(self, exceeded: Option<Exceeded>) -> RunError {
        match self {
            Self::Sqlite(error) => RunError::from_sqlite(error, exceeded),
            Self::Told(error) => error,
        }
    }
}

/// An error of the platform's own statements.
pub(super) fn internal(error: rusqlite::Error) -> RunError {
    match RunError::from_sqlite(error, None) {
        RunError::Refused { reason, .. } | RunError::Constraint(reason) => {
            RunError::Internal(reason)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_could_not_be_cut_grows_before_it_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            path: directory.path().join("default.db"),
            most_bytes: 256 << 20,
        };
        let writer = Handle::create(&settings).unwrap();
        writer.connection.busy_timeout(Duration::ZERO).unwrap();
        writer.platform("CREATE TABLE t (a)").unwrap();
        let fill = || {
            let pages = u64::from(CUT_PAGES.unsigned_abs());
            let sql = format!(
                "INSERT INTO t VALUES (zeroblob({}))",
                pages * PAGE_BYTES / 16
            );
            (0..16).for_each(|_| writer.platform(&sql).unwrap());
        };
        let reader = Handle::reader(&settings).unwrap();
        reader.platform("BEGIN; SELECT count(*) FROM t").unwrap();
        fill();
        assert!(writer.is_log_to_be_cut());
        writer.cut_log().unwrap_err();
        writer.platform("INSERT INTO t VALUES (1)").unwrap();
        assert!(!writer.is_log_to_be_cut());
        fill();
        assert!(writer.is_log_to_be_cut());
        writer.cut_log().unwrap_err();
        reader.platform("COMMIT").unwrap();
        writer.cut_log().unwrap();
        assert_eq!(writer.log_pages(), 0);
        fill();
        assert!(writer.is_log_to_be_cut());
    }
}
