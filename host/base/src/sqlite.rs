//! Copying an SQLite database that others go on writing to, and telling its failures apart.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::disk;

/// Failure that no statement is to blame for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFailure {
    /// The database may not grow, or the disk has no room for it.
    Full,
    /// The disk has no room.
    DiskFull,
    /// Another connection has the database for longer than was waited.
    Busy,
}

/// Tells which trouble an error is, if it is one.
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

/// Failures to make room for, or to keep, what is written: on a full disk SQLite reports some of them so.
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

/// Copies what `from` reads, which is one moment if a transaction is open, to a new file that needs no log beside it. The
/// file is not synced.
///
/// # Errors
/// The databases'.
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
/// The databases', one of them being busy among them.
pub fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(busy_error()),
    }
}

/// Brings everything of a database into its one file. Nobody else may have it open.
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
