//! The table `svc_payments` of a backend: writes rows of payments, and keeps which tables are behind, why, and until when they rest.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{BackendError, Backends};
use svc_base::ids::BackendId;
use svc_database::PaymentMirrorRow;

/// Longest delay before a failed mirror is tried again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// State of the tables of all backends.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<MirrorState>);

#[derive(Debug, Default)]
struct MirrorState {
    /// Backends whose table is being written.
    busy: HashSet<BackendId>,
    /// Backends whose table could not be written.
    behind: HashMap<BackendId, Lag>,
}

/// Failure to write a table, and its next attempt.
#[derive(Debug)]
struct Lag {
    why: String,
    wait: Duration,
    /// Time of the next attempt, by the clock's count since its start.
    again: Duration,
}

impl Mirrors {
    fn state(&self) -> MutexGuard<'_, MirrorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason why the table of a backend is behind, if it is.
    pub(super) fn lag_of(&self, backend: &BackendId) -> Option<String> {
        let state = self.state();
        state.behind.get(backend).map(|lag| lag.why.clone())
    }
}

impl Backends {
    /// Writes rows of `svc_payments`; with `anew` all other rows are removed.
    pub async fn mirror(
        &self,
        backend: BackendId,
        rows: Vec<PaymentMirrorRow>,
        anew: bool,
    ) -> Result<(), BackendError> {
        Ok(self.databases.mirror_payments(backend, rows, anew).await?)
    }

    /// Claims the table of a backend, unless it is being written or its retry is not due yet.
    pub fn claim_mirror(&self, backend: BackendId) -> bool {
        let now = self.infra.clock.elapsed();
        let mut state = self.mirrors.state();
        let rests = state
            .behind
            .get(&backend)
            .is_some_and(|lag| lag.again > now);
        !rests && state.busy.insert(backend)
    }

    /// Releases the table of a backend, with the reason if it could not be written.
    pub fn release_mirror(&self, backend: BackendId, failure: Option<String>) {
        let now = self.infra.clock.elapsed();
        let mut state = self.mirrors.state();
        state.busy.remove(&backend);
        let before = state.behind.remove(&backend).map(|lag| lag.wait);
        if let Some(why) = failure {
            let wait = before.map_or(FIRST_RETRY_DELAY, |wait| (wait * 2).min(MAX_RETRY_DELAY));
            let again = now + wait;
            state.behind.insert(backend, Lag { why, wait, again });
        }
    }

    /// Forgets the backends whose table is no longer behind.
    pub fn retain_lags(&self, lags: impl Fn(&BackendId) -> bool) {
        self.mirrors
            .state()
            .behind
            .retain(|backend, _| lags(backend));
    }
}
