//! Slots: how much of something there may be at once, in all and of each kind.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use svc_base::CountsByKey;
use svc_base::sync::lock;

/// Slots that are given out and come back.
#[derive(Debug)]
pub(super) struct Slots<K> {
    per_key: u64,
    total: u64,
    held: Mutex<HeldSlots<K>>,
}

/// Numbers of slots that are out.
#[derive(Debug)]
struct HeldSlots<K> {
    all: u64,
    by_key: CountsByKey<K>,
}

/// A slot. Dropping it gives it back.
pub(super) struct Slot<K: Copy + Eq + Hash> {
    slots: Arc<Slots<K>>,
    key: K,
}

impl<K: Copy + Eq + Hash> fmt::Debug for Slot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<K: Copy + Eq + Hash> Slots<K> {
    /// Creates so many slots, of which each key may have a part.
    pub(super) fn new(total: u64, per_key: u64) -> Arc<Self> {
        Arc::new(Self {
            per_key,
            total,
            held: Mutex::new(HeldSlots {
                all: 0,
                by_key: CountsByKey::default(),
            }),
        })
    }

    /// Takes a slot; `None` if too many are out.
    pub(super) fn take(self: &Arc<Self>, key: K) -> Option<Slot<K>> {
        let mut held = lock(&self.held);
        if held.all >= self.total || held.by_key.count(&key) >= self.per_key {
            return None;
        }
        held.all += 1;
        held.by_key.increment(key);
        Some(Slot {
            slots: Arc::clone(self),
            key,
        })
    }
}

impl<K: Copy + Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut held = lock(&self.slots.held);
        held.all = held.all.saturating_sub(1);
        held.by_key.decrement(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back() {
        let slots = Slots::new(3, 2);
        let mut held = Vec::new();
        for (key, is_given) in [(1, true), (1, true), (1, false), (2, true), (3, false)] {
            let slot = slots.take(key);
            assert_eq!(slot.is_some(), is_given, "{key}");
            held.extend(slot);
        }
        held.clear();
        assert!(slots.take(1).is_some());
        assert_eq!(lock(&slots.held).by_key.keys(), 0);
    }
}
