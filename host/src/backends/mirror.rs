//! The table `svc_payments` of a backend, which payments write, and the hook that tells why it is behind.

use std::sync::OnceLock;

use super::{BackendError, Backends};
use svc_base::ids::BackendId;
use svc_database::PaymentRow;

/// Function that tells why the table of a backend is behind, if it is.
type DelayReasonFn = Box<dyn Fn(BackendId) -> Option<String> + Send + Sync>;

/// Slot for the function, which is set once.
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
    /// Writes rows of `svc_payments`; with `anew` all other rows are removed.
    pub async fn mirror(
        &self,
        backend: BackendId,
        rows: Vec<PaymentRow>,
        anew: bool,
    ) -> Result<(), BackendError> {
        Ok(self.databases.mirror_payments(backend, rows, anew).await?)
    }

    /// Sets the function that tells why the table of a backend is behind.
    pub fn set_mirror_delay_reason_fn(
        &self,
        behind: impl Fn(BackendId) -> Option<String> + Send + Sync + 'static,
    ) {
        // The first function stays, because there is only one payments service.
        let _ = self.payments.0.set(Box::new(behind));
    }
}
