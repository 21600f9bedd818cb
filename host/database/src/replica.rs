//! Replicas: database files that follow the commits of another machine while readers have them open. Pages are written through SQLite,
//! by its table of a file's pages, so that a reader in a transaction keeps its snapshot.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Null;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::database_state::DatabaseState;
use super::entry_body::CommitPages;
use super::load::{self, LoadError};
use super::wal::PAGE_SIZE;
use svc_base::positions::Entry;

/// Name of the file's database on the connection. The main database is an empty one in memory, so that SQLite never reads the file's
/// schema here, which is half written in the middle of a commit.
const SCHEMA: &str = "replica";
/// Writes a page. `NULL` cuts the file off before the page.
const WRITE_PAGE: &str =
    "INSERT INTO sqlite_dbpage (pgno, data, schema) VALUES (?1, ?2, 'replica')";
static EMPTY_PAGE: [u8; PAGE_SIZE] = [0; PAGE_SIZE];
/// Page with the byte that SQLite locks, at 1 GiB. No database has anything there.
const LOCK_PAGE: u32 = (1 << 30) / 4096 + 1;

/// Time for which a statement waits for a reader that opens the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which the log's end waits for readers: commits wait meanwhile.
const READERS_TIMEOUT: Duration = Duration::from_millis(20);

/// A database file that follows the commits of another machine. Nobody else writes to it.
#[derive(Debug)]
pub struct Replica {
    connection: Connection,
    state: DatabaseState,
}

/// A replica cannot follow. The file is as before the commits of the failed call, and must be loaded anew.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// A commit is damaged, or does not continue the state of the replica.
    #[error(transparent)]
    Entry(#[from] LoadError),
    /// The program was built without the table of a file's pages.
    #[error(
        "this program cannot follow another machine's database: build it in the directory of its source, whose .cargo/config.toml has settings for SQLite ({0})"
    )]
    Unsupported(rusqlite::Error),
    /// Error of SQLite.
    #[error("a replica cannot be written: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Pages that some commits change, as the last of them leaves them.
#[derive(Debug)]
struct ChangedPages {
    /// Size of the database before the commits, in pages.
    before: u32,
    /// Size after the commits so far.
    size: u32,
    written: BTreeMap<u32, Cow<'static, [u8]>>,
}

impl Replica {
    /// Opens a file, which was loaded and has `state`. A start believes no replica, so nothing is synced.
    ///
    /// # Errors
    /// The file cannot be opened, or the program lacks what a replica needs.
    pub fn open(file: &Path, state: DatabaseState) -> Result<Self, ReplicaError> {
        let Some(name) = file.to_str() else {
            return Err(rusqlite::Error::InvalidPath(file.to_owned()).into());
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_in_memory_with_flags(flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute("ATTACH ?1 AS replica", [name])?;
        connection.pragma_update(Some(SCHEMA), "journal_mode", "WAL")?;
        connection.pragma_update(Some(SCHEMA), "synchronous", "OFF")?;
        let table = connection.prepare_cached(WRITE_PAGE);
        drop(table.map_err(ReplicaError::Unsupported)?);
        Ok(Self { connection, state })
    }

    /// Returns the state after the last commit.
    pub fn state(&self) -> &DatabaseState {
        &self.state
    }

    /// Applies the next commits, in one transaction. Readers see all of them or none.
    ///
    /// # Errors
    /// [`ReplicaError`].
    pub fn apply(mut self, entries: &[Entry]) -> Result<Self, ReplicaError> {
        let mut changed = ChangedPages::new(self.state.pages());
        for entry in entries {
            load::follow(&mut self.state, entry, |commit| {
                changed.add(commit);
                Ok(())
            })?;
        }
        self.write(&changed)?;
        Ok(self)
    }

    fn write(&mut self, changed: &ChangedPages) -> rusqlite::Result<()> {
        if changed.written.is_empty() {
            return Ok(());
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let mut write = transaction.prepare_cached(WRITE_PAGE)?;
        for (page, data) in changed.written.range(2..=changed.size.max(2)) {
            write.execute((page, data))?;
        }
        // The first page names the schema and the size, so it comes when the others are there.
        if let Some(data) = changed.written.get(&1) {
            write.execute((1, data))?;
        }
        // A later page would take this back.
        if changed.size < changed.before {
            write.execute((changed.size + 1, Null))?;
        }
        drop(write);
        transaction.commit()
    }

    /// Empties the log, which has pages as earlier commits left them; returns whether no reader prevented that.
    ///
    /// # Errors
    /// Errors of SQLite.
    pub fn empty_log(&self) -> rusqlite::Result<bool> {
        let truncate = "PRAGMA replica.wal_checkpoint(TRUNCATE)";
        self.connection.busy_timeout(READERS_TIMEOUT)?;
        let emptied = self
            .connection
            .query_row(truncate, [], |row| row.get::<_, bool>(0));
        self.connection.busy_timeout(BUSY_TIMEOUT)?;
        emptied.map(|is_busy| !is_busy)
    }

    /// Closes the file, and returns its state. Its log stays while others have the file open.
    ///
    /// # Errors
    /// Errors of SQLite.
    pub fn close(self) -> Result<DatabaseState, ReplicaError> {
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(self.state)
    }
}

impl ChangedPages {
    fn new(size: u32) -> Self {
        Self {
            before: size,
            size,
            written: BTreeMap::new(),
        }
    }

    /// Adds the next commit.
    fn add(&mut self, commit: &CommitPages<'_>) {
        let size = commit.pages();
        // Pages behind an end are gone, and what is new is empty until it is written.
        for page in size.min(self.size) + 1..=size.max(self.size) {
            if page != LOCK_PAGE {
                self.written.insert(page, Cow::Borrowed(&EMPTY_PAGE[..]));
            }
        }
        for (page, data) in commit.written() {
            self.written.insert(page, Cow::Owned(data.to_vec()));
        }
        self.size = size;
    }
}
