//! Copies of SQLite databases while others write to them, and failures of SQLite that no statement causes.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::disk;

/// A failure of the database or the disk that the statement did not cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFailure {
    /// The database has reached its size limit, or the disk is full.
    Full,
    /// The disk is full.
    DiskFull,
    /// Another connection held a lock for longer than the timeout.
    Busy,
}

/// Classifies an error; `None` if the statement itself failed.
pub fn storage_failure(error: &rusqlite::Error) -> Option<StorageFailure> {
    let (rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. }) =
        error
    else {
        return None;
    };
    match error.code {
        ErrorCode::DiskFull => Some(StorageFailure::Full),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(StorageFailure::Busy),
        ErrorCode::SystemIoFailure if is_disk_full(error.extended_code) => {
            Some(StorageFailure::DiskFull)
        }
        _ => None,
    }
}

/// Whether an I/O error means that the disk is full: SQLite reports some such failures as I/O errors.
fn is_disk_full(extended: i32) -> bool {
    matches!(
        extended,
        ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_FSYNC
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMMAP
    )
}

/// Copies a database to a new file that needs no log beside it. If a transaction is open on `from`, the copy is its snapshot. The
/// file is not synced.
///
/// # Errors
/// An error of either database.
pub fn copy_database(from: &Connection, to: &Path) -> rusqlite::Result<()> {
    disk::create_private_file(to).map_err(|error| {
        let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut to = Connection::open_with_flags(to, flags)?;
    to.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    to.pragma_update(None, "synchronous", "OFF")?;
    copy_pages(from, &mut to)?;
    leave_wal_mode(&to)
}

/// Copies every page of one database over another.
///
/// # Errors
/// An error of either database; one of them may be busy.
pub fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(busy_error()),
    }
}

/// Moves the content of the write-ahead log into the database file and leaves WAL mode. No other connection may be open.
pub fn leave_wal_mode(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("delete") {
        return Ok(());
    }
    Err(busy_error())
}

fn busy_error() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    rusqlite::Error::SqliteFailure(code, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_from_what_a_statement_does() {
        let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for (code, expected) in [
            (ffi::SQLITE_FULL, Some(StorageFailure::Full)),
            (ffi::SQLITE_BUSY, Some(StorageFailure::Busy)),
            (ffi::SQLITE_BUSY_SNAPSHOT, Some(StorageFailure::Busy)),
            (ffi::SQLITE_LOCKED, Some(StorageFailure::Busy)),
            (ffi::SQLITE_IOERR_WRITE, Some(StorageFailure::DiskFull)),
            (ffi::SQLITE_IOERR_SHMSIZE, Some(StorageFailure::DiskFull)),
            (ffi::SQLITE_IOERR_READ, None),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, None),
            (ffi::SQLITE_INTERRUPT, None),
        ] {
            assert_eq!(storage_failure(&error(code)), expected, "{code}");
        }
        assert_eq!(storage_failure(&rusqlite::Error::QueryReturnedNoRows), None);
    }
}
