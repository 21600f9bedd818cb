//! Founding a cluster: brings an installation of one machine, or an empty one, into an empty ledger and an empty bucket.
//!
//! The base of control comes last. Without one a ledger counts as not founded, so nobody serves from it. A founding that was
//! interrupted is finished by another, which goes on where nothing has changed and begins anew where something has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::bases;
use super::bucket::{self, Bucket};
use super::guests;
use super::histories;
use super::visits;
use crate::activity::share_own_hours;
use crate::backends::copies;
use crate::config::{ClusterSettings, Config};
use crate::content::{ContentLocation, ContentStore, Digest, OneTimeFileDirectory, StoreConnector};
use crate::control::{self, ControlDatabase};
use crate::data_dir;
use crate::data_lock::{DataLock, create_private_dir};
use crate::deployments::operators;
use crate::outbound::OutboundClient;
use svc_base::clock::Clock;
use svc_base::ids::{self, BackendId};
use svc_base::positions::CommitPosition;
use svc_base::random::Random;
use svc_base::{disk, fault};
use svc_database::{BaseSnapshot, DatabasesDirectory, EndedChain};
use svc_ledger::{Base, ClaimOutcome, DatabaseName, Ledger, Node, Place, PostgresLedger, RunId};

/// End of the name of a run that founds. No node has it in its name.
pub(super) const FOUNDING_SUFFIX: &str = " (founding)";
/// File of a data directory with the id of the installation that the cluster has.
const ID_FILE: &str = "cluster.id";
/// Files of a data directory that are brought.
const CONTROL_FILE: &str = "control.db";
const BACKENDS_DIRECTORY: &str = "backends";
const ONCE_DIRECTORY: &str = "once";
/// Directory for files on their way to the bucket.
const TMP_DIRECTORY: &str = "tmp";
/// Time after which another run may take one that founds for dead.
const SUSPECT_AFTER: Duration = Duration::from_secs(5);
/// Most databases, and most objects of content, that are brought at once.
const DATABASES_AT_ONCE: usize = 8;
const OBJECTS_AT_ONCE: usize = 16;

/// Outcome of a founding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundOutcome {
    /// Id of the installation.
    pub installation: String,
    /// Whether the cluster was founded before; then nothing was done.
    pub was_founded: bool,
    /// Number of databases that were brought, that of the installation itself included.
    pub databases: usize,
    /// Number of objects of content that were copied now.
    pub objects: usize,
    /// Bytes of these objects.
    pub bytes: u64,
}

impl FoundOutcome {
    /// Says for a terminal what was done.
    pub fn text(&self) -> String {
        let Self {
            databases,
            objects,
            bytes,
            ..
        } = self;
        if self.was_founded {
            return "the cluster is founded already: nothing was done".to_owned();
        }
        format!(
            "the cluster is founded\n{databases} databases; copied {objects} objects, {bytes} bytes"
        )
    }
}

/// Returns the settings of the cluster.
///
/// # Errors
/// There are none, which is said before anything is made.
pub fn require_settings(config: &Config) -> anyhow::Result<&ClusterSettings> {
    let settings = config.cluster.as_ref();
    settings.context("the settings have no [cluster]: name a file that has it with --config")
}

/// Founds the cluster of the settings with the installation in their data directory. No server may run there.
///
/// # Errors
/// What is in the way, as a text for the operator. It may be repeated.
pub async fn run(config: &Config, clock: &Clock, random: &Random) -> anyhow::Result<FoundOutcome> {
    let settings = require_settings(config)?;
    let (data, page_bytes) = (&config.data, config.limits.page_bytes);
    let _lock = DataLock::take_for_command(data)?;
    let outbound = OutboundClient::new()?;
    if let Some(directory) = bucket::directory(&settings.bucket)? {
        let made = create_private_dir(&directory);
        made.with_context(|| format!("making {}", directory.display()))?;
    }
    let connector = StoreConnector::for_cluster(outbound.clone(), page_bytes);
    let bucket = Bucket::open(&settings.bucket, config.s3.as_ref(), &connector)
        .context("cluster.bucket: opening it")?;
    let ledger = PostgresLedger::new(settings.ledger.as_str(), settings.synced_standbys)?;
    bucket.check_unversioned().await?;
    let place = ContentLocation::read_recorded(data)?;
    let connector = StoreConnector::new(outbound, page_bytes);
    let content = place.open(&place, config.s3.as_ref(), &connector, random);
    let founding = Founding {
        data,
        guests: &config.guests,
        content: content.await?,
        ledger: &ledger,
        bucket: &bucket,
        node: &settings.name,
        clock,
        random,
    };
    founding.found().await
}

