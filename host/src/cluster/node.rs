//! This node: its run in the ledger, the bucket, and what operators ask of it.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::bucket::Bucket;
use super::candidate::{self, ControlCandidate, ControlClaim};
use super::found;
use super::listing::{self, NodeView};
use super::metrics::ClusterMetrics;
use super::peers::{PeerListener, Peers};
use super::run::{Run, end_process};
use super::serving_node::{ServingClusterNode, ServingNode};
use crate::config::{ClusterSettings, Config};
use crate::content::StoreConnector;
use crate::data_lock::create_private_dir;
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::random::Random;
use svc_ledger::{Ledger as _, LedgerError, PostgresLedger, RunId};

/// Files and directories of an earlier run's databases, and of one-time pages, which another node may have deleted since.
const DATABASES: [&str; 9] = [
    "control.db",
    "control.db-wal",
    "control.db-shm",
    "counters.db",
    "counters.db-wal",
    "counters.db-shm",
    "backends",
    "once",
    "tmp",
];

/// A node that has joined the ledger.
pub struct ClusterNode<L = PostgresLedger> {
    run: Arc<Run<L>>,
    bucket: Bucket,
    /// Takes an operator's request that this node takes control.
    promotions: mpsc::Sender<()>,
}

impl<L> Clone for ClusterNode<L> {
    fn clone(&self) -> Self {
        Self {
            run: Arc::clone(&self.run),
            bucket: self.bucket.clone(),
            promotions: self.promotions.clone(),
        }
    }
}

impl<L> fmt::Debug for ClusterNode<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNode")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// A node that looks for control, with the receiver of operators' requests to take it.
#[derive(Debug)]
pub struct JoinedNode {
    /// The node.
    pub node: ClusterNode,
    /// Control, if it was to be had at once; else the candidate that waits for it.
    turn: Result<ControlClaim, ControlCandidate<PostgresLedger>>,
    promotions: mpsc::Receiver<()>,
    /// Whether it serves nothing before it has control.
    stands_by: bool,
}

/// Wait of a node that serves meanwhile: for control, or an operator's request to take it.
#[derive(Debug)]
pub struct ControlWait {
    candidate: ControlCandidate<PostgresLedger>,
    promotions: mpsc::Receiver<()>,
}

impl ControlWait {
    /// Waits until this node has the place of control. A run that was buried meanwhile ends the process.
    pub async fn claim(mut self) -> ControlClaim {
        match self.candidate.wait(&mut self.promotions).await {
            Ok(claim) => {
                fault::point("cluster.control_claimed");
                claim
            }
            Err(error) => end_process(&error),
        }
    }
}

/// A run that has control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlHolder {
    /// Id of the run.
    pub run: RunId,
    /// Name of its node.
    pub name: String,
}

impl ClusterNode {
    /// Joins the ledger that the settings name, and looks for control. The databases that are in the data directory are removed: what
    /// they have is in the ledger, or was never acknowledged.
    ///
    /// # Errors
    /// When the ledger or the bucket cannot be used or is of another installation, or the data directory is of one machine.
    pub async fn join(
        config: &Config,
        settings: &ClusterSettings,
        clock: &Clock,
        random: &Random,
    ) -> anyhow::Result<JoinedNode> {
        // Nodes measure each other's silence, whatever moves the day.
        let clock = &clock.with_machine_time();
        let url = settings.ledger.as_str();
        let ledger =
            PostgresLedger::new(url, settings.synced_standbys).context("cluster.ledger")?;
        let ledger = Arc::new(ledger);
        // Before a founding there may be no bucket, either.
        let installation = find_installation(&ledger).await?;
        let connector =
            StoreConnector::for_cluster(OutboundClient::new()?, config.limits.page_bytes);
        let bucket = Bucket::open(&settings.bucket, config.s3.as_ref(), &connector)
            .context("cluster.bucket")?;
        check_data_directory(&config.data, installation)?;
        bucket.check_installation(installation).await?;
        bucket.check_unversioned().await?;
        let run = join_with_listener(ledger, settings, clock, random).await?;
        let turn = match look_for_control(&run, &config.data, settings.standby).await {
            Ok(turn) => turn,
            Err(error) => {
                run.leave_failed(&error).await;
                return Err(error);
            }
        };
        // Its tables are others than this program's statements name.
        let cannot_follow =
            turn.is_err() && matches!(candidate::is_of_other_schema(&run).await, Ok(true));
        if cannot_follow && !settings.standby {
            tracing::warn!(
                "control is of another version, which this node cannot follow: it stands by until it has control"
            );
        }
        let (promotions, promoted) = mpsc::channel(1);
        Ok(JoinedNode {
            node: Self {
                run,
                bucket,
                promotions,
            },
            turn,
            promotions: promoted,
            stands_by: settings.standby || cannot_follow,
        })
    }

