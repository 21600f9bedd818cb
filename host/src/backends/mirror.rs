//! The table `svc_payments` of a backend: writes rows of payments, and notes why a table is behind.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{BackendError, Backends};
use svc_base::ids::BackendId;
use svc_database::PaymentRow;

/// Backends whose table is behind, each with the reason.
#[derive(Debug, Default)]
pub(super) struct LaggingMirrors(Mutex<HashMap<BackendId, String>>);

impl LaggingMirrors {
    fn lock(&self) -> MutexGuard<'_, HashMap<BackendId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason why the table of a backend is behind, if it is.
    pub(super) fn of(&self, backend: &BackendId) -> Option<String> {
        self.lock().get(backend).cloned()
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

    /// Notes why the table of a backend is behind; `None` if it is not.
    pub fn note_lag(&self, backend: BackendId, why: Option<String>) {
        let mut lags = self.lags.lock();
        match why {
            Some(why) => lags.insert(backend, why),
            None => lags.remove(&backend),
        };
    }

    /// Forgets the backends whose table is no longer behind.
    pub fn retain_lags(&self, lags: impl Fn(&BackendId) -> bool) {
        self.lags.lock().retain(|backend, _| lags(backend));
    }
}
