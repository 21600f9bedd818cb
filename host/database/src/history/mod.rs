//! The history of a database: what its log held, kept before the log is begun anew.
//!
//! History is made of chains. Each begins with a copy of the database and goes on with what was committed after it,
//! as SQLite's log has it, so that a commit costs history nothing until the log is copied. What is in a chain is
//! certain: it follows from its base frame by frame, by the salts and sums of the log itself, or by our own account
//! of having copied the log wholly. Where that cannot be shown, another chain begins, with another copy: in doubt
//! history has a gap, and is never wrong. A failure of history fails nothing else.
//!
//! Commits are numbered, and each number stands with the checksum of the state that its commit led to. Neither depends on
//! this machine or on a generation of the log: a copy that has come to a number is compared by its checksum.

mod append;
mod background;
mod chain;
mod log;
mod moments;
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

use self::chain::Chain;
use self::log::{ALL_FRAMES, LogPosition, PAGE_SIZE, WalFile};
use self::page_hashes::{MAX_IMAGE_BYTES, PageHashes};
use self::record::{CommitPoint, Moment, Record, RecordKind};
use super::connection;
use super::files::LOG_FILE;
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;

pub(super) use background::{Checkpointer, LentHistory, log_gap};
pub use moments::HistoryMoments;
pub(super) use moments::{has_expired_moments, verify};

/// A clock that is set back by no more than this, in milliseconds, stands still for history.
const MAX_CLOCK_SETBACK_MILLIS: i64 = 60_000;

/// Terms that history is kept under.
#[derive(Debug)]
pub(super) struct HistorySettings {
    /// Clock that dates commits.
    pub(super) clock: Clock,
    /// How many bytes the history of a database may take; 0 keeps none.
    pub(super) max_bytes: u64,
    /// With less free disk nothing is kept, in bytes.
    pub(super) min_free_bytes: u64,
}

/// Why nothing more is kept: all that history may take is less than what there is.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the history may take fewer bytes than are to be kept")]
pub(super) struct HistoryLimitExceeded;

