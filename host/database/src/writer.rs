//! The connection that writes, and the history of what it commits: nothing leaves the log before history has it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rusqlite::wal::CheckpointMode;

use super::changed_tables::{ChangedTables, CommitListener};
use super::commit_counter::CommitCounter;
use super::connection::{OpenSettings, TenantConnection};
use super::error::{RunError, internal};
use super::files::DatabaseFiles;
use super::history::{Checkpointer, History, HistorySettings, LentHistory, log_gap};
use super::limits::QUEUE_TIMEOUT;
use super::pending_commits::{PendingCommits, Replies};
use svc_base::ids::BackendId;
use svc_base::sync::lock;

/// The log is copied into the database from this many pages on; where readers keep some of it from being copied, it is
/// tried again after this many more,
const CHECKPOINT_PAGES: i32 = 1000;
const CHECKPOINT_RETRY_PAGES: i32 = 250;
/// With no more pages than this left, the rest is copied while writes wait, so that the log can begin anew.
const BLOCKING_CHECKPOINT_PAGES: i32 = 100;
/// Above this many pages the log is cut, which waits for readers. A log that could not be cut grows by as many first: a backup
/// may read for minutes, and writers would wait for it time and again.
const TRUNCATE_PAGES: i32 = 4000;

/// State that the writers of all databases share; clones share it, too.
#[derive(Clone, Debug)]
pub(super) struct WriterRegistry {
    files: DatabaseFiles,
    history_settings: Arc<HistorySettings>,
    checkpointer: Arc<Checkpointer>,
    claimed: Arc<ClaimedWriters>,
    listener: CommitListener,
}

/// The databases that have a writer: one that is being closed while it is opened again must not have two.
#[derive(Debug, Default)]
struct ClaimedWriters {
    ids: Mutex<HashSet<BackendId>>,
    freed: Condvar,
}

/// A database whose writer nobody else is.
#[derive(Debug)]
struct WriterClaim {
    id: BackendId,
    claimed: Arc<ClaimedWriters>,
}

impl Drop for WriterClaim {
    fn drop(&mut self) {
        lock(&self.claimed.ids).remove(&self.id);
        self.claimed.freed.notify_all();
    }
}

impl WriterRegistry {
    /// Those of the databases in `files`, whose histories are kept under `history_settings`.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub(super) fn start(
        files: DatabaseFiles,
        history_settings: HistorySettings,
    ) -> std::io::Result<Self> {
        Ok(Self {
            files,
            history_settings: Arc::new(history_settings),
            checkpointer: Arc::new(Checkpointer::start()?),
            claimed: Arc::default(),
            listener: CommitListener::default(),
        })
    }

    /// Returns the terms that histories are kept under.
    pub(super) fn history_settings(&self) -> &HistorySettings {
        &self.history_settings
    }

    /// The follower of their commits.
    pub(super) fn listener(&self) -> &CommitListener {
        &self.listener
    }

    /// The writer of a database that is there. Waits for the one before to be closed.
    pub(super) fn open(&self, id: BackendId, settings: &OpenSettings) -> Result<Writer, RunError> {
        let mut writer = self.open_with(id, settings, || TenantConnection::writer(settings))?;
        // What a crash left in the log is a moment of its own, before anything is added.
        writer.record_history();
        writer
            .commits
            .resume_at(writer.history.last_commit_number());
        Ok(writer)
    }

    /// The writer of a database that is just being made.
    pub(super) fn create(
        &self,
        id: BackendId,
        settings: &OpenSettings,
    ) -> Result<Writer, RunError> {
        self.open_with(id, settings, || TenantConnection::create(settings))
    }

    /// Waits until every database that was being closed is, but not for long.
    pub(super) fn await_closed(&self) {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        // What is not closed by then is as a crash would leave it.
        drop(freed.wait_timeout_while(ids, QUEUE_TIMEOUT, |ids| !ids.is_empty()));
    }

    fn open_with(
        &self,
        id: BackendId,
        settings: &OpenSettings,
        open: impl FnOnce() -> Result<TenantConnection, RunError>,
    ) -> Result<Writer, RunError> {
        let claim = self.claim(id)?;
        let dir = self.files.directory(&id).map_err(|_| RunError::Closed)?;
        let mut handle = open()?;
        let counted = handle.count_commits(self.history_settings.clock.clone());
        Ok(Writer {
            commits: counted.map_err(internal)?,
            pending: PendingCommits::new(id, self.listener.clone()),
            handle,
            history: History::open(dir, Arc::clone(&self.history_settings)),
            lent_history: None,
            checkpointed_pages: 0,
            checkpointer: Arc::clone(&self.checkpointer),
            settings: settings.clone(),
            checkpoint_at: CHECKPOINT_PAGES,
            truncate_at: TRUNCATE_PAGES,
            _claim: claim,
        })
    }

    fn claim(&self, id: BackendId) -> Result<WriterClaim, RunError> {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        let waited = freed.wait_timeout_while(ids, QUEUE_TIMEOUT, |ids| ids.contains(&id));
        let (mut ids, _) = waited.map_err(|_| RunError::Busy)?;
        if !ids.insert(id) {
            return Err(RunError::Busy);
        }
        Ok(WriterClaim {
            id,
            claimed: Arc::clone(&self.claimed),
        })
    }
}

