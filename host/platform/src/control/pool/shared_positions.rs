//! Positions of the control database's commits where another one acknowledges them: what readers may see, and what is acknowledged.
//! An answer that may show a commit waits for its acknowledgement.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::Error;
use svc_base::clock::Clock;
use svc_base::positions::{CommitPosition, Durable, MAX_VISIBLE_WAIT};

/// Pause of an answer that may not be given now.
const SILENCE: Duration = Duration::from_millis(50);

/// Positions that the writer, the readers and the acknowledger share.
pub(super) struct SharedPositions {
    durable: Arc<dyn Durable>,
    /// Position up to which readers may see commits: that of the last commit, or of the one that is being made.
    visible: AtomicU64,
    /// Position up to which commits are acknowledged.
    acknowledged: AtomicU64,
    /// Wakes readers after a change of either position.
    changed: Notify,
}

impl fmt::Debug for SharedPositions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPositions")
            .field("visible", &self.visible)
            .field("acknowledged", &self.acknowledged)
            .finish_non_exhaustive()
    }
}

impl SharedPositions {
    /// Starts with a database that has no commit of this process yet.
    pub(super) fn new(durable: Arc<dyn Durable>) -> Self {
        Self {
            durable,
            visible: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    /// Returns the acknowledger.
    pub(super) fn durable(&self) -> &Arc<dyn Durable> {
        &self.durable
    }

    /// Whether a new write may begin.
    pub(super) fn has_room(&self) -> bool {
        self.durable.has_room()
    }

    /// Notes that the commit at `position` is being made: from now on readers may see it.
    pub(super) fn begin_commit(&self, position: CommitPosition) {
        self.visible.store(position.0, Ordering::SeqCst);
    }

    /// Notes that the last commit is at `position`, and hands it over if it is new. A commit that was begun and has failed was
    /// visible to nobody.
    pub(super) fn made(&self, position: CommitPosition, is_new: bool) {
        self.visible.store(position.0, Ordering::SeqCst);
        if is_new {
            self.durable.append(position, Clock::system().now());
        } else {
            self.changed.notify_waiters();
        }
    }

    /// Lets readers of commits up to `position` go on.
    pub(super) fn acknowledge(&self, position: CommitPosition) {
        self.acknowledged.fetch_max(position.0, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Waits until all that a reader may have seen by now is acknowledged, and may be shown.
    ///
    /// # Errors
    /// [`Error::Busy`] after a time: no caller waits without end, whatever the acknowledger does.
    pub(super) async fn wait_for_visible(&self) -> Result<(), Error> {
        self.wait_within(MAX_VISIBLE_WAIT).await
    }

    async fn wait_within(&self, limit: Duration) -> Result<(), Error> {
        if self.is_acknowledged(self.visible.load(Ordering::SeqCst)) && self.durable.may_answer() {
            return Ok(());
        }
        let waited = tokio::time::timeout(limit, self.become_visible()).await;
        waited.map_err(|_| Error::Busy)
    }

    async fn become_visible(&self) {
        let seen = self.visible.load(Ordering::SeqCst);
        while !self.is_acknowledged(seen) {
            let changed = self.changed.notified();
            if !self.is_acknowledged(seen) {
                changed.await;
            }
        }
        while !self.durable.may_answer() {
            tokio::time::sleep(SILENCE).await;
        }
    }

    /// Whether what was visible up to `seen` is acknowledged. A commit that has failed since then was not seen.
    fn is_acknowledged(&self, seen: u64) -> bool {
        let seen = seen.min(self.visible.load(Ordering::SeqCst));
        seen <= self.acknowledged.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::sync::atomic::AtomicBool;
    use svc_base::clock::Timestamp;
    use svc_base::positions::AcknowledgeFn;

    /// Acknowledges nothing by itself.
    #[derive(Default)]
    struct Mute {
        silent: AtomicBool,
    }

    impl Durable for Mute {
        fn append(&self, _: CommitPosition, _: Timestamp) {}

        fn on_acknowledged(&self, _: AcknowledgeFn) {}

        fn may_answer(&self) -> bool {
            !self.silent.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn an_answer_waits_for_what_it_may_show() {
        let positions = SharedPositions::new(Arc::new(Mute::default()));
        assert!(positions.wait_for_visible().now_or_never().is_some());
        positions.begin_commit(CommitPosition(1));
        let waiting = positions.wait_for_visible();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        positions.made(CommitPosition(1), true);
        assert!(waiting.as_mut().now_or_never().is_none());
        positions.acknowledge(CommitPosition(1));
        waiting.await.unwrap();
        // A commit that has failed is not waited for.
        positions.begin_commit(CommitPosition(2));
        let waiting = positions.wait_for_visible();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        positions.made(CommitPosition(1), false);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_may_be_replaced_already_shows_nothing() {
        let mute = Arc::new(Mute::default());
        mute.silent.store(true, Ordering::SeqCst);
        let positions = SharedPositions::new(mute.clone());
        let waiting = positions.wait_for_visible();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        let given_up = positions.wait_within(Duration::ZERO).await;
        assert!(matches!(given_up, Err(Error::Busy)));
        mute.silent.store(false, Ordering::SeqCst);
        waiting.await.unwrap();
    }
}
