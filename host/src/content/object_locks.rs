//! Turns of those who are at one object: nobody waits for another object's store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use super::Digest;

/// The objects that somebody is at, each with its lock.
#[derive(Debug, Default)]
pub(super) struct ObjectLocks(Mutex<HashMap<Digest, Weak<tokio::sync::Mutex<()>>>>);

impl ObjectLocks {
    /// Waits for the turn at an object, which ends when what is returned is dropped.
    pub(super) async fn lock(&self, digest: &Digest) -> OwnedMutexGuard<()> {
        let turn = self.lock_of(digest);
        turn.lock_owned().await
    }

    fn lock_of(&self, digest: &Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(digest).and_then(Weak::upgrade) {
            return turn;
        }
        // So that there are never more entries than those who are at an object, and one.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(*digest, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_is_at_one_object_keeps_nobody_from_another() {
        let turns = ObjectLocks::default();
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
