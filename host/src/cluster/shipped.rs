//! A database whose commits the ledger acknowledges: its writer hands them over, and they are read from its log at once.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};

use super::gate::AnswerGate;
use super::run::end_process;
use crate::control::{ChangeFeed, ControlChange};
use svc_base::clock::Timestamp;
use svc_base::positions::{AcknowledgeFn, CommitPosition, Durable};
use svc_base::sync::lock;
use svc_database::{BaseSnapshot, LogShipper};
use svc_ledger::{AppendQueue, DatabaseEntry, DatabaseName};

/// Bytes of unanswered commits from which a database begins no new write: one that writes much must not fill the queue of all. As much
/// goes to the ledger at once.
const MAX_UNANSWERED_BYTES: usize = 4 << 20;

/// Commits of a database that the ledger has not acknowledged, by their bytes.
#[derive(Debug, Default)]
struct UnansweredCommits {
    commits: VecDeque<(CommitPosition, usize)>,
    bytes: usize,
}

impl UnansweredCommits {
    fn push(&mut self, position: CommitPosition, bytes: usize) {
        self.commits.push_back((position, bytes));
        self.bytes += bytes;
    }

    /// Forgets the commits up to `position`.
    fn acknowledge(&mut self, position: CommitPosition) {
        while let Some((first, bytes)) = self.commits.front().copied()
            && first <= position
        {
            self.commits.pop_front();
            self.bytes -= bytes;
        }
    }

    fn has_room(&self) -> bool {
        self.bytes < MAX_UNANSWERED_BYTES
    }
}

/// Ways from a writer to the ledger, which all databases of a node share.
#[derive(Clone, Debug)]
pub(super) struct ShippingRoutes {
    pub(super) queue: Arc<AppendQueue>,
    pub(super) gate: Arc<AnswerGate>,
    /// Takes each database that was made, with its position: its file has all of it, and it needs its first base.
    pub(super) made: mpsc::UnboundedSender<(DatabaseName, CommitPosition)>,
}

/// A database of this node.
pub(super) struct ShippedDatabase {
    name: DatabaseName,
    /// File of the database.
    file: PathBuf,
    routes: ShippingRoutes,
    /// Position in the ledger at which the database's own positions begin.
    offset: CommitPosition,
    /// Reader of its log; `None` until a new database has its first base.
    shipper: Mutex<Option<LogShipper>>,
    /// Position of the ledger up to which commits are acknowledged.
    acknowledged: AtomicU64,
    unanswered: Mutex<UnansweredCommits>,
    /// Called with each position that is acknowledged.
    acknowledge: Mutex<Option<Arc<AcknowledgeFn>>>,
    /// Whether the database was removed. It is set while nothing is being shipped.
    is_removed: AtomicBool,
    /// Whether the run has the place of the database. Whoever opens it when the place is given back writes and shows nothing.
    is_placed: AtomicBool,
    /// Changes that the next commit takes along, of the control database alone.
    noted: Mutex<Vec<ControlChange>>,
    /// Where a snapshot of the next commit goes, if one is wanted.
    wants_snapshot: Mutex<Option<oneshot::Sender<io::Result<BaseSnapshot>>>>,
}

