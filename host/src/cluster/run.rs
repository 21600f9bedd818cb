//! A run: this process in the ledger. It beats, watches the others, and buries those that stand still.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::watch;

use super::feed::FeedLags;
use super::gate::{AnswerGate, TICK_EVERY};
use super::keys::RunKeys;
use super::metrics::ClusterMetrics;
use super::peers::{KnownRuns, Peers};
use crate::config::ClusterSettings;
use crate::control::SCHEMA_VERSION;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::random::Random;
use svc_ledger::{
    AppendQueue, BEAT_EVERY, BeatCount, ClaimOutcome, DatabaseName, Ledger, LedgerError, Node,
    NodeState, RunId, answers_for,
};

/// Exit code of a process whose run was buried.
const FENCED: i32 = 3;
/// Time for which a process that starts waits for a ledger that cannot be reached.
const JOIN_WAIT: Duration = Duration::from_secs(10);
/// Pause between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// Pause between beats that are not acknowledged.
const BEAT_RETRY: Duration = Duration::from_millis(250);
/// Longest time that a process which ends waits for the ledger.
const LEAVE_WAIT: Duration = Duration::from_secs(3);

/// Ends the process: it may not write any more, and says nothing to anybody. A supervisor starts another.
pub fn end_process(why: &dyn fmt::Display) -> ! {
    tracing::error!(%why, "this process ends, since it may not write any more: start it again");
    process::exit(FENCED);
}

/// A run of this process.
pub struct Run<L> {
    ledger: Arc<L>,
    node: Node,
    clock: Clock,
    gate: Arc<AnswerGate>,
    queue: Arc<AppendQueue>,
    metrics: Arc<ClusterMetrics>,
    peers: Arc<Peers>,
    /// Whether the process ends by itself.
    is_leaving: Arc<AtomicBool>,
    feed_lags: FeedLags,
    /// All runs, as the last beat found them, with the time at which each beat was seen first.
    nodes: watch::Sender<Vec<SeenNode>>,
}

/// A run as this one sees it.
#[derive(Clone, Debug)]
pub struct SeenNode {
    /// State in the ledger.
    pub state: NodeState,
    /// Time, by this machine's clock, since which its beat stands.
    pub since: Duration,
}

impl<L> fmt::Debug for Run<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl<L: Ledger> Run<L> {
    /// Joins the ledger as a new run, and begins to beat. Waits while a run of the same name may still live. Whoever has bound the address
    /// for other nodes puts it into `settings` before.
    ///
    /// # Errors
    /// When the ledger cannot be reached, does not wait for its standbys, or has another node of this name that lives.
    pub async fn join(
        ledger: Arc<L>,
        settings: &ClusterSettings,
        clock: &Clock,
        random: &Random,
    ) -> anyhow::Result<Arc<Self>> {
        let run = RunId::new(clock, random)?;
        let queue = Arc::new(AppendQueue::new(run, clock.clone()));
        let gate = Arc::new(AnswerGate::new(
            run,
            Arc::clone(&queue),
            clock.clone(),
            settings.suspect_after(),
            Duration::from_secs(settings.stale_pages_seconds.into()),
        ));
        let keys = RunKeys::generate()?;
        let node = Node {
            run,
            name: settings.name.clone(),
            suspect_after: settings.suspect_after(),
            peer_url: settings.peer_url(settings.peer_listen),
            peer_key: keys.public_key().to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: SCHEMA_VERSION,
        };
        let nodes = watch::Sender::new(Vec::new());
        let known = KnownRuns::new(nodes.subscribe(), Arc::clone(&gate));
        let joined = Arc::new(Self {
            ledger,
            node,
            clock: clock.clone(),
            gate,
            queue,
            metrics: Arc::default(),
            peers: Arc::new(Peers::new(keys, known, clock.clone())),
            is_leaving: Arc::default(),
            feed_lags: FeedLags::default(),
            nodes,
        });
        let join = async || joined.ledger.join(&joined.node).await;
        joined.retry(join).await.context("joining the ledger")?;
        joined.wait_for_name().await?;
        tokio::spawn(keep_beating(Arc::clone(&joined)));
        let gate = Arc::clone(&joined.gate);
        tokio::spawn(async move {
            loop {
                gate.tick();
                tokio::time::sleep(TICK_EVERY).await;
            }
        });
        Ok(joined)
    }

