//! The owner's end of the feed: it answers polls, and callers once the followers have what they wrote.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Response, Uri};
use svc_base::clock::Clock;
use svc_base::positions::CommitPosition;
use svc_base::sync::lock;
use svc_ledger::{DatabaseEntry, DatabaseName, Ledger, RunId, answers_for};
use tokio::sync::{Notify, watch};

use super::super::gate::AnswerGate;
use super::super::peers::{PeerHandlerFn, full_body, refusal};
use super::super::run::{Run, SeenNode};
use super::super::shipped::ShippedDatabase;
use super::log::{FeedLog, TAKEN_FOR_FRESH};
use super::message::FeedAnswer;
use super::{FeedLags, SERVICE};

/// Longest time that a poll is held while there is nothing new.
const HOLD: Duration = Duration::from_millis(250);

/// Feed of the run that has control.
pub(in crate::cluster) struct ControlFeed {
    clock: Clock,
    gate: Arc<AnswerGate>,
    /// Whether the run ends by itself. Its polls are refused then: by the next owner's word, its answers count no more.
    is_leaving: Arc<AtomicBool>,
    log: Mutex<FeedLog>,
    /// Last commit that the ledger has acknowledged, for polls that wait.
    last: watch::Sender<CommitPosition>,
    /// Wakes the task that answers callers.
    changed: Notify,
    lags: FeedLags,
}

impl fmt::Debug for ControlFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlFeed").finish_non_exhaustive()
    }
}

impl ControlFeed {
    /// Begins to name commits after `first`, up to which the run has loaded or followed. Call it once the run has the place of control
    /// and the one before answers nothing any more. It returns when nobody is fresh by the word of that one: until then this run shows
    /// nothing and makes no commit.
    pub(in crate::cluster) async fn start<L: Ledger>(
        run: &Run<L>,
        control: Arc<ShippedDatabase>,
        first: CommitPosition,
    ) -> Arc<Self> {
        let feed = Arc::new(Self {
            clock: run.clock().clone(),
            gate: Arc::clone(run.gate()),
            is_leaving: Arc::clone(run.leaving()),
            log: Mutex::new(FeedLog::new(first)),
            last: watch::Sender::new(first),
            changed: Notify::new(),
            lags: run.feed_lags().clone(),
        });
        run.metrics().set_feed_lag(0);
        run.peers().serve(SERVICE, feed.handler());
        tokio::spawn(answer_callers(Arc::clone(&feed), control));
        let nodes = run.nodes().borrow().clone();
        let others_until = others_fresh_until(&nodes, run.id());
        tokio::time::sleep(others_until.saturating_sub(run.clock().elapsed())).await;
        feed
    }

    /// Takes commits that the ledger has acknowledged, of all databases. Callers of those of control are answered later.
    pub(in crate::cluster) fn acknowledged(&self, commits: &[DatabaseEntry]) {
        let control = |commit: &&DatabaseEntry| commit.database == DatabaseName::Control;
        let last = {
            let mut log = lock(&self.log);
            for commit in commits.iter().filter(control) {
                log.acknowledged(commit.entry.clone());
            }
            log.last()
        };
        self.last.send_if_modified(|named| {
            let is_new = *named < last;
            *named = last;
            is_new
        });
        self.changed.notify_one();
    }

    fn handler(self: &Arc<Self>) -> PeerHandlerFn {
        let feed = Arc::clone(self);
        Arc::new(move |from, request| {
            let (feed, after) = (Arc::clone(&feed), polled_position(request.uri()));
            Box::pin(async move {
                let answer = match after {
                    Some(after) => feed.poll(from, after).await,
                    None => None,
                };
                match answer {
                    Some(answer) => Response::new(full_body(answer.to_bytes())),
                    None => refusal(),
                }
            })
        })
    }

