//! The owner: it has the place of the control database, and with it that of every other one. It loads what the ledger has, and
//! answers after the ledger.
//!
//! The place of control is the fence of all databases: whoever claims it has buried the owner before, and a run that is buried
//! appends nothing. A tenant's place is claimed when its database is loaded, so that its bases may be stored.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::mem;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::bases::{Bases, LiveDatabases, LoadTarget, write_base};
use super::bucket::Bucket;
use super::feed::ControlFeed;
use super::gate::AnswerGate;
use super::leftovers::Leftovers;
use super::run::Run;
use super::shipped::{ShippedDatabase, ShippingRoutes};
use super::standby::ControlClaim;
use super::tenants::Tenants;
use super::visits::{self, LedgerVisits};
use crate::backends::copies;
use crate::content::ContentStore;
use crate::control::{ChangeFeed, ControlDatabase, DeploymentVisits, InstallationCounters};
use svc_base::ids::DeploymentId;
use svc_base::positions::{CommitPosition, Durable};
use svc_base::sync::lock;
use svc_database::{BaseSnapshot, DatabasesDirectory, DurableSource, LogShipper};
use svc_ledger::{
    AppendEvent, ClaimOutcome, DatabaseEntry, DatabaseName, Ledger, Place, PostgresLedger,
};

/// Name of the control database's file, and of its log.
const CONTROL_FILE: &str = "control.db";
const CONTROL_LOG: &str = "control.db-wal";
/// Longest time that a process which ends waits for the ledger to acknowledge its commits.
const CLOSE_WAIT: Duration = Duration::from_secs(10);
/// Longest time that it copies histories then: nobody answers meanwhile.
const COPY_WAIT: Duration = Duration::from_secs(2);
/// Pause between two measurements of the node's figures.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Time that a snapshot waits for the next commit of its database.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(2);
/// Pause between two looks whether a commit is acknowledged.
const ACKNOWLEDGED_EVERY: Duration = Duration::from_millis(20);
/// Pause before the first base of a new database is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The owner of an installation whose ledger is PostgreSQL.
pub type ClusterOwner = Owner<PostgresLedger>;

/// This run, while it has control.
pub struct Owner<L> {
    run: Arc<Run<L>>,
    place: Place,
    bucket: Bucket,
    databases: Arc<OwnedDatabases<L>>,
    /// Views that the ledger had when this run got control, until the application takes them.
    views: Mutex<Vec<DeploymentVisits>>,
    leftovers: Leftovers<L>,
}

impl<L> fmt::Debug for Owner<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// All databases of the owner.
struct OwnedDatabases<L> {
    control: Arc<ShippedDatabase>,
    /// Feed of control, which the other nodes follow.
    feed: Arc<ControlFeed>,
    tenants: Arc<Tenants<L>>,
}

impl<L: Ledger> OwnedDatabases<L> {
    fn find(&self, name: DatabaseName) -> Option<Arc<ShippedDatabase>> {
        match name {
            DatabaseName::Control => Some(Arc::clone(&self.control)),
            DatabaseName::Backend(id) => self.tenants.find(id),
        }
    }
}

