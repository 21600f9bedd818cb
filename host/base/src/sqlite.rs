//! Copying an SQLite database that others go on writing to.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Copies what `from` reads, which is one moment if a transaction is open, to a new file that needs no log beside it. The
/// file is not synced.
///
/// # Errors
/// The databases'.
pub fn copy(from: &Connection, to: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut to = Connection::open_with_flags(to, flags)?;
    to.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    to.pragma_update(None, "synchronous", "OFF")?;
    copy_pages(from, &mut to)?;
    without_log(&to)
}

/// Copies every page of one database over another.
///
/// # Errors
/// The databases', one of them being busy among them.
pub fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(busy()),
    }
}

/// Brings everything of a database into its one file. Nobody else may have it open.
pub fn without_log(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("delete") {
        return Ok(());
    }
    Err(busy())
}

fn busy() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    rusqlite::Error::SqliteFailure(code, None)
}
