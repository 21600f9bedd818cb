//! Keys whose first request is running: a second one is refused meanwhile.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::problem::{Problem, ProblemCode};

/// Keys whose first request is running, as their callers tell them apart.
#[derive(Clone, Debug)]
pub struct RunningKeys<K>(Arc<Mutex<HashSet<K>>>);

/// Key whose first request is running, until this is dropped.
#[derive(Debug)]
pub struct RunningKey<K: Eq + Hash> {
    key: K,
    running: RunningKeys<K>,
}

/// The first request with a key is running.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the first request with this key is running")]
pub struct KeyIsRunning;

impl From<KeyIsRunning> for Problem {
    fn from(KeyIsRunning: KeyIsRunning) -> Self {
        Self::new(
            ProblemCode::IdempotencyConflict,
            "The first request with this Idempotency-Key is still running. Repeat it in a second.",
        )
        .retry_soon()
    }
}

impl<K> Default for RunningKeys<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> RunningKeys<K> {
    /// Whether no first request is running.
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> RunningKeys<K> {
    /// Begins the first request with a key.
    ///
    /// # Errors
    /// While another one runs.
    pub fn begin(&self, key: K) -> Result<RunningKey<K>, KeyIsRunning> {
        if !self.lock().insert(key.clone()) {
            return Err(KeyIsRunning);
        }
        Ok(RunningKey {
            key,
            running: self.clone(),
        })
    }
}

impl<K: Eq + Hash> RunningKey<K> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Eq + Hash> Drop for RunningKey<K> {
    fn drop(&mut self) {
        self.running.lock().remove(&self.key);
    }
}
