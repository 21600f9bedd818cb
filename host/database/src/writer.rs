//! The connection that writes, and the history of its commits: the log is never overwritten before the history has recorded it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rusqlite::wal::CheckpointMode;

use super::batch::BatchError;
use super::changed_tables::{ChangedTables, CommitListener};
use super::commit_counter::LastCommitTracker;
use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::error::{StatementRunError, internal_error};
use super::files::DatabasesDirectory;
use super::history::{
    BackgroundCheckpointer, DatabaseHistory, HistorySettings, LentHistory, log_history_gap,
};
use super::limits::QUEUE_TIMEOUT;
use super::pending_commits::{
    CommitAnnouncer, CommitReplies, DurableSource, PendingCommits, SharedCommits,
};
use super::pending_write::PendingWrite;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;
use svc_base::positions::CommitPosition;
use svc_base::sync::lock;

/// The log is checkpointed from this many pages on. If readers keep it from being complete, it is tried again after so many more.
const CHECKPOINT_PAGES: i32 = 1000;
const CHECKPOINT_RETRY_PAGES: i32 = 250;
/// With at most this many pages left, the rest is checkpointed while writes wait, so that the log can start anew.
const BLOCKING_CHECKPOINT_PAGES: i32 = 100;
/// The log is truncated above this many pages, which waits for readers. After a failure it may grow by as many more: a backup may
/// read for minutes, and writers must not wait for it again and again.
const TRUNCATE_PAGES: i32 = 4000;

/// State that all writers share, as do its clones.
#[derive(Clone, Debug)]
pub(super) struct WriterRegistry {
    files: DatabasesDirectory,
    history_settings: Arc<HistorySettings>,
    checkpointer: Arc<BackgroundCheckpointer>,
    claimed: Arc<ClaimedWriters>,
    listener: CommitListener,
    /// Source of what acknowledges commits; `None` on a single machine, which does so itself.
    durable: Option<DurableSource>,
}

/// The databases that have a writer. A database must not have two while one is closed and another opened.
#[derive(Debug, Default)]
struct ClaimedWriters {
    ids: Mutex<HashSet<BackendId>>,
    freed: Condvar,
}

/// Exclusive right to write to a database; released when it is dropped.
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
    /// Starts the registry for the databases in `files`, with these settings for their histories, and with what acknowledges their
    /// commits, unless this machine does.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start(
        files: DatabasesDirectory,
        history_settings: HistorySettings,
        durable: Option<DurableSource>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            files,
            history_settings: Arc::new(history_settings),
            checkpointer: Arc::new(BackgroundCheckpointer::start()?),
            claimed: Arc::default(),
            listener: CommitListener::default(),
            durable,
        })
    }

    /// Starts what a database shares with the acknowledger of its commits; `None` where this machine acknowledges them.
    pub(super) fn share_commits(&self, id: BackendId) -> Option<Arc<SharedCommits>> {
        let source = self.durable.as_ref()?;
        let announcer = CommitAnnouncer::new(id, self.listener.clone());
        Some(SharedCommits::start(announcer, source))
    }

    /// Returns the settings of the histories.
    pub(super) fn history_settings(&self) -> &HistorySettings {
        &self.history_settings
    }

    /// Returns the listener of commits.
    pub(super) fn listener(&self) -> &CommitListener {
        &self.listener
    }

    /// Opens the writer of an existing database. Waits until an earlier writer is closed.
    pub(super) fn open(
        &self,
        id: BackendId,
        settings: &DatabaseOpenSettings,
        shared: Option<&Arc<SharedCommits>>,
    ) -> Result<DatabaseWriter, StatementRunError> {
        let open = || TenantConnection::writer(settings);
        let mut writer = self.open_with(id, settings, shared, open)?;
        // Commits that a crash left in the log are recorded first, as moments of their own.
        writer.record_history();
        if shared.is_none() {
            writer
                .commits
                .resume_at(writer.history.last_commit_number());
        } else if writer.history.leave_chain_numbered_otherwise() {
            writer.record_history();
        }
        Ok(writer)
    }

    /// Opens the writer of a database that is being created.
    pub(super) fn create(
        &self,
        id: BackendId,
        settings: &DatabaseOpenSettings,
        shared: Option<&Arc<SharedCommits>>,
    ) -> Result<DatabaseWriter, StatementRunError> {
        self.open_with(id, settings, shared, || TenantConnection::create(settings))
    }

    /// Waits until every database that was being closed is closed, up to the queue timeout.
    pub(super) fn await_closed(&self) {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        // A database that is not closed by then is in the state that a crash would leave.
        drop(freed.wait_timeout_while(ids, QUEUE_TIMEOUT, |ids| !ids.is_empty()));
    }

    fn open_with(
        &self,
        id: BackendId,
        settings: &DatabaseOpenSettings,
        shared: Option<&Arc<SharedCommits>>,
        open: impl FnOnce() -> Result<TenantConnection, StatementRunError>,
    ) -> Result<DatabaseWriter, StatementRunError> {
        let claim = self.claim(id)?;
        let dir = self
            .files
            .directory(&id)
            .map_err(|_| StatementRunError::Closed)?;
        let mut handle = open()?;
        let counted = handle.count_commits(self.history_settings.clock.clone());
        let commits = counted.map_err(internal_error)?;
        let mut history = DatabaseHistory::open(dir, Arc::clone(&self.history_settings));
        if let Some(shared) = shared {
            commits.resume_at(shared.last_position().0);
            history.set_commit_numbers(Arc::clone(&commits));
            let (shared, commits) = (Arc::clone(shared), Arc::clone(&commits));
            let begins = move || shared.begin_commit(commits.position().next());
            handle.on_commit_begin(begins).map_err(internal_error)?;
        }
        Ok(DatabaseWriter {
            commits,
            announcer: CommitAnnouncer::new(id, self.listener.clone()),
            pending: PendingCommits::default(),
            shared: shared.cloned(),
            handle,
            history,
            lent_history: None,
            checkpointed_pages: 0,
            checkpointer: Arc::clone(&self.checkpointer),
            settings: settings.clone(),
            checkpoint_at: CHECKPOINT_PAGES,
            truncate_at: TRUNCATE_PAGES,
            _claim: claim,
        })
    }

    fn claim(&self, id: BackendId) -> Result<WriterClaim, StatementRunError> {
        let ids = lock(&self.claimed.ids);
        let freed = &self.claimed.freed;
        let waited = freed.wait_timeout_while(ids, QUEUE_TIMEOUT, |ids| ids.contains(&id));
        let (mut ids, _) = waited.map_err(|_| StatementRunError::Busy)?;
        if !ids.insert(id) {
            return Err(StatementRunError::Busy);
        }
        Ok(WriterClaim {
            id,
            claimed: Arc::clone(&self.claimed),
        })
    }
}

