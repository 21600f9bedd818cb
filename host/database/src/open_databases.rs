//! The databases that are open, by the time of their last use, and the threads that close them.
//!
//! Closing writes and syncs, which no call waits for: it has threads of its own. A database that waits for them and is used again is
//! taken back.

use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashlink::LinkedHashMap;
use tokio::sync::Notify;

use super::connection::TenantConnection;
use super::database::Database;
use super::error::StatementRunError;
use super::limits::most_open_databases;
use svc_base::ids::BackendId;
use svc_base::sync::lock;
use svc_base::threads::WorkerThreads;

/// Threads that close databases, which mostly wait for the disk.
const CLOSING_THREADS: usize = 4;

/// Open databases. Dropping this closes those that wait to be closed.
#[derive(Debug)]
pub(super) struct OpenDatabases {
    shared: Arc<SharedState>,
    /// Most databases that are kept.
    most_kept: usize,
    /// Most databases that are open, with those in use and those that are being closed.
    most_open: usize,
    /// They end when this is dropped.
    threads: WorkerThreads,
}

#[derive(Debug)]
struct SharedState {
    state: Mutex<State>,
    /// A database waits to be closed, one is closed, or this ends.
    changed: Condvar,
    /// A database is closed, so that another one may be opened.
    has_room: Notify,
    /// Held by the one caller that looks for room.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Databases in use or kept for their next use, the one that was used longest ago first.
    kept: LinkedHashMap<BackendId, OpenDatabase>,
    /// Databases that wait to be closed, unless they are used again.
    evicted: LinkedHashMap<BackendId, OpenDatabase>,
    /// Databases that wait to be closed in any case.
    ending: VecDeque<OpenDatabase>,
    /// Number of databases that are being closed.
    closing: usize,
    /// Databases that are being removed, and must not be opened again.
    being_removed: HashSet<BackendId>,
    /// Number of databases that have been removed.
    removed: u64,
    is_over: bool,
}

#[derive(Debug)]
struct OpenDatabase {
    database: Arc<Database>,
    /// Time of the last use, as the caller counts it.
    last_used: Duration,
}

impl OpenDatabase {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.database) > 1
    }
}

impl State {
    /// Returns an open database, which is used now.
    fn find(
        &mut self,
        id: &BackendId,
        now: Duration,
    ) -> Result<Option<Arc<Database>>, StatementRunError> {
        if let Some(entry) = self.kept.to_back(id) {
            entry.last_used = now;
            return Ok(Some(Arc::clone(&entry.database)));
        }
        if self.being_removed.contains(id) {
            return Err(StatementRunError::Closed);
        }
        let Some(mut entry) = self.evicted.remove(id) else {
            return Ok(None);
        };
        entry.last_used = now;
        let database = Arc::clone(&entry.database);
        self.kept.insert(*id, entry);
        Ok(Some(database))
    }

    /// Lists databases that are not in use, the one that was used longest ago first.
    fn idle(&self) -> impl Iterator<Item = (BackendId, &OpenDatabase)> {
        let kept = self.kept.iter();
        kept.filter(|(_, entry)| !entry.is_in_use())
            .map(|(id, entry)| (*id, entry))
    }

    /// Has kept databases wait to be closed, unless they are used again.
    fn evict(&mut self, ids: &[BackendId]) {
        for id in ids {
            if let Some(entry) = self.kept.remove(id) {
                self.evicted.insert(*id, entry);
            }
        }
    }

    /// Takes a database from where it is.
    fn take(&mut self, id: &BackendId) -> Option<OpenDatabase> {
        let kept = self.kept.remove(id);
        kept.or_else(|| self.evicted.remove(id))
    }

    /// Takes the next database that is to be closed.
    fn take_next(&mut self) -> Option<OpenDatabase> {
        let ending = self.ending.pop_front();
        ending.or_else(|| self.evicted.pop_front().map(|(_, entry)| entry))
    }

