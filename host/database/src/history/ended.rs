//! Chains that have ended, as they are copied to another place and back.

use std::io;

use cap_std::fs::Dir;

use super::chain::{self, HistoryChainFile};
use super::retention;
use svc_base::clock::Timestamp;
use svc_base::disk;
use svc_base::positions::CommitPosition;

/// A chain of a database's history as it was when it was listed. Nothing is added to one that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedChain {
    /// Number of the commit that it begins with.
    pub first: CommitPosition,
    /// Number of its last commit.
    pub last: CommitPosition,
    /// Time of the first moment.
    pub from: Timestamp,
    /// Time of the last moment.
    pub to: Timestamp,
    /// Number of its file.
    number: u32,
    /// Bytes of its records: a chain that is copied before it has ended grows meanwhile.
    bytes: u64,
}

impl EndedChain {
    /// Lists the ended chains in the directory of a database, the oldest first. All have ended where the database is `at_rest`, else
    /// all but the newest. Chains of an earlier format, which number no commits, are left out.
    ///
    /// # Errors
    /// The disk's.
    pub fn list(dir: &Dir, at_rest: bool) -> io::Result<Vec<Self>> {
        let mut numbers = chain::list_numbers(dir)?;
        if !at_rest {
            numbers.pop();
        }
        let mut ended = Vec::with_capacity(numbers.len());
        for number in numbers {
            let file = match HistoryChainFile::open(dir, number) {
                // The chain was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?.without_torn_end()?,
            };
            let first = file.records.first().and_then(|(_, base)| base.point);
            let (Some(first), Some(last)) = (first, file.point()) else {
                continue;
            };
            let (Some(from), Some(to)) = (file.first_moment_at(), file.last()) else {
                continue;
            };
            ended.push(Self {
                first: CommitPosition(first.commit),
                last: CommitPosition(last.commit),
                from,
                to,
                number,
                bytes: file.end,
            });
        }
        Ok(ended)
    }

    /// Reads the chain; `None` if it was removed meanwhile.
    ///
    /// # Errors
    /// The disk's.
    pub fn read(&self, dir: &Dir) -> io::Result<Option<Vec<u8>>> {
        match chain::read_file(dir, self.number) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => {
                let mut bytes = bytes?;
                bytes.truncate(usize::try_from(self.bytes).unwrap_or(usize::MAX));
                Ok(Some(bytes))
            }
        }
    }

    /// Puts a chain that ended elsewhere before all others of a database.
    ///
    /// # Errors
    /// The disk's, or there is no number before the others.
    pub fn put_before_others(dir: &Dir, bytes: &[u8]) -> io::Result<()> {
        let first = chain::list_numbers(dir)?.first().copied();
        let number = first.unwrap_or(chain::NUMBERS_BEFORE_LOADED + 1) - 1;
        if number == 0 {
            return Err(io::Error::other("a history has no number before its first"));
        }
        disk::replace_file(dir, &chain::chain_file_name(number), bytes)
    }
}

/// Returns the time before which moments have expired.
pub fn oldest_moment_kept(now: Timestamp) -> Timestamp {
    retention::oldest_kept(now)
}

/// Returns the number of the commit that the oldest chain of a database begins with.
///
/// # Errors
/// The disk's.
pub fn first_commit_kept(dir: &Dir) -> io::Result<Option<CommitPosition>> {
    for number in chain::list_numbers(dir)? {
        let file = HistoryChainFile::open(dir, number)?;
        let first = file.records.first().and_then(|(_, base)| base.point);
        if let Some(first) = first {
            return Ok(Some(CommitPosition(first.commit)));
        }
    }
    Ok(None)
}
