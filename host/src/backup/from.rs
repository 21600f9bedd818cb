//! Restore of a cluster's installation onto one machine: from its bucket and its ledger, or from the bucket alone.
//!
//! With the ledger everything that was acknowledged before is there. Without it each database is as its newest base has it that loads, so
//! some are older than others. One-time shares are in neither.
//!
//! The cluster may run meanwhile. Control is read first: a database that it names was made before, and is read at a later moment, so
//! nothing in control refers to rows that a database does not have yet. What a database has beyond that is of later calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cap_std::fs::Dir;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use tokio::task::spawn_blocking;
use url::Url;

use super::make::{BACKENDS, CONTENT, CONTROL, prepare_control_copy};
use super::outcome::CopyStats;
use super::restore::{GUESTS, clean_up};
use super::{BackupProgressFn, BackupStage, millis, switch};
use crate::backends::copies;
use crate::cluster::bases::{self, BaseError};
use crate::cluster::bucket::Bucket;
use crate::cluster::found::passing_node;
use crate::cluster::loads::{self, LoadTarget};
use crate::cluster::{self, visits};
use crate::config::{LedgerUrl, resolve_bucket};
use crate::content::{self, ContentLock, Digest, ObjectDirectory, ObjectPutError, StoreConnector};
use crate::control::{self, ControlDatabase};
use crate::data_dir::{self, NewDirectoryGuard};
use crate::data_lock::DataLock;
use crate::deployments::operators;
use crate::outbound::OutboundClient;
use svc_base::Stopwatch;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::random::Random;
use svc_base::{disk, fault};
use svc_database::{DatabasesDirectory, prepare_for_server};
use svc_ledger::{Base, DatabaseName, Ledger, PostgresLedger, RunId};

/// Largest page that is read from the bucket: whatever the installation has allowed.
const PAGE_BYTES: u64 = u64::MAX;
/// Most databases, and most objects of content, that are read at once.
const DATABASES_AT_ONCE: usize = 8;
const OBJECTS_AT_ONCE: usize = 16;
/// Time in which the ledger must have acknowledged a change.
const PROOF_TIMEOUT: Duration = Duration::from_secs(30);

/// Stores of a cluster, as a command names them.
#[derive(Clone, Debug)]
pub struct BucketSource<'s> {
    /// URL of the bucket.
    pub url: Url,
    /// URL of the ledger, if it is still there.
    pub ledger: Option<&'s LedgerUrl>,
}

/// Outcome of a restore from a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterRestoreOutcome {
    /// Whether the ledger was read, so that everything that was acknowledged is there.
    pub complete: bool,
    /// Databases that were restored, in the order of their names.
    pub databases: Vec<RestoredDatabase>,
    /// Sources and pages.
    pub content: CopyStats,
    /// Number of one-time shares, which are left out.
    pub one_time_left_out: usize,
    /// Parts that are missing. The rest was restored.
    pub errors: Vec<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// A database that was restored from a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredDatabase {
    /// Id of the backend, or `control`.
    pub database: String,
    /// Number of the last commit in it.
    pub commit: u64,
    /// Time at which its base was stored, if it was restored without the commits after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_at: Option<Timestamp>,
    /// Age of that base in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
}

impl ClusterRestoreOutcome {
    /// Says for a terminal what was restored.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.complete {
            lines.push("everything that was acknowledged is here".to_owned());
        } else {
            lines.push("without the ledger, each database is as its newest base has it".to_owned());
            lines.extend(self.databases.iter().map(RestoredDatabase::age_text));
            lines.push("views are left out: only the ledger has them".to_owned());
        }
        let (databases, content) = (self.databases.len(), self.content);
        lines.push(format!("{databases} databases"));
        let (objects, bytes) = (content.files, content.bytes);
        lines.push(format!("{objects} objects, {bytes} bytes"));
        if self.one_time_left_out > 0 {
            let left_out = self.one_time_left_out;
            lines.push(format!("{left_out} one-time shares are left out"));
        }
        let errors = self.errors.iter();
        lines.extend(errors.map(|error| format!("error: {error}")));
        lines.join("\n")
    }
}

impl RestoredDatabase {
    /// Says how old a database is that was restored from its base alone.
    fn age_text(&self) -> String {
        let (name, age) = (&self.database, self.age_seconds.unwrap_or(0));
        match self.stored_at {
            Some(at) => format!("{name}: of {at}, {age} seconds old"),
            None => name.clone(),
        }
    }
}

