//! Appends of a run, one at a time: commits that arrive meanwhile share the next. No I/O: events go in, commands come out.
//!
//! An answer that is lost is never guessed. The commits are looked up, by a request that is a commit of its own: so what it finds is
//! as durable as itself. If they are there and ours they count, if they are absent they are sent again, and if others are there the
//! process ends.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use svc_base::positions::CommitPosition;

use crate::types::{DatabaseEntry, DatabaseName, FoundEntry, LedgerError, RunId};

/// Bytes of unanswered commits from which on no new write is begun.
const MAX_UNANSWERED_BYTES: usize = 32 << 20;
/// Bytes of commits that share an append, if there are several: beats wait behind it, and a run that does not beat is buried.
const MAX_APPEND_BYTES: usize = 4 << 20;
/// Age of the oldest unanswered commit from which on no new write is begun.
const MAX_UNANSWERED_AGE: Duration = Duration::from_secs(2);
/// Pause before a request is sent again to a ledger that did not take it.
const PAUSE: Duration = Duration::from_millis(100);
/// Times that an append which was sent again may be refused while nothing of it is there.
const MAX_REFUSALS: u8 = 2;

/// A request to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Append these commits.
    Append(Arc<[DatabaseEntry]>),
    /// Look for these commits.
    Find(Arc<[DatabaseEntry]>),
}

impl Request {
    /// Returns the positions of the commits, as the ledger is asked for them.
    #[must_use]
    pub fn positions(&self) -> Vec<(DatabaseName, CommitPosition)> {
        let (Self::Append(entries) | Self::Find(entries)) = self;
        let positions = entries.iter();
        positions
            .map(|commit| (commit.database, commit.entry.position))
            .collect()
    }
}

/// Answer of the ledger to the request that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answer to [`Request::Append`].
    Appended(Result<(), LedgerError>),
    /// Answer to [`Request::Find`].
    Found(Result<Vec<Option<FoundEntry>>, LedgerError>),
}

/// Reason why the process of the run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// Another run has buried this one.
    #[error("another node has buried this run")]
    Fenced,
    /// The ledger has other commits than this run has made: another run writes, or the ledger has lost what it acknowledged.
    #[error("the ledger goes on from another state than this run's databases")]
    Overtaken,
    /// The ledger answers what this program does not understand.
    #[error("the ledger's answer cannot be read")]
    Unreadable,
}

/// Task for the owner of the appender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send a request after a pause, and hand in its answer.
    Send(Request, Duration),
    /// Answer the callers of these commits: they are durable.
    Acknowledge(Arc<[DatabaseEntry]>),
    /// End the process. Nothing is acknowledged any more.
    End(EndReason),
}

/// Commits that are sent together.
#[derive(Debug)]
struct Batch {
    entries: Arc<[DatabaseEntry]>,
    bytes: usize,
    /// Time at which the oldest of them arrived.
    since: Duration,
    /// Whether an answer was lost: the commits may be there, now or in a while.
    doubtful: bool,
    /// Number of times that the batch was refused although nothing of it was there.
    refusals: u8,
}

/// Progress of the run.
#[derive(Debug)]
enum Progress {
    /// Nothing is under way.
    Idle,
    /// The batch is being appended, or looked for.
    UnderWay(Batch),
    /// The process must end.
    Ended,
}

/// Appender of a run. Times are of one clock that never runs backwards.
#[derive(Debug)]
pub struct Appender {
    run: RunId,
    progress: Progress,
    /// Commits that share the next appends, in the order of their arrival, each with its time.
    waiting: VecDeque<(Duration, DatabaseEntry)>,
    waiting_bytes: usize,
}

impl Appender {
    /// Creates the appender of a run.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            progress: Progress::Idle,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Bytes of commits that are not acknowledged.
    #[must_use]
    pub fn unanswered_bytes(&self) -> usize {
        match &self.progress {
            Progress::UnderWay(batch) => batch.bytes + self.waiting_bytes,
            Progress::Idle | Progress::Ended => self.waiting_bytes,
        }
    }

    /// Age of the oldest commit that is not acknowledged.
    #[must_use]
    pub fn unanswered_age(&self, now: Duration) -> Duration {
        let since = match &self.progress {
            Progress::UnderWay(batch) => batch.since,
            Progress::Idle | Progress::Ended => {
                let oldest = self.waiting.front();
                oldest.map_or(now, |(since, _)| *since)
            }
        };
        now.saturating_sub(since)
    }