impl<L: Ledger> Owner<L> {
    /// Begins to own what a claim of control gives: loads the control database into `data`, whose databases were removed, and starts
    /// the tasks that acknowledge commits and store bases.
    ///
    /// # Errors
    /// When the ledger, the bucket or the disk fails.
    pub async fn begin(
        run: Arc<Run<L>>,
        claim: ControlClaim,
        bucket: Bucket,
        data: &Path,
    ) -> anyhow::Result<Arc<Self>> {
        let bases = Bases::new(
            Arc::clone(run.ledger()),
            run.id(),
            bucket.clone(),
            data.join("tmp"),
            run.clock().clone(),
        );
        let bases = Arc::new(bases);
        let to = LoadTarget {
            dir: Dir::open_ambient_dir(data, ambient_authority())?,
            name: CONTROL_FILE.to_owned(),
        };
        let loaded = bases.load(DatabaseName::Control, &to).await;
        let loaded = loaded.context("loading the control database")?;
        // The run that has added to them before is dead: these are all.
        let views = visits::load(&**run.ledger(), Some(run.id())).await;
        let views = views.context("reading views from the ledger")?;
        let (made, making) = mpsc::unbounded_channel();
        let routes = ShippingRoutes {
            queue: Arc::clone(run.queue()),
            gate: Arc::clone(run.gate()),
            made,
        };
        let shipper = LogShipper::new(to.dir, CONTROL_LOG, loaded.state);
        let first = shipper.state().position();
        let control = Arc::new(shipped_control(data, routes.clone(), shipper));
        let feed = ControlFeed::start(&run, Arc::clone(&control), first).await;
        let files = DatabasesDirectory::open(&data.join("backends"))?;
        let tenants = Tenants::new(
            Arc::clone(&run),
            (Arc::clone(&bases), bucket.clone()),
            files,
            routes,
        );
        let leftovers = Leftovers::new(Arc::clone(&run), bucket.clone(), Arc::clone(&tenants));
        let databases = Arc::new(OwnedDatabases {
            control,
            feed,
            tenants,
        });
        run.metrics().note_control(claim.took_over);
        let owner = Arc::new(Self {
            leftovers,
            run,
            place: claim.place,
            bucket,
            databases,
            views: Mutex::new(views),
        });
        owner.start_tasks(&bases, making);
        Ok(owner)
    }

    fn start_tasks(
        &self,
        bases: &Arc<Bases<L>>,
        making: mpsc::UnboundedReceiver<(DatabaseName, CommitPosition)>,
    ) {
        let (run, databases) = (&self.run, &self.databases);
        let appending = append(Arc::clone(run), Arc::clone(databases), Arc::clone(bases));
        tokio::spawn(appending);
        let (live, making_bases) = (Arc::clone(databases), Arc::clone(bases));
        tokio::spawn(async move { making_bases.run(&*live).await });
        let (live, histories) = (Arc::clone(databases), databases.tenants.histories());
        tokio::spawn(async move { histories.run(&*live).await });
        let live = Arc::clone(databases);
        tokio::spawn(async move { live.tenants.release_idle(&*live).await });
        let first = FirstBases {
            run: Arc::clone(run),
            databases: Arc::clone(databases),
            bases: Arc::clone(bases),
        };
        tokio::spawn(store_first_bases(Arc::new(first), making));
        let (run, databases, bases) = (Arc::clone(run), Arc::clone(databases), Arc::clone(bases));
        tokio::spawn(async move {
            loop {
                let (waiting, tenants) = (run.gate().waiting_bytes(), databases.tenants.count());
                run.metrics()
                    .set_amounts(waiting, tenants + 1, bases.tail_bytes());
                tokio::time::sleep(MEASURE_EVERY).await;
            }
        });
    }

    /// Returns this run.
    pub fn run(&self) -> &Arc<Run<L>> {
        &self.run
    }

    /// Returns the gate of answers.
    pub fn gate(&self) -> &Arc<AnswerGate> {
        self.run.gate()
    }

    /// Returns the store of content, which all nodes share.
    pub fn content(&self) -> ContentStore {
        self.bucket.content()
    }

    /// Returns the bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Returns what acknowledges the commits of the control database.
    pub fn control(&self) -> Arc<dyn Durable> {
        Arc::clone(&self.databases.control) as _
    }

    /// Returns what takes the changes that commits of the control database note, for the nodes that follow.
    pub fn control_changes(&self) -> Arc<dyn ChangeFeed> {
        Arc::clone(&self.databases.control) as _
    }

    /// Has counters store views in the ledger, which go on from what is there. It is called once.
    pub fn share_views(&self, counters: &InstallationCounters) {
        let ledger = Arc::clone(self.run.ledger());
        let place = LedgerVisits::new(ledger, self.run.id());
        counters.share(Arc::new(place), mem::take(&mut *lock(&self.views)));
    }

    /// Returns the source of what acknowledges the commits of tenants' databases, and loads them. The history of each may have so many
    /// bytes.
    pub fn tenants(&self, history_bytes: u64) -> DurableSource {
        self.databases.tenants.source(history_bytes)
    }

