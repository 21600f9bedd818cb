//! The databases of an installation: opened as they are needed, and closed as they are not.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use super::changed_tables::ChangedTables;
use super::connection::OpenSettings;
use super::database::Database;
use super::error::{RunError, disk_error, internal};
use super::fair_queue::JobOwner;
use super::files::DatabaseFiles;
use super::history::HistorySettings;
use super::lanes::Lanes;
use super::limits::{Limits, MIGRATION_BUDGET_FACTOR, ResultLimits};
use super::migrate::{self, MigrationOutcome, Script, ScriptError};
use super::process_settings;
use super::schema::{self, Inventory, Schema};
use super::watchdog::Watchdog;
use super::writer::WriterRegistry;
use svc_base::Stopwatch;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::ids::{BackendId, WorkspaceId};
use svc_base::sync::lock;

/// How many databases are open at once: as many as an installation has by default, since opening one anew costs
/// more than most calls.
pub(super) const MAX_OPEN: usize = 256;
/// A database that nobody has called for so long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The databases of an installation.
#[derive(Debug)]
pub struct Databases {
    pub(super) files: DatabaseFiles,
    pub(super) writers: WriterRegistry,
    pub(super) lanes: Arc<Lanes>,
    pub(super) limits: ResultLimits,
    max_bytes: u64,
    open: Mutex<OpenDatabases>,
    /// Workspaces of the databases: those of one workspace share what it has of the lanes.
    workspaces: Mutex<HashMap<BackendId, WorkspaceId>>,
    watchdog: Watchdog,
    clock: Stopwatch,
}

/// The open databases, and those that are just being removed, which nobody opens again.
#[derive(Debug, Default)]
struct OpenDatabases {
    entries: HashMap<BackendId, OpenEntry>,
    being_removed: HashSet<BackendId>,
}

#[derive(Debug)]
struct OpenEntry {
    database: Arc<Database>,
    /// By the registry's clock.
    last_used: Duration,
}

impl Databases {
    /// The databases below `data`; none is opened yet.
    ///
    /// # Errors
    /// When a directory cannot be opened, or the system has no threads.
    pub fn open(data: &Path, limits: &Limits, clock: Clock) -> anyhow::Result<Self> {
        let files = DatabaseFiles::open(&data.join("backends"))?;
        process_settings::configure_sqlite(&data.join("tmp"))?;
        let history_settings = HistorySettings {
            clock,
            max_bytes: limits.history_bytes,
            min_free_bytes: limits.free_disk_bytes,
        };
        Ok(Self {
            writers: WriterRegistry::start(files.clone(), history_settings)?,
            files,
            lanes: Arc::new(Lanes::start()?),
            limits: ResultLimits {
                rows: limits.query_rows,
                bytes: usize::try_from(limits.result_bytes).unwrap_or(usize::MAX),
                time: Duration::from_millis(limits.statement_ms),
            },
            max_bytes: limits.database_bytes,
            open: Mutex::default(),
            workspaces: Mutex::default(),
            watchdog: Watchdog::start()?,
            clock: Stopwatch::start(),
        })
    }

    /// Notes whose databases are, before they are first used.
    pub fn set_workspaces(&self, owners: impl IntoIterator<Item = (BackendId, WorkspaceId)>) {
        self.workspaces().extend(owners);
    }

    fn owner(&self, database: BackendId) -> JobOwner {
        JobOwner {
            workspace: self.workspaces().get(&database).copied(),
            database,
        }
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<BackendId, WorkspaceId>> {
        lock(&self.workspaces)
    }

    /// The directories of the databases.
    pub fn files(&self) -> &DatabaseFiles {
        &self.files
    }

    /// A database, opened if it is not.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn get(&self, id: BackendId) -> Result<Arc<Database>, RunError> {
        let now = self.clock.elapsed();
        let mut open = self.lock();
        if let Some(entry) = open.entries.get_mut(&id) {
            entry.last_used = now;
            return Ok(Arc::clone(&entry.database));
        }
        if open.being_removed.contains(&id) {
            return Err(RunError::Closed);
        }
        let closed = (open.entries.len() >= MAX_OPEN).then(|| take_least_recent(&mut open.entries));
        let (lanes, writers) = (Arc::clone(&self.lanes), self.writers.clone());
        let (owner, settings) = (self.owner(id), self.settings(&id));
        let database = Database::new(owner, settings, self.limits, lanes, writers)?;
        let entry = OpenEntry {
            database: Arc::clone(&database),
            last_used: now,
        };
        open.entries.insert(id, entry);
        drop(open);
        self.close(closed.flatten());
        Ok(database)
    }

    /// Makes a new database with its first script, durably.
    ///
    /// # Errors
    /// [`ScriptError`]; nothing is left then.
    pub async fn create(
        self: &Arc<Self>,
        id: BackendId,
        script: Script,
    ) -> Result<Inventory, ScriptError> {
        let (answer, answered) = oneshot::channel();
        let me = Arc::clone(self);
        let job = Box::new(move || {
            // A caller that has gone away leaves a directory that nobody refers to, which the next start removes.
            let _ = answer.send(me.create_blocking(&id, &script));
        });
        if !self.lanes.queue_long(self.owner(id), job) {
            return Err(RunError::Busy.into());
        }
        answered
            .await
            .unwrap_or_else(|_| Err(RunError::Closed.into()))
    }

