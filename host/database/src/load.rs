//! Loading: from a base and the commits after it to a database file. Nothing is taken that does not lead to the state that it names.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use cap_std::fs::Dir;

use super::base::for_each_page;
use super::database_state::DatabaseState;
use super::entry_body::{CommitPages, UnpackedBody};
use super::wal::PAGE_SIZE;
use svc_base::disk;
use svc_base::positions::{Checksum, CommitPosition, Entry};

/// Ends of the names of files that belong to a database file: what they have is not part of what is loaded.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Bytes that a base may have unpacked, however small it is; and how many times its packed bytes a larger one may have.
const UNPACKED_BYTES: u64 = 1 << 30;
const COMPRESSION: u64 = 1024;

/// A database file that is being written. It gets its name when it is finished.
#[derive(Debug)]
pub struct DatabaseLoader {
    dir: Dir,
    name: String,
    file: File,
    state: DatabaseState,
}

/// A database could not be loaded. No file of its name is made, and an earlier one stays.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The base cannot be read or unpacked.
    #[error("the base at commit {} cannot be read: {error}", .position.0)]
    UnreadableBase {
        /// Last commit in the base.
        position: CommitPosition,
        /// Failure of the reader.
        error: io::Error,
    },
    /// The base has another state than the ledger names.
    #[error("the base at commit {} has another state than the ledger names", .position.0)]
    WrongBase {
        /// Last commit in the base.
        position: CommitPosition,
    },
    /// A commit is missing.
    #[error("commit {} is missing: commit {} comes next", .position.0, .found.0)]
    MissingCommit {
        /// Number of the missing commit.
        position: CommitPosition,
        /// Number of the commit in its place.
        found: CommitPosition,
    },
    /// A commit continues another state than the one that is there.
    #[error("commit {} continues another state", .position.0)]
    OtherState {
        /// Number of the commit.
        position: CommitPosition,
    },
    /// The pages of a commit cannot be read.
    #[error("the pages of commit {} are damaged", .position.0)]
    DamagedBody {
        /// Number of the commit.
        position: CommitPosition,
    },
    /// A commit leads to another state than the ledger names.
    #[error("commit {} leads to another state than the ledger names", .position.0)]
    WrongState {
        /// Number of the commit.
        position: CommitPosition,
    },
    /// Error of the disk.
    #[error("a database cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl DatabaseLoader {
    /// Starts with a base of the database, which is as [`BaseSnapshot::write_to`] writes it. `position` and `state` are what the ledger
    /// names for it. The file will be `name` in `dir`.
    ///
    /// [`BaseSnapshot::write_to`]: crate::BaseSnapshot::write_to
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn start(
        dir: Dir,
        name: &str,
        base: impl io::Read,
        position: CommitPosition,
        state: Checksum,
    ) -> Result<Self, LoadError> {
        let unfinished = unfinished_name(name);
        disk::remove_file(&dir, &unfinished)?;
        let file = dir
            .open_with(&unfinished, &disk::private_file_options())?
            .into_std();
        let state = unpack_base(base, &file, position, state)?;
        Ok(Self {
            dir,
            name: name.to_owned(),
            file,
            state,
        })
    }

    /// Reads a base without writing it anywhere, as [`DatabaseLoader::start`] does.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn check(
        base: impl io::Read,
        position: CommitPosition,
        state: Checksum,
    ) -> Result<(), LoadError> {
        unpack_base(base, io::sink(), position, state).map(drop)
    }

    /// Applies the next commits. Call it for each piece of them.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn apply(mut self, entries: &[Entry]) -> Result<Self, LoadError> {
        for entry in entries {
            self.apply_entry(entry)?;
        }
        Ok(self)
    }

    fn apply_entry(&mut self, entry: &Entry) -> Result<(), LoadError> {
        let file = &self.file;
        follow(&mut self.state, entry, |commit| {
            file.set_len(page_offset(commit.pages()))?;
            for (page, data) in commit.written() {
                file.write_all_at(data, page_offset(page - 1))?;
            }
            Ok(())
        })
    }

    /// Gives the file its name, in place of an earlier one with its log, and returns its state, from which [`LogShipper`] goes on. No
    /// connection may have the earlier one open. Nothing is synced.
    ///
    /// [`LogShipper`]: crate::LogShipper
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn finish(self) -> Result<DatabaseState, LoadError> {
        for end in COMPANIONS {
            disk::remove_file(&self.dir, &format!("{}{end}", self.name))?;
        }
        let unfinished = unfinished_name(&self.name);
        self.dir.rename(&unfinished, &self.dir, &self.name)?;
        Ok(self.state)
    }
}

