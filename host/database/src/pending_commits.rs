//! Commits of a database's writer, from the first step to the second: who is told of them and who is answered.

use super::batch::BatchError;
use super::changed_tables::{ChangedTables, CommitListener};
use super::pending_write::PendingWrite;
use super::run::ResultJson;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, UnacknowledgedCommits};

/// Commits of a writer that are made and not acknowledged, with their consequences.
#[derive(Debug)]
pub(super) struct PendingCommits {
    id: BackendId,
    listener: CommitListener,
    waiting: UnacknowledgedCommits<(ChangedTables, Replies)>,
}

/// The callers of a commit, with what they are answered.
pub(super) enum Replies {
    /// Writes that share it, with a result each.
    Writes(Vec<PendingWrite>, Vec<Result<ResultJson, BatchError>>),
    /// Work that had the writer for itself.
    Exclusive(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Writes(..) => "Writes",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

impl PendingCommits {
    /// Starts with none, of a database whose commits `listener` is told of.
    pub(super) fn new(id: BackendId, listener: CommitListener) -> Self {
        Self {
            id,
            listener,
            waiting: UnacknowledgedCommits::default(),
        }
    }

    /// Takes the first step of a commit: the database has come to `position`, synced.
    pub(super) fn add(
        &mut self,
        position: CommitPosition,
        touched: ChangedTables,
        replies: Replies,
    ) {
        self.waiting.push(position, (touched, replies));
    }

    /// Takes the second step of the commits up to `position`, which are as durable as they have to be. The follower is told of each,
    /// and then its callers are answered.
    pub(super) fn acknowledge(&mut self, position: CommitPosition) {
        for (touched, replies) in self.waiting.take_acknowledged(position) {
            self.listener.notify(self.id, touched);
            match replies {
                Replies::Writes(writes, results) => {
                    fault::point("write.told");
                    for (write, result) in writes.into_iter().zip(results) {
                        write.answer(result);
                    }
                }
                Replies::Exclusive(answer) => answer(),
            }
        }
    }
}
