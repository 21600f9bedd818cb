//! The two steps of a commit: it is made, which gives it a position, and it is acknowledged. What follows it, above all the
//! answer to its caller, follows the second step.
//!
//! One machine acknowledges a commit when it is synced.

use std::collections::VecDeque;

/// Number of a database's last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitPosition(pub u64);

impl CommitPosition {
    /// Returns the position after one more commit.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Consequences of commits that are made and not acknowledged yet.
#[derive(Debug)]
pub struct UnacknowledgedCommits<T>(VecDeque<(CommitPosition, T)>);

impl<T> Default for UnacknowledgedCommits<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> UnacknowledgedCommits<T> {
    /// Keeps what follows a commit that led to `position`; or an attempt that changed nothing, and has seen all up to there.
    pub fn push(&mut self, position: CommitPosition, follows: T) {
        self.0.push_back((position, follows));
    }

    /// Takes out what waits for positions up to `position`, in the order of the commits.
    pub fn take_acknowledged(&mut self, position: CommitPosition) -> impl Iterator<Item = T> {
        std::iter::from_fn(move || {
            let next = self.0.pop_front_if(|(waits_for, _)| *waits_for <= position);
            next.map(|(_, follows)| follows)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_commit_waits_for_its_position_and_keeps_its_order() {
        let mut waiting = UnacknowledgedCommits::default();
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
        assert!(waiting.take_acknowledged(CommitPosition(9)).eq(["c"]));
    }
}
