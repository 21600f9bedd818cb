//! The memory of answers that are on their way: each counted once, however many clients it goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that the answers of one backend may take before its large ones wait.
const MOST_OF_BACKEND: usize = 32 << 20;
/// Bytes that the answers of all backends may take before large ones wait.
const MOST_OF_ALL: usize = 256 << 20;
/// Bytes of its own answers with which a backend does not wait for those of others.
const LITTLE: usize = 8 << 20;

/// The answers of a backend that somebody still holds.
#[derive(Debug, Default)]
pub(super) struct Budget {
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
    /// Whether somebody waits for room.
    wanted: AtomicBool,
}

/// An answer that is counted for as long as somebody holds it.
struct Counted {
    bytes: Bytes,
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        for count in [&self.own, &self.all] {
            count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        }
    }
}

impl Budget {
    /// A backend's part of what `all` take.
    pub(super) fn of(all: &Arc<AtomicUsize>) -> Self {
        Self {
            all: Arc::clone(all),
            ..Self::default()
        }
    }

    /// Counts an answer from now on.
    pub(super) fn count(&self, bytes: Bytes) -> Bytes {
        for count in [&self.own, &self.all] {
            count.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        Bytes::from_owner(Counted {
            bytes,
            own: Arc::clone(&self.own),
            all: Arc::clone(&self.all),
        })
    }

    /// Whether a large answer may be sent; that one wants to be is noted.
    pub(super) fn has_room(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed);
        let has_room = own <= MOST_OF_BACKEND && (all <= MOST_OF_ALL || own <= LITTLE);
        self.wanted.store(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Whether somebody waits for room.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_for_as_long_as_somebody_holds_it() {
        let all = Arc::default();
        let (budget, other) = (Budget::of(&all), Budget::of(&all));
        let answer = budget.count(Bytes::from(vec![0; MOST_OF_BACKEND]));
        let copies = [answer.clone(), answer.slice(..10), answer];
        assert_eq!(all.load(Ordering::Relaxed), MOST_OF_BACKEND);
        assert!(budget.has_room() && !budget.is_wanted());
        let one_more = budget.count(Bytes::from_static(b"x"));
        assert!(!budget.has_room() && budget.is_wanted() && other.has_room());
        drop(copies);
        assert!(budget.has_room() && !budget.is_wanted());
        drop(one_more);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
