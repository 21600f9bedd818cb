//! The connections to the control database: one writer, several readers.

mod follower;
mod group;
mod node;
mod shared_positions;
mod stranger_reads;
mod writer;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, oneshot};

use super::audit::{self, AuditActor};
use super::change::{ControlChange, NotedChangeListeners};
use super::counters::InstallationCounters;
use super::errands::ErrandRoute;
use super::residue::WalResidue;
use super::wal::WriterLog;
use super::{Error, migrations};
use follower::FollowerMessage;
use group::{AnswerCallerFn, FinishedWriteJob, WriteJob};
use node::NodeRole;
use shared_positions::SharedPositions;
use stranger_reads::StrangerReads;
use svc_base::flow::CallerFlow;
use svc_base::positions::Durable;
use svc_base::sync::lock;
use writer::{ControlWriter, PendingGroups, WriterMessage};

pub use node::{ChangeFeed, FollowedCommits, Freshness};

/// The name of the file in the data directory.
pub(super) const FILE: &str = "control.db";
/// Most readers at once.
const MAX_READERS: usize = 4;
/// Time for which a statement waits for another process, such as an operator's command.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Size to which a checkpoint truncates the write-ahead log, in bytes.
const WAL_BYTES: i64 = 16 << 20;

/// A handle to the control database; clones share it.
#[derive(Clone, Debug)]
pub struct ControlDatabase(Arc<ControlDatabaseState>);

#[derive(Debug)]
struct ControlDatabaseState {
    path: PathBuf,
    writer: Mutex<Option<Sender<WriterMessage>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Mutex<Vec<Connection>>,
    reading: Arc<Semaphore>,
    strangers: Arc<StrangerReads>,
    listeners: Arc<NotedChangeListeners>,
    errands: ErrandRoute,
    residue: WalResidue,
    counters: Arc<InstallationCounters>,
    /// Role of a node of several; `None` on a single machine.
    node: Option<NodeRole>,
}

impl Drop for ControlDatabaseState {
    fn drop(&mut self) {
        // The writer has what acknowledges its commits, and that has a sender: it would wait for itself.
        if let Some(sender) = lock(&self.writer).take() {
            // The receiver is gone if the writer has panicked.
            let _ = sender.send(WriterMessage::Abandon);
        }
    }
}

/// Takers of an owner's commits, where other machines have them.
struct OwnerLinks {
    durable: Arc<dyn Durable>,
    feed: Arc<dyn ChangeFeed>,
}

/// A write transaction. Store functions that write take one, so that none can write outside of it.
pub struct Tx<'c> {
    connection: &'c Connection,
    changes: RefCell<Vec<ControlChange>>,
    counters: &'c InstallationCounters,
    /// Actor of the job, if there is one.
    actor: Option<AuditActor>,
}

impl Tx<'_> {
    /// Notes a change: its followers learn of it once this transaction is durable. Equal ones in a row are one.
    pub fn note(&self, change: ControlChange) {
        let mut changes = self.changes.borrow_mut();
        if changes.last() != Some(&change) {
            changes.push(change);
        }
    }

    /// Returns the counters of the installation.
    pub fn counters(&self) -> &InstallationCounters {
        self.counters
    }

    /// Actor of this transaction, if there is one.
    pub(super) fn actor(&self) -> Option<&AuditActor> {
        self.actor.as_ref()
    }
}

impl std::ops::Deref for Tx<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl ControlDatabase {
    /// Opens the database below `data`, making and migrating it where needed.
    ///
    /// # Errors
    /// When the file cannot be opened, or is no database of this service.
    pub fn open(data: &Path) -> Result<Self, Error> {
        Self::open_with(data, None)
    }

    /// Opens the database below `data` as that of a node which owns it from its start. Its commits are acknowledged by `durable`, and
    /// what they note is handed to `feed`.
    ///
    /// # Errors
    /// As for [`ControlDatabase::open`].
    pub fn open_owner(
        data: &Path,
        durable: Arc<dyn Durable>,
        feed: Arc<dyn ChangeFeed>,
    ) -> Result<Self, Error> {
        Self::open_with(data, Some(OwnerLinks { durable, feed }))
    }

    fn open_with(data: &Path, links: Option<OwnerLinks>) -> Result<Self, Error> {
        let path = data.join(FILE);
        let (residue, log) = (WalResidue::default(), WriterLog::default());
        let connection = open_writer(&path, &residue, &log)?;
        let counters = InstallationCounters::open(data)?;
        let node = links.is_some().then(NodeRole::owner);
        let state = ControlDatabaseState::new(path, residue, counters, node);
        state.start_writer(connection, log, links)?;
        Ok(Self(Arc::new(state)))
    }

