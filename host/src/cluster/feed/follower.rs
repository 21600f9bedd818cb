//! A follower's end of the feed: it polls the run that has control, and applies what that names.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use svc_base::clock::Clock;
use svc_base::positions::{CommitPosition, Entry};
use svc_database::DatabaseState;
use svc_ledger::{DatabaseName, Ledger, LedgerError, RunId};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::super::gate::AnswerGate;
use super::super::known_places::{DatabaseLocation, KnownPlaces};
use super::super::loads::TAIL_PIECE_BYTES;
use super::super::peers::full_body;
use super::super::run::Run;
use super::SERVICE;
use super::log::FRESH_FOR;
use super::message::FeedAnswer;
use crate::control::{self, ControlDatabase, FollowedCommits, Freshness};

/// Longest time that the body of an answer is waited for: a node that was away for a while gets much.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a poll that was not answered.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Freshness of this node's replica of control.
pub struct FeedFreshness {
    clock: Clock,
    gate: Arc<AnswerGate>,
    /// End of the second of the last poll after which the replica had everything, in nanoseconds; 0 if nobody is followed. It is no
    /// part of what is waited for, because every view looks.
    until: AtomicU64,
    /// Told of each poll that is answered.
    extended: watch::Sender<()>,
}

impl fmt::Debug for FeedFreshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedFreshness")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl FeedFreshness {
    /// Makes the freshness of a run that follows nobody yet.
    pub fn new<L: Ledger>(run: &Run<L>) -> Arc<Self> {
        Arc::new(Self {
            clock: run.clock().clone(),
            gate: Arc::clone(run.gate()),
            until: AtomicU64::new(0),
            extended: watch::Sender::new(()),
        })
    }

    /// Waits until the replica is fresh.
    pub async fn wait_until_fresh(&self) {
        let mut extended = self.extended.subscribe();
        while !self.is_fresh() && extended.changed().await.is_ok() {}
    }

    /// Notes that everything is here which the answer to a poll named. The poll was sent at `sent`.
    fn extend(&self, sent: Duration) {
        let until = (sent + FRESH_FOR).as_nanos();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.until.fetch_max(until, Ordering::SeqCst);
        self.extended.send_replace(());
    }

    /// Notes that nobody is followed any more.
    fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }
}

impl Freshness for FeedFreshness {
    fn is_fresh(&self) -> bool {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        self.clock.elapsed() < until && self.gate.may_answer()
    }
}

/// Task that follows the feed. Dropping this ends it.
pub struct FeedFollower<L> {
    stop: watch::Sender<bool>,
    task: JoinHandle<Following<L>>,
}

impl<L> fmt::Debug for FeedFollower<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedFollower").finish_non_exhaustive()
    }
}

/// State of the task.
struct Following<L> {
    run: Arc<Run<L>>,
    places: Arc<KnownPlaces<L>>,
    control: ControlDatabase,
    freshness: Arc<FeedFreshness>,
    /// Last commit that the replica has.
    position: CommitPosition,
}

impl<L: Ledger> FeedFollower<L> {
    /// Begins to follow whoever has control, at a takeover the next one. `control` was opened as a follower at `position` of the ledger,
    /// with this freshness. A replica that cannot follow any more ends the process, since a start loads it anew.
    pub fn start(
        run: Arc<Run<L>>,
        places: Arc<KnownPlaces<L>>,
        control: ControlDatabase,
        freshness: Arc<FeedFreshness>,
        position: CommitPosition,
    ) -> Self {
        let following = Following {
            run,
            places,
            control,
            freshness,
            position,
        };
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(following.follow(stopped));
        Self { stop, task }
    }

