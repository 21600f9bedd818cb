//! Databases that this run owns: what acknowledges their commits, and stores their bases.
//!
//! The fence of a database is its place: whoever claims it has buried the run before, and a run that is buried appends nothing.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tokio::sync::mpsc;

use super::bases::{Bases, LiveDatabases, write_base};
use super::feed::ControlFeed;
use super::run::Run;
use super::shipped::ShippedDatabase;
use super::tenants::Tenants;
use svc_base::positions::CommitPosition;
use svc_database::{BaseSnapshot, DatabasesDirectory, LogShipper};
use svc_ledger::{AppendEvent, ClaimOutcome, DatabaseEntry, DatabaseName, Ledger};

/// Pause between two measurements of the node's figures.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Time that a snapshot waits for the next commit of its database.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(2);
/// Pause between two looks whether a commit is acknowledged.
const ACKNOWLEDGED_EVERY: Duration = Duration::from_millis(20);
/// Pause before the first base of a new database is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Databases of this run: those of the tenants that it has claimed, and control if it has it.
pub(super) struct OwnedDatabases<L> {
    /// Control with its feed, if this run has it.
    control: OnceLock<(Arc<ShippedDatabase>, Arc<ControlFeed>)>,
    tenants: Arc<Tenants<L>>,
}

impl<L: Ledger> OwnedDatabases<L> {
    /// Wraps the databases of tenants; control follows if it is claimed.
    pub(super) fn new(tenants: Arc<Tenants<L>>) -> Self {
        Self {
            control: OnceLock::new(),
            tenants,
        }
    }

    /// Notes that this run has control, whose commits are named by `feed`.
    pub(super) fn set_control(&self, control: Arc<ShippedDatabase>, feed: Arc<ControlFeed>) {
        // A run gets it once, and keeps it to its end.
        let _ = self.control.set((control, feed));
    }

    /// Whether this run has the control database.
    pub(super) fn has_control(&self) -> bool {
        self.control.get().is_some()
    }

    /// Returns the control database, if this run has it.
    pub(super) fn control(&self) -> Option<Arc<ShippedDatabase>> {
        let (control, _) = self.control.get()?;
        Some(Arc::clone(control))
    }

    /// Returns the databases of tenants.
    pub(super) fn tenants(&self) -> &Arc<Tenants<L>> {
        &self.tenants
    }

    fn find(&self, name: DatabaseName) -> Option<Arc<ShippedDatabase>> {
        match name {
            DatabaseName::Control => self.control(),
            DatabaseName::Backend(id) => self.tenants.find(id),
        }
    }
}

/// Starts the tasks that acknowledge commits, store bases and histories, and give places back, until the process ends.
pub(super) fn start_tasks<L: Ledger>(
    run: &Arc<Run<L>>,
    databases: &Arc<OwnedDatabases<L>>,
    bases: &Arc<Bases<L>>,
    making: mpsc::UnboundedReceiver<(DatabaseName, CommitPosition)>,
) {
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
            let waiting = run.gate().waiting_bytes();
            let owned = databases.tenants.count() + usize::from(databases.has_control());
            run.metrics()
                .set_amounts(waiting, owned, bases.tail_bytes());
            tokio::time::sleep(MEASURE_EVERY).await;
        }
    });
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

/// Answers the callers of commits that the ledger has acknowledged.
fn acknowledge<L: Ledger>(
    databases: &OwnedDatabases<L>,
    bases: &Bases<L>,
    commits: &[DatabaseEntry],
) {
    let mut last = BTreeMap::new();
    for commit in commits {
        last.insert(commit.database, commit.entry.position);
        let bytes = u64::try_from(commit.entry.body.len()).unwrap_or(u64::MAX);
        bases.note_commit(commit.database, bytes);
    }
    // Callers of control are answered when other nodes have its commits, too.
    if last.remove(&DatabaseName::Control).is_some()
        && let Some((_, feed)) = databases.control.get()
    {
        feed.acknowledged(commits);
    }
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
