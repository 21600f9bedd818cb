//! A node that serves: it has the databases that it has claimed, and control as its owner or as one that follows. What an application
//! needs of the cluster hangs on it: content, one-time pages, tenants' databases, views and metrics.

use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use svc_base::clock::Clock;
use svc_base::ids::DeploymentId;
use svc_base::sync::lock;
use svc_database::{DatabaseState, DatabasesDirectory, DurableSource, LogShipper};
use svc_ledger::{DatabaseName, Ledger, PostgresLedger};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::bases::Bases;
use super::bucket::Bucket;
use super::candidate::ControlClaim;
use super::errands::ErrandPost;
use super::feed::{ControlFeed, FeedFollower, FeedFreshness};
use super::gate::AnswerGate;
use super::guests::{ClusterGuests, GuestFollower};
use super::known_places::KnownPlaces;
use super::leftovers::Leftovers;
use super::loads::{self, LoadTarget};
use super::node::ClusterNode;
use super::owned_databases::{self, OwnedDatabases};
use super::run::Run;
use super::shipped::{ShippedDatabase, ShippingRoutes};
use super::tenants::{DatabaseUsers, Tenants, handovers};
use super::visits::{self, LedgerVisits};
use crate::backends::copies;
use crate::content::ContentStore;
use crate::control::{
    self, ChangeFeed, ControlChange, ControlDatabase, DeploymentVisits, Freshness,
    InstallationCounters,
};

/// Name of the control database's file, and of its log.
const CONTROL_FILE: &str = "control.db";
const CONTROL_LOG: &str = "control.db-wal";
/// Time that a node which begins to follow waits for the owner's word.
const FRESH_WAIT: Duration = Duration::from_secs(5);
/// Pause between two looks whether it is fresh.
const FRESH_LOOK: Duration = Duration::from_secs(1);
/// Shortest pause between two readings of all views, and the share of the time that they may take.
const VIEWS_EVERY: Duration = Duration::from_secs(2);
const VIEWS_REST: u32 = 20;
/// Longest time that a node which ends waits for the ledger to acknowledge its commits.
const CLOSE_WAIT: Duration = Duration::from_secs(10);
/// Longest time that it copies histories then: nobody answers meanwhile.
const COPY_WAIT: Duration = Duration::from_secs(2);

/// A serving node of an installation whose ledger is PostgreSQL.
pub type ServingClusterNode = ServingNode<PostgresLedger>;

/// This run, while it serves.
pub struct ServingNode<L> {
    node: ClusterNode<L>,
    data: PathBuf,
    bases: Arc<Bases<L>>,
    databases: Arc<OwnedDatabases<L>>,
    places: Arc<KnownPlaces<L>>,
    routes: ShippingRoutes,
    leftovers: Leftovers<L>,
    guests: ClusterGuests,
    freshness: Arc<FeedFreshness>,
    /// Time at which this node was fresh, about.
    fresh_at: Arc<Mutex<Duration>>,
    /// Task that follows control, unless this node has it.
    follower: Mutex<Option<FeedFollower<L>>>,
    /// State of the control database that was loaded, and the views of then, until the application takes them.
    loaded: Mutex<Option<DatabaseState>>,
    views: Mutex<Vec<DeploymentVisits>>,
    /// Whether this node has control and lets everybody write.
    owns_control: watch::Sender<bool>,
    /// Whether it was told to stop.
    is_stopping: AtomicBool,
}

impl<L> fmt::Debug for ServingNode<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingNode")
            .field("node", &self.node)
            .field("owns_control", &self.owns_control)
            .finish_non_exhaustive()
    }
}

