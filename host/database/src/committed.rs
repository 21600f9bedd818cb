//! Commits of a database's writer, from the first step to the second: who is told of them and who is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::batch::BatchError;
use super::group::Write;
use super::run::ResultJson;
use super::touched::{News, Touched};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{Position, Unacknowledged};

/// Count of the commits of a writer, which goes on from what the history had; and when the last one was.
#[derive(Debug)]
pub(super) struct Commits {
    made: AtomicU64,
    /// In milliseconds since the epoch.
    at: AtomicI64,
}

impl Commits {
    /// Starts with a writer that has made none by `now`.
    pub(super) fn none(now: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            made: AtomicU64::new(0),
            at: AtomicI64::new(now.0),
        })
    }

    /// Counts one that is made at `now`.
    pub(super) fn count(&self, now: Timestamp) {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.at.store(now.0, Ordering::Relaxed);
    }

    /// Goes on from the commit of this number.
    pub(super) fn go_on_from(&self, commit: u64) {
        self.made.store(commit, Ordering::Relaxed);
    }

    /// When the last one was.
    pub(super) fn last(&self) -> Timestamp {
        Timestamp(self.at.load(Ordering::Relaxed))
    }

    /// Returns the number of the last one: that of history, while history has no gap.
    pub(super) fn position(&self) -> Position {
        Position(self.made.load(Ordering::Relaxed))
    }
}

/// Consequences of the commits of a writer.
#[derive(Debug)]
pub(super) struct Following {
    id: BackendId,
    news: News,
    waiting: Unacknowledged<(Touched, Answers)>,
}

/// The callers of a commit, with what they are answered.
pub(super) enum Answers {
    /// Writes that share it, with a result each.
    Writes(Vec<Write>, Vec<Result<ResultJson, BatchError>>),
    /// Work that had the writer for itself.
    Alone(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Writes(..) => "Writes",
            Self::Alone(_) => "Alone",
        })
    }
}

impl Following {
    /// Of a database whose commits `news` is told of.
    pub(super) fn new(id: BackendId, news: News) -> Self {
        Self {
            id,
            news,
            waiting: Unacknowledged::default(),
        }
    }

    /// The first step: the database has come to `position`, synced.
    pub(super) fn committed(&mut self, position: Position, touched: Touched, answers: Answers) {
        self.waiting.committed(position, (touched, answers));
    }

    /// The second step: everything up to `position` is as durable as it has to be. Whoever watches is told of it, and then its
    /// callers are answered.
    pub(super) fn acknowledged(&mut self, position: Position) {
        for (touched, answers) in self.waiting.acknowledged(position) {
            self.news.tell(self.id, touched);
            match answers {
                Answers::Writes(writes, results) => {
                    fault::point("write.told");
                    for (write, result) in writes.into_iter().zip(results) {
                        write.answer(result);
                    }
                }
                Answers::Alone(answer) => answer(),
            }
        }
    }
}