    /// Whether a new write may begin: not if too much is unanswered, or for too long.
    #[must_use]
    pub fn has_room(&self, now: Duration) -> bool {
        !matches!(self.progress, Progress::Ended)
            && self.unanswered_bytes() < MAX_UNANSWERED_BYTES
            && self.unanswered_age(now) < MAX_UNANSWERED_AGE
    }

    /// Takes a commit that was made. It is always taken, because it cannot be taken back.
    ///
    /// Commits of a database arrive in the order of their numbers.
    pub fn submit(&mut self, commit: DatabaseEntry, now: Duration) -> Option<Command> {
        if matches!(self.progress, Progress::Ended) {
            return None;
        }
        self.waiting_bytes += commit.entry.body.len();
        self.waiting.push_back((now, commit));
        match self.progress {
            Progress::Idle => self.send_waiting(),
            Progress::UnderWay(_) | Progress::Ended => None,
        }
    }

    /// Takes the answer to the request that is under way.
    pub fn answered(&mut self, answer: Answer) -> Vec<Command> {
        let batch = match mem::replace(&mut self.progress, Progress::Idle) {
            Progress::UnderWay(batch) => batch,
            other => {
                self.progress = other;
                return Vec::new();
            }
        };
        match answer {
            Answer::Appended(Ok(())) => self.acknowledge(batch),
            Answer::Appended(Err(error)) => vec![self.append_failed(batch, &error)],
            Answer::Found(Ok(found)) => self.found(batch, &found),
            Answer::Found(Err(error)) => vec![self.find_failed(batch, &error)],
        }
    }

    fn append_failed(&mut self, mut batch: Batch, error: &LedgerError) -> Command {
        match error {
            LedgerError::Unknown(_) => {
                // A ledger that loses each answer is not asked without end.
                let pause = if batch.doubtful {
                    PAUSE
                } else {
                    Duration::ZERO
                };
                batch.doubtful = true;
                self.find(batch, pause)
            }
            // The number may be taken by the first request, whose answer was lost.
            LedgerError::NotNext if batch.doubtful => {
                batch.refusals += 1;
                self.find(batch, Duration::ZERO)
            }
            // A role may be mended.
            LedgerError::Unsynced | LedgerError::Unavailable(_) | LedgerError::Refused(_) => {
                self.append(batch, PAUSE)
            }
            LedgerError::Fenced => self.end(EndReason::Fenced),
            LedgerError::NotNext | LedgerError::NotPlaced => self.end(EndReason::Overtaken),
            LedgerError::Unreadable(_) => self.end(EndReason::Unreadable),
        }
    }

    fn find_failed(&mut self, batch: Batch, error: &LedgerError) -> Command {
        match error {
            LedgerError::Unknown(_)
            | LedgerError::Unsynced
            | LedgerError::Unavailable(_)
            | LedgerError::Refused(_) => self.find(batch, PAUSE),
            LedgerError::Fenced => self.end(EndReason::Fenced),
            LedgerError::NotNext | LedgerError::NotPlaced => self.end(EndReason::Overtaken),
            LedgerError::Unreadable(_) => self.end(EndReason::Unreadable),
        }
    }

    fn found(&mut self, batch: Batch, found: &[Option<FoundEntry>]) -> Vec<Command> {
        if found.len() != batch.entries.len() {
            return vec![self.end(EndReason::Unreadable)];
        }
        if found.iter().all(Option::is_none) {
            return vec![match batch.refusals >= MAX_REFUSALS {
                true => self.end(EndReason::Overtaken),
                false => self.append(batch, Duration::ZERO),
            }];
        }
        let run = self.run;
        let mut pairs = batch.entries.iter().zip(found);
        let ours = pairs.all(|(commit, found)| {
            let after = commit.entry.after;
            *found == Some(FoundEntry { run, after })
        });
        match ours {
            true => self.acknowledge(batch),
            false => vec![self.end(EndReason::Overtaken)],
        }
    }

    fn acknowledge(&mut self, batch: Batch) -> Vec<Command> {
        let mut commands = vec![Command::Acknowledge(batch.entries)];
        commands.extend(self.send_waiting());
        commands
    }

    /// Sends what waits, if anything does: as much as one append may have.
    fn send_waiting(&mut self) -> Option<Command> {
        let (since, first) = self.waiting.pop_front()?;
        let mut bytes = first.entry.body.len();
        let mut entries = vec![first];
        while let Some((_, next)) = self
            .waiting
            .pop_front_if(|(_, next)| bytes + next.entry.body.len() <= MAX_APPEND_BYTES)
        {
            bytes += next.entry.body.len();
            entries.push(next);
        }
        self.waiting_bytes -= bytes;
        let batch = Batch {
            entries: entries.into(),
            bytes,
            since,
            doubtful: false,
            refusals: 0,
        };
        Some(self.append(batch, Duration::ZERO))
    }

