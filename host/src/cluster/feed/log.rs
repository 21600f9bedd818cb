//! The feed without I/O: the commits that its owner has named, who has them, and when callers may be answered. Times are handed in,
//! and are of the owner's own clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use svc_base::positions::{CommitPosition, Entry};
use svc_ledger::RunId;

use super::message::FeedAnswer;

/// Time for which a follower is fresh, from sending a poll that was answered.
pub(super) const FRESH_FOR: Duration = Duration::from_secs(1);
/// Time for which the owner takes it for fresh, from receiving that poll: two clocks do not run equally fast.
pub(super) const TAKEN_FOR_FRESH: Duration = Duration::from_millis(1020);
/// Time after its last poll from which a follower is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Most commits that are kept for followers, and their bytes. Whoever is further behind reads them from the ledger.
const MAX_KEPT: usize = 4096;
const MAX_KEPT_BYTES: usize = 16 << 20;
/// Bytes of commits that share an answer, if there are several.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Commits of an owner's feed, and its followers.
#[derive(Debug)]
pub(super) struct FeedLog {
    /// Last commit that the ledger has acknowledged.
    last: CommitPosition,
    /// Last ones of these commits, without a gap.
    kept: VecDeque<Entry>,
    kept_bytes: usize,
    followers: BTreeMap<RunId, KnownFollower>,
}

#[derive(Debug, Default)]
struct KnownFollower {
    /// Last commit that it has.
    has: CommitPosition,
    /// Time of its last poll.
    polled: Duration,
    /// Last commit that each answer has named, with the end of the answer's second. Both grow.
    answers: VecDeque<(CommitPosition, Duration)>,
}

impl KnownFollower {
    /// Notes an answer that names commits up to `last`.
    fn note_answer(&mut self, last: CommitPosition, until: Duration, now: Duration) {
        self.answers.retain(|(_, until)| *until > now);
        let last_end = self.answers.back().map(|(_, until)| *until);
        let until = until.max(last_end.unwrap_or_default());
        self.answers.pop_back_if(|(named, _)| *named == last);
        self.answers.push_back((last, until));
    }

    /// Oldest answer by which it may be fresh: the last commit that it named, and the end of its second.
    fn oldest_answer(&self, now: Duration) -> Option<(CommitPosition, Duration)> {
        let mut answers = self.answers.iter().copied();
        answers.find(|(_, until)| *until > now)
    }

    /// Last commit that it shows whenever it answers; `None` if it does not answer.
    fn shows(&self, now: Duration) -> Option<CommitPosition> {
        let (named, _) = self.oldest_answer(now)?;
        Some(self.has.max(named))
    }
}

impl FeedLog {
    /// Begins the feed of an owner that has the commits up to `last`.
    pub(super) fn new(last: CommitPosition) -> Self {
        Self {
            last,
            kept: VecDeque::new(),
            kept_bytes: 0,
            followers: BTreeMap::new(),
        }
    }

    /// Returns the last commit that the ledger has acknowledged.
    pub(super) fn last(&self) -> CommitPosition {
        self.last
    }

