//! The history of a database: the commits of its log, saved before the log is overwritten.
//!
//! The history consists of chains. Each begins with a copy of the database and continues with the commits after it, as SQLite's
//! log has them. So a commit costs the history nothing until the log is copied. The content of a chain is certain: each frame
//! follows from the base, by the salts and checksums of the log, or by our own note that the log was wholly copied. If that cannot
//! be shown, another chain begins with another copy: in doubt the history has a gap, but it is never wrong. A failure of the
//! history fails nothing else.
//!
//! Commits are numbered, and each number is stored with the checksum of the state after it. Neither depends on this machine or on
//! a generation of the log, so a copy that has reached a number can be compared by its checksum.

mod append;
mod background;
mod chain;
mod ended;
mod moments;
mod new_chain;
mod page_hashes;
mod record;
mod resume;
mod retention;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use cap_std::fs::Dir;
use rusqlite::{Connection, MAIN_DB};

use self::chain::HistoryChainFile;
use self::page_hashes::MAX_IMAGE_BYTES;
use self::record::{CommitFingerprint, Moment, NewHistoryRecord, RecordKind};
use super::commit_counter::LastCommitTracker;
use super::connection;
use super::files::LOG_FILE;
use super::wal::{ALL_FRAMES, PAGE_SIZE, WalFile, WalPosition};
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;

pub(super) use background::{BackgroundCheckpointer, LentHistory, log_history_gap};
pub(super) use chain::{PackedFrames, pack_frames};
pub use ended::{EndedChain, first_commit_kept, oldest_moment_kept};
pub use moments::HistoryMoments;
pub(super) use moments::{has_expired_moments, verify};
pub(super) use new_chain::{ChainCommit, NewChain};
pub(super) use page_hashes::{MAX_PAGES, PageHashes};
pub(super) use record::{damaged_record_error, pack, unpack};

/// If the clock is set back by no more than this, in milliseconds, the time of commits stands still.
const MAX_CLOCK_SETBACK_MILLIS: i64 = 60_000;

/// Settings of the histories.
#[derive(Debug)]
pub(super) struct HistorySettings {
    /// Clock for the times of commits.
    pub(super) clock: Clock,
    /// The largest history of a database, in bytes; 0 keeps none.
    pub(super) max_bytes: u64,
    /// Free disk below which nothing is recorded, in bytes.
    pub(super) min_free_bytes: u64,
}

/// The history may not become as large as what must be recorded.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the history may take fewer bytes than are to be kept")]
pub(super) struct HistoryLimitExceeded;

impl HistoryLimitExceeded {
    /// Whether an I/O error is this one.
    pub(super) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl From<HistoryLimitExceeded> for io::Error {
    fn from(why: HistoryLimitExceeded) -> Self {
        Self::other(why)
    }
}

/// The history of an open database. Only its writer appends to it.
#[derive(Debug)]
pub(super) struct DatabaseHistory {
    dir: Dir,
    history_settings: Arc<HistorySettings>,
    /// The newest chain, if the log continues it.
    chain: Option<CurrentChain>,
    /// Commits that no chain has yet.
    unrecorded: Vec<UnrecordedCommit>,
    /// Length of the log at the last look, in frames.
    frames_seen: i32,
    /// Time of the last commit.
    last: Option<Timestamp>,
    /// Whether the database was too large for the history at the last record.
    is_too_large: bool,
    /// Start of a chain that a background checkpoint begins: before the commits made meanwhile.
    chain_begins_at: Option<Timestamp>,
    /// Numbers of the commits, where they do not come from the history itself.
    commit_numbers: Option<Arc<LastCommitTracker>>,
}

/// The chain to which commits are appended.
#[derive(Debug)]
struct CurrentChain {
    number: u32,
    began: Timestamp,
    /// Size of its base in the file, in bytes.
    base: u64,
    /// Offset of the end of its file.
    end: u64,
    /// Bytes of pages after its base, unpacked.
    unpacked: u64,
    /// Position in the log up to which it is recorded.
    position: WalPosition,
    /// Commit point at its end.
    point: CommitFingerprint,
    /// State at its end; known once something was appended.
    state: Option<PageHashes>,
    /// Whether all of the log is copied, so that SQLite may have started it anew.
    copied: bool,
    /// Whether the chain ends with a seal.
    sealed: bool,
    /// Whether the chain must be compared with the database before anything is appended.
    doubtful: bool,
}

/// A commit that is made and not recorded.
#[derive(Clone, Copy, Debug)]
struct UnrecordedCommit {
    /// Length of the log after the commit, in frames.
    frames: u32,
    at: Timestamp,
}

impl DatabaseHistory {
    /// Opens the history in a database's directory, while its one writer is opened.
    pub(super) fn open(dir: Dir, history_settings: Arc<HistorySettings>) -> Self {
        let mut history = Self {
            dir,
            history_settings,
            chain: None,
            unrecorded: Vec::new(),
            frames_seen: 0,
            last: None,
            is_too_large: false,
            chain_begins_at: None,
            commit_numbers: None,
        };
        let opened = if history.is_on() {
            history.resume()
        } else {
            // The history is off: what an earlier setting kept is removed.
            history.make_room(0)
        };
        if let Err(error) = opened {
            tracing::warn!(%error, "a database's history cannot be gone on with");
        }
        history
    }

