//! The guest that serves a world, and the one that stands by: replaced together while calls run.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::watch;

use super::engine::GuestEngine;
use super::tally::{GuestUsage, Tally};
use super::values::GuestDigest;

/// How long a caller waits for the guests at the start.
const LOADING_TIMEOUT: Duration = Duration::from_secs(60);

/// A guest that is loaded.
pub(super) struct LoadedGuest<W> {
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

impl<W> LoadedGuest<W> {
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
pub(super) struct ServingGuest<W> {
    pub(super) guest: Arc<LoadedGuest<W>>,
    /// Guest that is asked where this one fails, for as long as it is on trial.
    pub(super) standby: Option<Arc<LoadedGuest<W>>>,
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
enum LoadState {
    Loading,
    Loaded,
    Failed(Arc<str>),
}

/// The guest of one world. Calls hold the guest that they began with; a new one serves the calls that come after.
pub(super) struct GuestSlot<W> {
    current: ArcSwapOption<ServingGuest<W>>,
    progress: watch::Sender<LoadState>,
}

impl<W> GuestSlot<W> {
    pub(super) fn new() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            progress: watch::Sender::new(LoadState::Loading),
        }
    }

    /// Returns the guest that serves; waits until there is one.
    pub(super) async fn serving(&self) -> Result<Arc<ServingGuest<W>>, NotReady> {
        if let Some(serving) = self.current() {
            return Ok(serving);
        }
        let mut progress = self.progress.subscribe();
        let known = progress.wait_for(|now| !matches!(now, LoadState::Loading));
        let known = match tokio::time::timeout(LOADING_TIMEOUT, known).await {
            Err(_) | Ok(Err(_)) => return Err(NotReady::Loading),
            Ok(Ok(known)) => known.clone(),
        };
        if let LoadState::Failed(why) = known {
            return Err(NotReady::Failed(anyhow::anyhow!("{why}")));
        }
        self.current().ok_or(NotReady::Loading)
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

    /// Returns the guest that serves, and what it has used.
    pub(super) fn usage(&self) -> Option<(GuestDigest, GuestUsage)> {
        let now = self.current()?;
        Some((now.guest.digest, now.guest.tally.usage()))
    }

    /// The guests that are loaded.
    pub(super) fn loaded_guests(&self) -> Vec<Arc<LoadedGuest<W>>> {
        let serving = self.current();
        let both = serving.iter().flat_map(|serving| {
            let standby = serving.standby.as_ref();
            [Some(&serving.guest), standby].into_iter().flatten()
        });
        both.cloned().collect()
    }

    /// Lets a guest serve; returns whether it is another than before.
    pub(super) fn swap(
        &self,
        guest: Arc<LoadedGuest<W>>,
        standby: Option<Arc<LoadedGuest<W>>>,
    ) -> bool {
        let digest = guest.digest;
        let left = self
            .current
            .swap(Some(Arc::new(ServingGuest { guest, standby })));
        self.progress.send_replace(LoadState::Loaded);
        left.is_some_and(|left| left.guest.digest != digest)
    }

    /// Says who stands by for a guest, if that serves still.
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

    /// Lets the guest that stands by serve instead, if who failed still serves; returns whether it does so now.
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

    /// Notes that nothing can be loaded. What serves goes on serving.
    pub(super) fn mark_failed(&self, why: &str) {
        self.progress.send_if_modified(|progress| {
            let waiting = !matches!(progress, LoadState::Loaded);
            if waiting {
                *progress = LoadState::Failed(why.into());
            }
            waiting
        });
    }
}
