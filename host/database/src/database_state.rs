//! State of a database after one of its commits, by which copies on other machines are compared.

use std::io;

use super::entry_body::CommitPages;
use super::history::PageHashes;
use svc_base::positions::{Checksum, CommitPosition};

/// State of a database after a commit: the number of the commit, and hashes of the pages. Its checksum is the same in each copy of the
/// database, whatever SQLite counts in each for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseState {
    position: CommitPosition,
    hashes: PageHashes,
}

impl DatabaseState {
    /// State after the commit at `position`, with the hashes of its pages.
    pub(super) fn new(position: CommitPosition, hashes: PageHashes) -> Self {
        Self { position, hashes }
    }

    /// Number of the last commit.
    pub fn position(&self) -> CommitPosition {
        self.position
    }

    /// Checksum of the pages.
    pub fn checksum(&self) -> Checksum {
        Checksum(self.hashes.checksum())
    }

    /// Number of the pages.
    pub(super) fn pages(&self) -> u32 {
        self.hashes.pages()
    }

    /// Applies the next commit. This costs its pages, and not the database.
    ///
    /// # Errors
    /// Damage, if no database has these pages; the state is then of no use.
    pub(super) fn apply(&mut self, commit: &CommitPages<'_>) -> io::Result<()> {
        // What SQLite never writes is empty, and what lies behind the end is gone.
        let pages = usize::try_from(commit.pages()).unwrap_or(usize::MAX);
        self.hashes.resize(pages)?;
        for (page, data) in commit.written() {
            self.hashes.set_page(page, data)?;
        }
        self.position = self.position.next();
        Ok(())
    }
}
