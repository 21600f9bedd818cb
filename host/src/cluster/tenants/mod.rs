//! Tenants' databases: each is claimed at its first use by the node that needs it, and loaded from the bucket and the ledger.

pub(super) mod handovers;
mod moves;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::bail;
use futures_util::{StreamExt as _, stream};
use tokio::runtime::Handle;

use super::bases::{BaseError, Bases};
use super::bucket::Bucket;
use super::histories::{self, HistoryKeeper};
use super::known_places::KnownPlaces;
use super::loads::LoadTarget;
use super::run::Run;
use super::shipped::{ShippedDatabase, ShippingRoutes};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_base::positions::{CommitPosition, Durable};
use svc_base::sync::lock;
use svc_database::{DatabasesDirectory, DurableSource, LoadFuture, LogShipper, StatementRunError};
use svc_ledger::{Base, ClaimOutcome, DatabaseName, Ledger};

/// Pause between two looks whether a commit is acknowledged.
const ACKNOWLEDGED_EVERY: Duration = Duration::from_millis(20);
/// Longest time that a caller waits for a load, which goes on without it.
const LOAD_TIMEOUT: Duration = Duration::from_secs(9);
/// Time for which a database that was given up for another node is not claimed here again by its calls: those that have waited for that
/// would be quicker than the other node, each time.
const HANDED_OVER_FOR: Duration = Duration::from_secs(2);
/// Time without a call after which the place of a database is given back.
const RELEASE_AFTER: Duration = Duration::from_secs(60);
/// Places that are given back at once.
const RELEASES_AT_ONCE: usize = 8;

/// Databases of tenants.
pub(super) struct Tenants<L> {
    run: Arc<Run<L>>,
    bases: Arc<Bases<L>>,
    bucket: Bucket,
    files: DatabasesDirectory,
    routes: ShippingRoutes,
    runtime: Handle,
    known: Mutex<HashMap<BackendId, Arc<Tenant>>>,
    places: Arc<KnownPlaces<L>>,
    /// Users of the databases besides their calls, once the application has them.
    users: OnceLock<Arc<dyn DatabaseUsers>>,
}

impl<L> std::fmt::Debug for Tenants<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants").finish_non_exhaustive()
    }
}

/// Users of databases besides their calls: sockets.
pub trait DatabaseUsers: Send + Sync {
    /// Whether a database is used, so that its place is not to be given back.
    fn is_used(&self, id: &BackendId) -> bool;

    /// Has the users of a database go to another node, and closes the database once its calls have ended. Does not block.
    fn send_away(&self, id: &BackendId);

    /// Notes that a database came here, from a node that may have left work about it.
    fn note_arrival(&self, id: &BackendId);
}

/// A tenant's database.
#[derive(Debug, Default)]
struct Tenant {
    /// Held while its file is loaded, and while its place is claimed or released.
    moving: tokio::sync::Mutex<()>,
    state: Mutex<TenantState>,
    /// Number of loads that have failed: whoever has waited for one shares its failure, so that nobody waits for several.
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct TenantState {
    /// The database, once its file is here.
    database: Option<Arc<ShippedDatabase>>,
    place: TenantPlace,
    /// Time of the last use.
    used: Duration,
    /// Time at which its place was given up for another node, unless this one has got it again.
    handed_over: Option<Duration>,
}

/// Places that a caller wants a database from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimWish {
    /// Only from nobody, or from a dead run.
    Free,
    /// Also from a run that lives, which gives it up.
    Any,
}

/// Whether the run has the place of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TenantPlace {
    /// No place, or one that is about to be claimed.
    #[default]
    None,
    /// A place of the run's: the database may be used.
    Held,
    /// A place that is being given back: the database may not be used.
    Leaving,
}

impl Tenant {
    /// Notes a use of the database; `false` if its file is not here or its place not the run's.
    fn note_use(&self, now: Duration) -> bool {
        let mut state = lock(&self.state);
        state.used = now;
        state.is_usable()
    }

    /// Whether its place was given up for another node just now, which is about to claim it.
    fn is_handed_over(&self, now: Duration) -> bool {
        let handed_over = lock(&self.state).handed_over;
        handed_over.is_some_and(|at| now.saturating_sub(at) < HANDED_OVER_FOR)
    }

    fn set_place(&self, place: TenantPlace) {
        let mut state = lock(&self.state);
        state.place = place;
        if place == TenantPlace::Held {
            state.handed_over = None;
        }
        if let (TenantPlace::Held, Some(database)) = (place, &state.database) {
            database.set_placed(true);
        }
    }

