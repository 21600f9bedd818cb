//! An open database: one connection that writes, several that read, and the queue of writes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::oneshot;

use super::batch::{BatchError, WriteStatements};
use super::connection::DatabaseOpenSettings;
use super::error::{StatementRunError, internal_error};
use super::fair_queue::JobOwner;
use super::group::{
    GROUP_MAX_BYTES, GROUP_MAX_WRITES, UnfinishedWrites, run_group, run_single_write,
};
use super::lanes::Lanes;
use super::limits::{QUEUE_TIMEOUT, ResultLimits};
use super::pending_commits::SharedCommits;
use super::pending_write::PendingWrite;
use super::reader_pool::ReaderPool;
use super::run::ResultJson;
use super::schema;
use super::timing::{StatementLane, StatementTiming};
use super::writer::{DatabaseWriter, WriterRegistry};
use svc_base::ids::BackendId;
use svc_base::sync::lock;
use svc_base::work_state::{self, QueuedWorkState};

/// The most writes of a database that may wait.
const MAX_WAITING_WRITES: usize = 1024;

/// An open database.
#[derive(Debug)]
pub struct Database {
    pub(super) id: BackendId,
    pub(super) settings: DatabaseOpenSettings,
    pub(super) limits: ResultLimits,
    pub(super) lanes: Arc<Lanes>,
    /// Owner of its jobs in the lanes.
    pub(super) owner: JobOwner,
    pub(super) writers: WriterRegistry,
    /// Commits that were handed over; `None` where this machine acknowledges them.
    pub(super) shared_commits: Option<Arc<SharedCommits>>,
    /// Weak reference to itself, for the jobs that it queues.
    weak_self: Weak<Self>,
    pub(super) readers: ReaderPool,
    writes: Mutex<WriteQueue>,
    writer: Mutex<Option<DatabaseWriter>>,
    /// Whether its history has yet to record some of its commits.
    has_unrecorded_commits: AtomicBool,
    /// Whether a foreign key may be checked at the commit, so that writes cannot share a commit.
    pub(super) deferred_keys: AtomicBool,
    /// Whether it has all tables of the platform.
    has_all_tables: AtomicBool,
}

#[derive(Debug, Default)]
struct WriteQueue {
    waiting: VecDeque<QueuedWriterWork>,
    /// Whether a job has the writer, or is about to take it.
    is_writer_taken: bool,
    closed: bool,
}

pub(super) type WriterJob = Box<dyn FnOnce(&mut DatabaseWriter) + Send>;

pub(super) enum QueuedWriterWork {
    /// A write that may share a commit.
    Write(PendingWrite),
    /// A job that needs the writer for itself.
    Exclusive(WriterJob),
}

impl std::fmt::Debug for QueuedWriterWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Write(_) => "Write",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

impl Database {
    pub(super) fn new(
        owner: JobOwner,
        settings: DatabaseOpenSettings,
        limits: ResultLimits,
        lanes: Arc<Lanes>,
        writers: WriterRegistry,
    ) -> Arc<Self> {
        // The file is opened at the first use.
        Arc::new_cyclic(|weak_self| Self {
            id: owner.database,
            settings,
            limits,
            lanes,
            owner,
            shared_commits: writers.share_commits(owner.database),
            writers,
            weak_self: weak_self.clone(),
            readers: ReaderPool::default(),
            writes: Mutex::default(),
            writer: Mutex::default(),
            has_unrecorded_commits: AtomicBool::new(false),
            deferred_keys: AtomicBool::new(true),
            has_all_tables: AtomicBool::new(false),
        })
    }

    /// Whether it is known to have all tables of the platform.
    pub(super) fn has_all_tables(&self) -> bool {
        self.has_all_tables.load(Ordering::Acquire)
    }

    /// Notes that it has all tables of the platform.
    pub(super) fn note_all_tables(&self) {
        self.has_all_tables.store(true, Ordering::Release);
    }

    /// Queues a write, and waits for its answer.
    pub(super) async fn write(
        &self,
        work: WriteStatements,
        timing: Arc<StatementTiming>,
    ) -> Result<ResultJson, BatchError> {
        let (answer, answered) = oneshot::channel();
        let work_state = QueuedWorkState::new();
        let write = PendingWrite {
            request: work,
            timing,
            work_state: Arc::clone(&work_state),
            answer,
        };
        let long = write.timing.lane() == StatementLane::Long;
        self.enqueue(if long {
            self.exclusive_job(write)
        } else {
            QueuedWriterWork::Write(write)
        })?;
        await_answer(answered, &work_state).await
    }