/// Reads the id of the installation that a data directory belongs to, if it is one of a cluster.
///
/// # Errors
/// The disk's, or what is no id.
pub fn installation_id(data: &Path) -> anyhow::Result<Option<Uuid>> {
    let path = data.join(ID_FILE);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("reading {}", path.display()))?,
    };
    let id = text.trim().parse();
    id.map(Some)
        .with_context(|| format!("in {}", path.display()))
}

/// Records the id of the installation that a data directory belongs to, durably.
///
/// # Errors
/// The disk's.
pub fn record_installation_id(data: &Path, installation: Uuid) -> io::Result<()> {
    let data = disk::open_directory(data)?;
    disk::replace_file(&data, ID_FILE, installation.to_string().as_bytes())
}

/// Whether somebody has founded the installation to its end. The ledger must have one.
///
/// # Errors
/// The ledger's.
pub async fn is_founded<L: Ledger>(ledger: &L) -> anyhow::Result<bool> {
    let bases = ledger.bases(None, DatabaseName::Control).await;
    Ok(!bases.context("asking the ledger")?.is_empty())
}

/// Describes a run of a command, which serves nothing and is not listed once it has ended.
pub(crate) fn passing_node(run: RunId, name: &str) -> Node {
    Node {
        run,
        name: format!("{name}{FOUNDING_SUFFIX}"),
        suspect_after: SUSPECT_AFTER,
        peer_url: String::new(),
        peer_key: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema: control::SCHEMA_VERSION,
    }
}

/// A founding, with what it brings and where to.
pub(crate) struct Founding<'f, L> {
    /// Data directory, which nobody else uses.
    pub(crate) data: &'f Path,
    /// Directory of installed guests.
    pub(crate) guests: &'f Path,
    /// Content of the installation.
    pub(crate) content: ContentStore,
    /// Ledger to bring it into.
    pub(crate) ledger: &'f L,
    /// Bucket to bring it into.
    pub(crate) bucket: &'f Bucket,
    /// Name of this node.
    pub(crate) node: &'f str,
    /// The time.
    pub(crate) clock: &'f Clock,
    /// Source of ids.
    pub(crate) random: &'f Random,
}

