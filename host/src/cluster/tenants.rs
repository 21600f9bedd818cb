//! Tenants' databases of the owner: each is loaded from the bucket and the ledger at its first use.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;

use super::bases::{BaseError, Bases, LoadTarget};
use super::bucket::Bucket;
use super::histories::{self, HistoryKeeper};
use super::run::Run;
use super::shipped::{ShippedDatabase, ShippingRoutes};
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, Durable};
use svc_base::sync::lock;
use svc_database::{DatabasesDirectory, DurableSource, LoadFuture, LogShipper, StatementRunError};
use svc_ledger::{ClaimOutcome, DatabaseName, Ledger};

/// Pause between two looks whether a commit is acknowledged.
const ACKNOWLEDGED_EVERY: Duration = Duration::from_millis(20);
/// Longest time that a caller waits for a load, which goes on without it.
const LOAD_TIMEOUT: Duration = Duration::from_secs(9);

/// Databases of tenants.
pub(super) struct Tenants<L> {
    run: Arc<Run<L>>,
    bases: Arc<Bases<L>>,
    bucket: Bucket,
    files: DatabasesDirectory,
    routes: ShippingRoutes,
    runtime: Handle,
    known: Mutex<HashMap<BackendId, Arc<Tenant>>>,
}

impl<L> std::fmt::Debug for Tenants<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants").finish_non_exhaustive()
    }
}

/// A tenant's database.
#[derive(Debug, Default)]
struct Tenant {
    /// Held while its file is loaded.
    loading: tokio::sync::Mutex<()>,
    /// Number of loads that have failed: whoever has waited for one shares its failure, so that nobody waits for several.
    failures: AtomicU64,
    /// The database, once its file is here.
    database: OnceLock<Arc<ShippedDatabase>>,
}

impl<L: Ledger> Tenants<L> {
    /// Creates the directory of databases; it has none yet. Call it in a runtime.
    pub(super) fn new(
        run: Arc<Run<L>>,
        (bases, bucket): (Arc<Bases<L>>, Bucket),
        files: DatabasesDirectory,
        routes: ShippingRoutes,
    ) -> Arc<Self> {
        Arc::new(Self {
            run,
            bases,
            bucket,
            files,
            routes,
            runtime: Handle::current(),
            known: Mutex::default(),
        })
    }

    /// Returns the source of what acknowledges the commits of each database.
    pub(super) fn source(self: &Arc<Self>) -> DurableSource {
        let (opens, loads, forgets) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        DurableSource::new(move |id| opens.open(id))
            .with_loader(move |id| loads.load(id))
            .with_remover(move |id| forgets.forget(id))
    }

    /// Returns the keeper of the databases' histories.
    pub(super) fn histories(&self) -> HistoryKeeper {
        let clock = self.run.clock().clone();
        HistoryKeeper::new(self.bucket.clone(), self.files.clone(), clock)
    }

    /// Returns a database whose file is here, if it is.
    pub(super) fn find(&self, id: BackendId) -> Option<Arc<ShippedDatabase>> {
        let known = lock(&self.known);
        known.get(&id)?.database.get().cloned()
    }

    /// Number of databases whose files are here.
    pub(super) fn count(&self) -> usize {
        let known = lock(&self.known);
        let here = known.values().filter(|one| one.database.get().is_some());
        here.count()
    }

    fn tenant(&self, id: BackendId) -> Arc<Tenant> {
        Arc::clone(lock(&self.known).entry(id).or_default())
    }

    /// Returns what acknowledges the commits of a database, and its last position. One that was not loaded is being made.
    fn open(&self, id: BackendId) -> (Arc<dyn Durable>, CommitPosition) {
        let tenant = self.tenant(id);
        let database = tenant
            .database
            .get_or_init(|| Arc::new(self.shipped(id, None)));
        let position = database.position();
        let durable: Arc<dyn Durable> = database.clone();
        (durable, position)
    }

