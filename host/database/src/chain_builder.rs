//! Chains of a history made from a base and the commits after it, where the machine that had recorded them is gone.

use std::io;

use super::database_state::DatabaseState;
use super::entry_body::CommitPages;
use super::history::{ChainCommit, NewChain};
use super::load::{LoadError, follow, unpack_base};
use super::wal::PAGE_SIZE;
use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};

/// A chain that is being made. It is held in memory, as the history holds databases.
#[derive(Debug)]
pub struct ChainBuilder {
    state: DatabaseState,
    /// Time of the last commit.
    at: Timestamp,
    /// Commit with which the chain begins.
    first: CommitPosition,
    made: Made,
}

#[derive(Debug)]
enum Made {
    /// The database after the last commit, while the chain has not begun.
    Image(Vec<u8>),
    /// The chain up to the last commit.
    Chain(NewChain),
}

impl ChainBuilder {
    /// Starts with a base of the database. `position` and `state` are what the ledger names for it, and `at` is the time of its last
    /// commit. The chain begins with commit `first`, or with the base if that is later.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn start(
        base: impl io::Read,
        (position, state): (CommitPosition, Checksum),
        at: Timestamp,
        first: CommitPosition,
    ) -> Result<Self, LoadError> {
        let mut image = Vec::new();
        let state = unpack_base(base, &mut image, position, state)?;
        let builder = Self {
            state,
            at,
            first,
            made: Made::Image(image),
        };
        Ok(builder.begun()?)
    }

    /// Adds the next commits. Call it for each piece of them.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn apply(mut self, entries: &[Entry]) -> Result<Self, LoadError> {
        for entry in entries {
            let commit = ChainCommit {
                position: entry.position,
                at: entry.at,
                state: entry.after,
            };
            let made = &mut self.made;
            follow(&mut self.state, entry, |pages| match made {
                Made::Image(image) => write_pages(image, pages),
                Made::Chain(chain) => chain.add(commit, pages.pages(), pages.written()),
            })?;
            self.at = entry.at;
            self = self.begun()?;
        }
        Ok(self)
    }

    /// Begins the chain, if it begins with the last commit.
    fn begun(mut self) -> io::Result<Self> {
        if let Made::Image(image) = &self.made
            && self.state.position() >= self.first
        {
            let commit = ChainCommit {
                position: self.state.position(),
                at: self.at,
                state: self.state.checksum(),
            };
            self.made = Made::Chain(NewChain::begin(image, commit)?);
        }
        Ok(self)
    }

    /// Returns the number of the last commit.
    pub fn position(&self) -> CommitPosition {
        self.state.position()
    }

    /// Returns the bytes of the chain's file; `None` if the commits end before its first.
    ///
    /// # Errors
    /// A record would be too large.
    pub fn finish(self) -> io::Result<Option<Vec<u8>>> {
        match self.made {
            Made::Image(_) => Ok(None),
            Made::Chain(chain) => chain.finish().map(Some),
        }
    }
}

/// Writes the pages of a commit into the image of a database.
fn write_pages(image: &mut Vec<u8>, commit: &CommitPages<'_>) -> io::Result<()> {
    let place = |page: u32| usize::try_from(page).map_err(io::Error::other);
    image.resize(place(commit.pages())?.saturating_mul(PAGE_SIZE), 0);
    for (page, data) in commit.written() {
        // Pages are counted from 1, and none is behind the end.
        let start = place(page.saturating_sub(1))? * PAGE_SIZE;
        if let Some(at) = image.get_mut(start..start + PAGE_SIZE) {
            at.copy_from_slice(data);
        }
    }
    Ok(())
}
