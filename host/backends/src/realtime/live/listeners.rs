//! All connections of live queries, and the boards of their backends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::board::LiveQueryBoard;
use super::budget::AnswerBudget;
use super::connection::{ConnectionContext, LiveTransport};
use super::listener::LiveConnection;
use super::metrics::LiveMetrics;
use crate::http::websocket::CloseReason;
use crate::realtime::hub::PageCheckRegistration;
use crate::realtime::page::SocketPage;
use crate::realtime::quotas::SocketPermit;
use svc_base::ids::BackendId;
use svc_database::ChangedTables;

/// All connections and boards of the server.
#[derive(Debug, Default)]
pub(in crate::realtime) struct LiveConnections {
    boards: RwLock<HashMap<BackendId, Arc<LiveQueryBoard>>>,
    all: Mutex<HashMap<u64, Arc<LiveConnection>>>,
    next: AtomicU64,
    stopped: AtomicBool,
    /// Bytes of all answers in memory.
    bytes: Arc<AtomicUsize>,
    pub(in crate::realtime) metrics: LiveMetrics,
}

/// Registration of a connection, until it is closed.
#[derive(Debug)]
pub(super) struct ConnectionRegistration {
    pub(super) listener: Arc<LiveConnection>,
    listeners: Arc<LiveConnections>,
    number: u64,
    _place: ConnectionAdmission,
}

/// Admission of a connection: its quota permit and the check of its page, from before the connection is opened.
#[derive(Debug)]
pub(in crate::realtime) struct ConnectionAdmission {
    pub(in crate::realtime) _permit: SocketPermit,
    pub(in crate::realtime) _page: PageCheckRegistration,
}

impl LiveConnections {
    fn lock_connections(&self) -> MutexGuard<'_, HashMap<u64, Arc<LiveConnection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the queries of a backend that a commit may have changed.
    pub(in crate::realtime) fn touch(&self, backend: BackendId, touched: ChangedTables) {
        let boards = self.boards.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(board) = boards.get(&backend) {
            board.touch(touched);
        }
    }

    /// Registers a connection. Returns the board as well if it is new, because it needs a task.
    pub(super) fn register(
        self: &Arc<Self>,
        backend: BackendId,
        (place, opened, transport): (ConnectionAdmission, ConnectionContext, LiveTransport),
        per_second: u64,
        times: (Duration, Duration),
    ) -> (ConnectionRegistration, Option<Arc<LiveQueryBoard>>) {
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        let known = boards.get(&backend).map(Arc::clone);
        let is_new = known.is_none();
        let board = known.unwrap_or_else(|| {
            let board =
                LiveQueryBoard::new(backend, per_second, AnswerBudget::part_of(&self.bytes));
            let board = Arc::new(board);
            boards.insert(backend, Arc::clone(&board));
            board
        });
        board.attach();
        drop(boards);
        let listener = Arc::new(LiveConnection::new(
            Arc::clone(&board),
            opened,
            transport,
            times,
        ));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock_connections()
            .insert(number, Arc::clone(&listener));
        // A stop that had visited all connections before could not see this one.
        if self.stopped.load(Ordering::SeqCst) {
            listener.close(CloseReason::STOPPED);
        }
        let registration = ConnectionRegistration {
            listener,
            listeners: Arc::clone(self),
            number,
            _place: place,
        };
        (registration, is_new.then_some(board))
    }

    /// Removes a board if no connection is attached to it; returns whether it did.
    pub(super) fn forget(&self, board: &Arc<LiveQueryBoard>) -> bool {
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = board.is_unused();
        if is_unused {
            boards.remove(&board.backend());
        }
        is_unused
    }

    /// Lists all connections.
    pub(super) fn list(&self) -> Vec<Arc<LiveConnection>> {
        self.lock_connections().values().map(Arc::clone).collect()
    }

    /// Whether a backend has connections.
    pub(in crate::realtime) fn has_any(&self, backend: &BackendId) -> bool {
        let connections = self.lock_connections();
        connections.values().any(|one| one.backend == *backend)
    }

    /// Closes the connections to a backend.
    pub(in crate::realtime) fn end(&self, backend: &BackendId, close: CloseReason) {
        let ended = self.list().into_iter();
        let ended = ended.filter(|one| one.backend == *backend);
        ended.for_each(|one| one.close(close));
    }

    /// Closes the connections for whose page and backend `why` returns a close code.
    pub(in crate::realtime) fn close_pages(
        &self,
        why: &dyn Fn(&SocketPage, &BackendId) -> Option<CloseReason>,
    ) {
        for one in self.list() {
            if let Some(close) = why(one.page(), &one.backend) {
                one.close(close);
            }
        }
    }

    /// Pings the connections that are due, closes those that do not answer or read, and updates the gauges.
    pub(in crate::realtime) fn tick(&self, now: Duration, every: Duration, within: Duration) {
        let all = self.list();
        all.iter().for_each(|one| one.tick(now, every, within));
        let boards = self.boards.read().unwrap_or_else(PoisonError::into_inner);
        let counts = boards.values().map(|board| board.count());
        let (queries, subscriptions) = counts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.metrics
            .set_gauges(all.len(), queries, subscriptions, bytes);
    }

    /// Closes all connections, present and future.
    pub(in crate::realtime) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.close_all(CloseReason::STOPPED);
    }

    /// Closes all connections. Others may come.
    pub(in crate::realtime) fn close_all(&self, close: CloseReason) {
        self.list().iter().for_each(|one| one.close(close));
    }
}

impl Drop for ConnectionRegistration {
    fn drop(&mut self) {
        self.listener.end_all();
        self.listeners.lock_connections().remove(&self.number);
        self.listener.board().detach();
    }
}
