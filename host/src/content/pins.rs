//! Pins: what publishes rely on before a committed row refers to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Digest;

/// How many publishes rely on an object.
#[derive(Debug, Default)]
pub(super) struct Pins(Mutex<HashMap<Digest, usize>>);

/// Keeps an object from the collector until the row that refers to it is committed.
#[derive(Debug)]
pub struct Pin {
    pins: Arc<Pins>,
    digest: Digest,
}

impl Pin {
    /// The name of the pinned object.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Drop for Pin {
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

impl Pins {
    /// Pins an object.
    pub(super) fn pin(self: &Arc<Self>, digest: Digest) -> Pin {
        *self.lock().entry(digest).or_default() += 1;
        Pin {
            pins: Arc::clone(self),
            digest,
        }
    }

    /// Whether anybody relies on an object.
    pub(super) fn is_pinned(&self, digest: &Digest) -> bool {
        self.lock().contains_key(digest)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