    /// Returns the metrics of the node.
    pub fn metrics(&self) -> &ClusterMetrics {
        self.run.metrics()
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        self.run.name()
    }

    /// Returns the id of this run.
    pub fn id(&self) -> RunId {
        self.run.id()
    }

    /// Returns the other nodes, to be asked and answered.
    pub fn peers(&self) -> &Arc<Peers> {
        self.run.peers()
    }

    /// Finds the run that has control and lives, as far as this node knows.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn find_control(&self) -> Result<Option<ControlHolder>, LedgerError> {
        let holder = candidate::find_holder(&self.run).await?;
        let nodes = self.run.nodes().borrow().clone();
        let mut states = nodes.into_iter().map(|seen| seen.state);
        let state = states.find(|state| state.live && Some(state.node.run) == holder);
        Ok(state.map(|state| ControlHolder {
            run: state.node.run,
            name: state.node.name,
        }))
    }

    /// Has this node take control, wherever that is.
    ///
    /// # Errors
    /// When the node that has control, or had it last, runs a newer program.
    pub async fn promote(&self) -> anyhow::Result<()> {
        let run = Arc::clone(&self.run);
        let looking = tokio::spawn(async move { candidate::find_newer_owner(&run).await });
        // Where the ledger does not answer now, the candidate looks when it does.
        if let Ok(Ok(Ok(Some(owner)))) = tokio::time::timeout(LOOK_TIMEOUT, looking).await {
            bail!("{owner}");
        }
        // One request is as good as two.
        let _ = self.promotions.try_send(());
        Ok(())
    }

    /// Leaves the ledger: others need not wait until they take this node for dead.
    pub async fn leave(&self) {
        self.run.leave().await;
    }

    /// Leaves the ledger after a start that failed, as [`Run::leave_failed`] does.
    pub async fn leave_failed(&self, why: &anyhow::Error) {
        self.run.leave_failed(why).await;
    }

    /// Lists all nodes: every run that lives, and the newest of each name that none of them has and no operator has removed.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn list(&self) -> anyhow::Result<Vec<NodeView>> {
        listing::list_nodes(&self.run).await
    }

    /// Takes a dead node off the lists. One that stands still is waited for until it is taken for dead.
    ///
    /// # Errors
    /// When it runs, or nobody has its name, or the ledger does not answer.
    pub async fn remove(&self, name: &str) -> anyhow::Result<()> {
        listing::remove_node(&self.run, name).await
    }
}

impl<L> ClusterNode<L> {
    /// Wraps a run that has joined.
    #[cfg(test)]
    pub(super) fn new(run: Arc<Run<L>>, bucket: Bucket, promotions: mpsc::Sender<()>) -> Self {
        Self {
            run,
            bucket,
            promotions,
        }
    }

    /// Returns the run.
    pub(super) fn run(&self) -> &Arc<Run<L>> {
        &self.run
    }

    /// Returns the bucket.
    pub(super) fn bucket(&self) -> &Bucket {
        &self.bucket
    }
}

impl JoinedNode {
    /// Whether this node serves nothing before it has control.
    pub fn is_standby(&self) -> bool {
        self.stands_by && self.turn.is_err()
    }

    /// Begins to serve what the ledger has. A standby waits until it has control before; any other node follows without control, and gets
    /// the wait for it.
    ///
    /// # Errors
    /// When the control database cannot be loaded.
    pub async fn serve(
        self,
        data: &Path,
    ) -> anyhow::Result<(Arc<ServingClusterNode>, Option<ControlWait>)> {
        let is_standby = self.is_standby();
        let Self {
            node,
            turn,
            promotions,
            ..
        } = self;
        let (claim, wait) = match turn {
            Ok(claim) => {
                fault::point("cluster.control_claimed");
                (Some(claim), None)
            }
            Err(candidate) => {
                let wait = ControlWait {
                    candidate,
                    promotions,
                };
                match is_standby {
                    true => (Some(wait.claim().await), None),
                    false => (None, Some(wait)),
                }
            }
        };
        let serving = ServingNode::begin(node, claim, data).await?;
        Ok((serving, wait))
    }
}