    /// Opens a copy in `directory` read-only.
    ///
    /// # Errors
    /// When `directory` has no database.
    pub fn open_read_only(directory: &Path) -> Result<Self, Error> {
        let counters = InstallationCounters::open_read_only(directory)?;
        let (path, residue) = (directory.join(FILE), WalResidue::default());
        let control = Self(Arc::new(ControlDatabaseState::new(
            path, residue, counters, None,
        )));
        control
            .read_blocking(|c| c.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))?;
        Ok(control)
    }

    /// Registers a listener to the changes that writes note. It is called before the write is answered, on the writer's thread, so it
    /// may only update state in memory.
    pub fn on_change(&self, listener: impl Fn(&ControlChange) + Send + Sync + 'static) {
        self.0.listeners.add(listener);
    }

    /// Delivers changes that another machine's write has noted, once this machine's reads show that write.
    pub fn deliver_changes(&self, changes: &[ControlChange]) {
        self.0.listeners.deliver(changes);
    }

    /// Returns the counters of the installation.
    pub fn counters(&self) -> Arc<InstallationCounters> {
        Arc::clone(&self.0.counters)
    }

    /// Returns the state of deleted rows that the log may still hold.
    pub(super) fn residue(&self) -> &WalResidue {
        &self.0.residue
    }

    /// Returns the way of errands.
    pub(super) fn errand_route(&self) -> &ErrandRoute {
        &self.0.errands
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Runs `job` in a write transaction and answers when it is durable. An `Err` undoes what the job did.
    ///
    /// # Errors
    /// The job's own, or a [`Error`] of the commit; [`Error::Elsewhere`] at a follower, and nothing was done then.
    pub async fn write<T, E, F>(&self, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        if let Some(node) = &self.0.node {
            node.check_write()?;
        }
        let (answer, answered) = oneshot::channel::<Result<T, E>>();
        let (actor, counters) = (audit::current_actor(), self.counters());
        let job: WriteJob = Box::new(move |connection| {
            let mut changes = Vec::new();
            let result = match connection {
                Ok(connection) => {
                    let tx = Tx {
                        connection,
                        changes: RefCell::default(),
                        counters: &counters,
                        actor,
                    };
                    let result = catch_unwind(AssertUnwindSafe(|| job(&tx)))
                        .unwrap_or_else(|_| Err(Error::Panicked.into()));
                    changes = tx.changes.into_inner();
                    result
                }
                Err(error) => Err(error.into()),
            };
            let keep = result.is_ok();
            let tell: AnswerCallerFn = Box::new(move |committed| {
                let result = match committed {
                    Err(error) if keep => Err(error.into()),
                    _ => result,
                };
                // The receiver is gone if the caller was cancelled.
                let _ = answer.send(result);
            });
            FinishedWriteJob {
                kept: keep.then_some(changes),
                tell,
            }
        });
        self.send(WriterMessage::Write(job))?;
        answered.await.unwrap_or_else(|_| Err(Error::Closed.into()))
    }

    /// Runs `job` on a read-only connection, beside the writer.
    ///
    /// # Errors
    /// The job's own; [`Error::TooManyReads`] for a client without a credential; [`Error::Busy`] if what it shows is not acknowledged
    /// in time; [`Error::Stale`] at a follower that may lack something.
    pub async fn read<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.check_fresh()?;
        let counted = self.0.strangers.admit(&CallerFlow::current())?;
        let reading = Arc::clone(&self.0.reading);
        let turn = reading.acquire_owned().await.map_err(|_| Error::Closed)?;
        let inner = Arc::clone(&self.0);
        let (answer, answered) = oneshot::channel();
        // Boxed: one kind of task runs all jobs, and the compiler makes none for each of them.
        let work: Box<dyn FnOnce() + Send> = Box::new(move || {
            // A caller who hangs up ends no job: the turn is over when the job is.
            let _held = (turn, counted);
            // The receiver is gone if the caller was cancelled.
            let _ = answer.send(inner.with_reader(job));
        });
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| Error::Panicked)?;
        let read = answered.await.map_err(|_| Error::Panicked)?;
        if let Some(shared) = self.0.node.as_ref().and_then(NodeRole::owned) {
            shared.wait_for_visible().await?;
        }
        read
    }

    /// Checks whether rows that give authority, kept in memory, may be answered from: the owner may have deleted them. A single machine
    /// always may.
    ///
    /// # Errors
    /// [`Error::Stale`] at a follower that may lack something.
    pub fn check_fresh(&self) -> Result<(), Error> {
        match &self.0.node {
            Some(node) => node.check_read(),
            None => Ok(()),
        }
    }

    /// Like [`ControlDatabase::read`], for threads that may block, and without the wait: it may show what is not acknowledged.
    ///
    /// # Errors
    /// The job's own.
    pub fn read_blocking<T, F>(&self, job: F) -> Result<T, Error>
    where
        F: FnOnce(&Connection) -> rusqlite::Result<T>,
    {
        self.0.with_reader(job)
    }

    /// Has the writer, or the follower, empty the log of deleted secrets. Blocks.
    pub(super) fn empty_log(&self) -> Result<(), Error> {
        let (answer, answered) = channel();
        match self.0.node.as_ref().filter(|node| node.is_following()) {
            Some(node) => node.send(FollowerMessage::EmptyLog(answer))?,
            None => self.send(WriterMessage::EmptyLog(answer))?,
        }
        answered.recv().map_err(|_| Error::Closed)?
    }

    fn send(&self, message: WriterMessage) -> Result<(), Error> {
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = writer.as_ref().ok_or(Error::Closed)?;
        sender.send(message).map_err(|_| Error::Closed)
    }

    /// Finishes the queued writes and closes the writer, once all its commits are acknowledged. Later writes answer
    /// [`Error::Closed`].
    pub fn close(&self) {
        let sender = self
            .0
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(sender) = sender {
            // The receiver is gone if the writer has panicked.
            let _ = sender.send(WriterMessage::Close);
        }
        if let Some(node) = &self.0.node {
            node.close();
        }
        let thread = self
            .0
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the writer is in the log already.
            let _ = thread.join();
        }
        self.0.counters.close();
    }
}