    /// Ends the following, since this run has claimed control: applies all that the ledger has, with its changes, and closes the replica.
    /// Returns the state, from which the owner goes on.
    ///
    /// # Errors
    /// When the run was buried, or the commits do not fit.
    pub async fn take_over(self) -> anyhow::Result<DatabaseState> {
        self.stop.send_replace(true);
        let mut following = self.task.await?;
        following.freshness.end();
        // Nobody appends any more, and what is read counts as a commit of this run: it is all that was ever acknowledged.
        loop {
            match following.read_ledger().await {
                Ok(entries) if entries.is_empty() => break,
                Ok(entries) => following.apply(entries).await?,
                Err(LedgerError::Fenced) => return Err(LedgerError::Fenced.into()),
                Err(error) => {
                    tracing::warn!(%error, "the last commits of control cannot be read: that is tried again");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
        Ok(following.control.end_following().await?)
    }
}

impl<L: Ledger> Following<L> {
    /// Follows until it is stopped.
    async fn follow(mut self, mut stopped: watch::Receiver<bool>) -> Self {
        let mut is_answered = true;
        while !*stopped.borrow() {
            let polled = tokio::select! {
                polled = self.poll() => polled,
                _ = stopped.changed() => break,
            };
            let was_answered = std::mem::replace(&mut is_answered, polled.is_ok());
            match polled {
                Ok((sent, answer)) => {
                    if let Err(error) = self.take(sent, answer).await {
                        // The replica is lost, and what it has is not shown any more.
                        self.freshness.end();
                        self.run.end(&format!("control is not followed: {error:#}"));
                        break;
                    }
                }
                Err(error) => {
                    if was_answered {
                        tracing::warn!(error = %format!("{error:#}"), "control's node does not answer: what it has is not shown meanwhile");
                    }
                    // Another run may have control by now.
                    self.places.forget(DatabaseName::Control);
                    sleep(RETRY_AFTER).await;
                }
            }
        }
        self
    }

    /// Asks the run that has control for what comes next. Returns the answer with the time at which it was asked.
    async fn poll(&self) -> anyhow::Result<(Duration, FeedAnswer)> {
        let owner = match self.places.locate(DatabaseName::Control).await {
            DatabaseLocation::At(owner) => owner,
            // This run has claimed it, and is about to stop following.
            DatabaseLocation::Here | DatabaseLocation::Unknown => {
                return Err(anyhow!("no other node is known to have control"));
            }
        };
        let sent = self.run.clock().elapsed();
        Ok((sent, self.ask(owner).await?))
    }

    async fn ask(&self, owner: RunId) -> anyhow::Result<FeedAnswer> {
        let uri = format!("/{SERVICE}?after={}", self.position.0);
        let request = Request::get(uri).body(full_body(Bytes::new()))?;
        // A later answer makes nobody fresh.
        let sending = timeout(FRESH_FOR, self.run.peers().client().send(owner, request));
        let response = match sending.await? {
            Ok(response) => response,
            Err(error) => return Err(anyhow!("{error}")),
        };
        ensure!(
            response.status() == StatusCode::OK,
            "it answers by {}",
            response.status()
        );
        let body = timeout(BODY_TIMEOUT, response.into_body().collect()).await??;
        FeedAnswer::from_bytes(&body.to_bytes()).context("its answer cannot be read")
    }

    /// Takes an answer: applies the next commits that it names, and is fresh if these are all.
    ///
    /// # Errors
    /// When the replica is lost.
    async fn take(&mut self, sent: Duration, answer: FeedAnswer) -> anyhow::Result<()> {
        let FeedAnswer {
            last,
            lags,
            entries,
        } = answer;
        let next = match entries.is_empty() && self.position < last {
            true => self.read_named(last).await?,
            false => entries,
        };
        if !next.is_empty() {
            self.apply(next).await?;
        }
        let lag = last.0.saturating_sub(self.position.0);
        self.run.metrics().set_feed_lag(lag);
        self.run.feed_lags().replace(lags);
        if lag == 0 {
            self.freshness.extend(sent);
        }
        Ok(())
    }

    /// Reads the next commits from the ledger, since the feed has them no more: those that it has named, and no later one.
    async fn read_named(&self, last: CommitPosition) -> anyhow::Result<Vec<Entry>> {
        match self.read_ledger().await {
            Ok(entries) => named(entries, self.position, last),
            Err(LedgerError::Fenced) => Err(LedgerError::Fenced.into()),
            Err(error) => {
                tracing::warn!(%error, "commits of control cannot be read: that is tried again");
                sleep(RETRY_AFTER).await;
                Ok(Vec::new())
            }
        }
    }

    async fn read_ledger(&self) -> Result<Vec<Entry>, LedgerError> {
        let (ledger, run) = (self.run.ledger(), self.run.id());
        let control = DatabaseName::Control;
        let tail = ledger.tail(Some(run), control, self.position, TAIL_PIECE_BYTES);
        tail.await
    }

    /// Applies commits, and then delivers the changes that they carry.
    async fn apply(&mut self, entries: Vec<Entry>) -> Result<(), control::Error> {
        let commits = FollowedCommits::of(entries)?;
        self.position = self.control.follow(commits).await?;
        Ok(())
    }
}

/// Leaves out commits that the feed has not named.
///
/// # Errors
/// When the next commit is gone, since bases have made it needless: the replica must be loaded anew.
fn named(
    mut entries: Vec<Entry>,
    position: CommitPosition,
    last: CommitPosition,
) -> anyhow::Result<Vec<Entry>> {
    let first = entries.first().map(|entry| entry.position);
    ensure!(
        first.is_none_or(|first| first == position.next()),
        "the ledger does not have commit {} any more",
        position.next().0
    );
    entries.retain(|entry| entry.position <= last);
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use svc_base::clock::Timestamp;
    use svc_base::positions::Checksum;

    use super::*;

    #[test]
    fn only_what_is_named_is_taken_from_the_ledger() {
        let entry = |position| Entry {
            position: CommitPosition(position),
            at: Timestamp(0),
            before: Checksum(0),
            after: Checksum(0),
            body: Arc::default(),
            changes: Arc::default(),
        };
        for (last, taken) in [(9, 2), (8, 1), (20, 3)] {
            let entries = (8..=10).map(entry).collect();
            let named = named(entries, CommitPosition(7), CommitPosition(last));
            assert_eq!(named.unwrap().len(), taken);
        }
        let gap = named(vec![entry(9)], CommitPosition(7), CommitPosition(9));
        assert!(gap.is_err());
    }
}
