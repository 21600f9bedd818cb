//! The connection that writes, and the history of what it commits: nothing leaves the log before history has it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rusqlite::wal::CheckpointMode;

use super::commits::Commits;
use super::committed::{PendingCommits, Replies};
use super::error::{RunError, internal};
use super::files::Files;
use super::handle::{Handle, Settings};
use super::history::{Checkpointer, History, LentHistory, Terms, log_gap};
use super::limits::WAIT;
use super::touched::{CommitFollower, Touched};
use svc_base::ids::BackendId;
use svc_base::sync::lock;

/// The log is copied into the database from this many pages on; where readers keep some of it from being copied, it is
/// tried again after this many more,
const COPY_PAGES: i32 = 1000;
const AGAIN_PAGES: i32 = 250;
/// With no more pages than this left, the rest is copied while writes wait, so that the log can begin anew.
const FEW_PAGES: i32 = 100;
/// Above this many pages the log is cut, which waits for readers. A log that could not be cut grows by as many first: a backup
/// may read for minutes, and writers would wait for it time and again.
const CUT_PAGES: i32 = 4000;

/// State that the writers of all databases share; clones share it, too.
#[derive(Clone, Debug)]
pub(super) struct Writers {
    files: Files,
    terms: Arc<Terms>,
    checkpointer: Arc<Checkpointer>,
    claimed: Arc<Claimed>,
    follower: CommitFollower,
}

/// The databases that have a writer: one that is being closed while it is opened again must not have two.
#[derive(Debug, Default)]
struct Claimed {
    ids: Mutex<HashSet<BackendId>>,
    freed: Condvar,
}

/// A database whose writer nobody else is.
#[derive(Debug)]
struct Claim {
    id: BackendId,
    claimed: Arc<Claimed>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.claimed.ids).remove(&self.id);
        self.claimed.freed.notify_all();
    }
}

impl Writers {
    /// Those of the databases in `files`, whose histories are kept under `terms`.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(super) fn start(files: Files, terms: Terms) -> std::io::Result<Self> {
        Ok(Self {
            files,
            terms: Arc::new(terms),
            checkpointer: Arc::new(Checkpointer::start()?),
            claimed: Arc::default(),
            follower: CommitFollower::default(),
        })
    }

    /// Returns the terms that histories are kept under.
    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The follower of their commits.
    pub(super) fn follower(&self) -> &CommitFollower {
        &self.follower
    }

    /// The writer of a database that is there. Waits for the one before to be closed.
    pub(super) fn open(&self, id: BackendId, settings: &Settings) -> Result<Writer, RunError> {
        let mut writer = self.of(id, settings, || Handle::writer(settings))?;
        // What a crash left in the log is a moment of its own, before anything is added.
        writer.remember();
        writer.commits.resume_at(writer.history.commit());
        Ok(writer)
    }

    /// The writer of a database that is just being made.
    pub(super) fn create(&self, id: BackendId, settings: &Settings) -> Result<Writer, RunError> {
        self.of(id, settings, || Handle::create(settings))
    }

    /// Waits until every database that was being closed is, but not for long.
    pub(super) fn await_closed(&self) {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        // What is not closed by then is as a crash would leave it.
        drop(freed.wait_timeout_while(ids, WAIT, |ids| !ids.is_empty()));
    }

    fn of(
        &self,
        id: BackendId,
        settings: &Settings,
        open: impl FnOnce() -> Result<Handle, RunError>,
    ) -> Result<Writer, RunError> {
        let claim = self.claim(id)?;
        let dir = self.files.directory(&id).map_err(|_| RunError::Closed)?;
        let mut handle = open()?;
        let counted = handle.count_commits(self.terms.clock.clone());
        Ok(Writer {
            commits: counted.map_err(internal)?,
            pending: PendingCommits::new(id, self.follower.clone()),
            handle,
            history: History::open(dir, Arc::clone(&self.terms)),
            lent: None,
            copied: 0,
            checkpointer: Arc::clone(&self.checkpointer),
            settings: settings.clone(),
            copy_at: COPY_PAGES,
            cut_at: CUT_PAGES,
            _claim: claim,
        })
    }

    fn claim(&self, id: BackendId) -> Result<Claim, RunError> {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        let waited = freed.wait_timeout_while(ids, WAIT, |ids| ids.contains(&id));
        let (mut ids, _) = waited.map_err(|_| RunError::Busy)?;
        if !ids.insert(id) {
            return Err(RunError::Busy);
        }
        Ok(Claim {
            id,
            claimed: Arc::clone(&self.claimed),
        })
    }
}

