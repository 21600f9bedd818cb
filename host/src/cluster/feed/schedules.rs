//! Random schedules of an owner that may die, its followers and the ledger, and broken protocols that they must catch.

use std::sync::Arc;
use std::time::Duration;

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition, Entry};
use svc_ledger::RunId;
use uuid::Uuid;

use super::log::{FRESH_FOR, FeedLog, TAKEN_FOR_FRESH};
use super::message::FeedAnswer;

const SCHEDULES: u64 = 2_000;
const STEPS: usize = 400;
const FOLLOWERS: usize = 2;
/// Longest time between two steps, in milliseconds.
const STEP_MILLIS: u64 = 40;

/// Rule that a protocol breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// A follower takes commits from the ledger that the feed has not named.
    ReadsAhead,
    /// The owner answers its callers when the ledger has the commit.
    AnswersAtOnce,
    /// A follower is fresh from receiving an answer.
    FreshFromReceipt,
    /// A new owner does not wait for those that the one before has told.
    ForgetsOthers,
}

/// Fault of what a client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Violation {
    /// A follower shows a commit that the ledger may lose, or has lost.
    Unacknowledged,
    /// A follower does not show a write that was answered before.
    Missing,
}

/// Poll of a follower, on its way.
enum Poll {
    Sent { at: Duration },
    Held { sent: Duration, received: Duration },
    Answered { sent: Duration, answer: FeedAnswer },
}

#[derive(Default)]
struct Follower {
    rows: Vec<u64>,
    fresh_until: Duration,
    poll: Option<Poll>,
}

struct Schedule {
    broken: Broken,
    random: u64,
    now: Duration,
    /// Rows of the ledger, the first of which are replicated: the others are seen, and lost at a failover.
    rows: Vec<u64>,
    replicated: usize,
    /// Feed of the owner, while one lives.
    feed: Option<FeedLog>,
    /// Time until which the last owner has answered.
    died: Duration,
    /// Time from which the owner shows something and makes commits.
    begins: Duration,
    followers: [Follower; FOLLOWERS],
    /// Number of commits that somebody was answered about: whoever made them, or whoever read them at the owner.
    answered: usize,
    next_row: u64,
    fresh_reads: usize,
    violation: Option<Violation>,
}

impl Schedule {
    fn run(seed: u64, broken: Broken) -> Self {
        let mut schedule = Self {
            broken,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now: Duration::from_secs(100),
            rows: Vec::new(),
            replicated: 0,
            feed: None,
            died: Duration::ZERO,
            begins: Duration::ZERO,
            followers: Default::default(),
            answered: 0,
            next_row: 0,
            fresh_reads: 0,
            violation: None,
        };
        for _ in 0..STEPS {
            schedule.step();
        }
        schedule
    }

    /// Returns a number below `bound`: splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }

    fn step(&mut self) {
        let pause = self.below(STEP_MILLIS);
        self.now += Duration::from_millis(pause);
        let follower = usize::try_from(self.below(FOLLOWERS as u64)).unwrap();
        match self.below(20) {
            0 => self.change_owner(),
            1 | 2 => self.write(),
            3 | 4 => self.replicated = self.rows.len(),
            5 | 6 => self.acknowledge(),
            7 | 8 => self.answer_callers(),
            9..=11 => self.read(follower),
            _ => self.move_poll(follower),
        }
    }

    /// Has the owner die, with a failover of the ledger, or another one begin.
    fn change_owner(&mut self) {
        if self.feed.take().is_some() {
            self.died = self.now;
            self.rows.truncate(self.replicated);
            return;
        }
        // It has read what the ledger has, by a commit of its own.
        self.replicated = self.rows.len();
        self.begins = match self.broken {
            Broken::ForgetsOthers => Duration::ZERO,
            _ => self.died + TAKEN_FOR_FRESH,
        };
        self.feed = Some(FeedLog::new(position(self.rows.len())));
        for follower in &mut self.followers {
            // Whoever held the poll is dead.
            if matches!(follower.poll, Some(Poll::Held { .. })) {
                follower.poll = None;
            }
        }
    }

    fn write(&mut self) {
        if self.feed.is_some() && self.now >= self.begins {
            self.next_row += 1;
            self.rows.push(self.next_row);
        }
    }

    /// Has the owner hear of what is replicated.
    fn acknowledge(&mut self) {
        if let Some(feed) = &mut self.feed {
            let known = usize::try_from(feed.last().0).unwrap();
            for number in known + 1..=self.replicated {
                feed.acknowledged(entry(number, self.rows[number - 1]));
            }
        }
    }