    /// Returns the id of the run.
    pub fn id(&self) -> RunId {
        self.node.run
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Returns the newest schema that this program knows.
    pub(super) fn schema(&self) -> u32 {
        self.node.schema
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &Arc<L> {
        &self.ledger
    }

    /// Returns the gate of answers.
    pub fn gate(&self) -> &Arc<AnswerGate> {
        &self.gate
    }

    /// Returns the queue of commits on their way to the ledger.
    pub(super) fn queue(&self) -> &Arc<AppendQueue> {
        &self.queue
    }

    /// Returns the metrics of the node.
    pub fn metrics(&self) -> &Arc<ClusterMetrics> {
        &self.metrics
    }

    /// Returns the other nodes, to be asked and answered.
    pub fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Returns how far the followers of control are behind.
    pub(super) fn feed_lags(&self) -> &FeedLags {
        &self.feed_lags
    }

    /// Returns whether the process ends by itself.
    pub(super) fn leaving(&self) -> &Arc<AtomicBool> {
        &self.is_leaving
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns what each beat finds.
    pub fn nodes(&self) -> watch::Receiver<Vec<SeenNode>> {
        self.nodes.subscribe()
    }

    /// Repeats a request of a process that starts, while the ledger cannot be reached.
    async fn retry<T>(
        &self,
        request: impl AsyncFn() -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let begun = self.clock.elapsed();
        loop {
            match request().await {
                Err(error @ (LedgerError::Unavailable(_) | LedgerError::Unknown(_)))
                    if self.clock.elapsed().saturating_sub(begun) < JOIN_WAIT =>
                {
                    tracing::warn!(%error, "waiting for the ledger");
                    tokio::time::sleep(RETRY_EVERY).await;
                }
                answer => return answer,
            }
        }
    }

    /// Waits until no other run of this node's name lives. One that was killed is buried in time.
    async fn wait_for_name(&self) -> anyhow::Result<()> {
        let mut beats: BTreeMap<RunId, BeatCount> = BTreeMap::new();
        loop {
            self.retry(async || self.beat().await)
                .await
                .context("beating in the ledger")?;
            let namesakes: Vec<(RunId, BeatCount)> = {
                let nodes = self.nodes.borrow();
                let live = nodes.iter().map(|seen| &seen.state).filter(|one| one.live);
                live.filter(|one| one.node.run != self.node.run && one.node.name == self.node.name)
                    .map(|one| (one.node.run, one.beat))
                    .collect()
            };
            if namesakes.is_empty() {
                return Ok(());
            }
            for (run, beat) in namesakes {
                if *beats.entry(run).or_insert(beat) != beat {
                    self.leave().await;
                    bail!(
                        "another node named {:?} runs: give each node a name of its own by cluster.name",
                        self.node.name
                    );
                }
            }
            tracing::info!("waiting until an earlier run of this node is dead");
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// Sends one beat, and buries who stands still.
    pub(super) async fn beat(&self) -> Result<(), LedgerError> {
        let sent = self.clock.elapsed();
        let states = self.ledger.beat(self.node.run).await?;
        let suspects = self.gate.beat_answered(sent, &states);
        self.publish_nodes(states, &[]);
        let mut buried = Vec::new();
        for (dead, beat) in suspects {
            if self.bury(dead, Some(beat)).await? {
                buried.push(dead);
            }
        }
        if !buried.is_empty() {
            let nodes = self.nodes.borrow().clone();
            let states = nodes.into_iter().map(|seen| seen.state).collect();
            self.publish_nodes(states, &buried);
        }
        Ok(())
    }

    /// Buries another run: with `seen`, only if that is still its beat. Returns whether it is dead.
    pub(super) async fn bury(
        &self,
        dead: RunId,
        seen: Option<BeatCount>,
    ) -> Result<bool, LedgerError> {
        fault::point("cluster.burying");
        match self.ledger.bury(self.node.run, dead, seen).await {
            Ok(is_dead) => {
                if is_dead {
                    fault::point("cluster.buried");
                    tracing::warn!(run = %dead, "another node may not write any more: it is taken for dead");
                }
                Ok(is_dead)
            }
            Err(LedgerError::Fenced) => Err(LedgerError::Fenced),
            // Whether it was done is asked by the next beat.
            Err(error) => {
                tracing::warn!(%error, run = %dead, "a node could not be taken for dead");
                Ok(false)
            }
        }
    }

    /// Waits until a run, of which this one has claimed something, answers nothing any more: one that was buried may not know of its end
    /// before its last beat is too old. One that was suspected is silent already, one that has left by itself, too, and one that lives has
    /// given up itself what was claimed.
    pub(super) async fn wait_until_silent(&self, before: RunId) -> Result<(), LedgerError> {
        let beaten = self.beat().await;
        if let Err(LedgerError::Fenced) = beaten {
            return Err(LedgerError::Fenced);
        }
        let nodes = self.nodes.borrow().clone();
        let seen = nodes.iter().find(|seen| seen.state.node.run == before);
        // A run that is not told any more died long ago.
        let Some(seen) = seen.filter(|seen| !seen.state.leaving) else {
            return Ok(());
        };
        if beaten.is_ok() && seen.state.live {
            return Ok(());
        }
        let now = self.clock.elapsed();
        let last_beat = if beaten.is_ok() { seen.since } else { now };
        let silent = last_beat + answers_for(seen.state.node.suspect_after);
        tokio::time::sleep(silent.saturating_sub(now)).await;
        Ok(())
    }

    /// Tells who waits for news of the runs. Those in `buried` are dead by now.
    fn publish_nodes(&self, states: Vec<NodeState>, buried: &[RunId]) {
        let now = self.clock.elapsed();
        self.nodes.send_modify(|nodes| {
            let known: BTreeMap<RunId, (BeatCount, Duration)> = nodes
                .iter()
                .map(|seen| (seen.state.node.run, (seen.state.beat, seen.since)))
                .collect();
            *nodes = states
                .into_iter()
                .map(|mut state| {
                    let run = state.node.run;
                    state.live &= !buried.contains(&run);
                    let before = known.get(&run).filter(|(beat, _)| *beat == state.beat);
                    let since = before.map_or(now, |(_, since)| *since);
                    SeenNode { state, since }
                })
                .collect();
        });
    }

    /// Asks for the place of the control database.
    pub(super) async fn claim_control(&self) -> Result<ClaimOutcome, LedgerError> {
        self.ledger
            .claim(self.node.run, DatabaseName::Control)
            .await
    }

    /// Has the ledger know that this run serves from now on: a node that only waits for control leaves it to those that do.
    pub(super) async fn note_serving(&self) {
        loop {
            match self.ledger.note_serving(self.node.run).await {
                // The next beat ends a run that was buried.
                Ok(()) | Err(LedgerError::Fenced) => return,
                Err(error) => {
                    tracing::warn!(%error, "the ledger does not know yet that this node serves");
                }
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// Ends the process, since its run may not write any more; but not one that ends anyway.
    pub(super) fn end(&self, why: &dyn fmt::Display) {
        if !self.is_leaving.load(Ordering::SeqCst) {
            end_process(why);
        }
    }

    /// Leaves the ledger: whoever waits takes over at once, and nothing of this run is acknowledged any more. Returns whether another run
    /// had buried this one before.
    pub async fn leave(&self) -> bool {
        self.is_leaving.store(true, Ordering::SeqCst);
        let run = self.node.run;
        let left = tokio::time::timeout(LEAVE_WAIT, self.ledger.bury(run, run, None)).await;
        match left {
            Ok(Ok(_)) => false,
            Ok(Err(LedgerError::Fenced)) => true,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(
                    "the ledger does not know that this node has ended: others will see that it stands still"
                );
                false
            }
        }
    }

    /// Leaves the ledger after a start that failed. One that failed because its run was buried meanwhile ends here, and is to be started
    /// again.
    pub async fn leave_failed(&self, why: &anyhow::Error) {
        if self.leave().await {
            end_process(&format!("{why:#}"));
        }
    }
}

/// Beats until the process ends.
async fn keep_beating<L: Ledger>(run: Arc<Run<L>>) {
    let mut is_failing = false;
    loop {
        let sent = run.clock.elapsed();
        let next = match run.beat().await {
            Ok(()) => {
                if mem::take(&mut is_failing) {
                    tracing::info!("beats are acknowledged again");
                }
                run.gate.next_beat(sent)
            }
            Err(LedgerError::Fenced) => return run.end(&LedgerError::Fenced),
            Err(error) => {
                // It is tried again and again: the first failure of a row says enough.
                if !mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "a beat was not acknowledged: it is tried again until one is");
                }
                run.clock.elapsed() + BEAT_RETRY
            }
        };
        tokio::time::sleep(next.saturating_sub(run.clock.elapsed())).await;
    }
}
