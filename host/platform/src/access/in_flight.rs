//! Keys in flight: while the first request with a key runs, a second one is refused.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::problem::{Problem, ProblemCode};

/// Keys whose first request is running, as their callers tell them apart.
#[derive(Clone, Debug)]
pub struct InFlightKeys<K>(Arc<Mutex<HashSet<K>>>);

/// Marks the first request with a key as running, until this is dropped.
#[derive(Debug)]
pub struct InFlightGuard<K: Eq + Hash> {
    key: K,
    running: InFlightKeys<K>,
}

/// Error of a second request while the first one with its key runs.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the first request with this key is running")]
pub struct KeyInFlight;

impl From<KeyInFlight> for Problem {
    fn from(KeyInFlight: KeyInFlight) -> Self {
        Self::new(
            ProblemCode::IdempotencyConflict,
            "The first request with this Idempotency-Key is still running. Repeat it in a second.",
        )
        .retry_soon()
    }
}

impl<K> Default for InFlightKeys<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> InFlightKeys<K> {
    /// Whether no first request is running.
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> InFlightKeys<K> {
    /// Begins the first request with a key.
    ///
    /// # Errors
    /// While another one runs.
    pub fn begin(&self, key: K) -> Result<InFlightGuard<K>, KeyInFlight> {
        if !self.lock().insert(key.clone()) {
            return Err(KeyInFlight);
        }
        Ok(InFlightGuard {
            key,
            running: self.clone(),
        })
    }
}

impl<K: Eq + Hash> InFlightGuard<K> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Eq + Hash> Drop for InFlightGuard<K> {
    fn drop(&mut self) {
        self.running.lock().remove(&self.key);
    }
}