    /// Removes databases that control does not name, and objects of bases that no row names. Both are left for a while, since they may
    /// be about to be named.
    ///
    /// # Errors
    /// Those of the ledger, the bucket and control; the next call goes on.
    pub async fn remove_leftovers(&self, control: &ControlDatabase) -> anyhow::Result<()> {
        self.leftovers.remove(copies::all_ids(control)).await
    }

    /// Lists the one-time pages that are a day old, of which control may have forgotten some.
    ///
    /// # Errors
    /// The bucket's.
    pub async fn list_old_one_time_pages(&self) -> anyhow::Result<Vec<DeploymentId>> {
        self.leftovers.list_old_one_time_pages().await
    }

    /// Gives back the places of databases that nobody uses now.
    #[cfg(test)]
    pub(super) async fn release_unused(&self) {
        let databases = &*self.databases;
        databases.tenants.release_unused(databases).await;
    }

    /// Begins to read a database, as for a base.
    #[cfg(test)]
    pub(super) async fn snapshot(&self, name: DatabaseName) -> io::Result<Option<BaseSnapshot>> {
        self.databases.snapshot(name).await
    }

    /// Copies the chains of a database that have ended.
    #[cfg(test)]
    pub(super) async fn keep_history(&self, id: svc_base::ids::BackendId) -> anyhow::Result<()> {
        let databases = &*self.databases;
        databases.tenants.histories().keep(id, databases).await
    }

    /// Returns the remover of leftovers.
    #[cfg(test)]
    pub(super) fn leftovers(&self) -> &Leftovers<L> {
        &self.leftovers
    }

    /// Leaves the ledger, once the databases are closed and everything is answered: a standby takes over at once. A ledger that does not
    /// answer is not waited for; then the process ends here.
    ///
    /// # Errors
    /// A panic of the closing.
    pub async fn leave_after(&self, closing: JoinHandle<()>) -> anyhow::Result<()> {
        let Ok(closed) = tokio::time::timeout(CLOSE_WAIT, closing).await else {
            tracing::error!("some writes are not acknowledged by the ledger: they may be done");
            process::exit(1);
        };
        let copying = self.databases.tenants.keep_histories();
        if tokio::time::timeout(COPY_WAIT, copying).await.is_err() {
            tracing::warn!(
                "some histories are not copied to the bucket: the next node makes them of the ledger"
            );
        }
        self.run.leave().await;
        Ok(closed?)
    }
}

/// Wraps the control database, whose own positions begin at 0 when it is opened.
fn shipped_control(data: &Path, routes: ShippingRoutes, shipper: LogShipper) -> ShippedDatabase {
    let offset = shipper.state().position();
    ShippedDatabase::new(
        DatabaseName::Control,
        data.join(CONTROL_FILE),
        routes,
        offset,
        Some(shipper),
    )
}

/// Sends commits to the ledger until the process ends.
async fn append<L: Ledger>(
    run: Arc<Run<L>>,
    databases: Arc<OwnedDatabases<L>>,
    bases: Arc<Bases<L>>,
) {
    let (queue, ledger) = (Arc::clone(run.queue()), Arc::clone(run.ledger()));
    let mut sent = None;
    let mut is_refused = false;
    let reason = queue.send_all(&*ledger, |event| match event {
        AppendEvent::Beaten(at) => {
            run.gate().acknowledged(at);
            sent = Some(at);
        }
        AppendEvent::AnswerLost => run.metrics().count_lost_answer(),
        // It is asked ten times a second: the first refusal of a row says enough.
        AppendEvent::Refused(error) => {
            if !mem::replace(&mut is_refused, true) {
                tracing::warn!(%error, "the ledger takes no commits: writes are refused until it does");
            }
        }
        AppendEvent::Acknowledged(commits) => {
            if mem::take(&mut is_refused) {
                tracing::info!("the ledger takes commits again");
            }
            let sent = sent.take().unwrap_or_default();
            let took = run.clock().elapsed().saturating_sub(sent);
            run.metrics().count_append(took);
            acknowledge(&databases, &bases, commits);
        }
    });
    let reason = reason.await;
    run.end(&reason);
}