/// Restores the installation of a cluster into a data directory without one, as that of one machine. Nothing is there until everything
/// is copied. Blocks.
///
/// # Errors
/// What is in the way, as a text for the operator. It may be repeated.
pub async fn restore_from(
    source: BucketSource<'_>,
    data: &Path,
    clock: &Clock,
    watch: BackupProgressFn<'_>,
) -> anyhow::Result<ClusterRestoreOutcome> {
    let (url, access) = resolve_bucket(source.url).context("--from")?;
    let connector = StoreConnector::for_cluster(OutboundClient::new()?, PAGE_BYTES);
    let bucket = Bucket::open(&url, access.as_ref(), &connector);
    let bucket = bucket.context("--from: opening the bucket")?;
    let ledger = match source.ledger {
        // It waits for its standbys as it is set to, which nobody has told this command.
        Some(url) => {
            let url = url.clone().checked("--ledger")?;
            let ledger = PostgresLedger::new(url.as_str(), 0)?;
            prove(&ledger, clock, PROOF_TIMEOUT).await?;
            Some(ledger)
        }
        None => None,
    };
    let stores = ClusterStores::open(&bucket, ledger.as_ref()).await?;
    stores.restore(data, clock, watch).await
}

/// Has the ledger acknowledge a change of its own. A server that was replaced and still runs has no standby that would, and lacks what was
/// acknowledged since: it must not be believed. One that does has all that was acknowledged until then.
async fn prove<L: Ledger>(ledger: &L, clock: &Clock, within: Duration) -> anyhow::Result<()> {
    let there = ledger.installation().await.context("asking the ledger")?;
    if there.is_none() {
        bail!("the ledger has no installation");
    }
    let run = RunId::new(clock, &Random::system())?;
    let node = passing_node(run, "restore");
    let proving = async {
        ledger.join(&node).await?;
        ledger.bury(run, run, None).await
    };
    match tokio::time::timeout(within, proving).await {
        Ok(proven) => proven.map(drop).context("writing to the ledger"),
        Err(_) => bail!(
            "the ledger has acknowledged nothing in {} seconds: are its standbys there, and is it the server that takes writes now? Without --ledger the newest copies in the bucket are taken",
            within.as_secs()
        ),
    }
}

/// Stores of a cluster that are read.
struct ClusterStores<'s, L> {
    bucket: &'s Bucket,
    ledger: Option<&'s L>,
    /// Bases of each database, the newest first, if there is no ledger.
    bases: BTreeMap<DatabaseName, Vec<Base>>,
}

impl<'s, L: Ledger> ClusterStores<'s, L> {
    /// Checks that the stores belong to one installation.
    async fn open(bucket: &'s Bucket, ledger: Option<&'s L>) -> anyhow::Result<Self> {
        let owner = bucket.owner().await?;
        let owner = owner.context("no installation has this bucket: are the bucket, the prefix and the endpoint right, and is a directory mounted?")?;
        let bases = match ledger {
            None => bases::stored_bases(bucket).await?,
            Some(ledger) => {
                let there = ledger.installation().await.context("asking the ledger")?;
                if there.map(|id| id.to_string()) != Some(owner) {
                    bail!("the ledger and the bucket do not belong to one installation");
                }
                BTreeMap::new()
            }
        };
        Ok(Self {
            bucket,
            ledger,
            bases,
        })
    }

    async fn restore(
        &self,
        data: &Path,
        clock: &Clock,
        watch: BackupProgressFn<'_>,
    ) -> anyhow::Result<ClusterRestoreOutcome> {
        let started = Stopwatch::start();
        let mut guard = NewDirectoryGuard::begin(data)?;
        let lock = DataLock::take(data)?;
        guard.check_if_new(&lock)?;
        lock.announce_restore()?;
        let Some(_hold) = ContentLock::exclusive(data)? else {
            bail!("a backup of {} is being made", data.display());
        };
        switch::finish_interrupted(data)?;
        if data_dir::is_installation(data) {
            bail!(
                "{} has an installation already: name an empty directory",
                data.display()
            );
        }
        let dir = disk::open_directory(data)?;
        let new = switch::create_new_state(&dir)?;
        fault::point("restore.begun");
        let directory = data.join(switch::NEW_STATE_DIRECTORY);
        let mut done = self.prepare(&directory, &new, clock, watch).await;
        match &mut done {
            Ok(restored) => {
                let switched = switch::switch_to_new_state(&dir, clock.now());
                switched.inspect_err(|_| clean_up(data))?;
                guard.disarm();
                restored.duration_ms = millis(started.elapsed());
            }
            Err(_) => clean_up(data),
        }
        done
    }

