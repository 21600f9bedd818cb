//! Commits of a database's writer, from the first step to the second: who is told of them and who is answered.

use super::batch::BatchError;
use super::run::ResultJson;
use super::touched::{News, Touched};
use super::write::Write;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{Position, Unacknowledged};

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
