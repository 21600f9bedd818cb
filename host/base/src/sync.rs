//! Locking of standard mutexes without poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if an earlier holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