impl<L: Ledger> ServingNode<L> {
    /// Begins to serve from `data`, whose databases were removed: loads the control database, and starts the tasks that acknowledge
    /// commits and store bases. With a claim of control this node is its owner from the start, else it follows.
    ///
    /// # Errors
    /// When the ledger, the bucket or the disk fails.
    pub async fn begin(
        node: ClusterNode<L>,
        claim: Option<ControlClaim>,
        data: &Path,
    ) -> anyhow::Result<Arc<Self>> {
        let (run, bucket) = (Arc::clone(node.run()), node.bucket().clone());
        let bases = Arc::new(bases_of(&run, &bucket, data));
        let to = LoadTarget {
            dir: Dir::open_ambient_dir(data, ambient_authority())?,
            name: CONTROL_FILE.to_owned(),
        };
        let loaded = load_control(&run, (&*bases, &bucket), &to, claim.is_some()).await;
        let loaded = loaded.context("loading the control database")?;
        // What a dead run has added to them is among them.
        let views = read_views(&run).await?;
        let (made, making) = mpsc::unbounded_channel();
        let routes = ShippingRoutes {
            queue: Arc::clone(run.queue()),
            gate: Arc::clone(run.gate()),
            made,
        };
        let places = KnownPlaces::follow(Arc::clone(&run));
        let tenants = Tenants::new(
            (Arc::clone(&run), Arc::clone(&places)),
            (Arc::clone(&bases), bucket.clone()),
            DatabasesDirectory::open(&data.join("backends"))?,
            routes.clone(),
        );
        let serving = Arc::new(Self {
            guests: ClusterGuests::new(bucket.clone()),
            leftovers: Leftovers::new(Arc::clone(&run), bucket, Arc::clone(&tenants)),
            freshness: FeedFreshness::new(&run),
            fresh_at: Arc::new(Mutex::new(node.run().clock().elapsed())),
            follower: Mutex::default(),
            databases: Arc::new(OwnedDatabases::new(tenants)),
            node,
            data: data.to_owned(),
            bases,
            places,
            routes,
            loaded: Mutex::new(Some(loaded)),
            views: Mutex::new(views),
            owns_control: watch::Sender::new(false),
            is_stopping: AtomicBool::new(false),
        });
        if let Some(claim) = claim {
            let state = lock(&serving.loaded).take().context("nothing is loaded")?;
            let shipper = LogShipper::new(to.dir, CONTROL_LOG, state);
            serving.ship_control(shipper, claim).await;
        }
        let (run, databases) = (serving.run(), &serving.databases);
        owned_databases::start_tasks(run, databases, &serving.bases, making);
        handovers::serve(run, databases);
        Ok(serving)
    }

    /// Has commits of control go to the ledger from now on, and be named to the nodes that follow. Returns when nobody is fresh by the word
    /// of the owner before.
    async fn ship_control(&self, shipper: LogShipper, claim: ControlClaim) -> Arc<ShippedDatabase> {
        // Its own positions begin at 0 when its writer opens.
        let offset = shipper.state().position();
        let control = Arc::new(ShippedDatabase::new(
            DatabaseName::Control,
            self.data.join(CONTROL_FILE),
            self.routes.clone(),
            offset,
            Some(shipper),
        ));
        let feed = ControlFeed::start(self.run(), Arc::clone(&control), offset).await;
        self.databases.set_control(Arc::clone(&control), feed);
        self.places.forget(DatabaseName::Control);
        self.run().metrics().note_control(claim.took_over);
        control
    }