/// A database's one writer.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) handle: Handle,
    /// History of the database, at home after [`Writer::remember`].
    pub(super) history: History,
    /// Where its history is, if it is not here.
    lent: Option<LentHistory>,
    /// How many pages of the log, which has more, are copied.
    copied: i32,
    checkpointer: Arc<Checkpointer>,
    settings: Settings,
    commits: Arc<Commits>,
    pending: PendingCommits,
    /// How long the log may become before it is copied, in pages.
    copy_at: i32,
    /// How long the log may become before it is cut, in pages.
    cut_at: i32,
    // Goes after its handle.
    _claim: Claim,
}

impl Writer {
    /// Ends the first step of a commit, or of an attempt: what the database has come to is synced, and its callers wait for the
    /// second.
    pub(super) fn committed(&mut self, touched: Touched, replies: Replies) {
        let position = self.commits.position();
        self.pending.committed(position, touched, replies);
    }

    /// Takes the second step of what is committed. One machine has acknowledged a commit once it is synced: nothing is awaited.
    pub(super) fn acknowledge(&mut self) {
        let acknowledged = self.commits.position();
        self.pending.acknowledged(acknowledged);
    }

    /// Notes what was committed, and has the log copied into the database once it is long: beside the writer, until so
    /// little is left that writes need not wait for it.
    pub(super) fn settle(&mut self) {
        self.history
            .note(self.handle.log_pages(), self.commits.last());
        self.come_home(false);
        let pages = self.handle.log_pages();
        if self.lent.is_some() || pages < self.copy_at {
            return;
        }
        let few = self.copied > 0 && pages - self.copied <= FEW_PAGES;
        if few || !self.copy_aside(pages) {
            self.copy_log(CheckpointMode::PASSIVE);
        }
    }