/// The one writer of a database.
#[derive(Debug)]
pub(super) struct DatabaseWriter {
    pub(super) handle: TenantConnection,
    /// History of the database. It is complete only after [`DatabaseWriter::record_history`].
    pub(super) history: DatabaseHistory,
    /// Handle to the history while a background checkpoint uses it.
    lent_history: Option<LentHistory>,
    /// Pages of the log that are checkpointed, if not all are.
    checkpointed_pages: i32,
    checkpointer: Arc<BackgroundCheckpointer>,
    settings: DatabaseOpenSettings,
    commits: Arc<LastCommitTracker>,
    announcer: CommitAnnouncer,
    /// Commits of the present job.
    pending: PendingCommits,
    /// Commits that were handed over; `None` where this machine acknowledges them.
    shared: Option<Arc<SharedCommits>>,
    /// Length of the log from which it is checkpointed, in pages.
    checkpoint_at: i32,
    /// Length of the log from which it is truncated, in pages.
    truncate_at: i32,
    // Dropped after the handle, as the last field.
    _claim: WriterClaim,
}

impl DatabaseWriter {
    /// Adds a commit that is made and synced; its callers are answered with the acknowledgement.
    pub(super) fn add_pending_commit(&mut self, touched: ChangedTables, replies: CommitReplies) {
        let position = self.commits.position();
        self.pending.push(position, (touched, replies));
    }

    /// Answers a write that failed, at once on a single machine. Elsewhere its error may show commits that are not acknowledged, and
    /// so waits for them.
    pub(super) fn answer_failed_write(&mut self, write: PendingWrite, error: BatchError) {
        if self.shared.is_none() {
            write.answer(Err(error));
        } else {
            let replies = CommitReplies::Writes(vec![write], vec![Err(error)]);
            self.add_pending_commit(ChangedTables::default(), replies);
        }
    }

    /// Returns the position of the last commit.
    pub(super) fn position(&self) -> CommitPosition {
        self.commits.position()
    }

    /// Returns the position and the time of the last commit.
    pub(super) fn last_commit(&self) -> (CommitPosition, Timestamp) {
        self.commits.last_commit()
    }

    /// Notes that a commit is being made that no statement makes, such as one of SQLite's copies.
    pub(super) fn begin_commit(&self) {
        if let Some(shared) = &self.shared {
            shared.begin_commit(self.position().next());
        }
    }

