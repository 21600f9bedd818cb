//! A chain that is made as a whole, from commits that another machine has recorded nowhere else.

use std::io;

use super::chain;
use super::page_hashes::MAX_IMAGE_BYTES;
use super::record::{CommitFingerprint, Moment, NewHistoryRecord, RecordKind};
use crate::wal::{PAGE_SIZE, WalPosition};
use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition};

/// Bytes of pages from which a record is full.
const RECORD_BYTES: usize = 8 << 20;

/// A chain that is being made in memory. No log continues it.
#[derive(Debug)]
pub(crate) struct NewChain {
    /// Records, as the file of a chain has them.
    bytes: Vec<u8>,
    /// Commits that no record has yet, with their pages.
    moments: Vec<Moment>,
    pages: Vec<u32>,
    data: Vec<u8>,
}

/// Number of a commit, its time, and the checksum of the state after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainCommit {
    pub(crate) position: CommitPosition,
    pub(crate) at: Timestamp,
    pub(crate) state: Checksum,
}

impl ChainCommit {
    fn point(self) -> CommitFingerprint {
        CommitFingerprint {
            commit: self.position.0,
            state: self.state.0,
        }
    }
}

impl NewChain {
    /// Begins a chain with the whole database after a commit.
    ///
    /// # Errors
    /// The database is larger than one that has a history.
    pub(crate) fn begin(image: &[u8], commit: ChainCommit) -> io::Result<Self> {
        if image.len() > MAX_IMAGE_BYTES {
            return Err(io::Error::other("the database is too large for a history"));
        }
        let moment = Moment {
            at: commit.at,
            frames: 0,
            pages: u32::try_from(image.len() / PAGE_SIZE).map_err(io::Error::other)?,
            point: Some(commit.point()),
        };
        let end = (commit.at, commit.point());
        let log = WalPosition::default();
        let base = NewHistoryRecord::new(RecordKind::Base, &[moment], image, log, end)?;
        Ok(Self {
            bytes: base.bytes,
            moments: Vec::new(),
            pages: Vec::new(),
            data: Vec::new(),
        })
    }

    /// Adds the next commit, which leaves `pages` pages.
    ///
    /// # Errors
    /// A record would be too large.
    pub(crate) fn add<'d>(
        &mut self,
        commit: ChainCommit,
        pages: u32,
        written: impl Iterator<Item = (u32, &'d [u8])>,
    ) -> io::Result<()> {
        for (page, data) in written {
            self.pages.push(page);
            self.data.extend_from_slice(data);
        }
        // Of commits at the same time only the last can be named.
        self.moments.pop_if(|before| before.at == commit.at);
        self.moments.push(Moment {
            at: commit.at,
            frames: u32::try_from(self.pages.len()).map_err(io::Error::other)?,
            pages,
            point: Some(commit.point()),
        });
        match self.data.len() >= RECORD_BYTES {
            true => self.finish_record(),
            false => Ok(()),
        }
    }

    fn finish_record(&mut self) -> io::Result<()> {
        let Some((last, point)) = self.moments.last().and_then(|it| Some((it.at, it.point?)))
        else {
            return Ok(());
        };
        let content = chain::pack_frames(&self.pages, &self.data);
        let record = NewHistoryRecord::new(
            RecordKind::Frames,
            &self.moments,
            &content,
            WalPosition::default(),
            (last, point),
        )?;
        self.bytes.extend_from_slice(&record.bytes);
        self.moments.clear();
        self.pages.clear();
        self.data.clear();
        Ok(())
    }

    /// Returns the bytes of the chain's file.
    ///
    /// # Errors
    /// A record would be too large.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.finish_record()?;
        Ok(self.bytes)
    }
}
