//! Commits of a process on their way to the ledger: the appender at work. Writers leave their commits here without waiting, and one
//! task sends them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use svc_base::clock::Clock;
use svc_base::{fault, sync};
use tokio::sync::Notify;

use crate::appender::{Answer, Appender, Command, EndReason, Request};
use crate::types::{DatabaseEntry, Ledger, LedgerError, RunId};

/// News of the task that sends commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendEvent<'a> {
    /// These commits are durable: their callers may be answered.
    Acknowledged(&'a [DatabaseEntry]),
    /// The ledger has counted a beat of the run, by a request that was sent at this time.
    Beaten(Duration),
    /// The answer to a request was lost, and it is looked up.
    AnswerLost,
    /// The ledger has refused a request. Unless the process must end, it is sent again until the ledger takes it.
    Refused(&'a LedgerError),
}

/// Queue of the commits of a run.
#[derive(Debug)]
pub struct AppendQueue {
    run: RunId,
    clock: Clock,
    state: Mutex<State>,
    /// Wakes the task.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    appender: Appender,
    commands: VecDeque<Command>,
}

impl AppendQueue {
    /// Creates the queue of a run. Its times are those of [`Clock::elapsed`].
    #[must_use]
    pub fn new(run: RunId, clock: Clock) -> Self {
        Self {
            run,
            clock,
            state: Mutex::new(State {
                appender: Appender::new(run),
                commands: VecDeque::new(),
            }),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }

    /// Takes a commit that was made. Commits of a database come in the order of their numbers.
    pub fn submit(&self, commit: DatabaseEntry) {
        let mut state = self.state();
        let command = state.appender.submit(commit, self.clock.elapsed());
        state.commands.extend(command);
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a new write may begin: not if too much is unanswered, or for too long.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.state().appender.has_room(self.clock.elapsed())
    }

    /// Age of the oldest commit that is not acknowledged.
    #[must_use]
    pub fn unanswered_age(&self) -> Duration {
        self.state().appender.unanswered_age(self.clock.elapsed())
    }

    /// Bytes of commits that are not acknowledged.
    #[must_use]
    pub fn unanswered_bytes(&self) -> usize {
        self.state().appender.unanswered_bytes()
    }

    /// Sends the commits until the process must end, and returns why. Call it once. A request that was sent is never given up: the
    /// future may be dropped only when the process ends.
    pub async fn send_all(
        &self,
        ledger: &impl Ledger,
        mut tell: impl FnMut(AppendEvent<'_>),
    ) -> EndReason {
        loop {
            let next = self.state().commands.pop_front();
            match next {
                None => self.changed.notified().await,
                Some(Command::Acknowledge(commits)) => tell(AppendEvent::Acknowledged(&commits)),
                Some(Command::End(reason)) => return reason,
                Some(Command::Send(request, pause)) => {
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    let sent = self.clock.elapsed();
                    let answer = self.send(ledger, &request).await;
                    match &answer {
                        Answer::Appended(Ok(())) | Answer::Found(Ok(_)) => {
                            tell(AppendEvent::Beaten(sent));
                        }
                        Answer::Appended(Err(LedgerError::Unknown(_))) => {
                            tell(AppendEvent::AnswerLost);
                        }
                        Answer::Appended(Err(error)) | Answer::Found(Err(error)) => {
                            tell(AppendEvent::Refused(error));
                        }
                    }
                    let mut state = self.state();
                    let commands = state.appender.answered(answer);
                    state.commands.extend(commands);
                }
            }
        }
    }

    async fn send(&self, ledger: &impl Ledger, request: &Request) -> Answer {
        match request {
            Request::Append(commits) => {
                fault::point("cluster.appending");
                let appended = ledger.append(self.run, commits).await;
                fault::point("cluster.appended");
                Answer::Appended(appended)
            }
            Request::Find(_) => {
                let at = request.positions();
                Answer::Found(ledger.find(self.run, &at).await)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appender::tests::commit;
    use crate::memory::MemoryLedger;
    use crate::tests::node;
    use crate::types::{Base, DatabaseName};
    use svc_base::clock::Timestamp;
    use svc_base::positions::{Checksum, CommitPosition};

    /// A ledger in which a run has the control database, that has no commit yet.
    async fn ledger(run: RunId) -> MemoryLedger {
        let ledger = MemoryLedger::default();
        ledger.join(&node(run)).await.unwrap();
        ledger.claim(run, DatabaseName::Control).await.unwrap();
        let base = Base {
            database: DatabaseName::Control,
            position: CommitPosition(0),
            state: Checksum(0),
            object: String::new(),
            bytes: 0,
            at: Timestamp(0),
        };
        ledger.add_base(run, &base).await.unwrap();
        ledger
    }

    #[tokio::test]
    async fn a_refusal_is_told_each_time() {
        let run = uuid::Uuid::from_u128(1).into();
        let ledger = ledger(run).await;
        ledger.set_unsynced(true);
        let queue = AppendQueue::new(run, Clock::system());
        let done = Notify::new();
        let mut events = Vec::new();
        queue.submit(commit(1, 1));
        let all = queue.send_all(&ledger, |event| match event {
            AppendEvent::Refused(error) => {
                events.push(error.to_string());
                // At the second time the operator has mended it.
                ledger.set_unsynced(events.len() < 2);
            }
            AppendEvent::Acknowledged(_) => done.notify_one(),
            AppendEvent::AnswerLost | AppendEvent::Beaten(_) => {}
        });
        tokio::select! {
            reason = all => panic!("{reason}"),
            () = done.notified() => {}
        }
        assert_eq!(
            events,
            [
                LedgerError::Unsynced.to_string(),
                LedgerError::Unsynced.to_string()
            ]
        );
    }

    /// Submits three commits, and returns what is told until they are acknowledged or the process must end.
    async fn told(ledger: &MemoryLedger, run: RunId) -> (Vec<u64>, bool, Option<EndReason>) {
        let queue = AppendQueue::new(run, Clock::system());
        let done = Notify::new();
        let (mut acknowledged, mut lost) = (Vec::new(), false);
        (1..=3).for_each(|number| queue.submit(commit(number, 1)));
        let all = queue.send_all(ledger, |event| match event {
            AppendEvent::Acknowledged(commits) => {
                acknowledged.extend(commits.iter().map(|commit| commit.entry.position.0));
                if acknowledged.len() == 3 {
                    done.notify_one();
                }
            }
            AppendEvent::AnswerLost => lost = true,
            AppendEvent::Beaten(_) | AppendEvent::Refused(_) => {}
        });
        let ended = tokio::select! {
            reason = all => Some(reason),
            () = done.notified() => None,
        };
        (acknowledged, lost, ended)
    }

    #[tokio::test]
    async fn commits_are_appended_and_acknowledged_in_their_order() {
        let run = uuid::Uuid::from_u128(1).into();
        for answers in [0, 1, 2] {
            let ledger = ledger(run).await;
            ledger.lose_answers(answers);
            let (acknowledged, lost, ended) = told(&ledger, run).await;
            assert_eq!(acknowledged, [1, 2, 3]);
            assert_eq!((lost, ended), (answers > 0, None));
            let first = CommitPosition(0);
            let tail = ledger.tail(None, DatabaseName::Control, first, 9).await;
            assert_eq!(tail.unwrap().len(), 3);
        }
    }

    #[tokio::test]
    async fn a_buried_run_is_told_to_end() {
        let run = uuid::Uuid::from_u128(1).into();
        let ledger = ledger(run).await;
        ledger.bury(run, run, None).await.unwrap();
        let (acknowledged, _, ended) = told(&ledger, run).await;
        assert_eq!((acknowledged, ended), (Vec::new(), Some(EndReason::Fenced)));
    }
}
