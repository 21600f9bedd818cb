//! An open database: one connection that writes, a few that read, and the queue between them and the lanes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::oneshot;

use super::batch::{BatchError, Work};
use super::error::{RunError, internal};
use super::group::{BYTES, CALLERS, Unfinished, run_alone, run_group};
use super::handle::Settings;
use super::lanes::Lanes;
use super::limits::{ResultLimits, WAIT};
use super::pace::{Lane, Pace};
use super::readers::Readers;
use super::run::ResultJson;
use super::schema;
use super::shares::Owner;
use super::write::Write;
use super::writer::{Writer, Writers};
use svc_base::ids::BackendId;
use svc_base::sync::lock;
use svc_base::work_state::{self, WorkState};

/// How many writes of a database may wait.
const WAITING: usize = 1024;

/// An open database.
#[derive(Debug)]
pub struct Database {
    pub(super) id: BackendId,
    pub(super) settings: Settings,
    pub(super) limits: ResultLimits,
    pub(super) lanes: Arc<Lanes>,
    /// Owner of the work.
    pub(super) owner: Owner,
    pub(super) writers: Writers,
    /// Itself, for the work that it queues.
    me: Weak<Self>,
    pub(super) readers: Readers,
    writes: Mutex<Writes>,
    writer: Mutex<Option<Writer>>,
    /// Whether its history has yet to take some of its commits.
    has_news: AtomicBool,
    /// Whether a key is checked at the commit, so that writes cannot share one.
    pub(super) deferred_keys: AtomicBool,
}

#[derive(Debug, Default)]
struct Writes {
    waiting: VecDeque<QueuedWork>,
    /// Whether somebody has the writer, or is about to.
    taken: bool,
    closed: bool,
}

pub(super) type WriterJob = Box<dyn FnOnce(&mut Writer) + Send>;

pub(super) enum QueuedWork {
    /// A write for a group.
    Write(Write),
    /// Work that needs the writer for itself.
    Alone(WriterJob),
}

impl std::fmt::Debug for QueuedWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Write(_) => "Write",
            Self::Alone(_) => "Alone",
        })
    }
}

impl Database {
    pub(super) fn new(
        owner: Owner,
        settings: Settings,
        limits: ResultLimits,
        lanes: Arc<Lanes>,
        writers: Writers,
    ) -> Result<Arc<Self>, RunError> {
        // The file is looked at when it is first used; whether it is there shows now.
        if !settings.path.is_file() {
            return Err(RunError::Closed);
        }
        Ok(Arc::new_cyclic(|me| Self {
            id: owner.database,
            settings,
            limits,
            lanes,
            owner,
            writers,
            me: me.clone(),
            readers: Readers::default(),
            writes: Mutex::default(),
            writer: Mutex::default(),
            has_news: AtomicBool::new(false),
            deferred_keys: AtomicBool::new(true),
        }))
    }

    /// Queues a write, and waits for its answer.
    pub(super) async fn write(
        &self,
        work: Work,
        pace: Arc<Pace>,
    ) -> Result<ResultJson, BatchError> {
        let (answer, answered) = oneshot::channel();
        let work_state = WorkState::new();
        let write = Write {
            work,
            pace,
            work_state: Arc::clone(&work_state),
            answer,
        };
        let long = write.pace.lane() == Lane::Long;
        self.enqueue(if long {
            self.alone(write)
        } else {
            QueuedWork::Write(write)
        })?;
        answer_of(answered, &work_state).await
    }

    fn alone(&self, write: Write) -> QueuedWork {
        let limits = self.limits;
        QueuedWork::Alone(Box::new(move |writer| run_alone(writer, write, &limits)))
    }

    pub(super) fn myself(&self) -> Result<Arc<Self>, RunError> {
        self.me.upgrade().ok_or(RunError::Closed)
    }

    pub(super) fn enqueue(&self, work: QueuedWork) -> Result<(), RunError> {
        let mut writes = lock(&self.writes);
        if writes.closed {
            return Err(RunError::Closed);
        }
        if writes.waiting.len() >= WAITING {
            return Err(RunError::Busy);
        }
        writes.waiting.push_back(work);
        self.schedule(&mut writes, None)
    }

    /// If the writer is free, hands it to the lane of the first queued job. `from` is the lane that it comes back from, if any.
    fn schedule(&self, writes: &mut Writes, from: Option<Lane>) -> Result<(), RunError> {
        if writes.taken {
            return Ok(());
        }
        let me = self.myself()?;
        match writes.waiting.front() {
            None => Ok(()),
            Some(QueuedWork::Write(_)) => {
                writes.taken = true;
                let job = Box::new(move || me.commit_group());
                if from == Some(Lane::Short) {
                    self.lanes.soon_after_short(self.owner, job);
                } else {
                    self.lanes.soon(self.owner, job);
                }
                Ok(())
            }
            Some(QueuedWork::Alone(_)) => {
                writes.taken = true;
                if self
                    .lanes
                    .long(self.owner, Box::new(move || me.work_alone()))
                {
                    Ok(())
                } else {
                    writes.taken = false;
                    writes.waiting.pop_front();
                    Err(RunError::Busy)
                }
            }
        }
    }

