//! Count of a writer's commits, which gives each its position.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use svc_base::clock::Timestamp;
use svc_base::positions::CommitPosition;

/// Count of the commits of a writer, which goes on from what the history had; and when the last one was.
#[derive(Debug)]
pub(super) struct CommitCounter {
    count: AtomicU64,
    /// In milliseconds since the epoch.
    last_at: AtomicI64,
}

impl CommitCounter {
    /// Starts with a writer that has made none by `now`.
    pub(super) fn new(now: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicU64::new(0),
            last_at: AtomicI64::new(now.0),
        })
    }

    /// Counts one that is made at `now`.
    pub(super) fn add(&self, now: Timestamp) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_at.store(now.0, Ordering::Relaxed);
    }

    /// Goes on from the commit of this number.
    pub(super) fn resume_at(&self, commit: u64) {
        self.count.store(commit, Ordering::Relaxed);
    }

    /// When the last one was.
    pub(super) fn last_commit_at(&self) -> Timestamp {
        Timestamp(self.last_at.load(Ordering::Relaxed))
    }

    /// Returns the number of the last one: that of history, while history has no gap.
    pub(super) fn position(&self) -> CommitPosition {
        CommitPosition(self.count.load(Ordering::Relaxed))
    }
}