    /// Whether its place is to be given back.
    fn is_idle(&self, now: Duration) -> bool {
        let state = lock(&self.state);
        state.place == TenantPlace::Leaving || state.is_unused(now)
    }

    /// Notes that its place is being given back; `false` if it was used meanwhile.
    fn leave(&self, now: Duration) -> bool {
        let mut state = lock(&self.state);
        if state.is_unused(now) {
            state.place = TenantPlace::Leaving;
            state.take_place_away();
        }
        state.place == TenantPlace::Leaving
    }
}

impl TenantState {
    fn is_usable(&self) -> bool {
        self.database.is_some() && self.place == TenantPlace::Held
    }

    /// Whether nobody has had the database open for a while.
    fn is_unused(&self, now: Duration) -> bool {
        self.place == TenantPlace::Held
            && self.is_at_rest()
            && now.saturating_sub(self.used) >= RELEASE_AFTER
    }

    /// Has whoever opens the database from now on show nothing, if nobody has it open. Returns whether nobody has.
    fn take_place_away(&self) -> bool {
        let is_at_rest = self.is_at_rest();
        if let Some(database) = self.database.as_ref().filter(|_| is_at_rest) {
            database.set_placed(false);
        }
        is_at_rest
    }

    /// Whether nobody has the database open. Who opens it keeps what acknowledges its commits, which all of them hold then.
    fn is_at_rest(&self) -> bool {
        let is_closed = |database: &Arc<ShippedDatabase>| {
            Arc::strong_count(database) == 1 && database.is_shipping()
        };
        self.database.as_ref().is_some_and(is_closed)
    }
}