impl fmt::Debug for ShippedDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShippedDatabase")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ShippedDatabase {
    /// Wraps a database whose positions begin at `offset` of the ledger's. `shipper` is missing for a database that is being made.
    pub(super) fn new(
        name: DatabaseName,
        file: PathBuf,
        routes: ShippingRoutes,
        offset: CommitPosition,
        shipper: Option<LogShipper>,
    ) -> Self {
        let loaded = shipper.as_ref().map(|shipper| shipper.state().position());
        Self {
            acknowledged: AtomicU64::new(loaded.unwrap_or_default().0),
            name,
            file,
            routes,
            offset,
            shipper: Mutex::new(shipper),
            unanswered: Mutex::default(),
            acknowledge: Mutex::default(),
            is_removed: AtomicBool::new(false),
            is_placed: AtomicBool::new(true),
            noted: Mutex::default(),
            wants_snapshot: Mutex::default(),
        }
    }

    /// Returns the last position that was shipped, as the database numbers it.
    pub(super) fn position(&self) -> CommitPosition {
        let shipper = lock(&self.shipper);
        let shipped = shipper.as_ref().map(|shipper| shipper.state().position());
        CommitPosition(shipped.unwrap_or_default().0.saturating_sub(self.offset.0))
    }

    /// Begins a snapshot of the last commit that was shipped; `None` if a later one is made already, or the database has no base yet.
    /// Blocks for a moment, and so does a writer that hands over a commit meanwhile.
    pub(super) fn snapshot_of_last(&self) -> io::Result<Option<BaseSnapshot>> {
        let shipper = lock(&self.shipper);
        let Some(shipper) = shipper.as_ref().filter(|_| !self.is_removed()) else {
            return Ok(None);
        };
        let state = shipper.state();
        let snapshot = BaseSnapshot::begin(&self.file, state.position(), Some(state.checksum()))?;
        // A commit is in the log before a reader sees it, so one that the snapshot has too many is found.
        Ok(shipper.is_up_to_date()?.then_some(snapshot))
    }

    /// Whether commits are shipped: a new database is not, until it has its first base.
    pub(super) fn is_shipping(&self) -> bool {
        lock(&self.shipper).is_some()
    }

    /// Asks for a snapshot of the next commit. Its writer begins one that no commit overtakes.
    pub(super) fn snapshot_of_next(&self) -> oneshot::Receiver<io::Result<BaseSnapshot>> {
        let (sender, snapshot) = oneshot::channel();
        *lock(&self.wants_snapshot) = Some(sender);
        snapshot
    }

    /// Whether the ledger has acknowledged the commit at a position of the ledger.
    pub(super) fn is_acknowledged(&self, position: CommitPosition) -> bool {
        self.acknowledged.load(Ordering::SeqCst) >= position.0
    }

    /// Returns the last position of the ledger that was shipped, if the ledger has acknowledged it.
    pub(super) fn acknowledged_position(&self) -> Option<CommitPosition> {
        let shipped = lock(&self.shipper).as_ref()?.state().position();
        self.is_acknowledged(shipped).then_some(shipped)
    }

    /// Returns the file of the database.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Begins to ship: a new database has its first base.
    pub(super) fn start_shipping(&self, shipper: LogShipper) {
        *lock(&self.shipper) = Some(shipper);
    }

    /// Ships nothing more, since the database is removed, and returns the last position of the ledger that was shipped.
    pub(super) fn remove(&self) -> CommitPosition {
        let shipper = lock(&self.shipper);
        self.is_removed.store(true, Ordering::SeqCst);
        let shipped = shipper.as_ref().map(|shipper| shipper.state().position());
        shipped.unwrap_or_default()
    }

    /// Notes whether the run has the place of the database. It is taken away while nobody has the database open.
    pub(super) fn set_placed(&self, is_placed: bool) {
        self.is_placed.store(is_placed, Ordering::SeqCst);
    }

    fn is_placed(&self) -> bool {
        self.is_placed.load(Ordering::SeqCst)
    }

    /// Whether the database is removed.
    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::SeqCst)
    }

    /// Answers the callers of all commits up to a position of the ledger.
    pub(super) fn acknowledge(&self, position: CommitPosition) {
        self.acknowledged.fetch_max(position.0, Ordering::SeqCst);
        lock(&self.unanswered).acknowledge(position);
        let acknowledge = lock(&self.acknowledge).clone();
        if let Some(acknowledge) = acknowledge {
            acknowledge(CommitPosition(position.0.saturating_sub(self.offset.0)));
        }
    }

    /// Takes the changes that were noted, as they travel.
    fn take_changes(&self) -> Arc<[u8]> {
        let noted = mem::take(&mut *lock(&self.noted));
        match ControlChange::to_bytes(&noted) {
            Ok(changes) => changes,
            // Memories elsewhere would keep what is old.
            Err(error) => end_process(&error),
        }
    }

    /// Begins the snapshot that somebody waits for, of the last commit that was shipped.
    fn begin_snapshot(&self, shipper: &LogShipper) {
        // Who has stopped to wait wants none.
        let wanted = lock(&self.wants_snapshot).take();
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_closed()) else {
            return;
        };
        let state = shipper.state();
        let snapshot = BaseSnapshot::begin(&self.file, state.position(), Some(state.checksum()));
        // Without a receiver it ends at once.
        let _ = wanted.send(snapshot);
    }
}

