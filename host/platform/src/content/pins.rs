//! Pins: references of running publishes to objects that no committed row names yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Digest;

/// Number of pins by object.
#[derive(Debug, Default)]
pub(super) struct PinCounts(Mutex<HashMap<Digest, usize>>);

/// Protects an object from the collector until the row that refers to it is committed.
#[derive(Debug)]
pub struct ObjectPin {
    pins: Arc<PinCounts>,
    digest: Digest,
}

impl ObjectPin {
    /// Returns the digest of the pinned object.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Drop for ObjectPin {
    fn drop(&mut self) {
        let mut pins = self.pins.lock();
        if let Some(count) = pins.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.digest);
            }
        }
    }
}

impl PinCounts {
    /// Pins an object.
    pub(super) fn pin(self: &Arc<Self>, digest: Digest) -> ObjectPin {
        *self.lock().entry(digest).or_default() += 1;
        ObjectPin {
            pins: Arc::clone(self),
            digest,
        }
    }

    pub(super) fn is_pinned(&self, digest: &Digest) -> bool {
        self.lock().contains_key(digest)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
