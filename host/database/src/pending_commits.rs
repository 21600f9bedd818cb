//! Commits of a writer that wait for their acknowledgement, after which the listener is notified and callers are answered.

use super::batch::BatchError;
use super::changed_tables::{ChangedTables, CommitListener};
use super::pending_write::PendingWrite;
use super::run::ResultJson;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, DeferredCommitEffects};

/// Commits of a writer that are made and not yet acknowledged.
#[derive(Debug)]
pub(super) struct PendingCommits {
    id: BackendId,
    listener: CommitListener,
    waiting: DeferredCommitEffects<(ChangedTables, CommitReplies)>,
}

/// Callers of a commit, with their answers.
pub(super) enum CommitReplies {
    /// Writes that share the commit, with a result for each.
    Writes(Vec<PendingWrite>, Vec<Result<ResultJson, BatchError>>),
    /// Answer of a job that had the writer for itself.
    Exclusive(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for CommitReplies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Writes(..) => "Writes",
            Self::Exclusive(_) => "Exclusive",
        })
    }
}

impl PendingCommits {
    /// Starts without commits, for a database whose commits `listener` follows.
    pub(super) fn new(id: BackendId, listener: CommitListener) -> Self {
        Self {
            id,
            listener,
            waiting: DeferredCommitEffects::default(),
        }
    }

    /// Adds a commit that is made: the database is synced up to `position`.
    pub(super) fn add(
        &mut self,
        position: CommitPosition,
        touched: ChangedTables,
        replies: CommitReplies,
    ) {
        self.waiting.push(position, (touched, replies));
    }

    /// Acknowledges the commits up to `position`: tells the listener of each, and then answers its callers.
    pub(super) fn acknowledge(&mut self, position: CommitPosition) {
        for (touched, replies) in self.waiting.take_acknowledged(position) {
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
