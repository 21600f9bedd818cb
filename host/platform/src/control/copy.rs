//! Copies of the control database as it was at one moment, while writers go on.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};

use super::pool::FILE;
use super::{ControlDatabase, Error, counters};
use svc_base::{disk, sqlite};

/// Pause between two attempts at the write lock, which is free for some tens of microseconds between two commits.
const LOCK_POLL: Duration = Duration::from_micros(250);
/// Most attempts at the write lock: ten seconds.
const LOCK_POLLS: i32 = 40_000;

/// Temporary file that a vacuumed copy is written to.
const VACUUMED_FILE: &str = "control.db.new";

/// A read transaction on the database: it sees one moment, whatever is written meanwhile.
#[derive(Debug)]
pub struct ControlSnapshot(Connection);

impl ControlDatabase {
    /// Runs `look` while no process writes to the database. Writers wait, so it must be quick.
    ///
    /// # Errors
    /// [`Error::Busy`] when the write lock is not free within ten seconds.
    pub fn with_writes_paused<T>(&self, look: impl FnOnce() -> T) -> Result<T, Error> {
        let mut connection = open(self.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_handler(Some(|asked| {
            std::thread::sleep(LOCK_POLL);
            asked < LOCK_POLLS
        }))?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let seen = look();
        connection.execute_batch("ROLLBACK")?;
        Ok(seen)
    }

    /// Takes a snapshot of the database as it is now.
    pub fn snapshot(&self) -> Result<ControlSnapshot, Error> {
        let connection = open(self.path(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.execute_batch("BEGIN")?;
        // The snapshot begins with the first read.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(ControlSnapshot(connection))
    }
}

impl ControlSnapshot {
    /// Runs a query on the snapshot.
    pub fn read<T>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        Ok(job(&self.0)?)
    }

    /// Copies the snapshot into `directory`, which must have no control database. The copy is not synced.
    ///
    /// # Errors
    /// The databases'.
    pub fn copy_to(&self, directory: &Path) -> Result<(), Error> {
        Ok(sqlite::copy_database(&self.0, &directory.join(FILE))?)
    }
}

/// Brings the databases in `directory`, which no process has open, into one file each. The control database is vacuumed: the free
/// space of the original may hold deleted rows.
///
/// # Errors
/// The databases', or the disk's.
pub fn finish_copy(directory: &Path) -> anyhow::Result<()> {
    let (path, anew) = (directory.join(FILE), directory.join(VACUUMED_FILE));
    let counters = open(
        &directory.join(counters::COUNTERS_FILE),
        OpenFlags::SQLITE_OPEN_READ_WRITE,
    )?;
    sqlite::leave_wal_mode(&counters)?;
    let connection = open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sqlite::leave_wal_mode(&connection)?;
    disk::create_private_file(&anew)?;
    let name = anew.to_str().context("the path is not UTF-8")?;
    connection.execute("VACUUM INTO ?1", [name])?;
    drop(connection);
    std::fs::rename(&anew, &path)?;
    Ok(())
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_it_is_still_nobody_writes_and_what_is_written_later_is_not_in_the_snapshot() {
        let (data, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let control = ControlDatabase::open(data.path()).unwrap();
        let other = Connection::open(data.path().join(FILE)).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        let add = "INSERT INTO operator_events (kind, subject, at) VALUES ('', '', 0)";
        let count = |c: &Connection| {
            let sql = "SELECT count(*) FROM operator_events";
            c.query_row::<i64, _, _>(sql, [], |row| row.get(0))
        };
        other.execute(add, []).unwrap();
        let snapshot = control
            .with_writes_paused(|| {
                assert!(matches!(
                    Error::from(other.execute(add, []).unwrap_err()),
                    Error::Busy
                ));
                control.snapshot().unwrap()
            })
            .unwrap();
        other.execute(add, []).unwrap();
        assert_eq!(snapshot.read(count).unwrap(), 1);
        snapshot.copy_to(copy.path()).unwrap();
        let copied = ControlDatabase::open_read_only(copy.path()).unwrap();
        assert_eq!(copied.read_blocking(count).unwrap(), 1);
        assert_eq!(count(&other).unwrap(), 2);
        let files: Vec<_> = std::fs::read_dir(copy.path()).unwrap().collect();
        assert_eq!(files.len(), 1, "a copy is one file");
    }
}