    fn answer_callers(&mut self) {
        if let Some(feed) = &self.feed
            && self.now >= self.begins
        {
            let released = match self.broken {
                Broken::AnswersAtOnce => feed.last(),
                _ => feed.released(self.now),
            };
            self.answered = self.answered.max(usize::try_from(released.0).unwrap());
        }
    }

    /// Moves the poll of a follower on, or loses it.
    fn move_poll(&mut self, number: usize) {
        let (now, is_lost) = (self.now, self.below(12) == 0);
        let run = RunId::from(Uuid::from_u128(number as u128));
        let follower = &mut self.followers[number];
        let (has, poll) = (position(follower.rows.len()), follower.poll.take());
        if let Some(Poll::Answered { sent, answer }) = poll {
            return self.follow(number, sent, answer);
        }
        let moved = match (poll, &mut self.feed) {
            (None, _) => Some(Poll::Sent { at: now }),
            (Some(Poll::Sent { at: sent }), Some(feed)) => {
                feed.polled(run, has, now);
                let received = now;
                Some(Poll::Held { sent, received })
            }
            (Some(Poll::Held { sent, received }), Some(feed)) => {
                let answer = feed.answer(run, has, received, now);
                Some(Poll::Answered { sent, answer })
            }
            (waiting, _) => waiting,
        };
        self.followers[number].poll = moved.filter(|_| !is_lost);
    }

    /// Has a follower take an answer.
    fn follow(&mut self, number: usize, sent: Duration, answer: FeedAnswer) {
        let follower = &mut self.followers[number];
        let last = usize::try_from(answer.last.0).unwrap();
        let has_none = answer.entries.is_empty();
        let entries = answer.entries.into_iter();
        follower.rows.extend(entries.map(|entry| entry.after.0));
        let has = follower.rows.len();
        if self.broken == Broken::ReadsAhead {
            follower.rows.extend(self.rows.iter().skip(has));
        } else if has_none && has < last {
            follower.rows.extend(&self.rows[has..last]);
        }
        if follower.rows.len() >= last {
            let from = match self.broken {
                Broken::FreshFromReceipt => self.now,
                _ => sent,
            };
            follower.fresh_until = follower.fresh_until.max(from + FRESH_FOR);
        }
    }

    /// Has a client read at a follower.
    fn read(&mut self, number: usize) {
        let follower = &self.followers[number];
        if self.now >= follower.fresh_until {
            return;
        }
        self.fresh_reads += 1;
        let kept = &self.rows[..self.replicated];
        if !kept.starts_with(&follower.rows) {
            self.violation = Some(Violation::Unacknowledged);
        } else if follower.rows.len() < self.answered {
            self.violation = Some(Violation::Missing);
        }
    }
}

fn position(rows: usize) -> CommitPosition {
    CommitPosition(u64::try_from(rows).unwrap())
}

fn entry(number: usize, row: u64) -> Entry {
    Entry {
        position: position(number),
        at: Timestamp(0),
        before: Checksum(0),
        after: Checksum(row),
        body: Arc::default(),
        changes: Arc::default(),
    }
}

#[test]
fn followers_show_what_was_answered_and_nothing_that_may_be_lost() {
    let (mut reads, mut answered) = (0, 0);
    for seed in 0..SCHEDULES {
        let mut schedule = Schedule::run(seed, Broken::Nothing);
        assert_eq!(schedule.violation, None, "seed {seed}");
        reads += schedule.fresh_reads;
        answered += schedule.answered;
        // Whatever the followers do, callers are answered in the end.
        if schedule.feed.is_some() {
            schedule.replicated = schedule.rows.len();
            schedule.acknowledge();
            schedule.now += TAKEN_FOR_FRESH;
            schedule.answer_callers();
            assert_eq!(schedule.answered, schedule.rows.len(), "seed {seed}");
        }
    }
    // The schedules do what they are for.
    let schedules = usize::try_from(SCHEDULES).unwrap();
    assert!(reads > 10 * schedules, "{reads}");
    assert!(answered > 3 * schedules, "{answered}");
}

#[test]
fn broken_protocols_are_caught() {
    for (broken, violation) in [
        (Broken::ReadsAhead, Violation::Unacknowledged),
        (Broken::AnswersAtOnce, Violation::Missing),
        (Broken::FreshFromReceipt, Violation::Missing),
        (Broken::ForgetsOthers, Violation::Missing),
    ] {
        let mut found = (0..SCHEDULES).map(|seed| Schedule::run(seed, broken).violation);
        assert!(found.any(|found| found == Some(violation)), "{broken:?}");
    }
}