impl<L: Ledger> Tenants<L> {
    /// Creates the directory of databases; it has none yet. Call it in a runtime.
    pub(super) fn new(
        (run, places): (Arc<Run<L>>, Arc<KnownPlaces<L>>),
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
            places,
            users: OnceLock::new(),
        })
    }

    /// Returns the source of what acknowledges the commits of each database, whose history may have so many bytes.
    pub(super) fn source(self: &Arc<Self>, history_bytes: u64) -> DurableSource {
        let (opens, loads, forgets) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let (brings, looks) = (Arc::clone(self), Arc::clone(self));
        DurableSource::new(move |id| opens.open(id))
            .with_loader(move |id| loads.load(id, history_bytes, ClaimWish::Free))
            .with_bringer(move |id| brings.load(id, history_bytes, ClaimWish::Any))
            .with_places(move |id| looks.place(id))
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
        let state = lock(&known.get(&id)?.state);
        state.database.clone()
    }

    /// Number of databases whose places the run has.
    pub(super) fn count(&self) -> usize {
        let known = lock(&self.known);
        let here = known.values().filter(|one| lock(&one.state).is_usable());
        here.count()
    }

    fn tenant(&self, id: BackendId) -> Arc<Tenant> {
        Arc::clone(lock(&self.known).entry(id).or_default())
    }

    fn now(&self) -> Duration {
        self.run.clock().elapsed()
    }

    /// Returns what acknowledges the commits of a database, and its last position. One that was not loaded is being made.
    fn open(&self, id: BackendId) -> (Arc<dyn Durable>, CommitPosition) {
        let tenant = self.tenant(id);
        let mut state = lock(&tenant.state);
        state.used = self.now();
        if state.database.is_none() {
            // Its place is claimed with its first base.
            state.place = TenantPlace::Held;
        }
        let database = state
            .database
            .get_or_insert_with(|| Arc::new(self.shipped(id, None)));
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
    fn load(
        self: &Arc<Self>,
        id: BackendId,
        history_bytes: u64,
        wish: ClaimWish,
    ) -> Option<LoadFuture> {
        let tenant = self.tenant(id);
        if tenant.note_use(self.now()) {
            return None;
        }
        let me = Arc::clone(self);
        Some(Box::pin(async move {
            let runtime = me.runtime.clone();
            let failures = tenant.failures.load(Ordering::SeqCst);
            let loading = runtime.spawn(async move {
                let _turn = tenant.moving.lock().await;
                if tenant.note_use(me.now()) {
                    return Ok(());
                }
                let is_tried = tenant.failures.load(Ordering::SeqCst) != failures;
                if wish == ClaimWish::Free && tenant.is_handed_over(me.now()) {
                    return Err(LoadFailure::Elsewhere);
                }
                if is_tried && wish == ClaimWish::Free {
                    return Err(LoadFailure::Shared);
                }
                let brought = me.claim_and_load(id, &tenant, history_bytes, wish).await;
                if let (Ok(()), Some(users)) = (&brought, me.users.get()) {
                    users.note_arrival(&id);
                }
                brought.inspect_err(|_| {
                    tenant.failures.fetch_add(1, Ordering::SeqCst);
                })
            });
            let Ok(loaded) = tokio::time::timeout(LOAD_TIMEOUT, loading).await else {
                return Err(StatementRunError::Busy);
            };
            match loaded {
                Ok(Ok(())) => Ok(()),
                Ok(Err(failure)) => Err(failure.into_statement_error(id)),
                // The panic is in the log.
                Err(_) => Err(StatementRunError::Busy),
            }
        }))
    }

    /// Claims a database and makes its file, unless the one that is here from an earlier claim is current.
    async fn claim_and_load(
        self: &Arc<Self>,
        id: BackendId,
        tenant: &Tenant,
        history_bytes: u64,
        wish: ClaimWish,
    ) -> Result<(), LoadFailure> {
        let name = DatabaseName::Backend(id);
        let place = self.claim(id, wish).await?;
        fault::point("cluster.backend_claimed");
        let known = lock(&tenant.state).database.clone();
        let brought = match known {
            Some(known) => match self.is_current(id, &known).await {
                Ok(true) => Ok(None),
                Ok(false) => {
                    // Its file goes now, whether another one comes or not.
                    lock(&tenant.state).database = None;
                    self.load_file(id).await.map(Some)
                }
                Err(error) => Err(error.into()),
            },
            None => self.load_file(id).await.map(Some),
        };
        match brought {
            Ok(None) => self.bases.note_released(name, false),
            Ok(Some(shipper)) => {
                let loaded = Arc::new(self.shipped(id, Some(shipper)));
                let last = loaded.position();
                lock(&tenant.state).database = Some(loaded);
                if history_bytes > 0 {
                    self.fetch_history(id, last, history_bytes);
                }
            }
            Err(error) => {
                // Whoever asks next claims it again, and gets another number then.
                if let Err(error) = self.run.ledger().release(place).await {
                    tracing::warn!(%error, backend = %id, "the place of a database is kept, which does not load");
                }
                return Err(error);
            }
        }
        tenant.set_place(TenantPlace::Held);
        Ok(())
    }

    /// Whether a database whose place was claimed again has the ledger's last commit. Nothing is compared but numbers: its last commit
    /// was acknowledged before its place was given back, and no number is written twice.
    async fn is_current(
        &self,
        id: BackendId,
        known: &Arc<ShippedDatabase>,
    ) -> anyhow::Result<bool> {
        let name = DatabaseName::Backend(id);
        let (reader, position) = (Some(self.run.id()), known.position());
        let bases = self.run.ledger().bases(reader, name).await?;
        let tail = self.run.ledger().tail(reader, name, position, 1).await?;
        let is_newest = |base: &Base| base.position <= position;
        let is_current = tail.is_empty() && bases.first().is_some_and(is_newest);
        // Besides the caller and the directory of databases, who opened it has it.
        if !is_current && Arc::strong_count(known) > 2 {
            // It was opened while its place was given back, and shows nothing.
            self.send_away(id);
            bail!("it is in use, and the ledger has other commits");
        }
        Ok(is_current)
    }

    /// Makes the file of a database from its newest base and the commits after it.
    async fn load_file(&self, id: BackendId) -> Result<LogShipper, LoadFailure> {
        let name = DatabaseName::Backend(id);
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

    /// Brings the earlier history of a database here, which nobody waits for: that of the commits up to `last`. What the bucket lacks
    /// is made of a base and the commits after it. Meanwhile no base is made, and its place is not given back.
    fn fetch_history(self: &Arc<Self>, id: BackendId, last: CommitPosition, most_bytes: u64) {
        let me = Arc::clone(self);
        self.runtime.spawn(async move {
            let turn = me.bases.turn(DatabaseName::Backend(id)).await;
            let reader = (&**me.run.ledger(), me.run.id());
            let missing = (last, most_bytes);
            let made = histories::make_missing(reader, &me.bucket, &me.files, &id, missing).await;
            drop(turn);
            if let Err(error) = made {
                let error = format!("{error:#}");
                tracing::warn!(error, backend = %id, "a database's newest history is not here");
            }
            let now = me.run.clock().now();
            let fetched = histories::fetch_earlier(&me.bucket, &me.files, &id, now).await;
            if let Err(error) = fetched {
                let error = format!("{error:#}");
                tracing::warn!(error, backend = %id, "a database's earlier history is not here");
            }
        });
    }

    /// Copies the history of a database up to an acknowledged commit. A failure costs moments at most.
    pub(super) async fn keep_history(&self, id: BackendId, acknowledged: CommitPosition) {
        let copied =
            histories::upload_ended(&self.bucket, &self.files, &id, acknowledged, true).await;
        if let Err(error) = copied {
            let error = format!("{error:#}");
            tracing::warn!(error, backend = %id, "a database's newest history is not copied");
        }
    }

    /// Copies the histories of all databases whose places the run has, once they are closed.
    pub(super) async fn keep_histories(&self) {
        let here: Vec<_> = {
            let known = lock(&self.known);
            let here = known.iter().filter_map(|(id, tenant)| {
                let state = lock(&tenant.state);
                let database = state.database.clone().filter(|_| state.is_usable())?;
                Some((*id, database.acknowledged_position()?))
            });
            here.collect()
        };
        let copies = stream::iter(here).map(|(id, last)| self.keep_history(id, last));
        copies
            .buffer_unordered(RELEASES_AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }

    /// Forgets a database that was removed, once the ledger has what is on its way there: a commit of a database that is forgotten would
    /// continue nothing.
    fn forget(self: &Arc<Self>, id: BackendId) {
        let (me, tenant) = (Arc::clone(self), self.tenant(id));
        let shipped = self.find(id).map(|database| (database.remove(), database));
        self.runtime.spawn(async move {
            let _turn = tenant.moving.lock().await;
            if let Some((last, database)) = shipped {
                while !database.is_acknowledged(last) {
                    tokio::time::sleep(ACKNOWLEDGED_EVERY).await;
                }
            }
            *lock(&tenant.state) = TenantState::default();
            lock(&me.known).remove(&id);
            me.forget_now(id).await;
        });
    }

    /// Forgets a database that control does not name, and removes its file.
    pub(super) async fn remove_leftover(&self, id: BackendId) {
        let tenant = self.tenant(id);
        let _turn = tenant.moving.lock().await;
        if let Some(database) = self.find(id) {
            database.remove();
        }
        *lock(&tenant.state) = TenantState::default();
        lock(&self.known).remove(&id);
        self.forget_now(id).await;
        let files = self.files.clone();
        let removed = tokio::task::spawn_blocking(move || files.remove(&id)).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!(backend = %id, "the file of a database that is gone is left here until the next start");
        }
    }

    /// Has a database keep its newest base alone, if that was made before `before`. Its place is claimed for that, unless another run
    /// has it.
    pub(super) async fn drop_older_base(
        &self,
        name: DatabaseName,
        before: Timestamp,
    ) -> Result<(), BaseError> {
        let DatabaseName::Backend(id) = name else {
            return self.bases.drop_older(name, before).await;
        };
        let tenant = self.tenant(id);
        let _turn = tenant.moving.lock().await;
        let ledger = self.run.ledger();
        let ClaimOutcome::Claimed(place) = ledger.claim(self.run.id(), name).await? else {
            return Ok(());
        };
        let dropped = self.bases.drop_older(name, before).await;
        let is_held = lock(&tenant.state).place == TenantPlace::Held;
        if !is_held {
            ledger.release(place).await?;
        }
        dropped
    }

    async fn forget_now(&self, id: BackendId) {
        let name = DatabaseName::Backend(id);
        // One that was not loaded here may have the place of a dead run, or of another node that has it open.
        let forgotten = match self.claim(id, ClaimWish::Any).await {
            Ok(_) => self.bases.forget(name).await.map_err(LoadFailure::from),
            Err(error) => Err(error),
        };
        self.places.forget(name);
        if let Err(error) = forgotten {
            tracing::warn!(?error, backend = %id, "a deleted database is left in the ledger or in the bucket: it is removed later");
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
    /// Another run has its place.
    Elsewhere,
    /// The ledger, the bucket or the disk failed.
    Unavailable(anyhow::Error),
}

impl LoadFailure {
    /// Returns the error that a caller gets; logs what is ours.
    fn into_statement_error(self, id: BackendId) -> StatementRunError {
        match self {
            Self::Missing => StatementRunError::Closed,
            // The next call is passed on to the node that has it.
            Self::Shared | Self::Elsewhere => StatementRunError::Busy,
            Self::Unavailable(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, backend = %id, "a database could not be loaded");
                StatementRunError::Busy
            }
        }
    }
}

impl From<anyhow::Error> for LoadFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Unavailable(error)
    }
}

impl From<BaseError> for LoadFailure {
    fn from(error: BaseError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<io::Error> for LoadFailure {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error.into())
    }
}

#[cfg(test)]
mod tests;