fn unfinished_name(name: &str) -> String {
    format!(".{name}.loading")
}

fn page_offset(pages: u32) -> u64 {
    u64::from(pages) * PAGE_SIZE as u64
}

/// Applies the next commit to `state`, and has `write` keep its pages, once it is certain that it leads to where it should.
pub(super) fn follow(
    state: &mut DatabaseState,
    entry: &Entry,
    write: impl FnOnce(&CommitPages<'_>) -> io::Result<()>,
) -> Result<(), LoadError> {
    let position = state.position().next();
    if entry.position != position {
        let found = entry.position;
        return Err(LoadError::MissingCommit { position, found });
    }
    if entry.before != state.checksum() {
        return Err(LoadError::OtherState { position });
    }
    let damaged = |_| LoadError::DamagedBody { position };
    let body = UnpackedBody::of(&entry.body).map_err(damaged)?;
    let commit = body.commit_pages().map_err(damaged)?;
    state.apply(&commit).map_err(damaged)?;
    if entry.after != state.checksum() {
        return Err(LoadError::WrongState { position });
    }
    Ok(write(&commit)?)
}

/// Reader that counts what is read.
struct CountedReader<'c, R> {
    from: R,
    bytes: &'c Cell<u64>,
}

impl<R: io::Read> io::Read for CountedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

/// Unpacks a base into `to`, if it has the state that it should have.
pub(super) fn unpack_base(
    base: impl io::Read,
    to: impl Write,
    position: CommitPosition,
    state: Checksum,
) -> Result<DatabaseState, LoadError> {
    unpack_bounded(base, to, (position, state), UNPACKED_BYTES)
}

/// Unpacks a base. It may have `unpacked_bytes`, and more only if its packed bytes have them by an ordinary compression: an object of
/// a few bytes must not fill a disk.
fn unpack_bounded(
    base: impl io::Read,
    to: impl Write,
    (position, state): (CommitPosition, Checksum),
    unpacked_bytes: u64,
) -> Result<DatabaseState, LoadError> {
    let unreadable = |error| LoadError::UnreadableBase { position, error };
    let packed = Cell::new(0);
    let base = CountedReader {
        from: base,
        bytes: &packed,
    };
    let mut base = zstd::stream::read::Decoder::new(base).map_err(unreadable)?;
    let mut to = io::BufWriter::with_capacity(64 * PAGE_SIZE, to);
    let (mut written, mut unpacked) = (Ok(()), 0);
    let read = for_each_page(&mut base, |page| {
        unpacked += page.len() as u64;
        if unpacked > unpacked_bytes.max(packed.get().saturating_mul(COMPRESSION)) {
            let said = "it unpacks to more than a database has";
            return Err(io::Error::new(io::ErrorKind::InvalidData, said));
        }
        to.write_all(page).map_err(|error| {
            let kind = error.kind();
            written = Err(error);
            kind.into()
        })
    });
    written?;
    let hashes = read.map_err(unreadable)?;
    to.flush()?;
    let found = DatabaseState::new(position, hashes);
    if found.checksum() != state {
        return Err(LoadError::WrongBase { position });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_not_unpacked_to_more_than_a_database_has() {
        let pages = 4096;
        let packed = zstd::bulk::compress(&vec![0; pages * PAGE_SIZE], 3).unwrap();
        let whole = (packed.len() as u64).saturating_mul(COMPRESSION);
        assert!(whole < (pages * PAGE_SIZE) as u64, "{} bytes", packed.len());
        let place = (CommitPosition(1), Checksum(0));
        let mut to = Vec::new();
        let refused = unpack_bounded(&*packed, &mut to, place, PAGE_SIZE as u64).unwrap_err();
        assert!(
            matches!(refused, LoadError::UnreadableBase { .. }),
            "{refused}"
        );
        assert!(to.len() as u64 <= whole.max(PAGE_SIZE as u64));
        let all = unpack_bounded(&*packed, io::sink(), place, UNPACKED_BYTES).unwrap_err();
        assert!(matches!(all, LoadError::WrongBase { .. }), "{all}");
    }
}