impl<L: Ledger> Founding<'_, L> {
    /// Founds, or finds that it was done.
    ///
    /// # Errors
    /// What is in the way, as a text for the operator. It may be repeated.
    pub(crate) async fn found(&self) -> anyhow::Result<FoundOutcome> {
        let (installation, was_founded) = self.settle_installation().await?;
        let mut outcome = FoundOutcome {
            installation: installation.to_string(),
            was_founded,
            databases: 0,
            objects: 0,
            bytes: 0,
        };
        if !was_founded {
            let brought = self.bring(&mut outcome).await;
            brought.context("the founding is not finished: repeat the command")?;
            fault::point("cluster.founded");
        }
        // The bucket has them now, and what is read there must not stay here.
        self.remove_one_time_files()?;
        Ok(outcome)
    }

    /// Decides which installation this is, and claims the ledger and the bucket for it. Returns whether it was founded before.
    async fn settle_installation(&self) -> anyhow::Result<(Uuid, bool)> {
        let shown = self.data.display();
        let there = self.ledger.installation().await;
        let there = there.context("asking the ledger")?;
        let was_founded = there.is_some() && is_founded(self.ledger).await?;
        let own = installation_id(self.data)?;
        let installation = match (there, own) {
            (Some(there), Some(own)) if there == own => own,
            // There is nothing to bring.
            (Some(there), None) if was_founded && !data_dir::is_installation(self.data) => there,
            (Some(_), _) => bail!(
                "the ledger has an installation already, and {shown} belongs to another one: name an empty ledger and an empty bucket"
            ),
            (None, Some(own)) => {
                self.check_not_lost(own).await?;
                own
            }
            (None, None) => {
                let own = ids::uuid_v7(self.clock, self.random)?;
                record_installation_id(self.data, own)?;
                own
            }
        };
        if was_founded {
            self.bucket.check_installation(installation).await?;
            return Ok((installation, true));
        }
        fault::point("cluster.id_recorded");
        self.bucket.claim(installation).await?;
        fault::point("cluster.bucket_claimed");
        let is_new = self.ledger.found(installation).await;
        let is_new = is_new.context("making the ledger's tables")?;
        fault::point("cluster.ledger_made");
        if !is_new && self.ledger.installation().await? != Some(installation) {
            bail!("another installation was founded in the ledger meanwhile");
        }
        Ok((installation, false))
    }

    /// Refuses to found anew what was founded: the ledger is empty, and the bucket is not.
    async fn check_not_lost(&self, own: Uuid) -> anyhow::Result<()> {
        let is_own = self.bucket.owner().await? == Some(own.to_string());
        if is_own && !bases::stored_bases(self.bucket).await?.is_empty() {
            bail!(
                "the ledger is empty, but the bucket has databases of this installation: is it the right ledger? If it is lost, `svc restore --from` brings what the bucket has into an empty directory, to be founded in another bucket"
            );
        }
        Ok(())
    }

    /// Brings everything, control last.
    async fn bring(&self, outcome: &mut FoundOutcome) -> anyhow::Result<()> {
        let run = self.join().await?;
        let control = ControlDatabase::open(self.data).context("opening the control database")?;
        self.bring_content(&control, outcome).await?;
        let brought = guests::bring_installed(self.bucket, &control, self.guests).await;
        brought.context("bringing the installed guests")?;
        self.bring_one_time_pages().await?;
        fault::point("cluster.content_brought");
        let backends = copies::all_ids(&control).await?;
        let counted = control.counters().all_visits();
        let sharing = share_own_hours(&control, self.clock.now()).await;
        sharing.context("bringing the counts of projects")?;
        fault::point("cluster.hours_brought");
        control.close();
        drop(control);
        disk::ensure_subdirectory(&disk::open_directory(self.data)?, TMP_DIRECTORY)?;
        let files = DatabasesDirectory::open(&self.data.join(BACKENDS_DIRECTORY))?;
        let brought = stream::iter(backends).map(|id| self.bring_backend(run, &files, id));
        let brought = brought.buffer_unordered(DATABASES_AT_ONCE);
        let brought: Vec<()> = brought.try_collect().await?;
        fault::point("cluster.backends_brought");
        visits::bring(self.ledger, run, &counted, self.clock, self.random).await?;
        fault::point("cluster.visits_brought");
        // SQLite is asked to follow no link.
        let control = self.data.canonicalize()?.join(CONTROL_FILE);
        self.bring_database(
            run,
            DatabaseName::Control,
            control,
            CommitPosition::default(),
        )
        .await?;
        fault::point("cluster.control_brought");
        outcome.databases = brought.len() + 1;
        // What is done is done: if this fails, the run is buried as any other that is silent.
        if let Err(error) = self.ledger.bury(run, run, None).await {
            tracing::warn!(%error, "the run that has founded is still in the ledger");
        }
        Ok(())
    }

    /// Joins the ledger. Runs that are there belong to foundings that were interrupted, and are buried: nobody else joins a ledger
    /// that is not founded.
    async fn join(&self) -> anyhow::Result<RunId> {
        let run = RunId::new(self.clock, self.random)?;
        self.ledger.join(&passing_node(run, self.node)).await?;
        for other in self.ledger.beat(run).await? {
            if other.live && other.node.run != run {
                self.ledger.bury(run, other.node.run, None).await?;
            }
        }
        Ok(run)
    }

    /// Copies the content that rows name and the bucket does not have.
    async fn bring_content(
        &self,
        control: &ControlDatabase,
        outcome: &mut FoundOutcome,
    ) -> anyhow::Result<()> {
        let wanted = operators::referenced_content(control).await?;
        let content = self.bucket.content();
        let there = content.sizes().await?;
        let missing = wanted.into_iter().filter(|it| !there.contains_key(it));
        let copied = stream::iter(missing).map(|digest| self.copy_object(&content, digest));
        let copied = copied.buffer_unordered(OBJECTS_AT_ONCE);
        let copied: Vec<u64> = copied.try_collect().await?;
        outcome.objects = copied.len();
        outcome.bytes = copied.iter().sum();
        Ok(())
    }

    /// Copies the pages of one-time shares.
    async fn bring_one_time_pages(&self) -> anyhow::Result<()> {
        let Some(files) = self.one_time_files()? else {
            return Ok(());
        };
        let pages = self.bucket.one_time_pages();
        for id in files.list()? {
            if let Some(page) = files.read(&id)? {
                pages.write(&id, page.into()).await?;
            }
        }
        Ok(())
    }

    fn remove_one_time_files(&self) -> anyhow::Result<()> {
        let Some(files) = self.one_time_files()? else {
            return Ok(());
        };
        for id in files.list()? {
            files.burn(&id)?;
        }
        Ok(())
    }

    /// Opens the private files of one-time shares, if there are any.
    fn one_time_files(&self) -> io::Result<Option<OneTimeFileDirectory>> {
        let path = self.data.join(ONCE_DIRECTORY);
        match path.is_dir() {
            true => OneTimeFileDirectory::open(&path).map(Some),
            false => Ok(None),
        }
    }

    /// Copies an object; returns its size.
    async fn copy_object(&self, to: &ContentStore, digest: Digest) -> anyhow::Result<u64> {
        let object = self.content.get(&digest).await?;
        let Some(object) = object.filter(|object| Digest::of(object) == digest) else {
            bail!("object {digest} is missing or damaged: `svc check` says what it belongs to");
        };
        let bytes = object.len() as u64;
        to.put_as(digest, object).await?;
        Ok(bytes)
    }

    /// Brings the database of a backend with its history.
    async fn bring_backend(
        &self,
        run: RunId,
        files: &DatabasesDirectory,
        id: BackendId,
    ) -> anyhow::Result<()> {
        let newest = CommitPosition(u64::MAX);
        let copied = histories::upload_ended(self.bucket, files, &id, newest, true).await;
        copied.with_context(|| format!("copying the history of backend {id}"))?;
        let dir = files.directory(&id)?;
        let chains = spawn_blocking(move || EndedChain::list(&dir, true)).await??;
        // Commits after the last recorded one were not counted.
        let position = chains.last().map(|chain| chain.last).unwrap_or_default();
        let database = DatabaseName::Backend(id);
        self.bring_database(run, database, files.path(&id), position.next())
            .await
            .with_context(|| format!("bringing backend {id}"))
    }

    /// Brings a database that nobody has open, as it is.
    async fn bring_database(
        &self,
        run: RunId,
        database: DatabaseName,
        path: PathBuf,
        position: CommitPosition,
    ) -> anyhow::Result<()> {
        let place = self.claim(run, database).await?;
        let snapshot = spawn_blocking(move || BaseSnapshot::begin(&path, position, None)).await??;
        let file = self.data.join(TMP_DIRECTORY);
        let file = file.join(format!("base-{run}-{database}"));
        let state = bases::write_base(snapshot, &file).await?;
        let is_same = |base: &Base| base.position == position && base.state == state.checksum();
        let there = self.ledger.bases(Some(run), database).await?;
        if there.first().is_some_and(is_same) {
            fs::remove_file(&file)?;
            return Ok(self.ledger.release(place).await?);
        }
        let place = match there.is_empty() {
            true => place,
            // An earlier founding has brought another state.
            false => {
                self.ledger.forget(run, database).await?;
                self.claim(run, database).await?
            }
        };
        // One that is the same may be in use, if somebody founds with a copy of this directory.
        bases::delete_objects(self.bucket, database, |base| !is_same(base)).await?;
        let base = bases::upload(self.bucket, database, &state, &file, self.clock.now()).await?;
        bases::name_base(self.ledger, run, self.bucket, &base).await?;
        Ok(self.ledger.release(place).await?)
    }

    async fn claim(&self, run: RunId, database: DatabaseName) -> anyhow::Result<Place> {
        match self.ledger.claim(run, database).await? {
            ClaimOutcome::Claimed(place) => Ok(place),
            ClaimOutcome::Held(_) => {
                bail!("another process has database {database}: is this done on two machines?")
            }
        }
    }
}