    /// Opens the control database: as its owner, or as one that follows from now on.
    ///
    /// # Errors
    /// When the file cannot be opened; it is opened once.
    pub async fn open_control(&self) -> anyhow::Result<ControlDatabase> {
        let control = match self.databases.control() {
            Some(shipped) => {
                let feed: Arc<dyn ChangeFeed> = shipped.clone();
                ControlDatabase::open_owner(&self.data, shipped, feed)?
            }
            None => self.open_follower()?,
        };
        let tenants = Arc::clone(self.databases.tenants());
        control.on_change(move |change| match change {
            ControlChange::BackendEnded(id) => tenants.drop_file(*id),
            ControlChange::Slug(_)
            | ControlChange::Origin(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::ContentBlocked(_)
            | ControlChange::ContentAllowed(_)
            | ControlChange::DomainServed { .. }
            | ControlChange::DomainEnded(_) => {}
        });
        let place = LedgerVisits::new(Arc::clone(self.run().ledger()), self.run().id());
        let views = mem::take(&mut *lock(&self.views));
        control.counters().share(Arc::new(place), views);
        if control.is_follower() {
            // Without an owner that answers, the application opens all the same.
            let _ = timeout(FRESH_WAIT, self.freshness.wait_until_fresh()).await;
        } else {
            wait_for_commits(&control).await?;
        }
        Ok(control)
    }

    /// Opens the control database that was loaded, and begins to follow its owner.
    fn open_follower(&self) -> anyhow::Result<ControlDatabase> {
        let state = lock(&self.loaded).take().context("control is open")?;
        let position = state.position();
        let fresh: Arc<dyn Freshness> = self.freshness.clone();
        let control = ControlDatabase::open_follower(&self.data, state, fresh)?;
        let post = ErrandPost::new(self.run(), &self.places);
        control.set_errand_sender(Some(Arc::new(post)));
        let follower = FeedFollower::start(
            Arc::clone(self.run()),
            Arc::clone(&self.places),
            control.clone(),
            Arc::clone(&self.freshness),
            position,
        );
        *lock(&self.follower) = Some(follower);
        let (freshness, fresh_at) = (Arc::clone(&self.freshness), Arc::clone(&self.fresh_at));
        let clock = self.run().clock().clone();
        tokio::spawn(async move {
            loop {
                freshness.wait_until_fresh().await;
                *lock(&fresh_at) = clock.elapsed();
                sleep(FRESH_LOOK).await;
            }
        });
        Ok(control)
    }

    /// Whether what this node has of control may be old: it follows, and the owner has not told it what is new for a second.
    pub(super) fn is_behind(&self) -> bool {
        !self.databases.has_control() && !self.freshness.is_fresh()
    }

    /// Whether what this node shows is as new as the ledger: it may answer, and has control or is told what is new.
    pub fn is_current(&self) -> bool {
        match self.databases.has_control() {
            true => self.gate().may_answer(),
            // It is fresh only while it may answer.
            false => self.freshness.is_fresh(),
        }
    }

    /// Whether pages that are in memory may be shown: also for a while in which neither the ledger nor control's owner says what is new.
    pub fn may_show_pages(&self) -> bool {
        self.is_current() || self.gate().may_show_pages() && !self.is_long_behind()
    }

    /// Whether control's owner has not told this node what is new for so long that nothing in memory is used any more.
    pub fn is_long_behind(&self) -> bool {
        let is_old = || {
            let now = self.run().clock().elapsed();
            now.saturating_sub(*lock(&self.fresh_at)) >= self.gate().stale_pages()
        };
        self.is_behind() && is_old()
    }

    /// Makes this node the owner of control, whose place it has claimed, in the running process. Writes are refused until the duties of an
    /// owner are done, and [`ServingNode::note_owning`] follows then.
    ///
    /// # Errors
    /// Those of the ledger, the databases and the disk. The process must end then.
    pub async fn own_control(
        &self,
        claim: ControlClaim,
        control: &ControlDatabase,
    ) -> anyhow::Result<()> {
        let follower = lock(&self.follower).take().context("it follows nobody")?;
        let followed = follower.take_over().await;
        let state = followed.context("following what the owner before has left")?;
        let dir = Dir::open_ambient_dir(&self.data, ambient_authority())?;
        let shipper = LogShipper::after_log(dir, CONTROL_LOG, state)?;
        self.bases.note_control().await;
        let shipped = self.ship_control(shipper, claim).await;
        control.set_errand_sender(None);
        let feed: Arc<dyn ChangeFeed> = shipped.clone();
        control.become_owner(shipped, feed).await?;
        // A ledger that is away now is waited for, as by the owner before: this process has pages that others ask for meanwhile.
        while let Err(error) = wait_for_commits(control).await {
            match error {
                control::Error::Busy => {
                    tracing::warn!(
                        "the ledger takes no commits: control is not owned before it does"
                    );
                }
                error => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Notes that this node was told to stop: probes say so while requests under way finish.
    pub fn note_stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Whether this node was told to stop.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Ends the following, since the process ends and closes its databases.
    pub fn stop_following(&self) {
        if let Some(follower) = lock(&self.follower).take() {
            // What it may just be applying finds the database closed, which is no failure now.
            self.run().leaving().store(true, Ordering::SeqCst);
            drop(follower);
        }
    }

    /// Leaves the ledger, once the databases are closed and everything is answered: another node takes over at once. A ledger that does
    /// not answer is not waited for; then the process ends here.
    ///
    /// # Errors
    /// A panic of the closing.
    pub async fn leave_after(&self, closing: JoinHandle<()>) -> anyhow::Result<()> {
        let Ok(closed) = timeout(CLOSE_WAIT, closing).await else {
            tracing::error!("some writes are not acknowledged by the ledger: they may be done");
            process::exit(1);
        };
        let copying = self.databases.tenants().keep_histories();
        if timeout(COPY_WAIT, copying).await.is_err() {
            tracing::warn!(
                "some histories are not copied to the bucket: the next node makes them of the ledger"
            );
        }
        self.run().leave().await;
        Ok(closed?)
    }

    /// Has the other nodes know that this one serves. Nobody waits for it.
    pub fn note_serving(&self) {
        let run = Arc::clone(self.run());
        tokio::spawn(async move { run.note_serving().await });
    }

    /// Notes that this node has control and that everybody may write there.
    pub fn note_owning(&self) {
        self.owns_control.send_replace(true);
    }

    /// Whether this node has control and lets everybody write.
    pub fn owns_control(&self) -> bool {
        *self.owns_control.borrow()
    }

    /// Waits until this node has control and lets everybody write.
    pub async fn wait_for_control(&self) {
        // The sender lives as long as this.
        let _ = self.owns_control.subscribe().wait_for(|has| *has).await;
    }

    /// Keeps the views that are shown as the ledger has them, for as long as it is polled: other nodes add to them.
    pub async fn follow_views(&self, counters: &InstallationCounters) {
        loop {
            let begun = self.run().clock().elapsed();
            if let Err(error) = self.refresh_views(counters).await {
                let error = format!("{error:#}");
                tracing::warn!(error, "views of other nodes are not known");
            }
            let took = self.run().clock().elapsed().saturating_sub(begun);
            // An installation with many pages takes longer, and is read as much less often.
            sleep(VIEWS_EVERY.max(took * VIEWS_REST)).await;
        }
    }

    /// Shows the views as the ledger has them now.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn refresh_views(&self, counters: &InstallationCounters) -> anyhow::Result<()> {
        counters.raise(read_views(self.run()).await?);
        Ok(())
    }

    /// Sets who uses databases besides their calls, and is told when one leaves. It is called once.
    pub fn set_database_users(&self, users: Arc<dyn DatabaseUsers>) {
        self.databases.tenants().set_users(users);
    }

    /// Returns the node.
    pub fn node(&self) -> &ClusterNode<L> {
        &self.node
    }

    /// Returns this run.
    pub fn run(&self) -> &Arc<Run<L>> {
        self.node.run()
    }

    /// Returns where databases are believed to be.
    pub fn places(&self) -> &Arc<KnownPlaces<L>> {
        &self.places
    }

    /// Returns the gate of answers.
    pub fn gate(&self) -> &Arc<AnswerGate> {
        self.run().gate()
    }

    /// Returns the store of content, which all nodes share.
    pub fn content(&self) -> ContentStore {
        self.node.bucket().content()
    }

    /// Returns the bucket.
    pub fn bucket(&self) -> &Bucket {
        self.node.bucket()
    }

    /// Returns the source of what acknowledges the commits of tenants' databases, and loads them. The history of each may have so many
    /// bytes.
    pub fn tenants(&self, history_bytes: u64) -> DurableSource {
        self.databases.tenants().source(history_bytes)
    }

    /// Returns the guests that all nodes have.
    pub fn guests(&self) -> &ClusterGuests {
        &self.guests
    }

    /// Makes a follower of the installed guests for a directory of this node.
    pub fn follow_guests(
        &self,
        control: &ControlDatabase,
        directory: &Path,
        clock: &Clock,
    ) -> GuestFollower {
        GuestFollower::new(self.bucket().clone(), control, directory, clock)
    }

    /// Removes databases that control does not name, and objects of bases and guests that no row names. They are left for a while, since
    /// they may be about to be named.
    ///
    /// # Errors
    /// Those of the ledger, the bucket and control; the next call goes on.
    pub async fn remove_leftovers(&self, control: &ControlDatabase) -> anyhow::Result<()> {
        self.leftovers.remove(copies::all_ids(control)).await?;
        let before = self.leftovers.old_before();
        self.guests.remove_unnamed(control, before).await
    }

    /// Lists the one-time pages that are a day old, of which control may have forgotten some.
    ///
    /// # Errors
    /// The bucket's.
    pub async fn list_old_one_time_pages(&self) -> anyhow::Result<Vec<DeploymentId>> {
        self.leftovers.list_old_one_time_pages().await
    }

    /// Returns the databases of this run.
    #[cfg(test)]
    pub(super) fn databases(&self) -> &Arc<OwnedDatabases<L>> {
        &self.databases
    }

    /// Returns the remover of leftovers.
    #[cfg(test)]
    pub(super) fn leftovers(&self) -> &Leftovers<L> {
        &self.leftovers
    }
}

/// Makes the keeper of a run's bases.
fn bases_of<L: Ledger>(run: &Run<L>, bucket: &Bucket, data: &Path) -> Bases<L> {
    let (ledger, clock) = (Arc::clone(run.ledger()), run.clock().clone());
    Bases::new(ledger, run.id(), bucket.clone(), data.join("tmp"), clock)
}

/// Reads the views of all deployments, which nodes add to.
async fn read_views<L: Ledger>(run: &Run<L>) -> anyhow::Result<Vec<DeploymentVisits>> {
    let views = visits::load(&**run.ledger(), Some(run.id())).await;
    views.context("reading views from the ledger")
}

/// Waits until the ledger has what the opening of a database has committed, as a migration: until then writes are refused.
async fn wait_for_commits(control: &ControlDatabase) -> Result<(), control::Error> {
    control
        .read(|c| c.query_row("SELECT 1", [], |_| Ok(())))
        .await
}

/// Loads the control database. Only its owner keeps its bases.
async fn load_control<L: Ledger>(
    run: &Run<L>,
    (bases, bucket): (&Bases<L>, &Bucket),
    to: &LoadTarget,
    is_owner: bool,
) -> anyhow::Result<DatabaseState> {
    let name = DatabaseName::Control;
    if is_owner {
        return Ok(bases.load(name, to).await?.state);
    }
    let reader = Some(run.id());
    let loaded = loads::load_database(&**run.ledger(), reader, bucket, name, to).await?;
    Ok(loaded.state)
}
