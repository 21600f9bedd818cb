//! The follower of the control database, on a thread of its own: it applies another machine's commits to the replica, and delivers
//! their changes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use svc_database::{DatabaseState, Replica};
use tokio::sync::oneshot;

use crate::control::change::NotedChangeListeners;
use crate::control::residue::WalResidue;
use crate::control::{Error, FollowedCommits};
use svc_base::positions::CommitPosition;

/// A message to the follower. A receiver that is gone has no effect on it.
pub(super) enum FollowerMessage {
    Follow(
        FollowedCommits,
        oneshot::Sender<Result<CommitPosition, Error>>,
    ),
    /// Asks for a log without deleted secrets.
    EmptyLog(Sender<Result<(), Error>>),
    /// Ends the follower, and asks for the state of the database.
    End(oneshot::Sender<Result<DatabaseState, Error>>),
}

/// The one connection that writes to a replica.
pub(super) struct ControlFollower {
    /// Replica; `None` once it could not follow.
    pub(super) replica: Option<Replica>,
    pub(super) residue: WalResidue,
    pub(super) listeners: Arc<NotedChangeListeners>,
}

impl ControlFollower {
    /// Takes messages until it is ended, or all senders are gone.
    pub(super) fn run(mut self, messages: &Receiver<FollowerMessage>) {
        while let Ok(message) = messages.recv() {
            match message {
                FollowerMessage::Follow(commits, answer) => {
                    let _ = answer.send(self.follow(&commits));
                }
                FollowerMessage::EmptyLog(answer) => {
                    let _ = answer.send(self.empty_log());
                }
                FollowerMessage::End(answer) => {
                    let _ = answer.send(self.end());
                    return;
                }
            }
        }
    }

    /// Applies commits, which readers then see, and delivers their changes, after which memory is as new.
    fn follow(&mut self, commits: &FollowedCommits) -> Result<CommitPosition, Error> {
        let replica = self.replica.take().ok_or(Error::Closed)?;
        let replica = replica.apply(&commits.entries).map_err(Error::Replica)?;
        let position = replica.state().position();
        self.replica = Some(replica);
        if !commits.entries.is_empty() {
            self.residue.note_deleted();
        }
        self.listeners.deliver(&commits.changes);
        Ok(position)
    }

    fn empty_log(&self) -> Result<(), Error> {
        match &self.replica {
            Some(replica) => self.residue.empty_log_by(|| replica.empty_log()),
            // Nothing is read of it any more.
            None => Ok(()),
        }
    }

    fn end(self) -> Result<DatabaseState, Error> {
        let replica = self.replica.ok_or(Error::Closed)?;
        replica.close().map_err(Error::Replica)
    }
}