    /// Takes a commit that the ledger has acknowledged, in the order of the commits.
    pub(super) fn acknowledged(&mut self, commit: Entry) {
        self.last = commit.position;
        self.kept_bytes += bytes_of(&commit);
        self.kept.push_back(commit);
        while (self.kept.len() > MAX_KEPT || self.kept_bytes > MAX_KEPT_BYTES)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.kept_bytes -= bytes_of(&oldest);
        }
    }

    /// Takes a poll of a follower that has all commits up to `has`.
    pub(super) fn polled(&mut self, run: RunId, has: CommitPosition, now: Duration) {
        self.followers
            .retain(|_, follower| now.saturating_sub(follower.polled) < FORGOTTEN_AFTER);
        let follower = self.followers.entry(run).or_default();
        // An earlier poll may arrive after a later one.
        follower.has = follower.has.max(has);
        follower.polled = now;
    }

    /// Answers the poll of a follower that asks for what comes after `after`, and that was received at `received`.
    pub(super) fn answer(
        &mut self,
        run: RunId,
        after: CommitPosition,
        received: Duration,
        now: Duration,
    ) -> FeedAnswer {
        let follower = self.followers.entry(run).or_default();
        follower.note_answer(self.last, received + TAKEN_FOR_FRESH, now);
        FeedAnswer {
            last: self.last,
            lags: self.lags(),
            entries: self.entries_after(after),
        }
    }

    /// Returns the next commits; none where the next one is not kept any more.
    fn entries_after(&self, after: CommitPosition) -> Vec<Entry> {
        let first = self.kept.front().map(|commit| commit.position.0);
        let skipped = first.and_then(|first| after.next().0.checked_sub(first));
        let Some(skipped) = skipped.and_then(|skipped| usize::try_from(skipped).ok()) else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        let mut bytes = 0;
        for commit in self.kept.iter().skip(skipped) {
            bytes += bytes_of(commit);
            if bytes > MAX_ANSWER_BYTES && !entries.is_empty() {
                break;
            }
            entries.push(commit.clone());
        }
        entries
    }

    /// Last commit whose callers may be answered: nobody answers without it from now on.
    pub(super) fn released(&self, now: Duration) -> CommitPosition {
        let shown = self.followers.values().filter_map(|one| one.shows(now));
        shown.min().map_or(self.last, |shown| shown.min(self.last))
    }

    /// Time at which more callers may be answered, if nothing else happens.
    pub(super) fn next_release(&self, now: Duration) -> Option<Duration> {
        let lagging = self.followers.values().filter(|one| one.has < self.last);
        let ends = lagging.filter_map(|one| {
            let (named, until) = one.oldest_answer(now)?;
            (named < self.last).then_some(until)
        });
        ends.min()
    }

    /// Commits that each follower lacks.
    pub(super) fn lags(&self) -> Vec<(RunId, u64)> {
        let followers = self.followers.iter();
        followers
            .map(|(run, one)| (*run, self.last.0.saturating_sub(one.has.0)))
            .collect()
    }
}