    /// Writes the new state.
    async fn prepare(
        &self,
        directory: &Path,
        new: &Dir,
        clock: &Clock,
        watch: BackupProgressFn<'_>,
    ) -> anyhow::Result<ClusterRestoreOutcome> {
        let mut restored = ClusterRestoreOutcome {
            complete: self.ledger.is_some(),
            databases: Vec::new(),
            content: CopyStats::default(),
            one_time_left_out: 0,
            errors: Vec::new(),
            duration_ms: 0,
        };
        let to = LoadTarget {
            dir: new.try_clone()?,
            name: CONTROL.to_owned(),
        };
        let loaded = self.load(DatabaseName::Control, &to, clock).await?;
        let loaded = loaded.context(
            "there is no database of the installation itself: `svc cluster found` was not finished",
        )?;
        restored.databases.push(loaded);
        let control = ControlDatabase::open(directory)?;
        let files = DatabasesDirectory::open(&directory.join(BACKENDS))?;
        let backends = copies::all_ids(&control).await?;
        self.load_backends(&files, backends, &mut restored, clock, watch)
            .await?;
        fault::point("restore.databases");
        if let Some(ledger) = self.ledger {
            let counted = visits::load(ledger, None).await;
            let counted = counted.context("reading views from the ledger")?;
            let counters = control.counters();
            spawn_blocking(move || counters.import_visits(counted)).await??;
        }
        let guests = directory.join(GUESTS);
        let missing = cluster::restore_installed(self.bucket, &control, &guests).await?;
        restored.errors.extend(missing);
        restored.one_time_left_out = prepare_control_copy(&control, clock.now()).await?;
        let wanted = operators::referenced_content(&control).await?;
        let mut content = ObjectDirectory::new(disk::ensure_subdirectory(new, CONTENT)?);
        self.copy_content(wanted, &mut content, &mut restored, watch)
            .await?;
        fault::point("restore.content");
        control.close();
        drop(control);
        control::finish_copy(directory)?;
        Ok(restored)
    }