    /// Has the log copied beside the writer; returns whether that can be.
    fn copy_aside(&mut self, pages: i32) -> bool {
        if !self.history.can_be_lent() {
            return false;
        }
        match self.history.lend(&self.checkpointer, &self.settings, pages) {
            Ok(lent) => {
                self.lent = Some(lent);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "a tenant's log is copied while writes wait");
                false
            }
        }
    }

    /// Takes the history back that was lent out, once it is done or when it is needed.
    fn come_home(&mut self, wait: bool) {
        let Some(lent) = &mut self.lent else { return };
        let Some(copied) = lent.give_back(&mut self.history, wait) else {
            return;
        };
        let (before, now) = (lent.frames(), self.handle.log_pages());
        self.lent = None;
        self.copied = 0;
        if !copied {
            self.copy_at = now.saturating_add(AGAIN_PAGES).max(COPY_PAGES);
        } else if now > before {
            // What was committed meanwhile is next.
            (self.copied, self.copy_at) = (before, now);
        } else {
            if now == before {
                self.handle.log_is_copied();
                self.history.copied(true, 0);
            }
            (self.copy_at, self.cut_at) = (COPY_PAGES, CUT_PAGES);
        }
    }

    /// Whether the log is so long that it must be cut.
    pub(super) fn has_long_log(&self) -> bool {
        self.handle.log_pages() >= self.cut_at
    }

    /// Cuts the log; returns whether all of it is copied. Readers pin it for no longer than a statement runs, but for a
    /// backup's; those that begin meanwhile do not.
    pub(super) fn cut_log(&mut self) -> bool {
        let wholly = self.copy_log(CheckpointMode::TRUNCATE);
        if !wholly {
            self.cut_at = self.handle.log_pages().saturating_add(CUT_PAGES);
        }
        wholly
    }

    /// Takes what is new in the log into the history.
    pub(super) fn remember(&mut self) {
        let known = self.history.is_outgrown();
        log_gap(self.take(), known);
    }

    /// Takes the log's commits into the history.
    ///
    /// # Errors
    /// The disk's; another chain begins the next time then.
    pub(super) fn take(&mut self) -> std::io::Result<()> {
        self.come_home(true);
        self.history.take(&mut self.handle.connection)
    }

    /// Copies the log into the database; returns whether all of it is there. Once it is, SQLite may write over the
    /// log, so history takes it first, and has it synced.
    fn copy_log(&mut self, mode: CheckpointMode) -> bool {
        self.remember();
        let wholly = self.handle.checkpoint(mode).unwrap_or_else(|error| {
            tracing::warn!(%error, "a tenant's log cannot be copied");
            false
        });
        let left = self.handle.log_pages();
        self.copied = 0;
        if wholly {
            (self.copy_at, self.cut_at) = (COPY_PAGES, CUT_PAGES);
        } else {
            self.copy_at = left.saturating_add(AGAIN_PAGES).max(COPY_PAGES);
        }
        self.history.copied(wholly, left);
        wholly
    }

    /// Closes the database: all of its log is copied, and its history says so. Where somebody else reads it, as a backup
    /// does, the log stays, for the next writer to go on with: nobody waits here.
    pub(super) fn close(mut self) {
        let impatient = self.handle.connection.busy_timeout(Duration::ZERO);
        if impatient.is_err() || !self.cut_log() {
            return;
        }
        if self.history.is_on()
            && let Err(error) = self.history.seal()
        {
            tracing::warn!(%error, "a database's history will have a gap");
        }
        self.handle.leave_no_log();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PAGE_BYTES;
    use std::sync::atomic::{AtomicBool, Ordering};
    use svc_base::clock::Clock;
    use svc_base::positions::CommitPosition;
    use svc_base::random::Random;

    /// A database that is yet to be made, whose history may take so many bytes.
    fn site(most_bytes: u64) -> (tempfile::TempDir, Writers, BackendId, Settings) {
        let root = tempfile::tempdir().unwrap();
        let files = Files::open(root.path()).unwrap();
        let clock = Clock::system();
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        files.make(&id).unwrap();
        let settings = Settings::alone(files.path(&id), 256 << 20);
        let terms = Terms {
            clock,
            most_bytes,
            free_disk: 0,
        };
        let writers = Writers::start(files, terms).unwrap();
        (root, writers, id, settings)
    }

    #[test]
    fn a_commit_has_the_position_that_is_its_number_in_the_history() {
        let (_root, writers, id, settings) = site(1 << 30);
        let writer = writers.create(id, &settings).unwrap();
        writer.handle.platform("CREATE TABLE t (a)").unwrap();
        writer.close();
        for commits in 1..5 {
            let mut writer = writers.open(id, &settings).unwrap();
            for _ in 0..commits {
                let before = writer.commits.position();
                let insert = writer.handle.platform("INSERT INTO t VALUES (1)");
                insert.unwrap();
                assert_eq!(writer.commits.position(), before.next());
                writer.handle.platform("BEGIN; COMMIT").unwrap();
                assert_eq!(writer.commits.position(), before.next());
                writer.settle();
            }
            let position = writer.commits.position();
            writer.take().unwrap();
            assert_eq!(position, CommitPosition(writer.history.commit()));
            writer.close();
        }
    }

    #[test]
    fn callers_are_answered_by_the_second_step() {
        let (_root, writers, id, settings) = site(0);
        let mut writer = writers.create(id, &settings).unwrap();
        let answered = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&answered);
        let answer = Box::new(move || tell.store(true, Ordering::Relaxed));
        writer.handle.platform("CREATE TABLE t (a)").unwrap();
        writer.committed(Touched::All, Replies::Alone(answer));
        assert!(!answered.load(Ordering::Relaxed));
        writer.acknowledge();
        assert!(answered.load(Ordering::Relaxed));
    }

    #[test]
    fn a_log_that_could_not_be_cut_grows_before_it_is_tried_again() {
        let (_root, writers, id, settings) = site(0);
        let mut writer = writers.create(id, &settings).unwrap();
        let impatient = writer.handle.connection.busy_timeout(Duration::ZERO);
        impatient.unwrap();
        writer.handle.platform("CREATE TABLE t (a)").unwrap();
        let fill = |writer: &Writer| {
            let bytes = u64::from(CUT_PAGES.unsigned_abs()) * PAGE_BYTES / 128;
            let sql = format!("INSERT INTO t VALUES (zeroblob({bytes}))");
            (0..128).for_each(|_| writer.handle.platform(&sql).unwrap());
        };
        let reader = Handle::reader(&settings).unwrap();
        reader.platform("BEGIN; SELECT count(*) FROM t").unwrap();
        fill(&writer);
        assert!(writer.has_long_log());
        assert!(!writer.cut_log());
        let one = writer.handle.platform("INSERT INTO t VALUES (1)");
        one.unwrap();
        assert!(!writer.has_long_log());
        fill(&writer);
        assert!(writer.has_long_log());
        assert!(!writer.cut_log());
        reader.platform("COMMIT").unwrap();
        assert!(writer.cut_log());
        assert_eq!(writer.handle.log_pages(), 0);
        fill(&writer);
        assert!(writer.has_long_log());
    }
}
