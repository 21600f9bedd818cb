//! Large objects in memory: concurrent readers share one copy, which lives as long as the last of them needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use super::Digest;

/// Smallest object that is shared, in bytes.
const LARGE_BYTES: usize = 256 * 1024;

/// Weak references to the large objects in memory.
#[derive(Debug, Default)]
pub(super) struct WeakObjectCache(Mutex<HashMap<Digest, Weak<Bytes>>>);

/// Owner of an object's bytes: every slice keeps it alive.
struct SharedObjectBytes(Arc<Bytes>);

impl AsRef<[u8]> for SharedObjectBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Whether readers share the one copy of an object of so many bytes.
pub(super) fn is_large(bytes: usize) -> bool {
    bytes >= LARGE_BYTES
}

impl WeakObjectCache {
    /// Returns an object that is in memory already.
    pub(super) fn get(&self, digest: &Digest) -> Option<Bytes> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = held.get(digest)?.upgrade()?;
        Some(Bytes::from_owner(SharedObjectBytes(object)))
    }

    /// Registers an object, so that other readers find it while it or a slice of it lives.
    pub(super) fn share(&self, digest: Digest, object: Bytes) -> Bytes {
        if !is_large(object.len()) {
            return object;
        }
        let object = Arc::new(object);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dead entries are removed, so that there is at most one more entry than large objects in memory.
        held.retain(|_, object| object.strong_count() > 0);
        held.insert(digest, Arc::downgrade(&object));
        Bytes::from_owner(SharedObjectBytes(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_a_large_object_until_the_last_is_done() {
        let held = WeakObjectCache::default();
        let large = Bytes::from(vec![7; LARGE_BYTES]);
        let digest = Digest::of(&large);
        let first = held.share(digest, large).slice(10..20);
        let second = held.get(&digest).unwrap();
        assert_eq!(second.slice(10..20).as_ptr(), first.as_ptr());
        drop(second);
        assert!(held.get(&digest).is_some(), "a slice holds it");
        drop(first);
        assert!(held.get(&digest).is_none());
        held.share(Digest::of(b"small"), Bytes::from_static(b"small"));
        assert!(held.get(&Digest::of(b"small")).is_none());
    }
}