impl Durable for ShippedDatabase {
    fn append(&self, position: CommitPosition, at: Timestamp) {
        let position = CommitPosition(self.offset.0 + position.0);
        let mut shipper = lock(&self.shipper);
        if self.is_removed() {
            drop(shipper);
            // A commit that the removal has overtaken is durable in that nobody will look for it.
            return self.acknowledge(position);
        }
        let Some(shipper) = shipper.as_mut() else {
            // The receiver lives as long as the process.
            let _ = self.routes.made.send((self.name, position));
            return;
        };
        // A failure leaves the shipper as it was, so one that passes is tried again.
        let shipped = shipper.ship(position, at);
        let mut entries = match shipped.or_else(|_| shipper.ship(position, at)) {
            Ok(entries) => entries,
            // The commit is made and can go nowhere: another run goes on without it, from what was acknowledged.
            Err(error) => end_process(&error),
        };
        if let Some(last) = entries.last_mut() {
            last.changes = self.take_changes();
        }
        // The lock is held, so that commits are submitted in their order.
        for entry in entries {
            let database = self.name;
            lock(&self.unanswered).push(entry.position, entry.body.len());
            self.routes.queue.submit(DatabaseEntry { database, entry });
        }
        self.begin_snapshot(shipper);
    }

    fn on_acknowledged(&self, acknowledge: AcknowledgeFn) {
        *lock(&self.acknowledge) = Some(Arc::new(acknowledge));
    }

    fn has_room(&self) -> bool {
        // Control is all tenants', and a start writes to it right after a migration.
        let has_share = self.name == DatabaseName::Control || lock(&self.unanswered).has_room();
        has_share && self.is_placed() && self.routes.gate.has_room()
    }

    fn may_answer(&self) -> bool {
        self.is_placed() && self.routes.gate.may_answer()
    }
}

impl ChangeFeed for ShippedDatabase {
    /// Notes changes for the next commit. Those of an attempt that wrote nothing are about no row, and may go with a later one.
    fn note_changes(&self, _: CommitPosition, changes: &[ControlChange]) {
        lock(&self.noted).extend_from_slice(changes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use svc_base::clock::Clock;
    use svc_ledger::RunId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_database_without_its_place_shows_nothing_and_takes_no_writes() {
        let clock = Clock::manual(Timestamp(0));
        let run = RunId::from(Uuid::from_u128(1));
        let queue = Arc::new(AppendQueue::new(run, clock.clone()));
        let times = [5, 600].map(Duration::from_secs);
        let gate = AnswerGate::new(run, Arc::clone(&queue), clock.clone(), times[0], times[1]);
        gate.acknowledged(clock.elapsed());
        let (made, _) = mpsc::unbounded_channel();
        let routes = ShippingRoutes {
            queue,
            gate: Arc::new(gate),
            made,
        };
        let name = DatabaseName::Control;
        let start = CommitPosition::default();
        let database = ShippedDatabase::new(name, PathBuf::new(), routes, start, None);
        for is_placed in [true, false, true] {
            database.set_placed(is_placed);
            assert_eq!(database.may_answer(), is_placed);
            assert_eq!(database.has_room(), is_placed);
        }
    }

    #[test]
    fn a_database_has_room_until_its_own_share_of_the_queue_is_full() {
        let mut unanswered = UnansweredCommits::default();
        unanswered.push(CommitPosition(1), MAX_UNANSWERED_BYTES - 1);
        assert!(unanswered.has_room());
        unanswered.push(CommitPosition(2), 1);
        unanswered.push(CommitPosition(3), 5);
        assert!(!unanswered.has_room());
        // What another one has acknowledged, as before this process, is none of these.
        unanswered.acknowledge(CommitPosition(0));
        assert!(!unanswered.has_room());
        unanswered.acknowledge(CommitPosition(2));
        assert!(unanswered.has_room());
        assert_eq!(unanswered.bytes, 5);
    }
}