    fn append(&mut self, batch: Batch, pause: Duration) -> Command {
        let request = Request::Append(Arc::clone(&batch.entries));
        self.progress = Progress::UnderWay(batch);
        Command::Send(request, pause)
    }

    fn find(&mut self, batch: Batch, pause: Duration) -> Command {
        let request = Request::Find(Arc::clone(&batch.entries));
        self.progress = Progress::UnderWay(batch);
        Command::Send(request, pause)
    }

    fn end(&mut self, reason: EndReason) -> Command {
        self.progress = Progress::Ended;
        Command::End(reason)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use svc_base::clock::Timestamp;
    use svc_base::positions::{Checksum, Entry};

    const NOW: Duration = Duration::from_secs(7);

    fn run() -> RunId {
        uuid::Uuid::from_u128(1).into()
    }

    pub(crate) fn commit(number: u64, bytes: usize) -> DatabaseEntry {
        DatabaseEntry {
            database: DatabaseName::Control,
            entry: Entry {
                position: CommitPosition(number),
                at: Timestamp(0),
                before: Checksum(number - 1),
                after: Checksum(number),
                body: vec![0; bytes].into(),
                changes: Arc::default(),
            },
        }
    }

    fn commits(numbers: &[u64]) -> Arc<[DatabaseEntry]> {
        numbers.iter().map(|number| commit(*number, 1)).collect()
    }

    fn lost() -> LedgerError {
        LedgerError::Unknown("the connection has ended".to_owned())
    }

    fn found(number: u64) -> Option<FoundEntry> {
        let after = Checksum(number);
        Some(FoundEntry { run: run(), after })
    }

    fn send(request: Request) -> Command {
        Command::Send(request, Duration::ZERO)
    }

    /// An appender that has sent the first commit.
    fn with_one_sent() -> Appender {
        let mut appender = Appender::new(run());
        let sent = appender.submit(commit(1, 1), NOW);
        assert_eq!(sent, Some(send(Request::Append(commits(&[1])))));
        appender
    }

    #[test]
    fn commits_that_arrive_meanwhile_share_the_next_append() {
        let mut appender = with_one_sent();
        assert_eq!(appender.submit(commit(2, 1), NOW), None);
        assert_eq!(appender.submit(commit(3, 1), NOW), None);
        let next = send(Request::Append(commits(&[2, 3])));
        let first = Command::Acknowledge(commits(&[1]));
        assert_eq!(appender.answered(Answer::Appended(Ok(()))), [first, next]);
        let rest = Command::Acknowledge(commits(&[2, 3]));
        assert_eq!(appender.answered(Answer::Appended(Ok(()))), [rest]);
        assert_eq!(appender.unanswered_bytes(), 0);
    }

    #[test]
    fn a_lost_answer_is_looked_up_and_never_guessed() {
        for (there, then) in [
            (found(1), Command::Acknowledge(commits(&[1]))),
            (None, send(Request::Append(commits(&[1])))),
            (found(9), Command::End(EndReason::Overtaken)),
        ] {
            let mut appender = with_one_sent();
            let find = Request::Find(commits(&[1]));
            let looked = appender.answered(Answer::Appended(Err(lost())));
            assert_eq!(looked, [send(find.clone())]);
            // The look-up gets lost, too.
            let again = appender.answered(Answer::Found(Err(lost())));
            assert_eq!(again, [Command::Send(find, PAUSE)]);
            assert_eq!(appender.answered(Answer::Found(Ok(vec![there]))), [then]);
        }
    }

    #[test]
    fn answers_that_are_lost_again_and_again_are_asked_for_with_pauses() {
        let mut appender = with_one_sent();
        appender.answered(Answer::Appended(Err(lost())));
        appender.answered(Answer::Found(Ok(vec![None])));
        let looked = appender.answered(Answer::Appended(Err(lost())));
        let find = Request::Find(commits(&[1]));
        assert_eq!(looked, [Command::Send(find, PAUSE)]);
    }

    #[test]
    fn an_append_has_so_many_bytes_that_beats_come_in_time() {
        let mut appender = with_one_sent();
        let half = MAX_APPEND_BYTES / 2;
        for number in 2..=5 {
            appender.submit(commit(number, half), NOW + Duration::from_secs(number));
        }
        appender.submit(commit(6, 3 * half), NOW + Duration::from_secs(6));
        let mut sent = Vec::new();
        let mut ages = Vec::new();
        loop {
            ages.push(
                appender
                    .unanswered_age(NOW + Duration::from_secs(6))
                    .as_secs(),
            );
            let commands = appender.answered(Answer::Appended(Ok(())));
            let Some(Command::Send(request, _)) = commands.last() else {
                break;
            };
            let numbers = request.positions().into_iter();
            sent.push(numbers.map(|(_, at)| at.0).collect::<Vec<_>>());
        }
        assert_eq!(sent, [vec![2, 3], vec![4, 5], vec![6]]);
        assert_eq!(ages, [6, 4, 2, 0]);
        assert_eq!(appender.unanswered_bytes(), 0);
    }

    #[test]
    fn an_append_is_there_wholly_or_not() {
        let mut appender = with_one_sent();
        appender.submit(commit(2, 1), NOW);
        appender.submit(commit(3, 1), NOW);
        appender.answered(Answer::Appended(Ok(())));
        appender.answered(Answer::Appended(Err(lost())));
        let half = Answer::Found(Ok(vec![found(2), None]));
        assert_eq!(
            appender.answered(half),
            [Command::End(EndReason::Overtaken)]
        );
    }

    #[test]
    fn a_first_request_that_comes_late_is_recognised() {
        let mut appender = with_one_sent();
        appender.answered(Answer::Appended(Err(lost())));
        appender.answered(Answer::Found(Ok(vec![None])));
        let refused = appender.answered(Answer::Appended(Err(LedgerError::NotNext)));
        assert_eq!(refused, [send(Request::Find(commits(&[1])))]);
        let acknowledged = appender.answered(Answer::Found(Ok(vec![found(1)])));
        assert_eq!(acknowledged, [Command::Acknowledge(commits(&[1]))]);
    }

    #[test]
    fn an_append_that_is_refused_again_and_again_ends_the_run() {
        let mut appender = with_one_sent();
        appender.answered(Answer::Appended(Err(lost())));
        appender.answered(Answer::Found(Ok(vec![None])));
        appender.answered(Answer::Appended(Err(LedgerError::NotNext)));
        appender.answered(Answer::Found(Ok(vec![None])));
        appender.answered(Answer::Appended(Err(LedgerError::NotNext)));
        let ended = appender.answered(Answer::Found(Ok(vec![None])));
        assert_eq!(ended, [Command::End(EndReason::Overtaken)]);
    }

    #[test]
    fn a_refused_append_ends_the_run_or_is_sent_again() {
        let again = Command::Send(Request::Append(commits(&[1])), PAUSE);
        for (error, then) in [
            (LedgerError::Fenced, Command::End(EndReason::Fenced)),
            (LedgerError::NotNext, Command::End(EndReason::Overtaken)),
            (LedgerError::Unsynced, again.clone()),
            (LedgerError::Unavailable(String::new()), again.clone()),
        ] {
            let mut appender = with_one_sent();
            assert_eq!(appender.answered(Answer::Appended(Err(error))), [then]);
        }
    }

    #[test]
    fn a_run_that_has_ended_acknowledges_nothing() {
        let mut appender = with_one_sent();
        appender.submit(commit(2, 1), NOW);
        appender.answered(Answer::Appended(Err(LedgerError::Fenced)));
        assert_eq!(appender.submit(commit(3, 1), NOW), None);
        assert!(appender.answered(Answer::Appended(Ok(()))).is_empty());
        assert!(!appender.has_room(NOW));
    }

    #[test]
    fn no_write_begins_above_the_bounds() {
        let mut appender = with_one_sent();
        let almost = MAX_UNANSWERED_AGE - Duration::from_millis(1);
        assert!(appender.has_room(NOW + almost));
        assert!(!appender.has_room(NOW + MAX_UNANSWERED_AGE));
        appender.submit(commit(2, MAX_UNANSWERED_BYTES - 2), NOW);
        assert!(appender.has_room(NOW));
        appender.submit(commit(3, 1), NOW);
        assert!(!appender.has_room(NOW));
        appender.answered(Answer::Appended(Ok(())));
        assert_eq!(appender.unanswered_bytes(), MAX_UNANSWERED_BYTES - 1);
        // The large commit is an append of its own.
        appender.answered(Answer::Appended(Ok(())));
        assert_eq!(appender.unanswered_bytes(), 1);
        appender.answered(Answer::Appended(Ok(())));
        let much_later = NOW + 9 * MAX_UNANSWERED_AGE;
        assert!(appender.has_room(much_later));
    }
}
