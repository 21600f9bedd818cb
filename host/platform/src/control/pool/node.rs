//! The control database of a node of several: it follows the one of another machine, until this machine becomes the owner.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use svc_base::positions::{CommitPosition, Durable, Entry};
use svc_base::sync::lock;
use svc_database::{DatabaseState, Replica};
use tokio::sync::oneshot;

use super::follower::{ControlFollower, FollowerMessage};
use super::shared_positions::SharedPositions;
use super::{ControlDatabase, ControlDatabaseState, FILE, OwnerLinks, open_writer, start_thread};
use crate::control::change::ControlChange;
use crate::control::counters::InstallationCounters;
use crate::control::residue::WalResidue;
use crate::control::wal::WriterLog;
use crate::control::{Error, SCHEMA_VERSION};

tokio::task_local! {
    /// Marks the task that does the duties of a new owner.
    static OWNER_DUTIES: ();
}

/// Tells a follower whether it has everything that clients were answered by now.
pub trait Freshness: Send + Sync {
    /// Whether what this machine has may be answered. Asked before each read.
    fn is_fresh(&self) -> bool;
}

/// Takes the changes that an owner's commits have noted, for the machines that follow.
pub trait ChangeFeed: Send + Sync {
    /// Takes the changes of the commit at `position`, as the database numbers it, before [`Durable::append`] is called for it. Changes of an attempt that wrote
    /// nothing come with the position of the commit before, which may be acknowledged already. Called by the writer, in the order of
    /// the commits; does not block.
    fn note_changes(&self, position: CommitPosition, changes: &[ControlChange]);
}

/// Commits of the owner, and what they have noted.
#[derive(Clone, Debug, Default)]
pub struct FollowedCommits {
    /// Commits that come next, in their order.
    pub entries: Vec<Entry>,
    /// Changes that they have noted, in the order of the commits.
    pub changes: Vec<ControlChange>,
}

impl FollowedCommits {
    /// Takes commits with the changes that they carry.
    ///
    /// # Errors
    /// [`Error::Changes`].
    pub fn of(entries: Vec<Entry>) -> Result<Self, Error> {
        let mut changes = Vec::new();
        for entry in &entries {
            let noted = ControlChange::from_bytes(&entry.changes);
            changes.extend(noted.map_err(|error| Error::Changes(error.to_string()))?);
        }
        Ok(Self { entries, changes })
    }
}

/// Role of a node of several.
pub(super) struct NodeRole {
    /// Tells whether a follower may answer; `None` for a machine that was the owner from its start.
    freshness: Option<Arc<dyn Freshness>>,
    /// Sender to the follower, while there is one.
    follower: Mutex<Option<Sender<FollowerMessage>>>,
    is_following: AtomicBool,
    /// Positions of an owner's commits.
    owned: OnceLock<Arc<SharedPositions>>,
    /// Whether everybody may write, and not the duties of a new owner alone.
    takes_writes: AtomicBool,
}

impl fmt::Debug for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRole")
            .field("is_following", &self.is_following)
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}

impl NodeRole {
    /// Makes the role of a machine that owns the database from its start.
    pub(super) fn owner() -> Self {
        Self {
            freshness: None,
            follower: Mutex::default(),
            is_following: AtomicBool::new(false),
            owned: OnceLock::new(),
            takes_writes: AtomicBool::new(true),
        }
    }

    fn follower(freshness: Arc<dyn Freshness>, follower: Sender<FollowerMessage>) -> Self {
        Self {
            freshness: Some(freshness),
            follower: Mutex::new(Some(follower)),
            is_following: AtomicBool::new(true),
            owned: OnceLock::new(),
            takes_writes: AtomicBool::new(false),
        }
    }

    /// Notes that this machine is the owner.
    pub(super) fn own(&self, positions: Arc<SharedPositions>) {
        // Nobody becomes the owner twice.
        let _ = self.owned.set(positions);
    }

    /// Positions of an owner's commits; `None` at a follower.
    pub(super) fn owned(&self) -> Option<&Arc<SharedPositions>> {
        self.owned.get()
    }

    /// Whether there is a follower.
    pub(super) fn is_following(&self) -> bool {
        self.is_following.load(Ordering::SeqCst)
    }

    /// Checks whether a write may begin.
    ///
    /// # Errors
    /// [`Error::Elsewhere`] at a follower, and at a new owner before its duties are done; [`Error::Busy`] while too much is
    /// unacknowledged.
    pub(super) fn check_write(&self) -> Result<(), Error> {
        let is_allowed =
            || self.takes_writes.load(Ordering::SeqCst) || OWNER_DUTIES.try_with(|_| ()).is_ok();
        match self.owned() {
            Some(positions) if is_allowed() => match positions.has_room() {
                true => Ok(()),
                false => Err(Error::Busy),
            },
            _ => Err(Error::Elsewhere),
        }
    }

