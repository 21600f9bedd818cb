//! Commits that wait for their acknowledgement, after which the listener is notified and callers are answered.
//!
//! A single machine acknowledges its commits itself, as soon as they are synced. Where a [`Durable`] does so, they are handed over to
//! it, and the writer goes on meanwhile. Then answers that may show a commit wait for its acknowledgement, too.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::batch::BatchError;
use super::changed_tables::{ChangedTables, CommitListener};
use super::error::StatementRunError;
use super::pending_write::PendingWrite;
use super::run::ResultJson;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, DeferredCommitEffects, Durable, MAX_VISIBLE_WAIT};
use svc_base::sync::lock;

/// Pause of an answer that may not be given now.
const SILENCE: Duration = Duration::from_millis(50);

/// Commits that are made and not yet acknowledged.
pub(super) type PendingCommits = DeferredCommitEffects<(ChangedTables, CommitReplies)>;

/// Callers of a commit, with their answers.
pub(super) enum CommitReplies {
    /// Writes that share the commit, with a result for each.
    Writes(Vec<PendingWrite>, Vec<Result<ResultJson, BatchError>>),
    /// Answer of a job that had the writer for itself.
    Exclusive(Box<dyn FnOnce() + Send>),
}

impl fmt::Debug for CommitReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writes(..) => "Writes",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

/// Announcer of a database's commits, once they are acknowledged.
#[derive(Debug)]
pub(super) struct CommitAnnouncer {
    id: BackendId,
    listener: CommitListener,
}

impl CommitAnnouncer {
    /// Announces the commits of database `id` to `listener`.
    pub(super) fn new(id: BackendId, listener: CommitListener) -> Self {
        Self { id, listener }
    }

    /// Announces the commits up to `position`: tells the listener of each, and then answers its callers.
    pub(super) fn announce(&self, pending: &mut PendingCommits, position: CommitPosition) {
        for (touched, replies) in pending.take_acknowledged(position) {
            self.listener.notify(self.id, touched);
            match replies {
                CommitReplies::Writes(writes, results) => {
                    fault::point("write.told");
                    for (write, result) in writes.into_iter().zip(results) {
                        write.answer(result);
                    }
                }
                CommitReplies::Exclusive(answer) => answer(),
            }
        }
    }
}

/// A database's acknowledger, and the position after which its next commit is numbered.
type NumberedDurable = (Arc<dyn Durable>, CommitPosition);

/// Result of loading a database, which takes a while.
pub type LoadFuture = Pin<Box<dyn Future<Output = Result<(), StatementRunError>> + Send>>;

/// Function that brings the file of a database here; `None` if it is here.
type LoadFn = dyn Fn(BackendId) -> Option<LoadFuture> + Send + Sync;

/// Source of the acknowledger of each database, where commits are not acknowledged by this machine.
#[derive(Clone)]
pub struct DurableSource {
    open: Arc<dyn Fn(BackendId) -> NumberedDurable + Send + Sync>,
    load: Option<Arc<LoadFn>>,
    bring: Option<Arc<LoadFn>>,
    place: Option<Arc<dyn Fn(BackendId) -> DatabasePlace + Send + Sync>>,
    removed: Option<Arc<dyn Fn(BackendId) + Send + Sync>>,
}

/// Machine that has a database, where several serve one installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabasePlace {
    /// This one.
    Here,
    /// Another one.
    Elsewhere,
    /// None: whoever needs it may take it.
    Nobody,
}

