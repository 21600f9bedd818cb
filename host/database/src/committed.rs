//! Commits of a database's writer, from the first step to the second: who is told of them and who is answered.

use super::batch::BatchError;
use super::run::ResultJson;
use super::touched::{CommitFollower, Touched};
use super::write::Write;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, UnacknowledgedCommits};

/// Commits of a writer that are made and not acknowledged, with their consequences.
#[derive(Debug)]
pub(super) struct PendingCommits {
    id: BackendId,
    follower: CommitFollower,
    waiting: UnacknowledgedCommits<(Touched, Replies)>,
}

/// The callers of a commit, with what they are answered.
pub(super) enum Replies {
    /// Writes that share it, with a result each.
    Writes(Vec<Write>, Vec<Result<ResultJson, BatchError>>),
    /// Work that had the writer for itself.
    Alone(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Writes(..) => "Writes",
            Self::Alone(_) => "Alone",
        })
    }
}

impl PendingCommits {
    /// Starts with none, of a database whose commits `follower` is told of.
    pub(super) fn new(id: BackendId, follower: CommitFollower) -> Self {
        Self {
            id,
            follower,
            waiting: UnacknowledgedCommits::default(),
        }
    }

    /// Takes the first step of a commit: the database has come to `position`, synced.
    pub(super) fn committed(
        &mut self,
        position: CommitPosition,
        touched: Touched,
        replies: Replies,
    ) {
        self.waiting.push(position, (touched, replies));
    }

    /// Takes the second step of the commits up to `position`, which are as durable as they have to be. The follower is told of each,
    /// and then its callers are answered.
    pub(super) fn acknowledged(&mut self, position: CommitPosition) {
        for (touched, replies) in self.waiting.take_acknowledged(position) {
            self.follower.tell(self.id, touched);
            match replies {
                Replies::Writes(writes, results) => {
                    fault::point("write.told");
                    for (write, result) in writes.into_iter().zip(results) {
                        write.answer(result);
                    }
                }
                Replies::Alone(answer) => answer(),
            }
        }
    }
}
