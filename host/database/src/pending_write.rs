//! A write that waits for its group.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::batch::{BatchError, WriteRequest};
use super::run::ResultJson;
use super::timing::StatementTiming;
use svc_base::work_state::WorkState;

/// A write that waits.
#[derive(Debug)]
pub(super) struct PendingWrite {
    pub(super) request: WriteRequest,
    pub(super) timing: Arc<StatementTiming>,
    pub(super) work_state: Arc<WorkState>,
    pub(super) answer: oneshot::Sender<Result<ResultJson, BatchError>>,
}

impl PendingWrite {
    /// Replies its caller, who may have gone away.
    pub(super) fn answer(self, result: Result<ResultJson, BatchError>) {
        let _ = self.answer.send(result);
    }

    /// Weight in a group, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.request.bytes()
    }
}
