//! Slot of a world: the serving guest and the standby guest, replaced together while calls run.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;

use super::engine::GuestEngine;
use super::tally::{CallTally, GuestUsage};
use super::values::GuestDigest;

/// Time limit for waiting until the guests are loaded.
const LOADING_TIMEOUT: Duration = Duration::from_secs(60);

/// A loaded guest.
pub(super) struct LoadedGuest<W> {
    code: ArcSwap<GuestCode<W>>,
    pub(super) digest: GuestDigest,
    /// Counters of the guest's calls.
    pub(super) tally: CallTally,
}

/// Compiled code of a guest, with the engine that runs it.
pub(super) struct GuestCode<W> {
    pub(super) engine: Arc<GuestEngine>,
    /// Prepared instance that calls begin from.
    pub(super) world: W,
}

impl<W> LoadedGuest<W> {
    pub(super) fn new(digest: GuestDigest, code: GuestCode<W>) -> anyhow::Result<Self> {
        Ok(Self {
            code: ArcSwap::from_pointee(code),
            digest,
            tally: CallTally::new()?,
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
pub(super) struct ServingGuest<W> {
    pub(super) guest: Arc<LoadedGuest<W>>,
    /// Guest that is called where this one fails, while it is on trial.
    pub(super) standby: Option<Arc<LoadedGuest<W>>>,
}

/// Reason why there is no guest to call.
#[derive(Debug)]
pub(super) enum GuestNotReady {
    /// The guest is still being loaded.
    Loading,
    /// The guest cannot be loaded.
    Failed(anyhow::Error),
}

#[derive(Clone, Debug)]
enum GuestLoadState {
    Loading,
    Loaded,
    Failed(Arc<str>),
}

/// Slot for the guest of one world. A call keeps its guest until it ends; later calls see the new one.
pub(super) struct GuestSlot<W> {
    current: ArcSwapOption<ServingGuest<W>>,
    progress: watch::Sender<GuestLoadState>,
}

impl<W> GuestSlot<W> {
    pub(super) fn new() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            progress: watch::Sender::new(GuestLoadState::Loading),
        }
    }

    /// Returns the guest that serves; waits until there is one.
    pub(super) async fn serving(&self) -> Result<Arc<ServingGuest<W>>, GuestNotReady> {
        if let Some(serving) = self.current() {
            return Ok(serving);
        }
        let mut progress = self.progress.subscribe();
        let known = progress.wait_for(|now| !matches!(now, GuestLoadState::Loading));
        let known = match tokio::time::timeout(LOADING_TIMEOUT, known).await {
            Err(_) | Ok(Err(_)) => return Err(GuestNotReady::Loading),
            Ok(Ok(known)) => known.clone(),
        };
        if let GuestLoadState::Failed(why) = known {
            return Err(GuestNotReady::Failed(anyhow::anyhow!("{why}")));
        }
        self.current().ok_or(GuestNotReady::Loading)
    }

    /// Returns the guest that serves now.
    pub(super) fn current(&self) -> Option<Arc<ServingGuest<W>>> {
        self.current.load_full()
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.current.load().is_some()
    }

    pub(super) fn digest(&self) -> Option<GuestDigest> {
        self.current
            .load()
            .as_ref()
            .map(|serving| serving.guest.digest)
    }

    /// Returns the guest that serves, and its usage.
    pub(super) fn usage(&self) -> Option<(GuestDigest, GuestUsage)> {
        let now = self.current()?;
        Some((now.guest.digest, now.guest.tally.usage()))
    }

    /// Returns the loaded guests.
    pub(super) fn loaded_guests(&self) -> Vec<Arc<LoadedGuest<W>>> {
        let serving = self.current();
        let both = serving.iter().flat_map(|serving| {
            let standby = serving.standby.as_ref();
            [Some(&serving.guest), standby].into_iter().flatten()
        });
        both.cloned().collect()
    }

    /// Replaces the serving guest; returns whether it is another one than before.
    pub(super) fn swap(
        &self,
        guest: Arc<LoadedGuest<W>>,
        standby: Option<Arc<LoadedGuest<W>>>,
    ) -> bool {
        let digest = guest.digest;
        let left = self
            .current
            .swap(Some(Arc::new(ServingGuest { guest, standby })));
        self.progress.send_replace(GuestLoadState::Loaded);
        left.is_some_and(|left| left.guest.digest != digest)
    }

    /// Sets the standby of a guest, if that guest still serves.
    pub(super) fn set_standby(
        &self,
        guest: &Arc<LoadedGuest<W>>,
        standby: Option<Arc<LoadedGuest<W>>>,
    ) {
        let next = Some(Arc::new(ServingGuest {
            guest: Arc::clone(guest),
            standby,
        }));
        while let Some(now) = self.current().filter(|now| Arc::ptr_eq(&now.guest, guest)) {
            let found = self.current.compare_and_swap(&now, next.clone());
            if found.as_ref().is_some_and(|found| Arc::ptr_eq(found, &now)) {
                return;
            }
        }
    }

    /// Replaces a failed guest by its standby, if the failed one still serves; returns whether it did.
    pub(super) fn roll_back_to_standby(&self, failed: &Arc<ServingGuest<W>>) -> bool {
        let Some(standby) = &failed.standby else {
            return false;
        };
        let next = Some(Arc::new(ServingGuest {
            guest: Arc::clone(standby),
            standby: None,
        }));
        let found = self.current.compare_and_swap(failed, next);
        found
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, failed))
    }

    /// Records that no guest could be loaded. A serving guest goes on.
    pub(super) fn mark_failed(&self, why: &str) {
        self.progress.send_if_modified(|progress| {
            let waiting = !matches!(progress, GuestLoadState::Loaded);
            if waiting {
                *progress = GuestLoadState::Failed(why.into());
            }
            waiting
        });
    }
}