    fn shipped(&self, id: BackendId, shipper: Option<LogShipper>) -> ShippedDatabase {
        ShippedDatabase::new(
            DatabaseName::Backend(id),
            self.files.path(&id),
            self.routes.clone(),
            CommitPosition::default(),
            shipper,
        )
    }

    /// Brings the file of a database here; `None` if it is here. A caller who hangs up does not end it.
    fn load(self: &Arc<Self>, id: BackendId) -> Option<LoadFuture> {
        let tenant = self.tenant(id);
        if tenant.database.get().is_some() {
            return None;
        }
        let me = Arc::clone(self);
        Some(Box::pin(async move {
            let runtime = me.runtime.clone();
            let failures = tenant.failures.load(Ordering::SeqCst);
            let loading = runtime.spawn(async move {
                let _turn = tenant.loading.lock().await;
                if tenant.database.get().is_some() {
                    return Ok(());
                }
                if tenant.failures.load(Ordering::SeqCst) != failures {
                    return Err(LoadFailure::Shared);
                }
                let loaded = me.load_file(id).await.inspect_err(|_| {
                    tenant.failures.fetch_add(1, Ordering::SeqCst);
                });
                let shipper = loaded?;
                // Nobody makes a database that the ledger has.
                let _ = tenant.database.set(Arc::new(me.shipped(id, Some(shipper))));
                me.fetch_history(id);
                Ok::<(), LoadFailure>(())
            });
            let Ok(loaded) = tokio::time::timeout(LOAD_TIMEOUT, loading).await else {
                return Err(StatementRunError::Busy);
            };
            match loaded {
                Ok(Ok(())) => Ok(()),
                Ok(Err(LoadFailure::Missing)) => Err(StatementRunError::Closed),
                Ok(Err(LoadFailure::Shared)) => Err(StatementRunError::Busy),
                Ok(Err(LoadFailure::Unavailable(error))) => {
                    let error = format!("{error:#}");
                    tracing::error!(error, backend = %id, "a database could not be loaded");
                    Err(StatementRunError::Busy)
                }
                // The panic is in the log.
                Err(_) => Err(StatementRunError::Busy),
            }
        }))
    }

    /// Claims a database, and then makes its file from its newest base and the commits after it.
    async fn load_file(&self, id: BackendId) -> Result<LogShipper, LoadFailure> {
        let name = DatabaseName::Backend(id);
        let claimed = self.run.ledger().claim(self.run.id(), name).await;
        match claimed.map_err(anyhow::Error::from)? {
            ClaimOutcome::Claimed(_) => {}
            ClaimOutcome::Held(place) => {
                let error = anyhow::anyhow!("the run {} has its place", place.run);
                return Err(LoadFailure::Unavailable(error));
            }
        }
        let files = self.files.clone();
        let made = tokio::task::spawn_blocking(move || {
            // Whatever was here is believed by nobody.
            files.remove(&id)?;
            files.create_directory(&id)?;
            files.directory(&id)
        });
        let dir = made.await.map_err(anyhow::Error::from)?;
        let dir = dir?;
        let to = LoadTarget {
            dir,
            name: DatabasesDirectory::NAME.to_owned(),
        };
        match self.bases.load(name, &to).await {
            Ok(loaded) => {
                let log = DatabasesDirectory::LOG_NAME;
                Ok(LogShipper::new(to.dir, log, loaded.state))
            }
            Err(BaseError::Missing(_)) => Err(LoadFailure::Missing),
            Err(error) => Err(LoadFailure::Unavailable(error.into())),
        }
    }

    /// Brings the earlier history of a database here, which nobody waits for.
    fn fetch_history(self: &Arc<Self>, id: BackendId) {
        let me = Arc::clone(self);
        self.runtime.spawn(async move {
            let now = me.run.clock().now();
            let fetched = histories::fetch_earlier(&me.bucket, &me.files, &id, now).await;
            if let Err(error) = fetched {
                let error = format!("{error:#}");
                tracing::warn!(error, backend = %id, "a database's earlier history is not here");
            }
        });
    }

