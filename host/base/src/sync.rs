//! Locks of the standard library, taken without a word about poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whose value stays in use after a holder has panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
