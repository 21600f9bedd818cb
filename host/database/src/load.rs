//! Loading: from a base and the commits after it to a database file. Nothing is taken that does not lead to the state that it names.

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

/// Unpacks a base into `file`, if it has the state that it should have.
fn unpack_base(
    base: impl io::Read,
    file: &File,
    position: CommitPosition,
    state: Checksum,
) -> Result<DatabaseState, LoadError> {
    let unreadable = |error| LoadError::UnreadableBase { position, error };
    let mut base = zstd::stream::read::Decoder::new(base).map_err(unreadable)?;
    let mut to = io::BufWriter::with_capacity(64 * PAGE_SIZE, file);
    let mut written = Ok(());
    let read = for_each_page(&mut base, |page| {
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