    /// Commits the writes that wait first, together.
    fn commit_group(&self) {
        let _passes_on = ReleaseWriter(self, Lane::Short);
        let writer = self.take_writer();
        let most = if self.deferred_keys.load(Ordering::Relaxed) {
            1
        } else {
            CALLERS
        };
        let group = {
            let mut writes = lock(&self.writes);
            let (mut group, mut bytes) = (Vec::new(), 0);
            while group.len() < most && bytes < BYTES {
                match writes.waiting.pop_front() {
                    Some(QueuedWork::Write(write)) => {
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
                let told = |write: Write| write.answer(Err(error.clone().into()));
                group.into_iter().for_each(told);
                return;
            }
        };
        let unfinished = run_group(&mut writer, group, &self.limits);
        self.settle(writer, unfinished);
    }

    /// Has those answered whose work is committed, returns the writer, and puts unfinished work back at the head of the queue.
    fn settle(&self, mut writer: Writer, unfinished: Unfinished) {
        writer.acknowledge();
        writer.settle();
        let too_long = writer.has_long_log();
        self.put_writer(writer);
        let mut writes = lock(&self.writes);
        for write in unfinished.rest.into_iter().rev() {
            writes.waiting.push_front(QueuedWork::Write(write));
        }
        for write in unfinished.long.into_iter().rev() {
            writes.waiting.push_front(self.alone(write));
        }
        if too_long {
            // No write comes before it, so that the log grows no further.
            let cut = |writer: &mut Writer| {
                writer.cut_log();
            };
            writes.waiting.push_front(QueuedWork::Alone(Box::new(cut)));
        }
    }

    /// Does the work that waits first and needs the writer for itself.
    fn work_alone(&self) {
        let job = {
            let mut writes = lock(&self.writes);
            match writes.waiting.pop_front() {
                Some(QueuedWork::Alone(job)) => Some(job),
                Some(write) => {
                    writes.waiting.push_front(write);
                    None
                }
                None => None,
            }
        };
        let _passes_on = ReleaseWriter(self, Lane::Long);
        match (job, self.take_writer()) {
            (Some(job), Ok(mut writer)) => {
                job(&mut writer);
                self.settle(writer, Unfinished::default());
            }
            (None, Ok(writer)) => self.put_writer(writer),
            // The callers learn it from the drop of their channels.
            (_, Err(error)) => tracing::error!(%error, "a tenant's database cannot be opened"),
        }
    }

    /// The connection that writes, taken out while it works: a panic must not leave its transaction to the next.
    fn take_writer(&self) -> Result<Writer, RunError> {
        if let Some(writer) = lock(&self.writer).take() {
            return Ok(writer);
        }
        let writer = self.writers.open(self.id, &self.settings)?;
        let deferred = schema::has_deferred_keys(&writer.handle.connection).map_err(internal)?;
        self.deferred_keys.store(deferred, Ordering::Relaxed);
        Ok(writer)
    }

    fn put_writer(&self, writer: Writer) {
        let news = writer.history.has_news();
        self.has_news.store(news, Ordering::Relaxed);
        *lock(&self.writer) = Some(writer);
    }

    /// Has its history take what was committed, if there is any.
    pub(super) fn remember(&self) {
        if self.has_news.load(Ordering::Relaxed) {
            // A queue that is full of writes has its log taken soon enough.
            let _ = self.enqueue(QueuedWork::Alone(Box::new(Writer::remember)));
        }
    }

    /// Takes no more work; what is queued is answered `Closed`.
    pub(super) fn close(&self) {
        let mut writes = lock(&self.writes);
        writes.closed = true;
        writes.waiting.clear();
    }
}

/// Lets the writer go to whatever waits next, however its work in a lane ends.
struct ReleaseWriter<'d>(&'d Database, Lane);

impl Drop for ReleaseWriter<'_> {
    fn drop(&mut self) {
        let mut writes = lock(&self.0.writes);
        writes.taken = false;
        // What is refused is answered by the drop of its channel, and the next is tried.
        while let Err(error) = self.0.schedule(&mut writes, Some(self.1)) {
            tracing::warn!(%error, "work on a tenant's database was refused");
            if writes.waiting.is_empty() {
                break;
            }
        }
    }
}

/// Waits for an answer; for its beginning, only so long.
pub(super) async fn answer_of<T, E: From<RunError>>(
    answered: oneshot::Receiver<Result<T, E>>,
    work_state: &WorkState,
) -> Result<T, E> {
    let answer = work_state::wait_for_result(answered, work_state, WAIT).await;
    // What was dropped was refused, or failed in a way that the log tells: nothing was done.
    answer.unwrap_or(Err(RunError::Busy.into()))
}

impl Drop for Database {
    fn drop(&mut self) {
        self.readers.close();
        let writer = self.writer.get_mut();
        let writer = writer.unwrap_or_else(PoisonError::into_inner).take();
        // One that is closed is removed: there is nothing to keep.
        if let Some(writer) = writer.filter(|_| !lock(&self.writes).closed) {
            writer.close();
        }
    }
}