impl HistoryLimitExceeded {
    /// Whether that is what failed.
    pub(super) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl From<HistoryLimitExceeded> for io::Error {
    fn from(why: HistoryLimitExceeded) -> Self {
        Self::other(why)
    }
}

/// The history of an open database: its writer's, which alone adds to it.
#[derive(Debug)]
pub(super) struct History {
    dir: Dir,
    history_settings: Arc<HistorySettings>,
    /// The newest chain, if what is in the log follows it.
    chain: Option<CurrentChain>,
    /// Commits that are not in a chain yet.
    unrecorded: Vec<CommitNote>,
    /// How many frames the log had when it was looked at last.
    frames_seen: i32,
    /// When the last commit was.
    last: Option<Timestamp>,
    /// Whether the database was too large for it when it was last taken.
    is_too_large: bool,
    /// When a chain begins that is begun while it is lent out: before whatever is committed meanwhile.
    chain_begins_at: Option<Timestamp>,
}

/// The chain that is added to.
#[derive(Debug)]
struct CurrentChain {
    number: u32,
    began: Timestamp,
    /// How many bytes of its file its base takes.
    base: u64,
    /// Where its file ends.
    end: u64,
    /// How many bytes of pages it has beside its base.
    unpacked: u64,
    /// Position in the log up to which the history has it.
    position: LogPosition,
    /// Where it has come to.
    point: CommitPoint,
    /// The state there, once something was added to it.
    state: Option<PageHashes>,
    /// Whether all of the log is copied, so that SQLite may have begun it anew.
    copied: bool,
    /// Whether it ends with a seal.
    sealed: bool,
    /// Whether it is to be compared with the database before it is believed.
    doubtful: bool,
}

/// A commit that was made.
#[derive(Clone, Copy, Debug)]
struct CommitNote {
    /// How many frames the log had after it.
    frames: u32,
    at: Timestamp,
}

impl History {
    /// The history in a database's directory. The database's one writer is just being opened.
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
        };
        let opened = if history.is_on() {
            history.resume()
        } else {
            // What was kept before it was switched off goes.
            history.make_room(0)
        };
        if let Err(error) = opened {
            tracing::warn!(%error, "a database's history cannot be gone on with");
        }
        history
    }

    /// The time by which it is kept.
    pub(super) fn now(&self) -> Timestamp {
        self.history_settings.clock.now()
    }

    /// Whether any is kept.
    pub(super) fn is_on(&self) -> bool {
        self.history_settings.max_bytes > 0
    }

    /// Notes a commit that must be told apart from the one before it, and is otherwise [`History::note_commit`].
    pub(super) fn note_distinct_commit(&mut self, frames: i32) {
        self.note_commit(frames, self.distinct_time());
    }

    /// Now, or just after the last commit.
    fn distinct_time(&self) -> Timestamp {
        let after = self.last.map(|last| Timestamp(last.0 + 1));
        after.map_or(self.now(), |after| after.max(self.now()))
    }

    /// Notes a commit that was made at `now`, if the log has grown to `frames` by one.
    pub(super) fn note_commit(&mut self, frames: i32, now: Timestamp) {
        let grown = self.is_on() && frames > 0 && frames != self.frames_seen;
        self.frames_seen = frames;
        if grown {
            let at = self.commit_time(now);
            self.last = Some(at);
            let frames = frames.unsigned_abs();
            self.unrecorded.push(CommitNote { frames, at });
        }
    }

    /// When a commit is said to be: never before the one before it, unless the clock was set back in earnest.
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

    /// Whether the database was too large for it when it was last taken, so that there is none of what came since.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// When the last commit was.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Takes what is new in the log, durably. After it the log may be copied.
    ///
    /// # Errors
    /// The disk's; another chain begins the next time then.
    pub(super) fn record_log(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.record_log_up_to(connection, ALL_FRAMES)
    }

    /// Takes the first `most` frames of the log, which are those that `connection` sees.
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
            // A copy that was given up may have been complete.
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

    /// Begins a chain with the database as `connection` sees it: with the first `most` frames of the log.
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
        let point = CommitPoint {
            commit: match &self.chain {
                Some(chain) => chain.point.commit,
                // Commits since then were not counted.
                None => self.stored_commit_number()? + 1,
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
        let base = Record::new(RecordKind::Base, &[moment], &image, position, (at, point))?;
        let length = base.header.length();
        // The one that it follows is an old one from now on.
        self.chain = None;
        self.make_room(length)?;
        let number = chain::list_numbers(&self.dir)?.pop().unwrap_or(0) + 1;
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
            copied: position == LogPosition::default(),
            sealed: false,
            doubtful: false,
        });
        fault::point("history.begun");
        self.remove_expired()
    }

    /// The number of the last commit that any chain has.
    fn stored_commit_number(&self) -> io::Result<u64> {
        for number in chain::list_numbers(&self.dir)?.into_iter().rev() {
            if let Some(point) = Chain::open(&self.dir, number)?.point() {
                return Ok(point.commit);
            }
        }
        Ok(0)
    }

    /// Makes sure that history may take as much as the database has, before that is read.
    fn check_size(&self, connection: &Connection) -> io::Result<()> {
        let bytes = connection::database_bytes(connection).map_err(io::Error::other)?;
        if bytes > self.history_settings.max_bytes.min(MAX_IMAGE_BYTES as u64) {
            return Err(HistoryLimitExceeded.into());
        }
        Ok(())
    }

    /// The database as it is, as SQLite has it: nobody else may open its file, for closing it would end SQLite's locks.
    fn image(&self, connection: &mut Connection) -> io::Result<Vec<u8>> {
        let image = connection.serialize(MAIN_DB).map_err(io::Error::other)?;
        if image.is_empty() || !image.len().is_multiple_of(PAGE_SIZE) {
            return Err(io::Error::other("the database is not made of pages"));
        }
        Ok(image.to_vec())
    }

    /// Notes that the log was looked at, and whether all of it was copied: then SQLite may begin it anew.
    pub(super) fn note_checkpoint(&mut self, wholly: bool, frames: i32) {
        self.frames_seen = frames;
        if wholly && let Some(chain) = &mut self.chain {
            chain.copied = true;
        }
    }
}
