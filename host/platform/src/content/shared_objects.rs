//! Objects in memory: concurrent readers share one copy, which lives as long as the last of them needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use super::Digest;

/// Smallest object that is shared, in bytes: a smaller one costs no more than the request of its reader.
const SHARED_BYTES: usize = 1 << 10;
/// Smallest object that is counted, in bytes.
const COUNTED_BYTES: usize = 64 << 10;
/// Least number of entries at which dead ones are removed.
const LEAST_TIDIED: usize = 64;

/// Weak references to the shared objects in memory.
#[derive(Debug, Default)]
pub(super) struct WeakObjectCache(Mutex<WeakObjects>);

#[derive(Debug, Default)]
struct WeakObjects {
    by_digest: HashMap<Digest, Weak<Bytes>>,
    /// Number of entries at which dead ones are removed.
    tidied_at: usize,
}

/// Owner of an object's bytes: every slice keeps it alive.
struct SharedObjectBytes(Arc<Bytes>);

impl AsRef<[u8]> for SharedObjectBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Whether an object of so many bytes counts while it is in memory.
pub(super) fn is_counted(bytes: usize) -> bool {
    bytes >= COUNTED_BYTES
}

impl WeakObjectCache {
    /// Returns an object that is in memory already.
    pub(super) fn get(&self, digest: &Digest) -> Option<Bytes> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = held.by_digest.get(digest)?.upgrade()?;
        Some(Bytes::from_owner(SharedObjectBytes(object)))
    }

    /// Registers an object, so that other readers find it while it or a slice of it lives.
    pub(super) fn share(&self, digest: Digest, object: Bytes) -> Bytes {
        if object.len() < SHARED_BYTES {
            return object;
        }
        let object = Arc::new(object);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dead entries are removed, so that there are at most about twice as many entries as shared objects in memory.
        if held.by_digest.len() >= held.tidied_at {
            held.by_digest.retain(|_, object| object.strong_count() > 0);
            held.tidied_at = (2 * held.by_digest.len()).max(LEAST_TIDIED);
        }
        held.by_digest.insert(digest, Arc::downgrade(&object));
        Bytes::from_owner(SharedObjectBytes(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_an_object_until_the_last_is_done() {
        let held = WeakObjectCache::default();
        let large = Bytes::from(vec![7; SHARED_BYTES]);
        let digest = Digest::of(&large);
        let first = held.share(digest, large).slice(10..20);
        let second = held.get(&digest).unwrap();
        assert_eq!(second.slice(10..20).as_ptr(), first.as_ptr());
        drop(second);
        assert!(held.get(&digest).is_some(), "a slice holds it");
        drop(first);
        assert!(held.get(&digest).is_none());
        let small = held.share(Digest::of(b"small"), Bytes::from_static(b"small"));
        assert!(held.get(&Digest::of(&small)).is_none());
    }

    #[test]
    fn objects_that_are_gone_leave_few_entries() {
        let held = WeakObjectCache::default();
        let object = |number: usize| Bytes::from(vec![7; SHARED_BYTES + number]);
        let living = held.share(Digest::of(&object(0)), object(0));
        for number in 1..200 {
            drop(held.share(Digest::of(&object(number)), object(number)));
        }
        assert!(held.0.lock().unwrap().by_digest.len() <= LEAST_TIDIED);
        assert!(held.get(&Digest::of(&living)).is_some());
    }
}