    /// Answers a poll as soon as there is something new, or after a while; `None` if this run may not answer any more.
    async fn poll(&self, from: RunId, after: CommitPosition) -> Option<FeedAnswer> {
        let received = self.clock.elapsed();
        lock(&self.log).polled(from, after, received);
        self.changed.notify_one();
        let mut last = self.last.subscribe();
        // The sender lives as long as this.
        let _ = tokio::time::timeout(HOLD, last.wait_for(|last| *last > after)).await;
        // A follower is fresh by this answer: whoever owns control next counts on its being none after this.
        if self.is_leaving.load(Ordering::SeqCst) || !self.gate.may_answer() {
            return None;
        }
        let now = self.clock.elapsed();
        Some(lock(&self.log).answer(from, after, received, now))
    }
}

/// Answers callers, until the process ends.
async fn answer_callers(feed: Arc<ControlFeed>, control: Arc<ShippedDatabase>) {
    let mut answered = CommitPosition::default();
    loop {
        let now = feed.clock.elapsed();
        let (released, next, lags) = {
            let log = lock(&feed.log);
            (log.released(now), log.next_release(now), log.lags())
        };
        feed.lags.replace(lags);
        if released > answered {
            answered = released;
            control.acknowledge(released);
        }
        let changed = feed.changed.notified();
        match next {
            Some(next) => {
                // Whether it came to an end or to its time, it is looked at again.
                let _ = tokio::time::timeout(next.saturating_sub(now), changed).await;
            }
            None => changed.await,
        }
    }
}

/// Returns the position that a poll asks from.
fn polled_position(uri: &Uri) -> Option<CommitPosition> {
    let after = uri.query()?.strip_prefix("after=")?;
    after.parse().ok().map(CommitPosition)
}

/// Time until which nodes may be fresh by the word of an owner before `me`, which is dead by now. A run that was buried may have answered
/// until its last beat was too old.
fn others_fresh_until(nodes: &[SeenNode], me: RunId) -> Duration {
    let mut live = nodes.iter().filter(|seen| seen.state.live);
    if live.all(|seen| seen.state.node.run == me) {
        return Duration::ZERO;
    }
    let dead = nodes.iter().filter(|seen| !seen.state.live);
    let ends = dead.map(|seen| match seen.state.leaving {
        true => seen.since,
        false => seen.since + answers_for(seen.state.node.suspect_after),
    });
    ends.max()
        .map_or(Duration::ZERO, |end| end + TAKEN_FOR_FRESH)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::super::tests::seen_node;
    use super::*;

    fn seen(number: u128, live: bool, leaving: bool) -> SeenNode {
        let mut seen = seen_node(number, "");
        (seen.state.live, seen.state.leaving) = (live, leaving);
        seen
    }

    #[test]
    fn an_owner_waits_for_those_that_the_one_before_has_told() {
        let me = Uuid::from_u128(1).into();
        let (own, follower) = (seen(1, true, false), seen(2, true, false));
        let (left, buried) = (seen(3, false, true), seen(4, false, false));
        let (since, suspect_after) = (own.since, own.state.node.suspect_after);
        let silent = since + answers_for(suspect_after);
        for (nodes, until) in [
            (vec![own.clone(), buried.clone()], Duration::ZERO),
            (vec![own.clone(), follower.clone()], Duration::ZERO),
            (
                vec![own.clone(), follower.clone(), left.clone()],
                since + TAKEN_FOR_FRESH,
            ),
            (vec![own, follower, left, buried], silent + TAKEN_FOR_FRESH),
        ] {
            assert_eq!(others_fresh_until(&nodes, me), until);
        }
        // Whoever was taken for dead because it stood still was silent for long enough.
        assert!(silent + TAKEN_FOR_FRESH < since + suspect_after);
    }

    #[test]
    fn a_poll_names_a_position() {
        for (uri, position) in [
            ("/feed?after=0", Some(0)),
            ("/feed?after=17", Some(17)),
            ("/feed?after=", None),
            ("/feed", None),
            ("/feed?before=1", None),
        ] {
            let found = polled_position(&uri.parse().unwrap());
            assert_eq!(found, position.map(CommitPosition), "{uri}");
        }
    }
}