    /// Number of databases whose files are open.
    fn len(&self) -> usize {
        self.kept.len() + self.evicted.len() + self.ending.len() + self.closing
    }
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Closes databases until this is over and none waits.
    fn run_closer(&self) {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.take_next() {
                state.closing += 1;
                drop(state);
                // A panic was reported when it happened; the file is as a crash would leave it.
                let _ = catch_unwind(AssertUnwindSafe(move || drop(entry)));
                state = self.lock();
                state.closing -= 1;
                self.changed.notify_all();
                self.has_room.notify_one();
            } else if state.is_over {
                return;
            } else {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl OpenDatabases {
    /// Starts the threads; nothing is open yet. Beyond `kept` databases those that were used longest ago are closed.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start(kept: u64) -> std::io::Result<Self> {
        let shared = Arc::new(SharedState {
            state: Mutex::default(),
            changed: Condvar::new(),
            has_room: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        });
        let mut open = Self {
            shared: Arc::clone(&shared),
            most_kept: usize::try_from(kept).unwrap_or(usize::MAX),
            most_open: usize::try_from(most_open_databases(kept)).unwrap_or(usize::MAX),
            threads: WorkerThreads::default(),
        };
        for number in 0..CLOSING_THREADS {
            let shared = Arc::clone(&shared);
            let closing = move || shared.run_closer();
            let name = format!("sql-close-{number}");
            open.threads.start(name, None, closing)?;
        }
        Ok(open)
    }

    /// Returns a database that is open, and opens it by `open` if it is not and its file is there.
    ///
    /// # Errors
    /// `Closed` for a database that is being removed or has no file, and `Busy` where too many are open.
    pub(super) fn get_or_open(
        &self,
        id: BackendId,
        now: Duration,
        is_there: impl Fn() -> bool,
        open: impl FnOnce() -> Arc<Database>,
    ) -> Result<Arc<Database>, StatementRunError> {
        loop {
            let mut state = self.shared.lock();
            if let Some(database) = state.find(&id, now)? {
                return Ok(database);
            }
            let removed = state.removed;
            drop(state);
            // No other call waits while the disk is asked.
            if !is_there() {
                return Err(StatementRunError::Closed);
            }
            state = self.shared.lock();
            if let Some(database) = state.find(&id, now)? {
                return Ok(database);
            }
            if state.removed == removed {
                return self.open_new(&mut state, id, now, open);
            }
        }
    }

    /// Opens a database for which there is room, or makes room for it.
    fn open_new(
        &self,
        state: &mut State,
        id: BackendId,
        now: Duration,
        open: impl FnOnce() -> Arc<Database>,
    ) -> Result<Arc<Database>, StatementRunError> {
        let over = (state.kept.len() + 1).saturating_sub(self.most_kept);
        let oldest: Vec<BackendId> = state.idle().take(over).map(|(id, _)| id).collect();
        self.close_evicted(state, &oldest);
        if state.len() >= self.most_open {
            return Err(StatementRunError::Busy);
        }
        // Under the lock, as a second one would take the acknowledgements of its commits from the first.
        let database = open();
        let entry = OpenDatabase {
            database: Arc::clone(&database),
            last_used: now,
        };
        state.kept.insert(id, entry);
        Ok(database)
    }

    /// Waits until nobody else looks for room.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.shared.turn.lock().await
    }

    /// Waits until a database has been closed.
    pub(super) async fn wait_for_room(&self) {
        self.shared.has_room.notified().await;
    }

    fn close_evicted(&self, state: &mut State, ids: &[BackendId]) {
        if !ids.is_empty() {
            state.evict(ids);
            self.shared.changed.notify_all();
        }
    }

    /// Closes databases that were last used before a moment.
    pub(super) fn close_unused_since(&self, moment: Duration) {
        let mut state = self.shared.lock();
        let idle = state.idle();
        let idle = idle.take_while(|(_, entry)| entry.last_used < moment);
        let idle: Vec<BackendId> = idle.map(|(id, _)| id).collect();
        self.close_evicted(&mut state, &idle);
    }

    /// Closes a database once its jobs have ended.
    pub(super) fn close_one(&self, id: &BackendId) {
        let mut state = self.shared.lock();
        if let Some(entry) = state.take(id) {
            state.ending.push_back(entry);
            self.shared.changed.notify_all();
        }
    }

    /// Closes all databases, once their jobs have ended. Blocks until all are that have none.
    pub(super) fn close_all(&self) {
        let mut state = self.shared.lock();
        while let Some((_, entry)) = state.kept.pop_front() {
            state.ending.push_back(entry);
        }
        while let Some((_, entry)) = state.evicted.pop_front() {
            state.ending.push_back(entry);
        }
        self.shared.changed.notify_all();
        let is_closing = |state: &mut State| !state.ending.is_empty() || state.closing > 0;
        drop(self.shared.changed.wait_while(state, is_closing));
    }

    /// Lists the databases that are kept open and for which `is_listed` holds.
    pub(super) fn list(&self, is_listed: impl Fn(&BackendId) -> bool) -> Vec<Arc<Database>> {
        let state = self.shared.lock();
        let listed = state.kept.iter().filter(|(id, _)| is_listed(id));
        listed
            .map(|(_, entry)| Arc::clone(&entry.database))
            .collect()
    }

    /// Takes the readers of databases that were last used before a moment, but one of each.
    pub(super) fn take_surplus_readers(&self, moment: Duration) -> Vec<TenantConnection> {
        let state = self.shared.lock();
        let unused = state.idle();
        let unused = unused.take_while(|(_, entry)| entry.last_used < moment);
        unused
            .flat_map(|(_, entry)| entry.database.readers.take_surplus())
            .collect()
    }

    /// Has a database not be opened until [`OpenDatabases::end_removal`]; returns it if it is open.
    pub(super) fn begin_removal(&self, id: &BackendId) -> Option<Arc<Database>> {
        let mut state = self.shared.lock();
        state.being_removed.insert(*id);
        state.take(id).map(|entry| entry.database)
    }

    /// Says that a database is removed.
    pub(super) fn end_removal(&self, id: &BackendId) {
        let mut state = self.shared.lock();
        state.being_removed.remove(id);
        state.removed += 1;
    }

    /// Number of databases that are kept open.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.shared.lock().kept.len()
    }
}

impl Drop for OpenDatabases {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}