/// A database's one writer.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) handle: TenantConnection,
    /// History of the database, at home after [`Writer::record_history`].
    pub(super) history: History,
    /// Where its history is, if it is not here.
    lent_history: Option<LentHistory>,
    /// How many pages of the log, which has more, are copied.
    checkpointed_pages: i32,
    checkpointer: Arc<Checkpointer>,
    settings: OpenSettings,
    commits: Arc<CommitCounter>,
    pending: PendingCommits,
    /// How long the log may become before it is copied, in pages.
    checkpoint_at: i32,
    /// How long the log may become before it is cut, in pages.
    truncate_at: i32,
    // Goes after its handle.
    _claim: WriterClaim,
}

impl Writer {
    /// Ends the first step of a commit, or of an attempt: what the database has come to is synced, and its callers wait for the
    /// second.
    pub(super) fn add_pending_commit(&mut self, touched: ChangedTables, replies: Replies) {
        let position = self.commits.position();
        self.pending.add(position, touched, replies);
    }

    /// Takes the second step of what is committed. One machine has acknowledged a commit once it is synced: nothing is awaited.
    pub(super) fn acknowledge(&mut self) {
        let acknowledged = self.commits.position();
        self.pending.acknowledge(acknowledged);
    }

    /// Notes what was committed, and has the log copied into the database once it is long: beside the writer, until so
    /// little is left that writes need not wait for it.
    pub(super) fn maintain_log(&mut self) {
        self.history
            .note_commit(self.handle.log_pages(), self.commits.last_commit_at());
        self.reclaim_history(false);
        let pages = self.handle.log_pages();
        if self.lent_history.is_some() || pages < self.checkpoint_at {
            return;
        }
        let few = self.checkpointed_pages > 0
            && pages - self.checkpointed_pages <= BLOCKING_CHECKPOINT_PAGES;
        if few || !self.checkpoint_in_background(pages) {
            self.checkpoint_log(CheckpointMode::PASSIVE);
        }
    }