/// Bytes of a commit on its way.
fn bytes_of(commit: &Entry) -> usize {
    commit.body.len() + commit.changes.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use svc_base::clock::Timestamp;
    use svc_base::positions::Checksum;
    use uuid::Uuid;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn run(number: u128) -> RunId {
        Uuid::from_u128(number).into()
    }

    fn commit(position: u64, bytes: usize) -> Entry {
        Entry {
            position: CommitPosition(position),
            at: Timestamp(0),
            before: Checksum(position - 1),
            after: Checksum(position),
            body: Arc::from(vec![0; bytes]),
            changes: Arc::default(),
        }
    }

    fn millis(millis: u64) -> Duration {
        NOW + Duration::from_millis(millis)
    }

    /// A feed that begins after commit 7.
    fn begun() -> FeedLog {
        FeedLog::new(CommitPosition(7))
    }

    /// Has a follower poll, and answers it at once.
    fn poll(feed: &mut FeedLog, run: RunId, after: u64, now: Duration) -> FeedAnswer {
        feed.polled(run, CommitPosition(after), now);
        feed.answer(run, CommitPosition(after), now, now)
    }

    fn numbers(answer: &FeedAnswer) -> Vec<u64> {
        answer.entries.iter().map(|one| one.position.0).collect()
    }

    #[test]
    fn without_followers_the_ledger_alone_decides() {
        let mut feed = begun();
        assert_eq!(feed.released(NOW), CommitPosition(7));
        feed.acknowledged(commit(8, 1));
        assert_eq!(feed.released(NOW), CommitPosition(8));
        assert_eq!(feed.next_release(NOW), None);
    }

    #[test]
    fn callers_wait_for_a_fresh_follower_until_its_second_is_over() {
        let mut feed = begun();
        assert!(poll(&mut feed, run(1), 7, NOW).entries.is_empty());
        // A poll is under way when the commit comes.
        feed.polled(run(1), CommitPosition(7), millis(100));
        feed.acknowledged(commit(8, 1));
        assert_eq!(feed.released(millis(101)), CommitPosition(7));
        let second = NOW + TAKEN_FOR_FRESH;
        assert_eq!(feed.next_release(millis(101)), Some(second));
        // It is answered with the commit: by this answer, the follower is not fresh without it.
        let answer = feed.answer(run(1), CommitPosition(7), millis(100), millis(102));
        assert_eq!(
            (answer.last, numbers(&answer)),
            (CommitPosition(8), vec![8])
        );
        assert_eq!(feed.released(millis(103)), CommitPosition(7));
        assert_eq!(feed.next_release(millis(103)), Some(second));
        assert_eq!(feed.released(second), CommitPosition(8));
        assert_eq!(feed.next_release(second), None);
        // With the next poll it says that it has it.
        feed.polled(run(1), CommitPosition(8), millis(103));
        assert_eq!(feed.released(millis(103)), CommitPosition(8));
        assert_eq!(feed.next_release(millis(103)), None);
    }

    #[test]
    fn the_slowest_follower_counts() {
        let mut feed = begun();
        poll(&mut feed, run(1), 7, NOW);
        poll(&mut feed, run(2), 7, millis(500));
        feed.acknowledged(commit(8, 1));
        feed.acknowledged(commit(9, 1));
        feed.polled(run(1), CommitPosition(9), millis(600));
        assert_eq!(feed.released(millis(600)), CommitPosition(7));
        feed.polled(run(2), CommitPosition(8), millis(601));
        assert_eq!(feed.released(millis(601)), CommitPosition(8));
        let lags = feed.lags();
        assert_eq!(lags, [(run(1), 0), (run(2), 1)]);
        // It has died.
        let until = millis(500) + TAKEN_FOR_FRESH;
        assert_eq!(feed.next_release(millis(601)), Some(until));
        assert_eq!(feed.released(until), CommitPosition(9));
        poll(&mut feed, run(1), 9, millis(600) + FORGOTTEN_AFTER);
        poll(&mut feed, run(1), 9, millis(601) + FORGOTTEN_AFTER);
        assert_eq!(feed.lags(), [(run(1), 0)]);
    }

    #[test]
    fn whoever_is_far_behind_gets_a_part_or_goes_to_the_ledger() {
        let mut feed = begun();
        for position in 8..=10 {
            feed.acknowledged(commit(position, MAX_ANSWER_BYTES / 2));
        }
        feed.acknowledged(commit(11, MAX_ANSWER_BYTES + 1));
        assert_eq!(numbers(&poll(&mut feed, run(1), 7, NOW)), [8, 9]);
        assert_eq!(numbers(&poll(&mut feed, run(1), 9, NOW)), [10]);
        assert_eq!(numbers(&poll(&mut feed, run(1), 10, NOW)), [11]);
        // Its base had more than this owner knows to be acknowledged.
        let ahead = poll(&mut feed, run(1), 12, NOW);
        assert_eq!((ahead.last, numbers(&ahead)), (CommitPosition(11), vec![]));
        feed.acknowledged(commit(12, MAX_KEPT_BYTES));
        let answer = poll(&mut feed, run(1), 11, NOW);
        assert_eq!(
            (answer.last, numbers(&answer)),
            (CommitPosition(12), vec![12])
        );
        assert!(poll(&mut feed, run(2), 10, NOW).entries.is_empty());
        feed.acknowledged(commit(13, MAX_KEPT_BYTES + 1));
        let answer = poll(&mut feed, run(1), 12, NOW);
        assert_eq!(
            (answer.last, numbers(&answer)),
            (CommitPosition(13), vec![])
        );
        assert_eq!((feed.kept.len(), feed.kept_bytes), (0, 0));
    }

    #[test]
    fn many_small_commits_do_not_fill_the_memory() {
        let mut feed = begun();
        (8..20_000).for_each(|position| feed.acknowledged(commit(position, 1)));
        assert_eq!((feed.kept.len(), feed.kept_bytes), (MAX_KEPT, MAX_KEPT));
    }
}