    /// Loads a database; `None` if the cluster does not have it.
    async fn load(
        &self,
        database: DatabaseName,
        to: &LoadTarget,
        clock: &Clock,
    ) -> Result<Option<RestoredDatabase>, BaseError> {
        if let Some(ledger) = self.ledger {
            let loaded = loads::load_database(ledger, None, self.bucket, database, to).await;
            return match loaded {
                Ok(loaded) => Ok(Some(RestoredDatabase {
                    database: database.to_string(),
                    commit: loaded.state.position().0,
                    stored_at: None,
                    age_seconds: None,
                })),
                Err(BaseError::Missing(_)) => Ok(None),
                Err(error) => Err(error),
            };
        }
        let mut failure = None;
        for base in self.bases.get(&database).into_iter().flatten() {
            match loads::load_base(self.bucket, base, to).await {
                Ok(_) => {
                    return Ok(Some(RestoredDatabase {
                        database: database.to_string(),
                        commit: base.position.0,
                        stored_at: Some(base.at),
                        age_seconds: Some((clock.now().0 - base.at.0) / 1000),
                    }));
                }
                Err(error) if loads::is_damage(&error) => {
                    let object = &base.object;
                    tracing::error!(%database, object, %error, "a base does not load: an older one is tried");
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Loads the databases of backends, several at once.
    async fn load_backends(
        &self,
        files: &DatabasesDirectory,
        backends: Vec<BackendId>,
        restored: &mut ClusterRestoreOutcome,
        clock: &Clock,
        watch: BackupProgressFn<'_>,
    ) -> anyhow::Result<()> {
        let (all, mut done) = (backends.len() as u64 + 1, 1);
        watch(BackupStage::Databases, done, all);
        let loads = stream::iter(backends).map(|id| async move {
            let loaded = self.load_backend(files, id, clock).await;
            let loaded = loaded.with_context(|| format!("restoring backend {id}"))?;
            anyhow::Ok((id, loaded))
        });
        let mut loads = loads.buffer_unordered(DATABASES_AT_ONCE);
        while let Some((id, loaded)) = loads.try_next().await? {
            match loaded {
                Some(loaded) => restored.databases.push(loaded),
                None => {
                    let error = format!(
                        "backend {id}: the cluster does not have its database, unless it was deleted just now"
                    );
                    restored.errors.push(error);
                }
            }
            done += 1;
            watch(BackupStage::Databases, done, all);
        }
        restored
            .databases
            .sort_by(|a, b| a.database.cmp(&b.database));
        Ok(())
    }

    async fn load_backend(
        &self,
        files: &DatabasesDirectory,
        id: BackendId,
        clock: &Clock,
    ) -> anyhow::Result<Option<RestoredDatabase>> {
        files.create_directory(&id)?;
        let to = LoadTarget {
            dir: files.directory(&id)?,
            name: DatabasesDirectory::NAME.to_owned(),
        };
        let loaded = self.load(DatabaseName::Backend(id), &to, clock).await?;
        let files = files.clone();
        if loaded.is_none() {
            files.remove(&id)?;
            return Ok(None);
        }
        spawn_blocking(move || prepare_for_server(&files, &id)).await??;
        Ok(loaded)
    }

    /// Copies content, several objects at once.
    async fn copy_content(
        &self,
        wanted: BTreeSet<Digest>,
        to: &mut ObjectDirectory,
        restored: &mut ClusterRestoreOutcome,
        watch: BackupProgressFn<'_>,
    ) -> anyhow::Result<()> {
        let store = self.bucket.content();
        let sizes = store.sizes().await?;
        let all: u64 = wanted.iter().filter_map(|digest| sizes.get(digest)).sum();
        watch(BackupStage::Content, 0, all);
        let store = &store;
        let objects = stream::iter(wanted);
        let objects = objects.map(|digest| async move { (digest, store.get(&digest).await) });
        let mut objects = objects.buffer_unordered(OBJECTS_AT_ONCE);
        while let Some((digest, object)) = objects.next().await {
            let object = match object {
                Err(content::Error::Damaged(_)) => None,
                object => object?,
            };
            match object.map(|object| to.put(&digest, &*object)) {
                Some(Ok(bytes)) => restored.content.count(bytes, true),
                Some(Err(ObjectPutError::Io(error))) => return Err(error.into()),
                None | Some(Err(ObjectPutError::Damaged)) => {
                    let error = format!("object {digest} is missing or damaged in the bucket");
                    restored.errors.push(error);
                }
            }
            watch(BackupStage::Content, restored.content.bytes.min(all), all);
        }
        Ok(to.sync()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use svc_base::ids::{DeploymentId, ProjectId};
    use svc_base::positions::{Checksum, CommitPosition};
    use svc_base::random::Random;
    use svc_database::{BaseSnapshot, DatabaseLoader};
    use svc_ledger::MemoryLedger;

    use super::*;
    use crate::cluster::found::Founding;
    use crate::content::ContentStore;

    /// Number of backends.
    const BACKENDS: usize = 20;

    fn checksum_of(database: &Path, file: &Path) -> Checksum {
        let snapshot = BaseSnapshot::begin(database, CommitPosition::default(), None).unwrap();
        snapshot.write_to(file).unwrap().checksum()
    }

    /// Adds a project with a backend to an installation.
    async fn add_backend(control: &ControlDatabase, project: ProjectId, id: BackendId) {
        let added: Result<(), control::Error> = control
            .write(move |tx| {
                let sql = "INSERT INTO projects (id, name, created_at, updated_at) VALUES (?1, 'p', 0, 0)";
                tx.execute(sql, [project]).map_err(control::Error::from)?;
                let sql = "INSERT INTO backends (id, project_id, created_at) VALUES (?1, ?2, 0)";
                tx.execute(sql, (id, project))
                    .map_err(control::Error::from)?;
                Ok(())
            })
            .await;
        added.unwrap();
    }

    /// Makes an installation whose backends all differ; returns the checksum of each.
    async fn make_installation(data: &Path, clock: &Clock) -> BTreeMap<BackendId, Checksum> {
        let (random, files) = (Random::system(), data.join("backends"));
        let files = DatabasesDirectory::open(&files).unwrap();
        let control = ControlDatabase::open(data).unwrap();
        let mut made = BTreeMap::new();
        for _ in 0..BACKENDS {
            let id = BackendId::new(clock, &random).unwrap();
            add_backend(&control, ProjectId::new(clock, &random).unwrap(), id).await;
            // Any database will do: the one of the installation as it is at this moment.
            let base = data.join("base");
            let checksum = checksum_of(&data.join(CONTROL), &base);
            files.create_directory(&id).unwrap();
            let loader = DatabaseLoader::start(
                files.directory(&id).unwrap(),
                DatabasesDirectory::NAME,
                File::open(&base).unwrap(),
                CommitPosition::default(),
                checksum,
            );
            loader.unwrap().finish().unwrap();
            made.insert(id, checksum);
        }
        control.close();
        made
    }

    async fn assert_restored(data: &Path, originals: &BTreeMap<BackendId, Checksum>) {
        let files = DatabasesDirectory::open(&data.join("backends")).unwrap();
        for (id, checksum) in originals {
            let restored = checksum_of(&files.path(id), &data.join("base"));
            assert_eq!(restored, *checksum, "{id}");
        }
        let control = ControlDatabase::open(data).unwrap();
        let mut ids = copies::all_ids(&control).await.unwrap();
        ids.sort_unstable();
        assert!(ids.iter().eq(originals.keys()));
        control.close();
    }

    #[tokio::test]
    async fn a_ledger_that_acknowledges_nothing_is_not_believed() {
        let (clock, ledger) = (Clock::manual(Timestamp(0)), MemoryLedger::default());
        let prove = async |within| prove(&ledger, &clock, within).await;
        assert!(prove(PROOF_TIMEOUT).await.is_err(), "it has nothing");
        let installation = svc_base::ids::uuid_v7(&clock, &Random::system()).unwrap();
        ledger.found(installation).await.unwrap();
        prove(PROOF_TIMEOUT).await.unwrap();
        ledger.stop_standby();
        let said = prove(Duration::from_millis(10)).await.unwrap_err();
        assert!(said.to_string().contains("acknowledged nothing"), "{said}");
        ledger.start_standby();
        prove(PROOF_TIMEOUT).await.unwrap();
    }

    #[tokio::test]
    async fn an_installation_is_restored_with_the_ledger_and_without() {
        let root = tempfile::tempdir().unwrap();
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let data = root.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let originals = make_installation(&data, &clock).await;
        let views = vec![(DeploymentId::new(&clock, &random).unwrap(), 7)];
        let control = ControlDatabase::open(&data).unwrap();
        control.counters().import_visits(views.clone()).unwrap();
        control.close();
        let (ledger, bucket) = (
            MemoryLedger::default(),
            Bucket::from_store(Arc::new(InMemory::new())),
        );
        let unknown = ClusterStores::open(&bucket, Some(&ledger)).await;
        assert!(unknown.is_err(), "nobody has founded it");
        let founding = Founding {
            data: &data,
            guests: &data.join("guests"),
            content: ContentStore::open(&data.join("content")).unwrap(),
            ledger: &ledger,
            bucket: &bucket,
            node: "n1",
            clock: &clock,
            random: &random,
        };
        let founded = founding.found().await.unwrap();
        assert_eq!(founded.databases, BACKENDS + 1);
        let other = MemoryLedger::default();
        assert!(ClusterStores::open(&bucket, Some(&other)).await.is_err());

        for (name, ledger) in [("with", Some(&ledger)), ("without", None)] {
            let data = root.path().join(name);
            let stores = ClusterStores::open(&bucket, ledger).await.unwrap();
            let watch = |_: BackupStage, _: u64, _: u64| {};
            let restored = stores.restore(&data, &clock, &watch).await.unwrap();
            assert_eq!(restored.complete, ledger.is_some());
            assert!(restored.errors.is_empty(), "{:?}", restored.errors);
            assert_eq!(restored.databases.len(), BACKENDS + 1);
            let databases = restored.databases.iter();
            for database in databases {
                assert_eq!(database.age_seconds.is_none(), ledger.is_some());
            }
            assert_restored(&data, &originals).await;
            let control = ControlDatabase::open(&data).unwrap();
            let expected = ledger.map(|_| views.clone()).unwrap_or_default();
            assert_eq!(control.counters().all_visits(), expected);
            control.close();
            let again = stores.restore(&data, &clock, &watch).await.unwrap_err();
            assert!(again.to_string().contains("an installation already"));
        }
        // Without the ledger, an older base is better than none.
        for backend in originals.keys() {
            let damaged = format!("bases/{backend}/{:020}-{:016x}", 9, 9);
            bucket.put(&damaged, "damaged".into()).await.unwrap();
        }
        let data = root.path().join("older");
        let stores = ClusterStores::<MemoryLedger>::open(&bucket, None)
            .await
            .unwrap();
        let watch = |_: BackupStage, _: u64, _: u64| {};
        let restored = stores.restore(&data, &clock, &watch).await.unwrap();
        assert!(restored.errors.is_empty(), "{:?}", restored.errors);
        assert_restored(&data, &originals).await;
    }
}
