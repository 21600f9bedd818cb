//! Memory of answers that are being sent: each is counted once, however many clients it goes to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes of one backend's answers above which its large answers wait.
const MOST_OF_BACKEND: usize = 32 << 20;
/// Bytes of all backends' answers above which large answers wait.
const MOST_OF_ALL: usize = 256 << 20;
/// Bytes of its own answers up to which a backend does not wait because of other backends.
const LITTLE: usize = 8 << 20;

/// Count of the bytes of one backend's answers in memory.
#[derive(Debug, Default)]
pub(super) struct Budget {
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
    /// Whether a large answer waits for room.
    wanted: AtomicBool,
}

/// Answer that is counted until it is dropped.
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
    /// Creates the budget of one backend, as a part of `all`.
    pub(super) fn of(all: &Arc<AtomicUsize>) -> Self {
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
        Bytes::from_owner(Counted {
            bytes,
            own: Arc::clone(&self.own),
            all: Arc::clone(&self.all),
        })
    }

    /// Whether a large answer may be sent; if not, records that one waits.
    pub(super) fn has_room(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        let all = self.all.load(Ordering::Relaxed);
        let has_room = own <= MOST_OF_BACKEND && (all <= MOST_OF_ALL || own <= LITTLE);
        self.wanted.store(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Whether a large answer waits for room.
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