    fn exclusive_job(&self, write: PendingWrite) -> QueuedWriterWork {
        let limits = self.limits;
        QueuedWriterWork::Exclusive(Box::new(move |writer| {
            run_single_write(writer, write, &limits);
        }))
    }

    pub(super) fn upgrade_self(&self) -> Result<Arc<Self>, StatementRunError> {
        self.weak_self.upgrade().ok_or(StatementRunError::Closed)
    }

    pub(super) fn enqueue(&self, work: QueuedWriterWork) -> Result<(), StatementRunError> {
        let shared = self.shared_commits.as_ref();
        if shared.is_some_and(|shared| !shared.has_room()) {
            return Err(StatementRunError::Busy);
        }
        let mut writes = lock(&self.writes);
        if writes.closed {
            return Err(StatementRunError::Closed);
        }
        if writes.waiting.len() >= MAX_WAITING_WRITES {
            return Err(StatementRunError::Busy);
        }
        writes.waiting.push_back(work);
        self.schedule(&mut writes, None)
    }

    /// Hands the writer, if it is free, to the lane of the first queued job. `from` is the lane that it returns from, if any.
    fn schedule(
        &self,
        writes: &mut WriteQueue,
        from: Option<StatementLane>,
    ) -> Result<(), StatementRunError> {
        if writes.is_writer_taken {
            return Ok(());
        }
        let me = self.upgrade_self()?;
        match writes.waiting.front() {
            None => Ok(()),
            Some(QueuedWriterWork::Write(_)) => {
                writes.is_writer_taken = true;
                let job = Box::new(move || me.commit_group());
                if from == Some(StatementLane::Short) {
                    self.lanes.queue_urgent_after_short(self.owner, job);
                } else {
                    self.lanes.queue_urgent(self.owner, job);
                }
                Ok(())
            }
            Some(QueuedWriterWork::Exclusive(_)) => {
                writes.is_writer_taken = true;
                if self
                    .lanes
                    .queue_long(self.owner, Box::new(move || me.run_next_exclusive_job()))
                {
                    Ok(())
                } else {
                    writes.is_writer_taken = false;
                    writes.waiting.pop_front();
                    Err(StatementRunError::Busy)
                }
            }
        }
    }

    /// Commits the first queued writes together.
    fn commit_group(&self) {
        let _passes_on = WriterGuard(self, StatementLane::Short);
        let writer = self.take_writer();
        let most = if self.deferred_keys.load(Ordering::Relaxed) {
            1
        } else {
            GROUP_MAX_WRITES
        };
        let group = {
            let mut writes = lock(&self.writes);
            let (mut group, mut bytes) = (Vec::new(), 0);
            while group.len() < most && bytes < GROUP_MAX_BYTES {
                match writes.waiting.pop_front() {
                    Some(QueuedWriterWork::Write(write)) => {
                        bytes += write.bytes();
                        group.push(write);
                    }
                    Some(alone) => {
                        writes.waiting.push_front(alone);
                        break;
                    }
                    None => break,
                }
            }
            group
        };
        let mut writer = match writer {
            Ok(writer) => writer,
            Err(error) => {
                let told = |write: PendingWrite| write.answer(Err(error.clone().into()));
                group.into_iter().for_each(told);
                return;
            }
        };
        let unfinished = run_group(&mut writer, group, &self.limits);
        self.finish_jobs(writer, unfinished);
    }

    /// Answers the callers of committed work or hands them over, returns the writer, and puts unfinished work back at the head of the
    /// queue.
    fn finish_jobs(&self, mut writer: DatabaseWriter, unfinished: UnfinishedWrites) {
        // A database with commits that are handed over is in use, and not closed.
        writer.finish_commits(|| self.weak_self.upgrade());
        writer.maintain_log();
        let too_long = writer.needs_truncation();
        self.return_writer(writer);
        let mut writes = lock(&self.writes);
        for write in unfinished.deferred.into_iter().rev() {
            writes.waiting.push_front(QueuedWriterWork::Write(write));
        }
        for write in unfinished.long.into_iter().rev() {
            writes.waiting.push_front(self.exclusive_job(write));
        }
        if too_long {
            // The checkpoint runs before all writes, so that the log does not grow further.
            let cut = |writer: &mut DatabaseWriter| {
                writer.truncate_log();
            };
            writes
                .waiting
                .push_front(QueuedWriterWork::Exclusive(Box::new(cut)));
        }
    }