/// Answers the callers of commits that the ledger has acknowledged; those of control's when the nodes that follow have them.
fn acknowledge<L: Ledger>(
    databases: &OwnedDatabases<L>,
    bases: &Bases<L>,
    commits: &[DatabaseEntry],
) {
    databases.feed.acknowledged(commits);
    let mut last = BTreeMap::new();
    for commit in commits {
        last.insert(commit.database, commit.entry.position);
        let bytes = u64::try_from(commit.entry.body.len()).unwrap_or(u64::MAX);
        bases.note_commit(commit.database, bytes);
    }
    last.remove(&DatabaseName::Control);
    for (name, position) in last {
        // One that was removed meanwhile has no callers.
        if let Some(database) = databases.find(name) {
            database.acknowledge(position);
        }
    }
}

/// Stores the first bases of databases that are made.
struct FirstBases<L> {
    run: Arc<Run<L>>,
    databases: Arc<OwnedDatabases<L>>,
    bases: Arc<Bases<L>>,
}

async fn store_first_bases<L: Ledger>(
    first: Arc<FirstBases<L>>,
    mut making: mpsc::UnboundedReceiver<(DatabaseName, CommitPosition)>,
) {
    while let Some((name, position)) = making.recv().await {
        let first = Arc::clone(&first);
        tokio::spawn(async move {
            // One that was removed meanwhile is waited for by nobody.
            while let Some(database) = first.databases.find(name)
                && !database.is_removed()
            {
                match first.store(name, position, &database).await {
                    Ok(()) => return database.acknowledge(position),
                    Err(error) => {
                        let error = format!("{error:#}");
                        tracing::warn!(error, database = %name, "a new database could not be stored: that is tried again");
                    }
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
        });
    }
}

impl<L: Ledger> FirstBases<L> {
    /// Stores the first base of a database, which nobody writes meanwhile.
    async fn store(
        &self,
        name: DatabaseName,
        position: CommitPosition,
        database: &ShippedDatabase,
    ) -> anyhow::Result<()> {
        match self.run.ledger().claim(self.run.id(), name).await? {
            ClaimOutcome::Claimed(_) => {}
            ClaimOutcome::Held(place) => {
                return Err(anyhow!("the run {} has its place", place.run));
            }
        }
        let file = database.file().to_owned();
        let base = file.with_extension("base");
        let begun = tokio::task::spawn_blocking(move || BaseSnapshot::begin(&file, position, None));
        let state = write_base(begun.await??, &base).await?;
        let stored = self.bases.store_first(name, &state, &base).await;
        stored.context("storing its first base")?;
        let directory = database
            .file()
            .parent()
            .context("a file without a directory")?;
        let dir = Dir::open_ambient_dir(directory, ambient_authority())?;
        let log = DatabasesDirectory::LOG_NAME;
        database.start_shipping(LogShipper::new(dir, log, state));
        Ok(())
    }
}

impl<L: Ledger> LiveDatabases for OwnedDatabases<L> {
    async fn snapshot(&self, name: DatabaseName) -> io::Result<Option<BaseSnapshot>> {
        let Some(database) = self.find(name) else {
            return Ok(None);
        };
        let last = Arc::clone(&database);
        let last = tokio::task::spawn_blocking(move || last.snapshot_of_last());
        if let Some(snapshot) = last.await?? {
            return Ok(Some(snapshot));
        }
        // Its writer is busy: it begins one itself. A database that rests then stays due, and is asked again.
        let snapshot = tokio::time::timeout(SNAPSHOT_WAIT, database.snapshot_of_next()).await;
        match snapshot {
            Ok(Ok(snapshot)) => snapshot.map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    async fn acknowledged(&self, name: DatabaseName, position: CommitPosition) -> bool {
        // One that was removed meanwhile needs no base.
        while let Some(database) = self.find(name) {
            if database.is_acknowledged(position) {
                return true;
            }
            tokio::time::sleep(ACKNOWLEDGED_EVERY).await;
        }
        false
    }

    async fn keep_history(&self, name: DatabaseName, acknowledged: CommitPosition) {
        // Control has none.
        if let DatabaseName::Backend(id) = name {
            self.tenants.keep_history(id, acknowledged).await;
        }
    }
}