    /// Sets the numbers of the commits, which come from elsewhere: a chain that continues no other begins with the last of them.
    pub(super) fn set_commit_numbers(&mut self, commits: Arc<LastCommitTracker>) {
        self.commit_numbers = Some(commits);
    }

    /// Leaves a chain whose last commit has another number than elsewhere, once the log is recorded: the next record begins another
    /// chain. Returns whether it did.
    pub(super) fn leave_chain_numbered_otherwise(&mut self) -> bool {
        let Some(commits) = &self.commit_numbers else {
            return false;
        };
        let last = commits.position().0;
        let left = self.chain.take_if(|chain| chain.point.commit != last);
        left.is_some()
    }

    /// Present time, by the clock of the history.
    pub(super) fn now(&self) -> Timestamp {
        self.history_settings.clock.now()
    }

    /// Whether a history is kept.
    pub(super) fn is_on(&self) -> bool {
        self.history_settings.max_bytes > 0
    }

    /// Notes a commit at a unique time.
    pub(super) fn note_distinct_commit(&mut self, frames: i32) {
        self.note_commit(frames, self.distinct_time());
    }

    /// Returns the present time, or just after the last commit.
    fn distinct_time(&self) -> Timestamp {
        let after = self.last.map(|last| Timestamp(last.0 + 1));
        after.map_or(self.now(), |after| after.max(self.now()))
    }

    /// Notes a commit made at `now`, if the log has grown to `frames`.
    pub(super) fn note_commit(&mut self, frames: i32, now: Timestamp) {
        let grown = self.is_on() && frames > 0 && frames != self.frames_seen;
        self.frames_seen = frames;
        if grown {
            let at = self.commit_time(now);
            self.last = Some(at);
            let frames = frames.unsigned_abs();
            self.unrecorded.push(UnrecordedCommit { frames, at });
        }
    }

    /// Returns the time for a commit: never before the last one, unless the clock was set back far.
    fn commit_time(&self, now: Timestamp) -> Timestamp {
        match self.last {
            Some(last) if now < last && last.0 - now.0 <= MAX_CLOCK_SETBACK_MILLIS => last,
            _ => now,
        }
    }

    /// Whether there are commits that no chain has.
    pub(super) fn has_unrecorded_commits(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// Returns the number of the last commit that a chain has; 0 without one.
    pub(super) fn last_commit_number(&self) -> u64 {
        self.chain.as_ref().map_or(0, |chain| chain.point.commit)
    }

    /// Whether the database was too large for the history at the last record, so that later commits are missing.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Time of the last commit.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Records new commits of the log, durably. The log may be copied after it.
    ///
    /// # Errors
    /// Errors of the disk; the next record then begins another chain.
    pub(super) fn record_log(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.record_log_up_to(connection, ALL_FRAMES)
    }

    /// Records the first `most` frames of the log, which are those that `connection` sees.
    fn record_log_up_to(&mut self, connection: &mut Connection, most: u32) -> io::Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let taken = self
            .check_disk()
            .and_then(|()| self.record_frames(connection, most));
        self.unrecorded.clear();
        if taken.is_err() {
            self.chain = None;
        }
        self.is_too_large = taken.as_ref().is_err_and(HistoryLimitExceeded::is);
        taken
    }

    fn record_frames(&mut self, connection: &mut Connection, most: u32) -> io::Result<()> {
        let log = WalFile::open(&self.dir, LOG_FILE)?;
        let Some(chain) = &self.chain else {
            return self.begin_chain(connection, log.as_ref(), most);
        };
        let Some(log) = log else {
            return Ok(());
        };
        let mut doubtful = chain.doubtful;
        let from = if log.contains(&chain.position)? {
            chain.position
        } else if chain.copied && log.start().salts != chain.position.salts {
            log.start()
        } else if chain.position.is_followed_by(log.start().salts) {
            // A checkpoint that was given up may have been complete.
            doubtful = true;
            log.start()
        } else {
            tracing::warn!("a database's history has a gap: its log is not what it was");
            self.chain = None;
            return self.begin_chain(connection, Some(&log), most);
        };
        let frames = log.read_committed(&from, most)?;
        let why = match self.check_continuation(connection, &frames, doubtful) {
            Ok(true) => None,
            Ok(false) => Some("it does not lead to what is there"),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Some("it does not lead to what it says, or is damaged")
            }
            Err(error) => return Err(error),
        };
        if let Some(why) = why {
            tracing::warn!("a database's history has a gap: {why}");
            self.chain = None;
            return self.begin_chain(connection, Some(&log), most);
        }
        if let Some(chain) = &mut self.chain {
            chain.doubtful = false;
        }
        if frames.pages.is_empty() {
            return Ok(());
        }
        let last = self.append(&from, &frames, log.modified_at()?)?;
        self.last = Some(last);
        fault::point("history.taken");
        if self.needs_new_chain() {
            self.begin_chain(connection, Some(&log), most)?;
        }
        Ok(())
    }

