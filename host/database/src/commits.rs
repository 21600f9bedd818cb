//! Count of a writer's commits, which gives each its position.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use svc_base::clock::Timestamp;
use svc_base::positions::CommitPosition;

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
    pub(super) fn resume_at(&self, commit: u64) {
        self.made.store(commit, Ordering::Relaxed);
    }

    /// When the last one was.
    pub(super) fn last(&self) -> Timestamp {
        Timestamp(self.at.load(Ordering::Relaxed))
    }

    /// Returns the number of the last one: that of history, while history has no gap.
    pub(super) fn position(&self) -> CommitPosition {
        CommitPosition(self.made.load(Ordering::Relaxed))
    }
}
