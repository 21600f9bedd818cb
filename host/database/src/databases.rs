//! The databases of an installation: opened at their first use, and closed when they are idle.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use super::changed_tables::ChangedTables;
use super::connection::DatabaseOpenSettings;
use super::database::Database;
use super::error::{StatementRunError, disk_error, internal_error};
use super::fair_queue::JobOwner;
use super::files::DatabasesDirectory;
use super::history::HistorySettings;
use super::lanes::Lanes;
use super::limits::{DatabaseLimits, MIGRATION_BUDGET_FACTOR, QUEUE_TIMEOUT, ResultLimits};
use super::migrate::{self, MigrationOutcome, MigrationScript, MigrationScriptError};
use super::open_databases::OpenDatabases;
use super::pending_commits::{
    CommitReplies, DatabasePlace, DurableSource, PendingCommits, SharedCommits,
};
use super::process_settings;
use super::schema::{self, DatabaseInventory, Schema};
use super::watchdog::Watchdog;
use super::writer::WriterRegistry;
use svc_base::Stopwatch;
use svc_base::clock::{Clock, Timestamp};
use svc_base::fault;
use svc_base::ids::{BackendId, WorkspaceId};
use svc_base::positions::CommitPosition;
use svc_base::sync::lock;

/// Longest time that a new database waits for other machines to have it.
const CREATE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a call after which a database is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without a call after which a database keeps one reader: each has memory of its own.
const SURPLUS_READER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a call that waits for room looks again: a database that nobody uses any more makes room, too.
const ROOM_RETRY: Duration = Duration::from_millis(20);
/// Calls in which each database has its history recorded once. At one a second, a crash loses the times of at most one minute.
const HISTORY_TURNS: u64 = 60;

/// The databases of an installation.
#[derive(Debug)]
pub struct Databases {
    pub(super) files: DatabasesDirectory,
    pub(super) writers: WriterRegistry,
    pub(super) limits: ResultLimits,
    max_bytes: u64,
    open: OpenDatabases,
    /// Declared after `open`, so dropped after it: a thread that closes databases must not be the last to drop the lanes, whose drop waits
    /// for their threads.
    pub(super) lanes: Arc<Lanes>,
    /// Number of calls of [`Databases::record_history`].
    history_turn: AtomicU64,
    /// Workspaces that the databases count for. The databases of one workspace share its threads in the lanes.
    workspaces: Mutex<HashMap<BackendId, WorkspaceId>>,
    watchdog: Watchdog,
    clock: Stopwatch,
    /// Source of what acknowledges commits; `None` on a single machine, which has the files of all databases.
    durable: Option<DurableSource>,
}

impl Databases {
    /// Prepares the databases below `data`; opens none yet.
    ///
    /// # Errors
    /// When a directory cannot be opened, or the system refuses a thread.
    pub fn open(data: &Path, limits: &DatabaseLimits, clock: Clock) -> anyhow::Result<Self> {
        Self::open_with_durable(data, limits, clock, None)
    }

    /// Prepares the databases below `data`. Their commits are acknowledged by what `durable` opens for each, or by this machine.
    ///
    /// # Errors
    /// As for [`Databases::open`].
    pub fn open_with_durable(
        data: &Path,
        limits: &DatabaseLimits,
        clock: Clock,
        durable: Option<DurableSource>,
    ) -> anyhow::Result<Self> {
        let files = DatabasesDirectory::open(&data.join("backends"))?;
        process_settings::configure_sqlite(&data.join("tmp"))?;
        let history_settings = HistorySettings {
            clock,
            max_bytes: limits.history_bytes,
            min_free_bytes: limits.free_disk_bytes,
        };
        Ok(Self {
            writers: WriterRegistry::start(files.clone(), history_settings, durable.clone())?,
            files,
            durable,
            lanes: Arc::new(Lanes::start()?),
            limits: ResultLimits {
                rows: limits.query_rows,
                bytes: usize::try_from(limits.result_bytes).unwrap_or(usize::MAX),
                time: Duration::from_millis(limits.statement_ms),
            },
            max_bytes: limits.database_bytes,
            open: OpenDatabases::start(limits.open_databases)?,
            history_turn: AtomicU64::new(0),
            workspaces: Mutex::default(),
            watchdog: Watchdog::start()?,
            clock: Stopwatch::start(),
        })
    }

    /// Notes the workspaces that databases count for, before their first use. A later change counts once the database is opened again.
    pub fn set_workspaces(&self, owners: impl IntoIterator<Item = (BackendId, WorkspaceId)>) {
        self.workspaces().extend(owners);
    }