    /// Finishes the commits of a job. A single machine acknowledges them, since they are synced. Elsewhere they are handed over, and
    /// what `in_use` returns is kept until they are acknowledged.
    pub(super) fn finish_commits<T: Send + 'static>(&mut self, in_use: impl FnOnce() -> T) {
        let last = self.commits.last_commit();
        match &self.shared {
            None => self.announcer.announce(&mut self.pending, last.0),
            Some(shared) => shared.hand_over(last, &mut self.pending, in_use()),
        }
    }

    /// Notes new commits, and checkpoints a long log: in the background, until little is left.
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

    /// Starts a checkpoint in the background; returns false if that is not possible.
    fn checkpoint_in_background(&mut self, pages: i32) -> bool {
        if !self.history.can_checkpoint_in_background() {
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

    /// Takes the history back from the background checkpoint, if it is done or `wait` is set.
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
            // Commits made meanwhile are checkpointed next.
            (self.checkpointed_pages, self.checkpoint_at) = (before, now);
        } else {
            if now == before {
                self.handle.note_log_checkpointed();
                self.history.note_checkpoint(true, 0);
            }
            (self.checkpoint_at, self.truncate_at) = (CHECKPOINT_PAGES, TRUNCATE_PAGES);
        }
    }

    /// Whether the log is so long that it must be truncated.
    pub(super) fn needs_truncation(&self) -> bool {
        self.handle.log_pages() >= self.truncate_at
    }

    /// Truncates the log; returns whether all of it is checkpointed. Readers block it no longer than a statement runs, except for
    /// a backup.
    pub(super) fn truncate_log(&mut self) -> bool {
        let wholly = self.checkpoint_log(CheckpointMode::TRUNCATE);
        if !wholly {
            self.truncate_at = self.handle.log_pages().saturating_add(TRUNCATE_PAGES);
        }
        wholly
    }

    /// Records new commits of the log in the history; logs a failure.
    pub(super) fn record_history(&mut self) {
        let known = self.history.is_too_large();
        log_history_gap(self.record_log(), known);
    }

    /// Records new commits of the log in the history.
    ///
    /// # Errors
    /// Errors of the disk; the next record then begins another chain.
    pub(super) fn record_log(&mut self) -> std::io::Result<()> {
        self.reclaim_history(true);
        self.history.record_log(&mut self.handle.connection)
    }

    /// Checkpoints the log; returns whether all of it is copied. SQLite may overwrite it then, so the history records and syncs it
    /// first.
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

    /// Closes the database: checkpoints the log and seals the history. If another process reads the database, as a backup does,
    /// the log stays for the next writer.
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
    use svc_base::random::Random;

    /// Prepares the files of a database that is yet to be created, whose history may take `max_bytes`.
    fn new_registry(
        max_bytes: u64,
    ) -> (
        tempfile::TempDir,
        WriterRegistry,
        BackendId,
        DatabaseOpenSettings,
    ) {
        let root = tempfile::tempdir().unwrap();
        let files = DatabasesDirectory::open(root.path()).unwrap();
        let clock = Clock::system();
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        files.create_directory(&id).unwrap();
        let settings = DatabaseOpenSettings::standalone(files.path(&id), 256 << 20);
        let history_settings = HistorySettings {
            clock,
            max_bytes,
            min_free_bytes: 0,
        };
        let writers = WriterRegistry::start(files, history_settings, None).unwrap();
        (root, writers, id, settings)
    }

    #[test]
    fn a_commit_has_the_position_that_is_its_number_in_the_history() {
        let (_root, writers, id, settings) = new_registry(1 << 30);
        let writer = writers.create(id, &settings, None).unwrap();
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        writer.close();
        for commits in 1..5 {
            let mut writer = writers.open(id, &settings, None).unwrap();
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
        let mut writer = writers.create(id, &settings, None).unwrap();
        let answered = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&answered);
        let answer = Box::new(move || tell.store(true, Ordering::Relaxed));
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        writer.add_pending_commit(ChangedTables::All, CommitReplies::Exclusive(answer));
        assert!(!answered.load(Ordering::Relaxed));
        writer.finish_commits(|| ());
        assert!(answered.load(Ordering::Relaxed));
    }

    #[test]
    fn a_log_that_could_not_be_cut_grows_before_it_is_tried_again() {
        let (_root, writers, id, settings) = new_registry(0);
        let mut writer = writers.create(id, &settings, None).unwrap();
        let impatient = writer.handle.connection.busy_timeout(Duration::ZERO);
        impatient.unwrap();
        writer
            .handle
            .execute_as_platform("CREATE TABLE t (a)")
            .unwrap();
        let fill = |writer: &DatabaseWriter| {
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
