//! Shipping: the commits of a database's log, as entries for other machines.

use std::io;
use std::sync::Arc;

use cap_std::fs::Dir;

use super::database_state::DatabaseState;
use super::entry_body::CommitPages;
use super::wal::{ALL_FRAMES, CommittedFrames, WalFile, WalPosition};
use svc_base::clock::Timestamp;
use svc_base::positions::{CommitPosition, Entry};

/// Reader of a database's log that makes an [`Entry`] of each commit. There is one for a database, from the load of its file on. It
/// outlives the connections: the database may be closed and opened again.
#[derive(Debug)]
pub struct LogShipper {
    dir: Dir,
    log: String,
    /// Position in the log up to which commits are shipped.
    shipped: WalPosition,
    /// State after the last commit that is shipped.
    state: DatabaseState,
}

/// The commits of a log could not be shipped. Nothing was.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The log has fewer commits than were made: some were overwritten before they were read, or the log is damaged.
    #[error(
        "the log has {found} of the {made} commits up to number {}",
        .position.0
    )]
    MissingCommits {
        /// Number of the last commit that was made.
        position: CommitPosition,
        /// Commits that were made since the last one that was shipped.
        made: u64,
        /// Commits that the log has after that.
        found: usize,
    },
    /// The log cannot be read, or the database is too large.
    #[error("the log cannot be shipped: {0}")]
    Io(#[from] io::Error),
}

impl LogShipper {
    /// Starts at `state`, which the file in `dir` has. `log` is the name of its log, which is missing, empty, or has no commit yet
    /// that `state` lacks.
    pub fn new(dir: Dir, log: &str, state: DatabaseState) -> Self {
        Self {
            dir,
            log: log.to_owned(),
            shipped: WalPosition::default(),
            state,
        }
    }

    /// Starts at `state`, which the file in `dir` has together with all of its log: as after a replica of it, which readers have kept
    /// open. Nobody writes to the database meanwhile.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn after_log(dir: Dir, log: &str, state: DatabaseState) -> io::Result<Self> {
        let mut shipper = Self::new(dir, log, state);
        if let Some(frames) = shipper.read_new_frames()? {
            shipper.shipped = frames.end;
        }
        Ok(shipper)
    }

    /// Returns the state after the last commit that is shipped.
    pub fn state(&self) -> &DatabaseState {
        &self.state
    }

    /// Returns the commits up to `position` that are not shipped yet, in their order, an entry for each position. Call this in
    /// [`append`], while the writer waits: it may then copy the log and start it anew.
    ///
    /// If the log has more commits than positions, as after an error between a commit and its count, the first entry has the
    /// additional ones: no commit is acknowledged before it is durable.
    ///
    /// [`append`]: svc_base::positions::Durable::append
    ///
    /// # Errors
    /// [`ShipError`]. Later commits cannot be shipped then: the database must be closed, and loaded anew before its next use.
    pub fn ship(
        &mut self,
        position: CommitPosition,
        at: Timestamp,
    ) -> Result<Vec<Entry>, ShipError> {
        let made = position.0.saturating_sub(self.state.position().0);
        if made == 0 {
            return Ok(Vec::new());
        }
        let frames = self.read_new_frames()?;
        let commits = frames.as_ref().map_or(0, |frames| frames.commits.len());
        let (Some(frames), Some(additional)) = (frames, surplus(commits, made)) else {
            return Err(ShipError::MissingCommits {
                position,
                made,
                found: commits,
            });
        };
        let mut new = Vec::new();
        let mut from = 0;
        for commit in &frames.commits[additional..] {
            let to = usize::try_from(commit.frames).unwrap_or(usize::MAX);
            let pages = CommitPages::of_frames(&frames, (from, to), commit.pages)?;
            new.push((pages.to_body()?, pages));
            from = to;
        }
        // From here on nothing fails.
        let mut entries = Vec::new();
        for (body, pages) in new {
            let before = self.state.checksum();
            self.state.apply(&pages)?;
            entries.push(Entry {
                position: self.state.position(),
                at,
                before,
                after: self.state.checksum(),
                body,
                changes: Arc::default(),
            });
        }
        self.shipped = frames.end;
        Ok(entries)
    }

    /// Whether the log has no commit that is not shipped.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn is_up_to_date(&self) -> io::Result<bool> {
        let frames = self.read_new_frames()?;
        Ok(frames.is_none_or(|frames| frames.commits.is_empty()))
    }

    /// Reads the commits that are not shipped yet; `None` without a log.
    fn read_new_frames(&self) -> io::Result<Option<CommittedFrames>> {
        let Some(log) = WalFile::open(&self.dir, &self.log)? else {
            return Ok(None);
        };
        // A log that does not have the position was started anew since. That all of the old one was read before is certain only by
        // the number of commits.
        let from = if log.contains(&self.shipped)? {
            self.shipped
        } else {
            log.start()
        };
        log.read_committed(&from, ALL_FRAMES).map(Some)
    }
}

/// Number of commits in the log beyond those that were made; `None` if there are fewer.
fn surplus(found: usize, made: u64) -> Option<usize> {
    found.checked_sub(usize::try_from(made).ok()?)
}