    /// Runs the first queued job that needs the writer for itself.
    fn run_next_exclusive_job(&self) {
        let job = {
            let mut writes = lock(&self.writes);
            match writes.waiting.pop_front() {
                Some(QueuedWriterWork::Exclusive(job)) => Some(job),
                Some(write) => {
                    writes.waiting.push_front(write);
                    None
                }
                None => None,
            }
        };
        let _passes_on = WriterGuard(self, StatementLane::Long);
        match (job, self.take_writer()) {
            (Some(job), Ok(mut writer)) => {
                job(&mut writer);
                self.finish_jobs(writer, UnfinishedWrites::default());
            }
            (None, Ok(writer)) => self.return_writer(writer),
            // The callers see that their channels are dropped.
            (_, Err(error)) => tracing::error!(%error, "a tenant's database cannot be opened"),
        }
    }

    /// Takes the writer out while it works, so that a panic does not leave its transaction to the next job.
    fn take_writer(&self) -> Result<DatabaseWriter, StatementRunError> {
        if let Some(writer) = lock(&self.writer).take() {
            return Ok(writer);
        }
        let shared = self.shared_commits.as_ref();
        let writer = self.writers.open(self.id, &self.settings, shared)?;
        let deferred =
            schema::has_deferred_keys(&writer.handle.connection).map_err(internal_error)?;
        self.deferred_keys.store(deferred, Ordering::Relaxed);
        Ok(writer)
    }

    fn return_writer(&self, writer: DatabaseWriter) {
        let news = writer.history.has_unrecorded_commits();
        self.has_unrecorded_commits.store(news, Ordering::Relaxed);
        *lock(&self.writer) = Some(writer);
    }

    /// Queues a job that records new commits in the history, if there are any.
    pub(super) fn record_history(&self) {
        if self.has_unrecorded_commits.load(Ordering::Relaxed) {
            // If the queue is full of writes, the log is recorded soon anyway.
            let _ = self.enqueue(QueuedWriterWork::Exclusive(Box::new(
                DatabaseWriter::record_history,
            )));
        }
    }

    /// Waits until all that an answer may show is acknowledged, which it is on a single machine.
    ///
    /// # Errors
    /// [`StatementRunError::Busy`] if that takes too long.
    pub(super) async fn await_visible_commits(&self) -> Result<(), StatementRunError> {
        match &self.shared_commits {
            // Boxed, because most answers do not wait, and must not carry the state of a wait.
            Some(shared) if !shared.is_visible() => Box::pin(shared.wait_for_visible()).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Takes no more work. Callers of queued work get `Closed`.
    pub(super) fn close(&self) {
        let mut writes = lock(&self.writes);
        writes.closed = true;
        writes.waiting.clear();
    }
}

/// Guard that hands the writer to the next queued job when it is dropped.
struct WriterGuard<'d>(&'d Database, StatementLane);

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        let mut writes = lock(&self.0.writes);
        writes.is_writer_taken = false;
        // A refused job drops its channel, which answers its caller; then the next is tried.
        while let Err(error) = self.0.schedule(&mut writes, Some(self.1)) {
            tracing::warn!(%error, "work on a tenant's database was refused");
            if writes.waiting.is_empty() {
                break;
            }
        }
    }
}

/// Waits for an answer; for the start of the work only until the queue timeout.
pub(super) async fn await_answer<T, E: From<StatementRunError>>(
    answered: oneshot::Receiver<Result<T, E>>,
    work_state: &QueuedWorkState,
) -> Result<T, E> {
    let answer = work_state::wait_for_result(answered, work_state, QUEUE_TIMEOUT).await;
    // A dropped channel means that the job was refused or panicked: nothing was done.
    answer.unwrap_or(Err(StatementRunError::Busy.into()))
}

impl Drop for Database {
    fn drop(&mut self) {
        self.readers.close();
        let writer = self.writer.get_mut();
        let writer = writer.unwrap_or_else(PoisonError::into_inner).take();
        // A closed database is being removed, so there is nothing to save.
        if let Some(writer) = writer.filter(|_| !lock(&self.writes).closed) {
            writer.close();
        }
    }
}
