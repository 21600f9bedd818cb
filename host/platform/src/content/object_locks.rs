//! Locks by object: tasks wait only for others that use the same object.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use super::Digest;

/// The locks in use, by the name of an object.
#[derive(Debug)]
pub(super) struct ObjectLocks<K = Digest>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for ObjectLocks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> ObjectLocks<K> {
    /// Locks an object until the guard is dropped.
    pub(super) async fn lock(&self, object: &K) -> OwnedMutexGuard<()> {
        let turn = self.lock_of(object);
        turn.lock_owned().await
    }

    fn lock_of(&self, object: &K) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(object).and_then(Weak::upgrade) {
            return turn;
        }
        // Unused entries are removed, so that there is at most one more entry than locks in use.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(*object, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_is_at_one_object_keeps_nobody_from_another() {
        let turns: ObjectLocks = ObjectLocks::default();
        let one = Digest::of(b"one");
        let turn = turns.lock(&one).await;
        for byte in 0..64 {
            let other = turns.lock(&Digest::of(&[byte])).now_or_never();
            assert!(other.is_some());
        }
        let next = turns.lock(&one);
        tokio::pin!(next);
        assert!(next.as_mut().now_or_never().is_none());
        drop(turn);
        assert!(next.now_or_never().is_some());
        assert!(turns.0.lock().unwrap().len() <= 2);
    }
}