    pub(super) fn owner(&self, database: BackendId) -> JobOwner {
        JobOwner {
            workspace: self.workspaces().get(&database).copied(),
            database,
        }
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<BackendId, WorkspaceId>> {
        lock(&self.workspaces)
    }

    /// The directories of the databases.
    pub fn files(&self) -> &DatabasesDirectory {
        &self.files
    }

    /// Returns a database; opens it if need be. Where other machines have the database, it is loaded from them first.
    ///
    /// # Errors
    /// When it cannot be loaded or opened; `Busy` where too many are open for too long.
    pub async fn load(&self, id: BackendId) -> Result<Arc<Database>, StatementRunError> {
        self.claim(id).await?;
        let database = match self.get(id) {
            // Boxed, because it is rare, and calls must not carry its size.
            Err(StatementRunError::Busy) => Box::pin(self.get_once_there_is_room(id)).await?,
            got => got?,
        };
        if !database.has_all_tables() {
            // Boxed, because it is done once, and calls must not carry its size.
            Box::pin(database.add_missing_tables()).await;
        }
        Ok(database)
    }

    /// Takes a database that no other machine has, for work that needs it to be here and reads none of it.
    ///
    /// # Errors
    /// When another machine has it, or it cannot be loaded.
    pub async fn claim(&self, id: BackendId) -> Result<(), StatementRunError> {
        match &self.durable {
            Some(source) => source.load(id).await,
            None => Ok(()),
        }
    }

    /// Brings a database here for work that must be done on this machine: another one that has it gives it up.
    ///
    /// # Errors
    /// When the other one does not give it up in time, or it cannot be loaded.
    pub async fn bring(&self, id: BackendId) -> Result<(), StatementRunError> {
        match &self.durable {
            Some(source) => source.bring(id).await,
            None => Ok(()),
        }
    }

    /// Returns the machine that is believed to have a database. A single machine has all.
    pub fn place(&self, id: BackendId) -> DatabasePlace {
        let source = self.durable.as_ref();
        source.map_or(DatabasePlace::Here, |source| source.place(id))
    }

    /// Returns a database whose file is here; opens it if need be.
    pub(super) fn get(&self, id: BackendId) -> Result<Arc<Database>, StatementRunError> {
        let open = || {
            let (lanes, writers) = (Arc::clone(&self.lanes), self.writers.clone());
            let (owner, settings) = (self.owner(id), self.settings(&id));
            Database::new(owner, settings, self.limits, lanes, writers)
        };
        let is_there = || self.files.path(&id).is_file();
        self.open
            .get_or_open(id, self.clock.elapsed(), is_there, open)
    }

    /// Does what [`Databases::get`] does, and waits while too many databases are open.
    async fn get_once_there_is_room(
        &self,
        id: BackendId,
    ) -> Result<Arc<Database>, StatementRunError> {
        let got = async {
            // One looks for room at a time, and they take turns in the order in which they came.
            let _turn = self.open.turn().await;
            loop {
                let _ = tokio::time::timeout(ROOM_RETRY, self.open.wait_for_room()).await;
                // Another machine may have taken it meanwhile.
                self.claim(id).await?;
                match self.get(id) {
                    Err(StatementRunError::Busy) => {}
                    got => return got,
                }
            }
        };
        let got = tokio::time::timeout(QUEUE_TIMEOUT, got).await;
        got.unwrap_or(Err(StatementRunError::Busy))
    }

    /// Creates a database with its first script, durably.
    ///
    /// # Errors
    /// [`MigrationScriptError`]; nothing is left then.
    pub async fn create(
        self: &Arc<Self>,
        id: BackendId,
        script: MigrationScript,
    ) -> Result<DatabaseInventory, MigrationScriptError> {
        let (answer, answered) = oneshot::channel();
        let me = Arc::clone(self);
        let job = Box::new(move || {
            let shared = me.writers.share_commits(id);
            let made = me.create_blocking(&id, &script, shared.as_ref());
            // If the caller has gone, the directory stays without a row that names it, and the next start removes it.
            match (made, shared) {
                (Ok((inventory, last)), Some(shared)) => {
                    let mut pending = PendingCommits::default();
                    let reply = Box::new(move || drop(answer.send(Ok(inventory))));
                    let replies = CommitReplies::Exclusive(reply);
                    pending.push(last.0, (ChangedTables::default(), replies));
                    // The file is whole by now, so that it can be copied as the base of what follows.
                    shared.hand_over(last, &mut pending, Arc::clone(&shared));
                }
                (made, _) => drop(answer.send(made.map(|(inventory, _)| inventory))),
            }
        });
        if !self.lanes.queue_long(self.owner(id), job) {
            return Err(StatementRunError::Busy.into());
        }
        let answered = async {
            answered
                .await
                .unwrap_or(Err(StatementRunError::Closed.into()))
        };
        match &self.durable {
            None => answered.await,
            // Nobody names a database whose caller was not answered.
            Some(_) => tokio::time::timeout(CREATE_TIMEOUT, answered)
                .await
                .unwrap_or(Err(StatementRunError::Busy.into())),
        }
    }

    /// Makes the file of a database; returns its content, and the position and the time of the commit that made it.
    fn create_blocking(
        &self,
        id: &BackendId,
        script: &MigrationScript,
        shared: Option<&Arc<SharedCommits>>,
    ) -> Result<(DatabaseInventory, (CommitPosition, Timestamp)), MigrationScriptError> {
        let disk = |error: std::io::Error| disk_error(&error);
        self.files.create_directory(id).map_err(disk)?;
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let made = self
            .writers
            .create(*id, &self.settings(id), shared)
            .map_err(MigrationScriptError::from)
            .and_then(|writer| {
                migrate::create_database(&writer.handle, script, budget).map_err(|failure| {
                    let error = self.settings(id).distinguish_full_disk(failure.error);
                    MigrationScriptError { error, ..failure }
                })?;
                let inventory =
                    schema::read_inventory(&writer.handle.connection).map_err(internal_error)?;
                let last = writer.last_commit();
                writer.close();
                Ok((inventory, last))
            })
            .and_then(|made| {
                fault::point("provision.made");
                self.files.sync(id).map_err(disk)?;
                Ok(made)
            });
        if made.is_err()
            && let Err(error) = self.files.remove(id)
        {
            // The next start removes it.
            tracing::warn!(%error, "a database that was not made cannot be removed");
        }
        made
    }

    /// Applies a script to a database, when the writer is free.
    ///
    /// # Errors
    /// [`MigrationScriptError`]; nothing of the script is kept then.
    pub async fn migrate(
        &self,
        id: BackendId,
        script: MigrationScript,
    ) -> Result<MigrationOutcome, MigrationScriptError> {
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        self.load(id)
            .await?
            .with_writer(move |writer| Ok(migrate::migrate(&writer.handle, &script, budget)))
            .await?
            .map_err(|failure| MigrationScriptError {
                error: self.settings(&id).distinguish_full_disk(failure.error),
                ..failure
            })
    }

    /// Lists the content of a database.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn inventory(&self, id: BackendId) -> Result<DatabaseInventory, StatementRunError> {
        self.load(id).await?.inspect(schema::read_inventory).await
    }

