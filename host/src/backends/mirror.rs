//! The table `svc_payments` of a backend, which the payments have written, and the hook that says that it is behind.

use std::sync::OnceLock;

use super::{BackendError, Backends};
use svc_base::ids::BackendId;
use svc_database::PaymentRow;

/// Whether the table of a backend is behind, and why.
type DelayReasonFn = Box<dyn Fn(BackendId) -> Option<String> + Send + Sync>;

/// The way to find out, which is told once.
#[derive(Default)]
pub(super) struct DelayReasonSlot(OnceLock<DelayReasonFn>);

impl DelayReasonSlot {
    pub(super) fn delay_reason(&self, backend: BackendId) -> Option<String> {
        self.0.get().and_then(|behind| behind(backend))
    }
}

impl std::fmt::Debug for DelayReasonSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Backends {
    /// Writes rows of `svc_payments`; with `anew` there is nothing else in it afterwards.
    pub async fn mirror(
        &self,
        backend: BackendId,
        rows: Vec<PaymentRow>,
        anew: bool,
    ) -> Result<(), BackendError> {
        Ok(self.databases.mirror_payments(backend, rows, anew).await?)
    }

    /// Has `behind` say why the table of a backend is behind, if it is.
    pub fn set_mirror_delay_reason_fn(
        &self,
        behind: impl Fn(BackendId) -> Option<String> + Send + Sync + 'static,
    ) {
        // The first stays: there is one keeper of payments.
        let _ = self.payments.0.set(Box::new(behind));
    }
}