    /// Begins a chain with the database as `connection` sees it, with the first `most` frames of the log.
    fn begin_chain(
        &mut self,
        connection: &mut Connection,
        log: Option<&WalFile>,
        most: u32,
    ) -> io::Result<()> {
        self.check_size(connection)?;
        let frames = log
            .map(|log| log.read_committed(&log.start(), most))
            .transpose()?;
        let image = self.image(connection)?;
        let at = self.last.filter(|_| self.chain.is_some());
        let at = at
            .or(self.chain_begins_at)
            .unwrap_or_else(|| self.distinct_time());
        let pages = u32::try_from(image.len() / PAGE_SIZE).map_err(io::Error::other)?;
        let state = PageHashes::of(&image);
        let point = CommitFingerprint {
            commit: match &self.chain {
                Some(chain) => chain.point.commit,
                None => self.first_commit_number()?,
            },
            state: state.checksum(),
        };
        let moment = Moment {
            at,
            frames: 0,
            pages,
            point: Some(point),
        };
        let position = frames.map(|frames| frames.end).unwrap_or_default();
        let base =
            NewHistoryRecord::new(RecordKind::Base, &[moment], &image, position, (at, point))?;
        let length = base.header.length();
        // From here on, the earlier chain is an old one.
        self.chain = None;
        self.make_room(length)?;
        let number = self.next_chain_number()?;
        chain::create_file(&self.dir, number, &base)?;
        self.last = Some(at);
        self.chain = Some(CurrentChain {
            number,
            began: at,
            base: length,
            end: length,
            unpacked: 0,
            position,
            point,
            state: Some(state),
            copied: position == WalPosition::default(),
            sealed: false,
            doubtful: false,
        });
        fault::point("history.begun");
        self.remove_expired()
    }

    /// Number of the file of the next chain. A database that was loaded leaves room for chains from elsewhere.
    fn next_chain_number(&self) -> io::Result<u32> {
        let before = match &self.commit_numbers {
            Some(_) => chain::NUMBERS_BEFORE_LOADED,
            None => 0,
        };
        Ok(chain::list_numbers(&self.dir)?.pop().unwrap_or(before) + 1)
    }

    /// Number of the commit with which a chain begins that continues no other.
    fn first_commit_number(&self) -> io::Result<u64> {
        match &self.commit_numbers {
            Some(commits) => Ok(commits.position().0),
            // Commits after the last recorded one were not counted.
            None => Ok(self.stored_commit_number()? + 1),
        }
    }

    /// Number of the last commit in any chain.
    fn stored_commit_number(&self) -> io::Result<u64> {
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            if let Some(point) = HistoryChainFile::open(&self.dir, number)?.point() {
                return Ok(point.commit);
            }
        }
        Ok(0)
    }

    /// Checks that the history may become as large as the database, before that is read.
    fn check_size(&self, connection: &Connection) -> io::Result<()> {
        let bytes = connection::database_bytes(connection).map_err(io::Error::other)?;
        if bytes > self.history_settings.max_bytes.min(MAX_IMAGE_BYTES as u64) {
            return Err(HistoryLimitExceeded.into());
        }
        Ok(())
    }

    /// Reads the database through SQLite. Its file must not be opened directly: closing it would release SQLite's locks.
    fn image(&self, connection: &mut Connection) -> io::Result<Vec<u8>> {
        let image = connection.serialize(MAIN_DB).map_err(io::Error::other)?;
        if image.is_empty() || !image.len().is_multiple_of(PAGE_SIZE) {
            return Err(io::Error::other("the database is not made of pages"));
        }
        Ok(image.to_vec())
    }

    /// Notes the result of a checkpoint: if all of the log was copied, SQLite may start it anew.
    pub(super) fn note_checkpoint(&mut self, wholly: bool, frames: i32) {
        self.frames_seen = frames;
        if wholly && let Some(chain) = &mut self.chain {
            chain.copied = true;
        }
    }
}