impl DurableSource {
    /// Wraps a function that returns the acknowledger of a database, and the position of the last commit that it has acknowledged:
    /// the next commit is numbered after it. It is called when the database is made or opened.
    ///
    /// The commit that makes a database is handed over when its file has all of it, and its log is empty.
    pub fn new(open: impl Fn(BackendId) -> NumberedDurable + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            load: None,
            bring: None,
            place: None,
            removed: None,
        }
    }

    /// Sets the function that brings the file of a database here before it is opened; it returns `None` for a file that is here.
    #[must_use]
    pub fn with_loader(
        mut self,
        load: impl Fn(BackendId) -> Option<LoadFuture> + Send + Sync + 'static,
    ) -> Self {
        self.load = Some(Arc::new(load));
        self
    }

    /// Sets the function that brings a database here even from another machine, which gives it up; it returns `None` for one that is
    /// here.
    #[must_use]
    pub fn with_bringer(
        mut self,
        bring: impl Fn(BackendId) -> Option<LoadFuture> + Send + Sync + 'static,
    ) -> Self {
        self.bring = Some(Arc::new(bring));
        self
    }

    /// Sets the function that says which machine is believed to have a database.
    #[must_use]
    pub fn with_places(
        mut self,
        place: impl Fn(BackendId) -> DatabasePlace + Send + Sync + 'static,
    ) -> Self {
        self.place = Some(Arc::new(place));
        self
    }

    /// Sets the function that is told of each database that was removed.
    #[must_use]
    pub fn with_remover(mut self, removed: impl Fn(BackendId) + Send + Sync + 'static) -> Self {
        self.removed = Some(Arc::new(removed));
        self
    }

    /// Brings the file of a database here, if it is not.
    pub(super) async fn load(&self, id: BackendId) -> Result<(), StatementRunError> {
        match self.load.as_ref().and_then(|load| load(id)) {
            Some(loading) => loading.await,
            None => Ok(()),
        }
    }

    /// Brings a database here, from another machine if need be.
    pub(super) async fn bring(&self, id: BackendId) -> Result<(), StatementRunError> {
        match self.bring.as_ref().and_then(|bring| bring(id)) {
            Some(bringing) => bringing.await,
            None => Ok(()),
        }
    }

    /// Returns the machine that is believed to have a database.
    pub(super) fn place(&self, id: BackendId) -> DatabasePlace {
        let place = self.place.as_ref();
        place.map_or(DatabasePlace::Here, |place| place(id))
    }

    /// Tells that a database was removed.
    pub(super) fn removed(&self, id: BackendId) {
        if let Some(removed) = &self.removed {
            removed(id);
        }
    }
}

impl fmt::Debug for DurableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableSource").finish_non_exhaustive()
    }
}

/// Commits of a database that are not acknowledged by this machine. The writer, the readers and the acknowledger share them.
pub(super) struct SharedCommits {
    announcer: CommitAnnouncer,
    durable: Arc<dyn Durable>,
    state: Mutex<SharedState>,
    /// Position up to which readers may see commits: that of the last commit, or of the one that is being made.
    visible: AtomicU64,
    /// Position up to which commits are acknowledged.
    acknowledged: AtomicU64,
    /// Wakes readers after a change of either position.
    changed: Notify,
}

struct SharedState {
    /// Last commit that was handed over.
    handed_over: CommitPosition,
    pending: PendingCommits,
    /// Values that are kept until commits are acknowledged.
    in_use: DeferredCommitEffects<Box<dyn Any + Send>>,
}

impl fmt::Debug for SharedCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCommits")
            .field("visible", &self.visible)
            .field("acknowledged", &self.acknowledged)
            .finish_non_exhaustive()
    }
}

impl SharedCommits {
    /// Starts with the commits that the acknowledger has.
    pub(super) fn start(announcer: CommitAnnouncer, source: &DurableSource) -> Arc<Self> {
        let (durable, last) = (source.open)(announcer.id);
        let shared = Arc::new(Self {
            announcer,
            durable,
            state: Mutex::new(SharedState {
                handed_over: last,
                pending: PendingCommits::default(),
                in_use: DeferredCommitEffects::default(),
            }),
            visible: AtomicU64::new(last.0),
            acknowledged: AtomicU64::new(last.0),
            changed: Notify::new(),
        });
        let weak = Arc::downgrade(&shared);
        let acknowledge = move |position| {
            if let Some(shared) = weak.upgrade() {
                shared.acknowledge(position);
            }
        };
        shared.durable.on_acknowledged(Box::new(acknowledge));
        shared
    }