/// Opens the connection of the writer, whose commits are counted and whose deletions are watched.
fn open_writer(path: &Path, residue: &WalResidue, log: &WriterLog) -> Result<Connection, Error> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES)?;
    // Deleted rows are overwritten, so that a burnt share is not left in free space.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.set_prepared_statement_cache_capacity(128);
    residue.watch(&mut connection)?;
    log.watch(&mut connection)?;
    Ok(connection)
}

/// Starts a thread that ends by a message.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| Error::Sqlite(rusqlite::Error::ToSqlConversionFailure(error.into())))
}

impl ControlDatabaseState {
    /// Makes the state of a database that has no writer yet.
    fn new(
        path: PathBuf,
        residue: WalResidue,
        counters: InstallationCounters,
        node: Option<NodeRole>,
    ) -> Self {
        Self {
            path,
            writer: Mutex::default(),
            thread: Mutex::default(),
            readers: Mutex::default(),
            reading: Arc::new(Semaphore::new(MAX_READERS)),
            strangers: Arc::default(),
            listeners: Arc::default(),
            errands: ErrandRoute::default(),
            residue,
            counters: Arc::new(counters),
            node,
        }
    }

    /// Migrates the database, and starts the writer. Its commits are acknowledged by the one in `links`, if there is one.
    fn start_writer(
        &self,
        mut connection: Connection,
        log: WriterLog,
        links: Option<OwnerLinks>,
    ) -> Result<(), Error> {
        if links.is_some() {
            // What this machine's disk loses, others have.
            connection.pragma_update(None, "synchronous", "NORMAL")?;
        }
        let (sender, receiver) = channel();
        let (mut shared, mut feed) = (None, None);
        if let Some(links) = links {
            let positions = Arc::new(SharedPositions::new(links.durable));
            let sender = sender.clone();
            positions
                .durable()
                .on_acknowledged(Box::new(move |position| {
                    // The receiver is gone if the writer is closed.
                    let _ = sender.send(WriterMessage::Acknowledged(position));
                }));
            shared = Some(positions);
            feed = Some(links.feed);
        }
        // A migration makes commits. The writer hands over the last of them.
        migrations::migrate(&mut connection, &self.counters, || {
            if let Some(shared) = &shared {
                shared.made(log.position(), true);
            }
        })?;
        if let Some(shared) = &shared {
            shared.begin_commit(log.position());
        }
        let writer = ControlWriter {
            connection,
            log,
            residue: self.residue.clone(),
            listeners: Arc::clone(&self.listeners),
            shared: shared.clone(),
            feed,
            pending: PendingGroups::default(),
        };
        let thread = start_thread("control-writer", move || writer.run(&receiver))?;
        *lock(&self.writer) = Some(sender);
        *lock(&self.thread) = Some(thread);
        if let (Some(node), Some(shared)) = (&self.node, shared) {
            node.own(shared);
        }
        Ok(())
    }

    fn with_reader<T>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let idle = self
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open_reader()?,
        };
        let result = job(&connection);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads that may block take no turn, so there may be more for a while.
        if readers.len() < MAX_READERS {
            readers.push(connection);
        }
        drop(readers);
        Ok(result?)
    }

    fn open_reader(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod shipping_tests;
#[cfg(test)]
mod tests;
