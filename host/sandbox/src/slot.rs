//! The guest that serves a world, and the one that stands by: replaced together while calls run.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;

use super::engine::GuestEngine;
use super::tally::{Tally, Usage};
use super::values::GuestDigest;

/// How long a caller waits for the guests at the start.
const LOADING: Duration = Duration::from_secs(60);

/// A guest that is loaded.
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

    /// Returns the code for a call: the fastest that there is by now.
    pub(super) fn code(&self) -> Arc<GuestCode<W>> {
        self.code.load_full()
    }

    /// Has calls that come after this one begin from other code of the same component.
    pub(super) fn replace_code(&self, code: GuestCode<W>) {
        self.code.store(Arc::new(code));
    }
}

/// Guest that answers calls.
pub(super) struct Serving<W> {
    pub(super) guest: Arc<Guest<W>>,
    /// Guest that is asked where this one fails, for as long as it is on trial.
    pub(super) before: Option<Arc<Guest<W>>>,
}

/// Why there is no guest to call.
#[derive(Debug)]
pub(super) enum NotReady {
    /// It is still being loaded.
    Loading,
    /// It cannot be loaded.
    Failed(anyhow::Error),
}

#[derive(Clone, Debug)]
enum Progress {
    Loading,
    Loaded,
    Failed(Arc<str>),
}

/// The guest of one world. Calls hold the guest that they began with; a new one serves the calls that come after.
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

    /// The guests that are loaded.
    pub(super) fn known(&self) -> Vec<Arc<Guest<W>>> {
        let serving = self.now();
        let both = serving.iter().flat_map(|serving| {
            let before = serving.before.as_ref();
            [Some(&serving.guest), before].into_iter().flatten()
        });
        both.cloned().collect()
    }

    /// Lets a guest serve; returns whether it is another than before.
    pub(super) fn swap(&self, guest: Arc<Guest<W>>, before: Option<Arc<Guest<W>>>) -> bool {
        let digest = guest.digest;
        let left = self.current.swap(Some(Arc::new(Serving { guest, before })));
        self.progress.send_replace(Progress::Loaded);
        left.is_some_and(|left| left.guest.digest != digest)
    }

    /// Says who stands by for a guest, if that serves still.
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

    /// Lets the guest that stands by serve instead, if who failed still serves; returns whether it does so now.
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

    /// Notes that nothing can be loaded. What serves goes on serving.
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