/// Joins the ledger with a listener for other nodes, whose address is bound before it is told.
async fn join_with_listener(
    ledger: Arc<PostgresLedger>,
    settings: &ClusterSettings,
    clock: &Clock,
    random: &Random,
) -> anyhow::Result<Arc<Run<PostgresLedger>>> {
    let listener = PeerListener::bind(settings.peer_listen).await;
    let listener = listener
        .with_context(|| format!("cluster.peer_listen: listening on {}", settings.peer_listen))?;
    let bound = ClusterSettings {
        peer_listen: listener.address(),
        ..settings.clone()
    };
    let run = Run::join(ledger, &bound, clock, random).await;
    let run = run.map_err(|error| match error.downcast_ref() {
        Some(LedgerError::Unsynced) => error.context(format!(
            "cluster.synced_standbys is {}: have PostgreSQL wait for as many by synchronous_standby_names and synchronous_commit",
            settings.synced_standbys
        )),
        _ => error,
    })?;
    if let Err(error) = listener.start(run.peers()) {
        run.leave().await;
        return Err(error).context("speaking TLS with other nodes");
    }
    Ok(run)
}

/// Removes the databases of an earlier run, and looks whether control is to be had.
async fn look_for_control(
    run: &Arc<Run<PostgresLedger>>,
    data: &Path,
    is_patient: bool,
) -> anyhow::Result<Result<ControlClaim, ControlCandidate<PostgresLedger>>> {
    let data = data.to_owned();
    tokio::task::spawn_blocking(move || remove_databases(&data))
        .await?
        .context("removing the databases of an earlier run")?;
    Ok(ControlCandidate::begin(Arc::clone(run), is_patient).await?)
}

/// Returns the installation that the ledger has; refuses one that nobody has founded to its end.
async fn find_installation(ledger: &PostgresLedger) -> anyhow::Result<Uuid> {
    let mut tries = 0;
    let installation = loop {
        match ledger.installation().await {
            Err(error @ (LedgerError::Unavailable(_) | LedgerError::Unknown(_)))
                if tries < TRIES =>
            {
                tracing::warn!(%error, "waiting for the ledger");
                tries += 1;
                tokio::time::sleep(RETRY_EVERY).await;
            }
            found => break found.context("reading from the ledger")?,
        }
    };
    let Some(installation) = installation else {
        bail!("the ledger has no installation yet: make one by `svc cluster found`");
    };
    if !found::is_founded(ledger).await? {
        bail!("the ledger has only a part of an installation: run `svc cluster found` again");
    }
    Ok(installation)
}

/// Refuses a data directory of one machine, or of another installation. A new one becomes this installation's.
fn check_data_directory(data: &Path, installation: Uuid) -> anyhow::Result<()> {
    match found::installation_id(data)? {
        Some(id) if id != installation => bail!(
            "the data directory {} belongs to another installation than the ledger: use an empty one",
            data.display()
        ),
        Some(_) => Ok(()),
        None if data.join(DATABASES[0]).exists() => bail!(
            "the data directory {} is that of one machine: bring it into the cluster by `svc cluster found`, or use an empty one",
            data.display()
        ),
        None => Ok(found::record_installation_id(data, installation)?),
    }
}

/// Times that a start asks a ledger that cannot be reached, and the pause in between.
const TRIES: u32 = 20;
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// Longest time that an operator's request to take control waits for the ledger's word of who has it.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Removes the databases of an earlier run, which nobody believes.
fn remove_databases(data: &Path) -> io::Result<()> {
    for name in DATABASES {
        let path = data.join(name);
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    create_private_dir(&data.join("tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_run_is_left_but_what_is_no_database() {
        let data = tempfile::tempdir().unwrap();
        for name in ["control.db", "control.db-wal", "counters.db", "cluster.id"] {
            fs::write(data.path().join(name), "old").unwrap();
        }
        fs::create_dir_all(data.path().join("backends/one")).unwrap();
        remove_databases(data.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(data.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["cluster.id", "tmp"]);
    }
}
