//! Ids that count once, and were used. Each is remembered as long as it could be sent again.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use svc_base::clock::Timestamp;

/// Maximum number of ids that are remembered; beyond it the oldest is forgotten.
const MAX_IDS: usize = 100_000;

/// Used ids of one kind.
#[derive(Debug)]
pub(super) struct UsedIds {
    /// Time for which an id is valid, in milliseconds.
    lifetime_ms: i64,
    held: Mutex<HeldIds>,
}

#[derive(Debug, Default)]
struct HeldIds {
    ids: HashSet<String>,
    by_time: BTreeSet<(i64, String)>,
}

impl UsedIds {
    /// Creates an empty memory of ids that are valid for some milliseconds.
    pub(super) fn new(lifetime_ms: i64) -> Self {
        Self {
            lifetime_ms,
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HeldIds> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an id is used.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.lock().ids.contains(id)
    }

    /// Marks an id, which was made at `at`, as used; returns whether it was unused.
    pub(super) fn mark(&self, id: &str, at: i64, now: Timestamp) -> bool {
        let mut held = self.lock();
        while let Some((at, id)) = held.by_time.first().cloned() {
            if now.0 - at < self.lifetime_ms && held.ids.len() < MAX_IDS {
                break;
            }
            held.by_time.pop_first();
            held.ids.remove(&id);
        }
        let new = held.ids.insert(id.to_owned());
        if new {
            held.by_time.insert((at, id.to_owned()));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_counts_once_and_is_forgotten_when_it_is_old() {
        let used = UsedIds::new(600_000);
        assert!(used.mark("a", 1_000, Timestamp(2_000)));
        assert!(!used.mark("a", 1_000, Timestamp(3_000)));
        assert!(used.mark("b", 1_000, Timestamp(3_000)));
        assert!(used.contains("a") && !used.contains("c"));
        assert!(used.mark("c", 700_000, Timestamp(700_000)));
        assert_eq!(used.lock().ids.len(), 1);
    }
}
