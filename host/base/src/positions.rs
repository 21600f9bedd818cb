//! The two steps of a commit. First it is made, which gives it a position; then it is acknowledged. Callers are answered after
//! the second step.
//!
//! A single machine acknowledges a commit when it is synced. Where copies elsewhere must have it first, a [`Durable`] acknowledges it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;

/// Longest time that an answer waits until what it shows is acknowledged, and may be shown.
pub const MAX_VISIBLE_WAIT: Duration = Duration::from_secs(10);

/// Number of a commit in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitPosition(pub u64);

impl CommitPosition {
    /// Returns the position after one more commit.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Receives each position up to which commits are acknowledged.
pub type AcknowledgeFn = Box<dyn Fn(CommitPosition) + Send + Sync>;

/// Acknowledges a database's commits later than the machine that makes them, such as after copying them to others.
pub trait Durable: Send + Sync {
    /// Takes over the commits up to `position`, which the database's log has. `at` is the time of the last of them. The database's
    /// writer calls this for all commits in their order, and copies the log only afterwards. Does not wait for the acknowledgement.
    fn append(&self, position: CommitPosition, at: Timestamp);

    /// Sets the function that is called with each acknowledged position; positions never go back. Dropping it means that nothing more
    /// will be acknowledged. A writer that is being closed waits for one or the other.
    fn on_acknowledged(&self, acknowledge: AcknowledgeFn);

    /// Whether a new write may begin: not if too much is unacknowledged, or for too long.
    fn has_room(&self) -> bool {
        true
    }

    /// Whether an answer may show the database now. Another machine may write it already if not.
    fn may_answer(&self) -> bool {
        true
    }
}

/// Checksum of the state of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(pub u64);

/// A commit as other machines get it. It continues the state `before`, and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the commit.
    pub position: CommitPosition,
    /// Time of the commit.
    pub at: Timestamp,
    /// Checksum of the state before it.
    pub before: Checksum,
    /// Checksum of the state after it.
    pub after: Checksum,
    /// Pages that it wrote, compressed.
    pub body: Arc<[u8]>,
    /// Changes that it has noted for memories that follow the control database; empty for other databases. They travel with the pages,
    /// so that whoever applies the commit knows them, also when the machine that made it is dead.
    pub changes: Arc<[u8]>,
}

/// Effects of commits that are made and not acknowledged yet, such as answers to callers.
#[derive(Debug)]
pub struct DeferredCommitEffects<T>(VecDeque<(CommitPosition, T)>);

impl<T> Default for DeferredCommitEffects<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> DeferredCommitEffects<T> {
    /// Queues the effect of a commit at `position`. An attempt that changed nothing queues its effect at the last position it has
    /// read.
    pub fn push(&mut self, position: CommitPosition, follows: T) {
        self.0.push_back((position, follows));
    }

    /// Whether no effect waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns the effects up to `position`, in the order of the commits.
    pub fn take_acknowledged(&mut self, position: CommitPosition) -> impl Iterator<Item = T> {
        std::iter::from_fn(move || {
            let next = self.0.pop_front_if(|(waits_for, _)| *waits_for <= position);
            next.map(|(_, follows)| follows)
        })
    }

    /// Moves the effects of later commits to the end.
    pub fn append(&mut self, later: &mut Self) {
        self.0.append(&mut later.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_commit_waits_for_its_position_and_keeps_its_order() {
        let mut waiting = DeferredCommitEffects::default();
        let one = CommitPosition::default().next();
        for (position, name) in [(one, "a"), (one, "b"), (one.next(), "c")] {
            waiting.push(position, name);
        }
        assert_eq!(
            waiting.take_acknowledged(CommitPosition::default()).count(),
            0
        );
        assert!(waiting.take_acknowledged(one).eq(["a", "b"]));
        assert_eq!(waiting.take_acknowledged(one).count(), 0);
        assert!(!waiting.is_empty());
        assert!(waiting.take_acknowledged(CommitPosition(9)).eq(["c"]));
        assert!(waiting.is_empty());
    }

    #[test]
    fn what_is_moved_follows_what_waits_already() {
        let mut waiting = DeferredCommitEffects::default();
        waiting.push(CommitPosition(1), "a");
        let mut later = DeferredCommitEffects::default();
        later.push(CommitPosition(2), "b");
        waiting.append(&mut later);
        assert!(waiting.take_acknowledged(CommitPosition(9)).eq(["a", "b"]));
        assert_eq!(later.take_acknowledged(CommitPosition(9)).count(), 0);
    }
}