    /// Reads the schema of a database.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn schema(&self, id: BackendId) -> Result<Schema, StatementRunError> {
        self.load(id).await?.inspect(schema::read_schema).await
    }

    /// Reads the SQL of a database's views.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn views(&self, id: BackendId) -> Result<Vec<String>, StatementRunError> {
        self.load(id).await?.inspect(schema::read_view_sql).await
    }

    /// Sets the listener of commits. It is called once a commit is durable, and before its callers are answered.
    pub fn set_commit_listener(
        &self,
        listener: impl Fn(BackendId, ChangedTables) + Send + Sync + 'static,
    ) {
        self.writers.listener().set(listener);
    }

    /// Tells the listener that anything in a database may have changed.
    pub fn announce_change(&self, id: BackendId) {
        self.writers.listener().notify(id, ChangedTables::All);
    }

    /// Removes a database; its calls fail from now on. Blocks.
    pub fn remove(&self, id: &BackendId) -> std::io::Result<()> {
        if let Some(database) = self.open.begin_removal(id) {
            database.close();
        }
        let removed = self.files.remove(id);
        if let Some(source) = &self.durable {
            source.removed(*id);
        }
        self.workspaces().remove(id);
        self.open.end_removal(id);
        removed
    }

    /// Closes a database once its jobs have ended. Its next use opens it again.
    pub fn close_one(&self, id: &BackendId) {
        self.open.close_one(id);
    }

    /// Closes databases without calls for a minute, and surplus readers of those without calls for a few seconds. Blocks.
    pub fn close_idle(&self) {
        let now = self.clock.elapsed();
        if let Some(moment) = now.checked_sub(IDLE_TIMEOUT) {
            self.open.close_unused_since(moment);
        }
        if let Some(moment) = now.checked_sub(SURPLUS_READER_TIMEOUT) {
            drop(self.open.take_surplus_readers(moment));
        }
    }

    /// Records new commits of some databases in the histories. Each has its turn in one of [`HISTORY_TURNS`] calls, so that not all are
    /// written at once.
    pub fn record_history(&self) {
        let turn = self.history_turn.fetch_add(1, Ordering::Relaxed) % HISTORY_TURNS;
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        self.record_history_of(|id| hasher.hash_one(id) % HISTORY_TURNS == turn);
    }

    fn record_history_of(&self, is_due: impl Fn(&BackendId) -> bool) {
        let due = self.open.list(is_due);
        due.iter().for_each(|database| database.record_history());
    }

    /// Records new commits of all databases in the histories.
    #[cfg(test)]
    pub(super) fn record_all_histories(&self) {
        self.record_history_of(|_| true);
    }

    /// Closes all databases, once their jobs have ended. Blocks.
    pub fn close_all(&self) {
        self.open.close_all();
    }

    /// Waits until all databases that are being closed are closed. Blocks.
    pub fn await_closed(&self) {
        self.writers.await_closed();
    }

    pub(super) fn settings(&self, id: &BackendId) -> DatabaseOpenSettings {
        let clock = self.writers.history_settings().clock.clone();
        let path = self.files.path(id);
        let settings = DatabaseOpenSettings::new(path, self.max_bytes, clock, &self.watchdog);
        match &self.durable {
            None => settings,
            Some(_) => settings.synced_elsewhere(),
        }
    }

    /// Number of open databases.
    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.open.count()
    }
}