    /// Forgets a database that was removed, once the ledger has what is on its way there: a commit of a database that is forgotten would
    /// continue nothing.
    fn forget(self: &Arc<Self>, id: BackendId) {
        let me = Arc::clone(self);
        let shipped = self.find(id).map(|database| (database.remove(), database));
        self.runtime.spawn(async move {
            if let Some((last, database)) = shipped {
                while !database.is_acknowledged(last) {
                    tokio::time::sleep(ACKNOWLEDGED_EVERY).await;
                }
            }
            lock(&me.known).remove(&id);
            me.forget_now(id).await;
        });
    }

    async fn forget_now(&self, id: BackendId) {
        let name = DatabaseName::Backend(id);
        // One that was not loaded here may have the place of a dead run.
        let claimed = self.run.ledger().claim(self.run.id(), name).await;
        let forgotten = match claimed {
            Ok(_) => self.bases.forget(name).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = forgotten {
            tracing::warn!(%error, backend = %id, "a deleted database is left in the ledger");
        }
        if let Err(error) = histories::delete_all(&self.bucket, &id).await {
            tracing::warn!(%error, backend = %id, "a deleted history is left in the bucket");
        }
    }
}

/// A database could not be loaded.
#[derive(Debug)]
enum LoadFailure {
    /// The ledger does not have it.
    Missing,
    /// Another caller's load has failed, and its log line says why.
    Shared,
    /// The ledger, the bucket or the disk failed.
    Unavailable(anyhow::Error),
}

impl From<anyhow::Error> for LoadFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Unavailable(error)
    }
}

impl From<io::Error> for LoadFailure {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error.into())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use object_store::memory::InMemory;
    use svc_base::clock::Clock;
    use svc_base::random::Random;
    use svc_ledger::MemoryLedger;
    use tokio::sync::mpsc;

    use super::*;
    use crate::config::{ClusterSettings, LedgerUrl};

    fn settings() -> ClusterSettings {
        ClusterSettings {
            name: "n1".to_owned(),
            ledger: LedgerUrl::from("postgresql://pg/svc".to_owned()),
            bucket: "file:///srv/shared".parse().unwrap(),
            peer_listen: ([127, 0, 0, 1], 9443).into(),
            peer_url: None,
            synced_standbys: 1,
            suspect_seconds: 5,
            stale_pages_seconds: 600,
            standby: false,
        }
    }

    #[tokio::test]
    async fn callers_share_a_load_that_fails() {
        let (clock, random) = (Clock::system(), Random::system());
        let ledger = Arc::new(MemoryLedger::default());
        let run = Run::join(ledger, &settings(), &clock, &random)
            .await
            .unwrap();
        let data = tempfile::tempdir().unwrap();
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        let bases = Bases::new(
            Arc::clone(run.ledger()),
            run.id(),
            bucket.clone(),
            data.path().to_owned(),
            clock.clone(),
        );
        let (made, _making) = mpsc::unbounded_channel();
        let routes = ShippingRoutes {
            queue: Arc::clone(run.queue()),
            gate: Arc::clone(run.gate()),
            made,
        };
        let files = DatabasesDirectory::open(data.path()).unwrap();
        let tenants = Tenants::new(run, (Arc::new(bases), bucket), files, routes);
        let id = BackendId::new(&clock, &random).unwrap();
        for failures in 1..=2 {
            let answers = join_all((0..8).map(|_| tenants.load(id).unwrap())).await;
            let missing = answers
                .iter()
                .filter(|it| matches!(it, Err(StatementRunError::Closed)));
            assert_eq!(missing.count(), 1);
            assert!(answers.iter().all(Result::is_err));
            let counted = tenants.tenant(id).failures.load(Ordering::SeqCst);
            assert_eq!(counted, failures);
        }
    }
}