    /// Checks whether what this machine has now may be answered. An owner's reads wait afterwards.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub(super) fn check_read(&self) -> Result<(), Error> {
        let is_fresh = || self.freshness.as_ref().is_some_and(|it| it.is_fresh());
        match self.owned().is_some() || self.is_following() && is_fresh() {
            true => Ok(()),
            false => Err(Error::Stale),
        }
    }

    /// Sends a message to the follower.
    ///
    /// # Errors
    /// [`Error::Closed`] without one.
    pub(super) fn send(&self, message: FollowerMessage) -> Result<(), Error> {
        let follower = lock(&self.follower);
        let follower = follower.as_ref().ok_or(Error::Closed)?;
        follower.send(message).map_err(|_| Error::Closed)
    }

    /// Returns the sender to the follower, which gets no message from anybody else then.
    fn take_follower(&self) -> Option<Sender<FollowerMessage>> {
        self.is_following.store(false, Ordering::SeqCst);
        lock(&self.follower).take()
    }

    /// Ends the follower with its last message.
    pub(super) fn close(&self) {
        drop(self.take_follower());
    }
}

impl ControlDatabase {
    /// Opens the database below `data` as a follower. The file was loaded from what the ledger has, and has `state`. Reads are
    /// answered while `freshness` says so, and writes are refused.
    ///
    /// # Errors
    /// When the file cannot be opened, or a newer program has migrated it.
    pub fn open_follower(
        data: &Path,
        state: DatabaseState,
        freshness: Arc<dyn Freshness>,
    ) -> Result<Self, Error> {
        let path = data.join(FILE);
        let replica = Replica::open(&path, state).map_err(Error::Replica)?;
        let counters = InstallationCounters::open(data)?;
        let (sender, receiver) = channel();
        let node = NodeRole::follower(freshness, sender);
        let residue = WalResidue::default();
        let state = ControlDatabaseState::new(path, residue, counters, Some(node));
        let follower = ControlFollower {
            replica: Some(replica),
            residue: state.residue.clone(),
            listeners: Arc::clone(&state.listeners),
        };
        let thread = start_thread("control-follower", move || follower.run(&receiver))?;
        *lock(&state.thread) = Some(thread);
        let control = Self(Arc::new(state));
        let schema: u32 = control
            .read_blocking(|c| c.pragma_query_value(None, "user_version", |row| row.get(0)))?;
        match schema > SCHEMA_VERSION {
            true => Err(Error::Newer(schema)),
            false => Ok(control),
        }
    }

    /// Whether another machine owns the database. That of a single machine has no other owner.
    pub fn is_follower(&self) -> bool {
        let node = self.0.node.as_ref();
        node.is_some_and(|node| node.owned().is_none())
    }

    /// Applies commits of the owner, which the ledger has acknowledged, and then delivers their changes to the listeners. Returns the
    /// last position in the ledger that this machine has. Only after this may a follower call itself fresh by what has brought them.
    ///
    /// # Errors
    /// [`Error::Replica`] if they do not fit. The follower takes no more then: the file must be loaded anew, by another start.
    /// [`Error::Closed`] after that, and at an owner.
    pub async fn follow(&self, commits: FollowedCommits) -> Result<CommitPosition, Error> {
        let (answer, answered) = oneshot::channel();
        self.node()?
            .send(FollowerMessage::Follow(commits, answer))?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Closes the replica, and returns its state, from which [`LogShipper::after_log`] goes on. Reads are refused from now on.
    ///
    /// [`LogShipper::after_log`]: svc_database::LogShipper::after_log
    ///
    /// # Errors
    /// [`Error::Closed`] if there is no follower, or it could not follow.
    pub async fn end_following(&self) -> Result<DatabaseState, Error> {
        let (answer, answered) = oneshot::channel();
        let follower = self.node()?.take_follower().ok_or(Error::Closed)?;
        let sent = follower.send(FollowerMessage::End(answer));
        sent.map_err(|_| Error::Closed)?;
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Makes this machine the owner: opens the writer and migrates the database. Its commits are acknowledged by `durable`, and what
    /// they note is handed to `feed`. Writes are refused until [`ControlDatabase::open_for_writes`].
    ///
    /// # Errors
    /// [`Error::Elsewhere`] unless the following was ended; errors of the database.
    pub async fn become_owner(
        &self,
        durable: Arc<dyn Durable>,
        feed: Arc<dyn ChangeFeed>,
    ) -> Result<(), Error> {
        if self.node()?.is_following() {
            return Err(Error::Elsewhere);
        }
        let state = Arc::clone(&self.0);
        let opened = tokio::task::spawn_blocking(move || {
            let log = WriterLog::default();
            let connection = open_writer(&state.path, &state.residue, &log)?;
            state.start_writer(connection, log, Some(OwnerLinks { durable, feed }))
        });
        opened.await.map_err(|_| Error::Panicked)?
    }

    /// Does the duties of an owner that must be done before anybody else writes, and lets everybody write then.
    ///
    /// # Errors
    /// Those of the duties. A new owner refuses other writes then, as before.
    pub async fn open_for_writes<E>(
        &self,
        duties: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let Some(node) = &self.0.node else {
            return duties.await;
        };
        OWNER_DUTIES.scope((), duties).await?;
        node.takes_writes.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn node(&self) -> Result<&NodeRole, Error> {
        self.0.node.as_ref().ok_or(Error::Closed)
    }
}
