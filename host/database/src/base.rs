//! Bases: compressed copies of a database at one of its commits, from which other machines go on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::database_state::DatabaseState;
use super::history::PageHashes;
use super::wal::PAGE_SIZE;
use svc_base::positions::{Checksum, CommitPosition};
use svc_base::{disk, sqlite};

/// Level of compression: a base is read more rarely than it is stored.
const COMPRESSION_LEVEL: i32 = 3;
/// Place of the schema's number in a database file.
const SCHEMA_NUMBER_OFFSET: u64 = 40;

/// A read transaction on a database at one of its commits. Meanwhile SQLite cannot start the log anew, so it must be short.
#[derive(Debug)]
pub struct BaseSnapshot {
    connection: Connection,
    position: CommitPosition,
    state: Option<Checksum>,
}

impl BaseSnapshot {
    /// Begins to read the database file `database`, whose last commit is `position`. No commit may be made meanwhile: call this in
    /// [`append`], or for a database without a writer. `state` is the checksum after that commit, where it is known.
    ///
    /// [`append`]: svc_base::positions::Durable::append
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn begin(
        database: &Path,
        position: CommitPosition,
        state: Option<Checksum>,
    ) -> io::Result<Self> {
        Ok(Self {
            connection: open_snapshot(database).map_err(io::Error::other)?,
            position,
            state,
        })
    }

    /// Writes the base to `to`, a private file that is made anew and not synced, and returns the state of the database. A plain copy
    /// lies beside it meanwhile.
    ///
    /// # Errors
    /// Errors of the database and of the disk, and a copy in another state than the known one; nothing is left then.
    pub fn write_to(self, to: &Path) -> io::Result<DatabaseState> {
        let mut plain = OsString::from(to);
        plain.push(".plain");
        let plain = PathBuf::from(plain);
        let written = self.write_with(&plain, to);
        remove_file(&plain)?;
        if written.is_err() {
            remove_file(to)?;
        }
        written
    }

    fn write_with(self, plain: &Path, to: &Path) -> io::Result<DatabaseState> {
        remove_file(plain)?;
        remove_file(to)?;
        sqlite::copy_database(&self.connection, plain).map_err(io::Error::other)?;
        let file = File::options().read(true).write(true).open(plain)?;
        // SQLite numbers the schema of a copy anew.
        let number = |row: &rusqlite::Row<'_>| row.get::<_, i32>(0);
        let number = self
            .connection
            .pragma_query_value(None, "schema_version", number)
            .map_err(io::Error::other)?;
        file.write_all_at(&number.to_be_bytes(), SCHEMA_NUMBER_OFFSET)?;
        // The log is free again.
        drop(self.connection);
        disk::create_private_file(to)?;
        let to = File::options().write(true).open(to)?;
        let hashes = compress(file, to)?;
        let state = DatabaseState::new(self.position, hashes);
        if self.state.is_some_and(|known| known != state.checksum()) {
            let number = self.position.0;
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a copy at commit {number} does not have the state of that commit"),
            ));
        }
        Ok(state)
    }
}

fn open_snapshot(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // The writer alone copies the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("BEGIN")?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Compresses a database file; returns the hashes of its pages.
fn compress(from: File, to: File) -> io::Result<PageHashes> {
    let mut from = io::BufReader::with_capacity(64 * PAGE_SIZE, from);
    let mut encoder = zstd::stream::write::Encoder::new(to, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    let hashes = for_each_page(&mut from, |page| encoder.write_all(page))?;
    encoder.finish()?;
    Ok(hashes)
}

/// Calls `with_page` for each page of a database file, and returns their hashes.
///
/// # Errors
/// Errors of both; damage, if the file does not end with a whole page.
pub(super) fn for_each_page(
    from: &mut impl Read,
    mut with_page: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<PageHashes> {
    let mut hashes = PageHashes::default();
    let mut page = Vec::with_capacity(PAGE_SIZE);
    loop {
        page.clear();
        from.by_ref()
            .take(PAGE_SIZE as u64)
            .read_to_end(&mut page)?;
        if page.is_empty() {
            return Ok(hashes);
        }
        if page.len() < PAGE_SIZE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a database does not end with a whole page",
            ));
        }
        hashes.add_page(&page)?;
        with_page(&page)?;
    }
}

/// Removes a file; a missing file is no error.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
