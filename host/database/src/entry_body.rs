//! Body of an entry: the pages that a commit wrote, each once and as it left them, and the size of the database after it.
//!
//! A body is the size in pages, the length of the rest before compression, and the rest: page numbers and pages, as the records of
//! a history have them. Numbers are little-endian.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::history::{MAX_PAGES, PackedFrames, damaged_record_error, pack, pack_frames, unpack};
use super::wal::{CommittedFrames, PAGE_SIZE};

/// Bytes before what is compressed.
const HEADER_BYTES: usize = 8;
/// The most bytes of a body, unpacked: several times those of a log.
const MAX_UNPACKED_BYTES: usize = 1 << 30;

/// Pages of one commit.
#[derive(Debug)]
pub(super) struct CommitPages<'d> {
    /// Size of the database after the commit, in pages.
    pages: u32,
    /// Last content of each page that was written.
    written: BTreeMap<u32, &'d [u8]>,
}

impl<'d> CommitPages<'d> {
    /// Collects the pages of the log's frames from index `from` to index `to`, which end with a commit that leaves `pages` pages.
    ///
    /// # Errors
    /// The database is larger than one that can be shipped.
    pub(super) fn of_frames(
        frames: &'d CommittedFrames,
        (from, to): (usize, usize),
        pages: u32,
    ) -> io::Result<Self> {
        let found = frames.pages.iter().copied();
        let found = found.zip(frames.data.chunks_exact(PAGE_SIZE));
        Self::new(found.skip(from).take(to.saturating_sub(from)), pages)
    }

    fn new(found: impl Iterator<Item = (u32, &'d [u8])>, pages: u32) -> io::Result<Self> {
        if pages == 0 || usize::try_from(pages).is_ok_and(|pages| pages > MAX_PAGES) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("no database that can be shipped has {pages} pages"),
            ));
        }
        // A long transaction writes pages before its end, some of them again later, and some that its end cuts off.
        let written = found.filter(|(page, _)| *page <= pages).collect();
        Ok(Self { pages, written })
    }

    /// Size of the database after the commit, in pages.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Pages that were written, in the order of their numbers.
    pub(super) fn written(&self) -> impl Iterator<Item = (u32, &'d [u8])> {
        self.written.iter().map(|(page, data)| (*page, *data))
    }

    /// Packs the pages into a body.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn to_body(&self) -> io::Result<Arc<[u8]>> {
        let pages: Vec<u32> = self.written.keys().copied().collect();
        let data: Vec<&[u8]> = self.written.values().copied().collect();
        let content = pack_frames(&pages, &data.concat());
        if content.len() > MAX_UNPACKED_BYTES {
            return Err(io::Error::other("a commit is too large to be shipped"));
        }
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut body = Vec::new();
        body.extend_from_slice(&self.pages.to_le_bytes());
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(&pack(&content)?);
        Ok(body.into())
    }
}

/// Body of an entry, unpacked.
#[derive(Debug)]
pub(super) struct UnpackedBody {
    pages: u32,
    content: Vec<u8>,
}

impl UnpackedBody {
    /// Unpacks a body.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn of(body: &[u8]) -> io::Result<Self> {
        let (header, packed) = body
            .split_at_checked(HEADER_BYTES)
            .ok_or_else(damaged_record_error)?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let length = usize::try_from(word(4)).unwrap_or(usize::MAX);
        if length > MAX_UNPACKED_BYTES {
            return Err(damaged_record_error());
        }
        Ok(Self {
            pages: word(0),
            content: unpack(packed, length)?,
        })
    }

    /// Returns the pages.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn commit_pages(&self) -> io::Result<CommitPages<'_>> {
        CommitPages::new(PackedFrames::of(&self.content)?.all(), self.pages)
    }
}
