//! Writes that wait for a group commit.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::batch::{BatchError, WriteStatements};
use super::run::ResultJson;
use super::timing::StatementTiming;
use svc_base::work_state::QueuedWorkState;

/// A queued write with the channel for its answer.
#[derive(Debug)]
pub(super) struct PendingWrite {
    pub(super) request: WriteStatements,
    pub(super) timing: Arc<StatementTiming>,
    pub(super) work_state: Arc<QueuedWorkState>,
    pub(super) answer: oneshot::Sender<Result<ResultJson, BatchError>>,
}

impl PendingWrite {
    /// Answers the caller, who may have gone away.
    pub(super) fn answer(self, result: Result<ResultJson, BatchError>) {
        let _ = self.answer.send(result);
    }

    /// Size for the bound of a group, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.request.bytes()
    }
}
