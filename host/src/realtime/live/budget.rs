//! The memory of answers that are on their way: each counted once, however many clients it goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that the answers of one backend may take before its large ones wait.
const MAX_BACKEND_BYTES: usize = 32 << 20;
/// Bytes that the answers of all backends may take before large ones wait.
const MAX_TOTAL_BYTES: usize = 256 << 20;
/// Bytes of its own answers with which a backend does not wait for those of others.
const GUARANTEED_BACKEND_BYTES: usize = 8 << 20;

/// The answers of a backend that somebody still holds.
#[derive(Debug, Default)]
pub(super) struct AnswerBudget {
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
    /// Whether somebody waits for room.
    is_awaited: AtomicBool,
}

/// An answer that is counted for as long as somebody holds it.
struct CountedBytes {
    bytes: Bytes,
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        for count in [&self.own, &self.all] {
            count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        }
    }
}

impl AnswerBudget {
    /// A backend's part of what `all` take.
    pub(super) fn part_of(all: &Arc<AtomicUsize>) -> Self {
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
        Bytes::from_owner(CountedBytes {
            bytes,
            own: Arc::clone(&self.own),
            all: Arc::clone(&self.all),
        })
    }

    /// Whether a large answer may be sent; that one wants to be is noted.
    pub(super) fn has_room(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed);
        let has_room =
            own <= MAX_BACKEND_BYTES && (all <= MAX_TOTAL_BYTES || own <= GUARANTEED_BACKEND_BYTES);
        self.is_awaited.store(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Whether somebody waits for room.
    pub(super) fn has_waiter(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_for_as_long_as_somebody_holds_it() {
        let all = Arc::default();
        let (budget, other) = (AnswerBudget::part_of(&all), AnswerBudget::part_of(&all));
        let answer = budget.count(Bytes::from(vec![0; MAX_BACKEND_BYTES]));
        let copies = [answer.clone(), answer.slice(..10), answer];
        assert_eq!(all.load(Ordering::Relaxed), MAX_BACKEND_BYTES);
        assert!(budget.has_room() && !budget.has_waiter());
        let one_more = budget.count(Bytes::from_static(b"x"));
        assert!(!budget.has_room() && budget.has_waiter() && other.has_room());
        drop(copies);
        assert!(budget.has_room() && !budget.has_waiter());
        drop(one_more);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
