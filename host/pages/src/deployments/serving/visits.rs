//! Views, counted in memory off the hot path and written down every two seconds.
//!
//! A crash loses at most the counts since then; a flush that is retried never counts twice, because each has
//! an id that is written with it. They are written to the counters: a file beside the control database, or the ledger of several nodes.
//! Where that does not answer, counts wait here, one for each page that is in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;

use super::PageService;
use crate::control::Error;
use crate::deployments::store;
use svc_base::ids::DeploymentId;

/// Views of one deployment that are not yet handed to a flush.
#[derive(Debug)]
pub(super) struct ViewCounter {
    id: DeploymentId,
    count: AtomicU64,
}

impl ViewCounter {
    /// Makes a counter at zero.
    pub(super) fn new(id: DeploymentId) -> Self {
        Self {
            id,
            count: AtomicU64::new(0),
        }
    }
}

/// Counters of views that are not written down, and the flush under way.
#[derive(Debug)]
pub(super) struct VisitCounters {
    dirty: Mutex<Vec<Arc<ViewCounter>>>,
    flushing: tokio::sync::Mutex<Option<VisitFlush>>,
    /// Id of this process's first flush; the next ones count on from it.
    first_flush_id: i64,
    flushed: AtomicU64,
    /// Views counted since the start.
    pub(super) total: Counter,
}

#[derive(Clone, Debug)]
struct VisitFlush {
    id: i64,
    counts: Vec<(DeploymentId, u64)>,
}

impl VisitCounters {
    /// Makes counters at zero; `seed` tells this process's flushes from those of others.
    pub(super) fn new(seed: u64) -> Self {
        let first = i64::try_from(seed >> 1).unwrap_or(0);
        Self {
            dirty: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            first_flush_id: first,
            flushed: AtomicU64::new(0),
            total: Counter::default(),
        }
    }

    /// Counts a view.
    pub(super) fn count(&self, counter: &Arc<ViewCounter>) {
        self.total.inc();
        // Only the first view since a flush takes the lock.
        if counter.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.dirty
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Arc::clone(counter));
        }
    }

    /// Whether something is counted that is not written down.
    async fn has_unwritten(&self) -> bool {
        let counted = || {
            let dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
            !dirty.is_empty()
        };
        self.flushing.lock().await.is_some() || counted()
    }

    fn take_flush(&self) -> Option<VisitFlush> {
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        let counts: Vec<_> = dirty
            .iter()
            .map(|counter| (counter.id, counter.count.swap(0, Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let number = self.flushed.fetch_add(1, Ordering::Relaxed);
        let id = self
            .first_flush_id
            .wrapping_add(i64::try_from(number).unwrap_or(0));
        (!counts.is_empty()).then_some(VisitFlush { id, counts })
    }
}

impl PageService {
    /// Writes counted views down; a failed flush is tried again, with its id, by the next call.
    ///
    /// # Errors
    /// The counters'; no view is lost by one.
    pub async fn flush_visits(&self) -> Result<(), Error> {
        let mut flushing = self.visits.flushing.lock().await;
        let flush = match flushing.take().or_else(|| self.visits.take_flush()) {
            Some(flush) => flush,
            None => return Ok(()),
        };
        *flushing = Some(flush.clone());
        let (counters, now) = (self.infra.control.counters(), self.infra.clock.now());
        counters.add(flush.id, flush.counts, now).await?;
        *flushing = None;
        Ok(())
    }

    /// Forgets the views of deployments that are gone.
    ///
    /// # Errors
    /// Those of the counters and of the control database.
    pub async fn forget_visits(&self) -> Result<(), Error> {
        let counters = self.infra.control.counters();
        // Read before the list of deployments: a view is counted only after its deployment exists.
        let counted = counters.counted_deployments();
        let there = self.infra.control.read(store::ids).await?;
        let gone: Vec<_> = counted
            .into_iter()
            .filter(|id| !there.contains(id))
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        counters.forget(gone).await
    }

    /// Writes all counts, those of a failed flush too: for the stop of the server, when no more views come.
    pub async fn flush_all_visits(&self) -> Result<(), Error> {
        while self.visits.has_unwritten().await {
            self.flush_visits().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    #[test]
    fn views_are_taken_once() {
        let visits = VisitCounters::new(7);
        let id = DeploymentId::new(&Clock::system(), &Random::system()).unwrap();
        let counter = Arc::new(ViewCounter::new(id));
        for _ in 0..3 {
            visits.count(&counter);
        }
        assert_eq!(visits.take_flush().unwrap().counts, [(id, 3)]);
        assert!(visits.take_flush().is_none());
        visits.count(&counter);
        assert_eq!(visits.take_flush().unwrap().counts, [(id, 1)]);
    }
}
