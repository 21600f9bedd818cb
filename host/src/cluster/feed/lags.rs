//! How far the followers are behind, as the last poll told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use svc_base::sync::lock;
use svc_ledger::RunId;

/// Commits of control that each follower lacks. Clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct FeedLags(Arc<Mutex<BTreeMap<RunId, u64>>>);

impl FeedLags {
    /// Returns how many commits a run lacks; `None` if it follows nobody.
    pub(in crate::cluster) fn of(&self, run: RunId) -> Option<u64> {
        lock(&self.0).get(&run).copied()
    }

    /// Takes the figures of all followers.
    pub(super) fn replace(&self, lags: Vec<(RunId, u64)>) {
        *lock(&self.0) = lags.into_iter().collect();
    }
}
