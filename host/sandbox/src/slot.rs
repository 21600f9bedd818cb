//! Slot of a world: the serving guest and the standby guest, replaced together while calls run.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;

use super::engine::GuestEngine;
use super::tally::{Tally, Usage};
use super::values::GuestDigest;

/// Time limit for waiting until the guests are loaded.
const LOADING: Duration = Duration::from_secs(60);

/// A loaded guest.
pub(super) struct Guest<W> {
    code: ArcSwap<GuestCode<W>>,
    pub(super) digest: GuestDigest,
    /// Counters of the guest's calls.
    pub(super) tally: Tally,
}

/// Compiled code of a guest, with the engine that runs it.
pub(super) struct GuestCode<W> {
    pub(super) engine: Arc<GuestEngine>,
    /// Prepared instance that calls begin from.
    pub(super) world: W,
}

impl<W> Guest<W> {
    pub(super) fn new(digest: GuestDigest, code: GuestCode<W>) -> anyhow::Result<Self> {
        Ok(Self {
            code: ArcSwap::from_pointee(code),
            digest,
            tally: Tally::new()?,
        })
    }

    /// Returns the fastest code that exists by now.
    pub(super) fn code(&self) -> Arc<GuestCode<W>> {
        self.code.load_full()
    }

    /// Replaces the code for later calls by other code of the same component.
    pub(super) fn replace_code(&self, code: GuestCode<W>) {
        self.code.store(Arc::new(code));
    }
}

/// The guest that answers calls, with its standby.
pub(super) struct Serving<W> {
    pub(super) guest: Arc<Guest<W>>,
    /// Guest that is called where this one fails, while it is on trial.
    pub(super) before: Option<Arc<Guest<W>>>,
}

/// Reason why there is no guest to call.
#[derive(Debug)]
pub(super) enum NotReady {
    /// The guest is still being loaded.
    Loading,
    /// The guest cannot be loaded.
    Failed(anyhow::Error),
}

#[derive(Clone, Debug)]
enum Progress {
    Loading,
    Loaded,
    Failed(Arc<str>),
}

/// Slot for the guest of one world. A call keeps its guest until it ends; later calls see the new one.
pub(super) struct Slot<W> {
    current: ArcSwapOption<Serving<W>>,
    progress: watch::Sender<Progress>,
}

impl<W> Slot<W> {
    pub(super) fn new() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            progress: watch::Sender::new(Progress::Loading),
        }
    }

    /// Returns the guest that serves; waits until there is one.
    pub(super) async fn serving(&self) -> Result<Arc<Serving<W>>, NotReady> {
        if let Some(serving) = self.now() {
            return Ok(serving);
        }
        let mut progress = self.progress.subscribe();
        let known = progress.wait_for(|now| !matches!(now, Progress::Loading));
        let known = match tokio::time::timeout(LOADING, known).await {
            Err(_) | Ok(Err(_)) => return Err(NotReady::Loading),
            Ok(Ok(known)) => known.clone(),
        };
        if let Progress::Failed(why) = known {
            return Err(NotReady::Failed(anyhow::anyhow!("{why}")));
        }
        self.now().ok_or(NotReady::Loading)
    }

    /// Returns the guest that serves now.
    pub(super) fn now(&self) -> Option<Arc<Serving<W>>> {
        self.current.load_full()
    }

    pub(super) fn loaded(&self) -> bool {
        self.current.load().is_some()
    }

    pub(super) fn digest(&self) -> Option<GuestDigest> {
        self.current
            .load()
            .as_ref()
            .map(|serving| serving.guest.digest)
    }

    /// Returns the guest that serves, and what it has used.
    pub(super) fn usage(&self) -> Option<(GuestDigest, Usage)> {
        let now = self.now()?;
        Some((now.guest.digest, now.guest.tally.usage()))
    }

    /// Returns the loaded guests.
    pub(super) fn known(&self) -> Vec<Arc<Guest<W>>> {
        let serving = self.now();
        let both = serving.iter().flat_map(|serving| {
            let before = serving.before.as_ref();
            [Some(&serving.guest), before].into_iter().flatten()
        });
        both.cloned().collect()
    }

    /// Replaces the serving guest; returns whether it is another one than before.
    pub(super) fn swap(&self, guest: Arc<Guest<W>>, before: Option<Arc<Guest<W>>>) -> bool {
        let digest = guest.digest;
        let left = self.current.swap(Some(Arc::new(Serving { guest, before })));
        self.progress.send_replace(Progress::Loaded);
        left.is_some_and(|left| left.guest.digest != digest)
    }

    /// Sets the standby of a guest, if that guest still serves.
    pub(super) fn stand_by(&self, guest: &Arc<Guest<W>>, before: Option<Arc<Guest<W>>>) {
        let next = Some(Arc::new(Serving {
            guest: Arc::clone(guest),
            before,
        }));
        while let Some(now) = self.now().filter(|now| Arc::ptr_eq(&now.guest, guest)) {
            let found = self.current.compare_and_swap(&now, next.clone());
            if found.as_ref().is_some_and(|found| Arc::ptr_eq(found, &now)) {
                return;
            }
        }
    }

    /// Replaces a failed guest by its standby, if the failed one still serves; returns whether it did.
    pub(super) fn fall(&self, failed: &Arc<Serving<W>>) -> bool {
        let Some(before) = &failed.before else {
            return false;
        };
        let next = Some(Arc::new(Serving {
            guest: Arc::clone(before),
            before: None,
        }));
        let found = self.current.compare_and_swap(failed, next);
        found
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, failed))
    }

    /// Records that no guest could be loaded. A serving guest goes on.
    pub(super) fn fail(&self, why: &str) {
        self.progress.send_if_modified(|progress| {
            let waiting = !matches!(progress, Progress::Loaded);
            if waiting {
                *progress = Progress::Failed(why.into());
            }
            waiting
        });
    }
}
