//! Counter of a writer's commits, which gives each commit its position.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use svc_base::clock::Timestamp;
use svc_base::positions::CommitPosition;

/// Number and time of a writer's last commit. The number continues the numbers of the history, or of what acknowledges commits.
#[derive(Debug)]
pub(super) struct LastCommitTracker {
    count: AtomicU64,
    /// In milliseconds since the epoch.
    last_at: AtomicI64,
}

impl LastCommitTracker {
    /// Starts at zero.
    pub(super) fn new(now: Timestamp) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicU64::new(0),
            last_at: AtomicI64::new(now.0),
        })
    }

    /// Counts a commit that is made at `now`.
    pub(super) fn add(&self, now: Timestamp) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_at.store(now.0, Ordering::Relaxed);
    }

    /// Continues from commit number `commit`.
    pub(super) fn resume_at(&self, commit: u64) {
        self.count.store(commit, Ordering::Relaxed);
    }

    /// Returns a tracker that stays at the last commit.
    pub(super) fn at_last_commit(&self) -> Arc<Self> {
        let tracker = Self::new(self.last_commit_at());
        tracker.resume_at(self.position().0);
        tracker
    }

    /// Time of the last commit.
    pub(super) fn last_commit_at(&self) -> Timestamp {
        Timestamp(self.last_at.load(Ordering::Relaxed))
    }

    /// Returns the number and the time of the last commit.
    pub(super) fn last_commit(&self) -> (CommitPosition, Timestamp) {
        (self.position(), self.last_commit_at())
    }

    /// Returns the number of the last commit. It equals the number in the history, while the history has no gap.
    pub(super) fn position(&self) -> CommitPosition {
        CommitPosition(self.count.load(Ordering::Relaxed))
    }
}