    fn create_blocking(&self, id: &BackendId, script: &Script) -> Result<Inventory, ScriptError> {
        let disk = |error: std::io::Error| disk_error(&error);
        self.files.create_directory(id).map_err(disk)?;
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let made = self
            .writers
            .create(*id, &self.settings(id))
            .map_err(ScriptError::from)
            .and_then(|writer| {
                migrate::create_database(&writer.handle, script, budget).map_err(|failure| {
                    let error = self.settings(id).distinguish_full_disk(failure.error);
                    ScriptError { error, ..failure }
                })?;
                let inventory =
                    schema::read_inventory(&writer.handle.connection).map_err(internal)?;
                writer.close();
                Ok(inventory)
            })
            .and_then(|inventory| {
                fault::point("provision.made");
                self.files.sync(id).map_err(disk)?;
                Ok(inventory)
            });
        if made.is_err()
            && let Err(error) = self.files.remove(id)
        {
            // The next start removes it.
            tracing::warn!(%error, "a database that was not made cannot be removed");
        }
        made
    }

    /// Applies a script to a database, in its turn.
    ///
    /// # Errors
    /// [`ScriptError`]; nothing of the script is kept then.
    pub async fn migrate(
        &self,
        id: BackendId,
        script: Script,
    ) -> Result<MigrationOutcome, ScriptError> {
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        self.get(id)?
            .with_writer(move |writer| Ok(migrate::migrate(&writer.handle, &script, budget)))
            .await?
            .map_err(|failure| ScriptError {
                error: self.settings(&id).distinguish_full_disk(failure.error),
                ..failure
            })
    }

    /// Lists the content of a database.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn inventory(&self, id: BackendId) -> Result<Inventory, RunError> {
        self.get(id)?.inspect(schema::read_inventory).await
    }

    /// The schema of a database.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn schema(&self, id: BackendId) -> Result<Schema, RunError> {
        self.get(id)?.inspect(schema::read_schema).await
    }

    /// The SQL of a database's views.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn views(&self, id: BackendId) -> Result<Vec<String>, RunError> {
        self.get(id)?.inspect(schema::read_view_sql).await
    }

    /// Has `follow` told what commits may have changed: once they are durable, and before their callers are answered.
    pub fn set_commit_listener(
        &self,
        listener: impl Fn(BackendId, ChangedTables) + Send + Sync + 'static,
    ) {
        self.writers.listener().set(listener);
    }

    /// Tells the follower that anything about a database may have changed.
    pub fn announce_change(&self, id: BackendId) {
        self.writers.listener().notify(id, ChangedTables::All);
    }

    /// Forgets a database, whose calls end, and removes it. Blocks.
    pub fn remove(&self, id: &BackendId) -> std::io::Result<()> {
        let entry = {
            let mut open = self.lock();
            open.being_removed.insert(*id);
            open.entries.remove(id)
        };
        if let Some(entry) = entry {
            entry.database.close();
        }
        let removed = self.files.remove(id);
        self.workspaces().remove(id);
        self.lock().being_removed.remove(id);
        removed
    }

    /// Closes databases in the short lane: it copies their logs, which takes a while.
    fn close(&self, entries: impl IntoIterator<Item = OpenEntry>) {
        for entry in entries {
            self.lanes
                .queue_urgent(entry.database.owner, Box::new(move || drop(entry)));
        }
    }

    /// Closes what nobody has called for a while.
    pub fn close_idle(&self) {
        let now = self.clock.elapsed();
        let idle: Vec<OpenEntry> = {
            let mut open = self.lock();
            open.entries
                .extract_if(|_, entry| {
                    now.saturating_sub(entry.last_used) > IDLE_TIMEOUT
                        && Arc::strong_count(&entry.database) == 1
                })
                .map(|(_, entry)| entry)
                .collect()
        };
        self.close(idle);
    }

    /// Has histories take what was committed, so that a crash blurs no more than the last minute.
    pub fn record_history(&self) {
        let open: Vec<Arc<Database>> = {
            let open = self.lock();
            let databases = open.entries.values().map(|entry| &entry.database);
            databases.map(Arc::clone).collect()
        };
        open.iter().for_each(|database| database.record_history());
    }

    /// Closes all databases, when what runs in them has ended. Blocks.
    pub fn close_all(&self) {
        let entries: Vec<OpenEntry> = self.lock().entries.drain().map(|(_, e)| e).collect();
        drop(entries);
    }

    /// Waits until all that is being closed is closed. Blocks.
    pub fn await_closed(&self) {
        self.writers.await_closed();
    }

    pub(super) fn settings(&self, id: &BackendId) -> OpenSettings {
        let clock = self.writers.history_settings().clock.clone();
        OpenSettings::new(self.files.path(id), self.max_bytes, clock, &self.watchdog)
    }

    /// How many databases are open.
    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.lock().entries.len()
    }

    fn lock(&self) -> MutexGuard<'_, OpenDatabases> {
        lock(&self.open)
    }
}

/// Makes room for another database. One that is in use stays; then there are more for a while.
fn take_least_recent(open: &mut HashMap<BackendId, OpenEntry>) -> Option<OpenEntry> {
    let oldest = open
        .iter()
        .filter(|(_, entry)| Arc::strong_count(&entry.database) == 1)
        .min_by_key(|(_, entry)| entry.last_used)
        .map(|(id, _)| *id)?;
    open.remove(&oldest)
}
