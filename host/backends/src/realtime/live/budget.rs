//! Memory of answers that are being sent: each is counted once, however many clients it goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes of one backend's answers above which its large answers wait.
const MAX_BACKEND_BYTES: usize = 32 << 20;
/// Bytes of all backends' answers above which large answers wait.
const MAX_TOTAL_BYTES: usize = 256 << 20;
/// Bytes of its own answers up to which a backend does not wait because of other backends.
const GUARANTEED_BACKEND_BYTES: usize = 8 << 20;

/// Count of the bytes of one backend's answers in memory.
#[derive(Debug, Default)]
pub(super) struct AnswerBudget {
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
    /// Whether a large answer waits for room.
    is_awaited: AtomicBool,
}

/// Answer that is counted until it is dropped.
struct CountedAnswer {
    bytes: Bytes,
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for CountedAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        for count in [&self.own, &self.all] {
            count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        }
    }
}

impl AnswerBudget {
    /// Creates the budget of one backend, as a part of `all`.
    pub(super) fn part_of(all: &Arc<AtomicUsize>) -> Self {
        Self {
            all: Arc::clone(all),
            ..Self::default()
        }
    }

    /// Counts an answer until it is dropped.
    pub(super) fn count(&self, bytes: Bytes) -> Bytes {
        for count in [&self.own, &self.all] {
            count.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        Bytes::from_owner(CountedAnswer {
            bytes,
            own: Arc::clone(&self.own),
            all: Arc::clone(&self.all),
        })
    }

    /// Whether a large answer may be sent; if not, records that one waits.
    pub(super) fn has_room(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed);
        let has_room =
            own <= MAX_BACKEND_BYTES && (all <= MAX_TOTAL_BYTES || own <= GUARANTEED_BACKEND_BYTES);
        self.is_awaited.store(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Whether a large answer waits for room.
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