    /// Has the log copied beside the writer; returns whether that can be.
    fn checkpoint_in_background(&mut self, pages: i32) -> bool {
        if !self.history.can_be_lent() {
            return false;
        }
        match self.history.lend(&self.checkpointer, &self.settings, pages) {
            Ok(lent_history) => {
                self.lent_history = Some(lent_history);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "a tenant's log is copied while writes wait");
                false
            }
        }
    }

    /// Takes the history back that was lent out, once it is done or when it is needed.
    fn reclaim_history(&mut self, wait: bool) {
        let Some(lent_history) = &mut self.lent_history else {
            return;
        };
        let Some(copied) = lent_history.reclaim(&mut self.history, wait) else {
            return;
        };
        let (before, now) = (lent_history.frames(), self.handle.log_pages());
        self.lent_history = None;
        self.checkpointed_pages = 0;
        if !copied {
            self.checkpoint_at = now
                .saturating_add(CHECKPOINT_RETRY_PAGES)
                .max(CHECKPOINT_PAGES);
        } else if now > before {
            // What was committed meanwhile is next.
            (self.checkpointed_pages, self.checkpoint_at) = (before, now);
        } else {
            if now == before {
                self.handle.note_log_checkpointed();
                self.history.note_checkpoint(true, 0);
            }
            (self.checkpoint_at, self.truncate_at) = (CHECKPOINT_PAGES, TRUNCATE_PAGES);
        }
    }

    /// Whether the log is so long that it must be cut.
    pub(super) fn needs_truncation(&self) -> bool {
        self.handle.log_pages() >= self.truncate_at
    }

    /// Cuts the log; returns whether all of it is copied. Readers pin it for no longer than a statement runs, but for a
    /// backup's; those that begin meanwhile do not.
    pub(super) fn truncate_log(&mut self) -> bool {
        let wholly = self.checkpoint_log(CheckpointMode::TRUNCATE);
        if !wholly {
            self.truncate_at = self.handle.log_pages().saturating_add(TRUNCATE_PAGES);
        }
        wholly
    }

    /// Takes what is new in the log into the history.
    pub(super) fn record_history(&mut self) {
        let known = self.history.is_too_large();
        log_gap(self.record_log(), known);
    }

    /// Takes the log's commits into the history.
    ///
    /// # Errors
    /// The disk's; another chain begins the next time then.
    pub(super) fn record_log(&mut self) -> std::io::Result<()> {
        self.reclaim_history(true);
        self.history.record_log(&mut self.handle.connection)
    }

    /// Copies the log into the database; returns whether all of it is there. Once it is, SQLite may write over the
    /// log, so history takes it first, and has it synced.
    fn checkpoint_log(&mut self, mode: CheckpointMode) -> bool {
        self.record_history();
        let wholly = self.handle.checkpoint(mode).unwrap_or_else(|error| {
            tracing::warn!(%error, "a tenant's log cannot be copied");
            false
        });
        let left = self.handle.log_pages();
        self.checkpointed_pages = 0;
        if wholly {
            (self.checkpoint_at, self.truncate_at) = (CHECKPOINT_PAGES, TRUNCATE_PAGES);
        } else {
            self.checkpoint_at = left
                .saturating_add(CHECKPOINT_RETRY_PAGES)
                .max(CHECKPOINT_PAGES);
        }
        self.history.note_checkpoint(wholly, left);
        wholly
    }

    /// Closes the database: all of its log is copied, and its history says so. Where somebody else reads it, as a backup
    /// does, the log stays, for the next writer to go on with: nobody waits here.
    pub(super) fn close(mut self) {
        let impatient = self.handle.connection.busy_timeout(Duration::ZERO);
        if impatient.is_err() || !self.truncate_log() {
            return;
        }
        if self.history.is_on()
            && let Err(error) = self.history.append_seal()
        {
            tracing::warn!(%error, "a database's history will have a gap");
        }
        self.handle.close_removing_log();
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
    fn new_registry(
        max_bytes: u64,
    ) -> (tempfile::TempDir, WriterRegistry, BackendId, OpenSettings) {
        let root = tempfile::tempdir().unwrap();
        let files = DatabaseFiles::open(root.path()).unwrap();
        let clock = Clock::system();
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        files.create_directory(&id).unwrap();
        let settings = OpenSettings::standalone(files.path(&id), 256 << 20);
        let history_settings = HistorySettings {
            clock,
            max_bytes,
            min_free_bytes: 0,
        };
        let writers = WriterRegistry::start(files, history_settings).unwrap();
        (root, writers, id, settings)
    }

    #[test]
    fn a_commit_has_the_position_that_is_its_number_in_the_history() {
        let (_root, writers, id, settings) = new_registry(1 << 30);
        let writer = writers.create(id, &settings).unwrap();
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        writer.close();
        for commits in 1..5 {
            let mut writer = writers.open(id, &settings).unwrap();
            for _ in 0..commits {
                let before = writer.commits.position();
                let insert = writer
                    .handle
                    .execute_as_platform("INSERT INTO t VALUES (1)");
                insert.unwrap();
                assert_eq!(writer.commits.position(), before.next());
                writer.handle.execute_as_platform("BEGIN; COMMIT").unwrap();
                assert_eq!(writer.commits.position(), before.next());
                writer.maintain_log();
            }
            let position = writer.commits.position();
            writer.record_log().unwrap();
            assert_eq!(
                position,
                CommitPosition(writer.history.last_commit_number())
            );
            writer.close();
        }
    }

    #[test]
    fn callers_are_answered_by_the_second_step() {
        let (_root, writers, id, settings) = new_registry(0);
        let mut writer = writers.create(id, &settings).unwrap();
        let answered = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&answered);
        let answer = Box::new(move || tell.store(true, Ordering::Relaxed));
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        writer.add_pending_commit(ChangedTables::All, Replies::Exclusive(answer));
        assert!(!answered.load(Ordering::Relaxed));
        writer.acknowledge();
        assert!(answered.load(Ordering::Relaxed));
    }

    #[test]
    fn a_log_that_could_not_be_cut_grows_before_it_is_tried_again() {
        let (_root, writers, id, settings) = new_registry(0);
        let mut writer = writers.create(id, &settings).unwrap();
        let impatient = writer.handle.connection.busy_timeout(Duration::ZERO);
        impatient.unwrap();
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        let fill = |writer: &Writer| {
            let bytes = u64::from(TRUNCATE_PAGES.unsigned_abs()) * PAGE_BYTES / 128;
            let sql = format!("INSERT INTO t VALUES (zeroblob({bytes}))");
            (0..128).for_each(|_| writer.handle.execute_as_platform(&sql).unwrap());
        };
        let reader = TenantConnection::reader(&settings).unwrap();
        reader
            .execute_as_platform("BEGIN; SELECT count(*) FROM t")
            .unwrap();
        fill(&writer);
        assert!(writer.needs_truncation());
        assert!(!writer.truncate_log());
        let one = writer
            .handle
            .execute_as_platform("INSERT INTO t VALUES (1)");
        one.unwrap();
        assert!(!writer.needs_truncation());
        fill(&writer);
        assert!(writer.needs_truncation());
        assert!(!writer.truncate_log());
        reader.execute_as_platform("COMMIT").unwrap();
        assert!(writer.truncate_log());
        assert_eq!(writer.handle.log_pages(), 0);
        fill(&writer);
        assert!(writer.needs_truncation());
    }
}