    /// Returns the position after which the next commit is numbered.
    pub(super) fn last_position(&self) -> CommitPosition {
        lock(&self.state).handed_over
    }

    /// Notes that the commit at `position` is being made: from now on readers may see it.
    pub(super) fn begin_commit(&self, position: CommitPosition) {
        self.visible.store(position.0, Ordering::SeqCst);
    }

    /// Hands over what a job of the writer has made: the commits up to `position`, the last of them made at `at`, and `pending`, which
    /// waits for them or for earlier ones. `in_use` is dropped after their acknowledgement.
    pub(super) fn hand_over(
        &self,
        (position, at): (CommitPosition, Timestamp),
        pending: &mut PendingCommits,
        in_use: impl Any + Send,
    ) {
        let mut state = lock(&self.state);
        state.pending.append(pending);
        // A commit that was begun and has failed was visible to nobody.
        self.visible.store(position.0, Ordering::SeqCst);
        let is_new = position > state.handed_over;
        if is_new {
            state.handed_over = position;
            state.in_use.push(position, Box::new(in_use));
        }
        drop(state);
        if is_new {
            self.durable.append(position, at);
        } else {
            self.acknowledge(self.acknowledged());
        }
    }

    /// Announces the commits up to `position`, and lets readers go on.
    fn acknowledge(&self, position: CommitPosition) {
        let mut state = lock(&self.state);
        self.acknowledged.fetch_max(position.0, Ordering::SeqCst);
        let position = self.acknowledged();
        // The lock is held meanwhile, so that commits are announced in their order.
        self.announcer.announce(&mut state.pending, position);
        let unused: Vec<_> = state.in_use.take_acknowledged(position).collect();
        drop(state);
        self.changed.notify_waiters();
        // Without the lock, since it may close the database.
        drop(unused);
    }

    fn acknowledged(&self) -> CommitPosition {
        CommitPosition(self.acknowledged.load(Ordering::SeqCst))
    }

    /// Whether a new write may begin.
    pub(super) fn has_room(&self) -> bool {
        self.durable.has_room()
    }

    /// Whether all that a reader may have seen by now is acknowledged, and may be shown.
    pub(super) fn is_visible(&self) -> bool {
        self.is_acknowledged(self.visible.load(Ordering::SeqCst)) && self.durable.may_answer()
    }

    /// Waits until all that a reader may have seen by now is acknowledged, and may be shown.
    ///
    /// # Errors
    /// [`StatementRunError::Busy`] after a time: no caller waits without end, whatever the acknowledger does.
    pub(super) async fn wait_for_visible(&self) -> Result<(), StatementRunError> {
        self.wait_within(MAX_VISIBLE_WAIT).await
    }

    pub(super) async fn wait_within(&self, limit: Duration) -> Result<(), StatementRunError> {
        if self.is_visible() {
            return Ok(());
        }
        let waited = tokio::time::timeout(limit, self.become_visible()).await;
        waited.map_err(|_| StatementRunError::Busy)
    }

    async fn become_visible(&self) {
        let seen = self.visible.load(Ordering::SeqCst);
        while !self.is_acknowledged(seen) {
            let changed = self.changed.notified();
            if !self.is_acknowledged(seen) {
                changed.await;
            }
        }
        while !self.durable.may_answer() {
            tokio::time::sleep(SILENCE).await;
        }
    }

    /// Whether what was visible up to `seen` is acknowledged. A commit that has failed since then was not seen.
    fn is_acknowledged(&self, seen: u64) -> bool {
        seen.min(self.visible.load(Ordering::SeqCst)) <= self.acknowledged().0
    }
}
