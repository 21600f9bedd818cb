//! Counters: views of deployments and counts of projects by the hour, in a file of their own.
//!
//! Counts change with every view, a thousand times as often as everything else, and each is worth little. So they are in a file of
//! their own beside the control database. The stored counts are in memory, too: reading them costs no query.
//!
//! Several machines store their counts in one place instead ([`SharedVisits`]); then the file stays empty.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::{Connection, OpenFlags, Transaction, params};
use tokio::task::spawn_blocking;

use super::Error;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_base::sqlite;

/// The name of the file in the data directory.
pub const COUNTERS_FILE: &str = "counters.db";
/// Migrations in order, as those of the control database.
const MIGRATION_SCRIPTS: &[&str] = &[
    include_str!("../../../migrations/counters/0001_visits.sql"),
    include_str!("../../../migrations/counters/0002_hours.sql"),
];
/// Time for which a statement waits for another process, such as an operator's command.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Age after which flush ids are deleted, in seconds.
const FLUSH_ID_SECONDS: i64 = 3600;

/// A deployment with its views.
pub type DeploymentVisits = (DeploymentId, u64);

/// Place of counts that several machines share. An error is a text for the log.
pub trait SharedVisits: fmt::Debug + Send + Sync {
    /// Adds counted views durably, and returns the sums of their deployments. A flush id that was added before adds nothing.
    fn add<'a>(
        &'a self,
        flush: i64,
        counts: &'a [DeploymentVisits],
    ) -> BoxFuture<'a, Result<Vec<DeploymentVisits>, String>>;

    /// Deletes the counts of deployments that no longer exist.
    fn forget<'a>(&'a self, gone: &'a [DeploymentId]) -> BoxFuture<'a, Result<(), String>>;
}

/// The counters of an installation.
#[derive(Debug)]
pub struct InstallationCounters {
    file: Mutex<Option<Connection>>,
    visits: Mutex<HashMap<DeploymentId, u64>>,
    /// Place of the counts in place of the file, if several machines share them.
    shared: OnceLock<Arc<dyn SharedVisits>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InstallationCounters {
    /// Opens the file below `data`, making it where it is missing.
    pub(super) fn open(data: &Path) -> Result<Self, Error> {
        let mut file = Connection::open(data.join(COUNTERS_FILE))?;
        file.busy_timeout(BUSY_TIMEOUT)?;
        file.pragma_update(None, "journal_mode", "WAL")?;
        file.pragma_update(None, "synchronous", "FULL")?;
        migrate(&mut file)?;
        Self::read(file)
    }

    /// Opens the file of a copy read-only; a copy without one has counted nothing.
    pub(super) fn open_read_only(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(COUNTERS_FILE);
        if !path.is_file() {
            return Ok(Self {
                file: Mutex::default(),
                visits: Mutex::default(),
                shared: OnceLock::new(),
            });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::read(Connection::open_with_flags(path, flags)?)
    }

    fn read(file: Connection) -> Result<Self, Error> {
        let visits = file
            .prepare("SELECT deployment_id, count FROM visits")?
            .query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            file: Mutex::new(Some(file)),
            visits: Mutex::new(visits),
            shared: OnceLock::new(),
        })
    }

    /// Stores counts in `place` from now on, which has these. It is called before anything is counted.
    pub fn share(&self, place: Arc<dyn SharedVisits>, visits: Vec<DeploymentVisits>) {
        *lock(&self.visits) = visits.into_iter().collect();
        // It is empty: this is called once, at the start.
        let _ = self.shared.set(place);
    }

    /// Takes sums of the place that machines share, to which other machines have added. A sum never goes back, since what this machine
    /// has added meanwhile is in no sum that was read before.
    pub fn raise(&self, sums: Vec<DeploymentVisits>) {
        let mut visits = lock(&self.visits);
        for (id, sum) in sums {
            let known = visits.entry(id).or_default();
            *known = sum.max(*known);
        }
    }

    /// Returns the stored number of views of a deployment.
    pub fn visits(&self, id: &DeploymentId) -> u64 {
        lock(&self.visits).get(id).copied().unwrap_or(0)
    }

    /// Returns the stored views of all deployments that have any.
    pub fn all_visits(&self) -> Vec<DeploymentVisits> {
        let visits = lock(&self.visits);
        visits.iter().map(|(id, count)| (*id, *count)).collect()
    }

    /// Adds counted views durably. A flush id that was added before adds nothing.
    ///
    /// # Errors
    /// The database's, and nothing is counted then; or those of the place that machines share, which may have counted them.
    pub async fn add(
        self: Arc<Self>,
        flush: i64,
        counts: Vec<DeploymentVisits>,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(shared) = self.shared.get() {
            let added = shared.add(flush, &counts).await;
            lock(&self.visits).extend(added.map_err(Error::Shared)?);
            return Ok(());
        }
        run_blocking(move || self.add_to_file(flush, &counts, now)).await
    }

    fn add_to_file(
        &self,
        flush: i64,
        counts: &[DeploymentVisits],
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut file = lock(&self.file);
        let file = file.as_mut().ok_or(Error::Closed)?;
        let tx = file.transaction()?;
        let new = tx
            .prepare_cached("INSERT OR IGNORE INTO visit_flushes (id, at) VALUES (?1, ?2)")?
            .execute(params![flush, now])?;
        let mut written = Vec::with_capacity(counts.len());
        for (id, count) in counts {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            // A flush id that is there already: the first attempt was stored, and its caller did not learn so.
            let count = if new > 0 { count } else { 0 };
            let sum = tx
                .prepare_cached(
                    "INSERT INTO visits (deployment_id, count) VALUES (?1, ?2)
                     ON CONFLICT (deployment_id) DO UPDATE SET count = count + ?2 RETURNING count",
                )?
                .query_row(params![id, count], |row| row.get::<_, i64>(0))?;
            written.push((*id, sum.unsigned_abs()));
        }
        let old = now.plus_seconds(-FLUSH_ID_SECONDS);
        tx.prepare_cached("DELETE FROM visit_flushes WHERE at < ?1")?
            .execute([old])?;
        tx.commit()?;
        lock(&self.visits).extend(written);
        Ok(())
    }

    /// Returns the deployments that have stored counts.
    pub fn counted_deployments(&self) -> Vec<DeploymentId> {
        lock(&self.visits).keys().copied().collect()
    }

    /// Deletes the counts of deployments that no longer exist.
    ///
    /// # Errors
    /// The database's, or those of the place that machines share.
    pub async fn forget(self: Arc<Self>, gone: Vec<DeploymentId>) -> Result<(), Error> {
        if let Some(shared) = self.shared.get() {
            shared.forget(&gone).await.map_err(Error::Shared)?;
            self.forget_in_memory(&gone);
            return Ok(());
        }
        run_blocking(move || self.forget_in_file(&gone)).await
    }

    fn forget_in_file(&self, gone: &[DeploymentId]) -> Result<(), Error> {
        let mut file = lock(&self.file);
        let file = file.as_mut().ok_or(Error::Closed)?;
        let tx = file.transaction()?;
        for id in gone {
            tx.prepare_cached("DELETE FROM visits WHERE deployment_id = ?1")?
                .execute([id])?;
        }
        tx.commit()?;
        self.forget_in_memory(gone);
        Ok(())
    }

    fn forget_in_memory(&self, gone: &[DeploymentId]) {
        let mut visits = lock(&self.visits);
        for id in gone {
            visits.remove(id);
        }
    }

    /// Imports counts from another place into the file: from the control database of before, or from that which machines share.
    /// Repeating it changes nothing. Blocks.
    ///
    /// # Errors
    /// The database's.
    pub fn import_visits(&self, counts: Vec<DeploymentVisits>) -> Result<(), Error> {
        let mut file = lock(&self.file);
        let file = file.as_mut().ok_or(Error::Closed)?;
        let tx = file.transaction()?;
        for (id, count) in &counts {
            tx.prepare_cached(
                "INSERT OR REPLACE INTO visits (deployment_id, count) VALUES (?1, ?2)",
            )?
            .execute(params![id, i64::try_from(*count).unwrap_or(i64::MAX)])?;
        }
        tx.commit()?;
        lock(&self.visits).extend(counts);
        Ok(())
    }

    /// Runs `work` in a transaction of the file, durably. Blocks.
    ///
    /// # Errors
    /// The database's, and nothing is changed then.
    pub fn write_file<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let mut file = lock(&self.file);
        let file = file.as_mut().ok_or(Error::Closed)?;
        let tx = file.transaction()?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }

    /// Reads the file; a copy that has none has nothing to read. Blocks.
    ///
    /// # Errors
    /// The database's.
    pub fn read_file<T: Default>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        match lock(&self.file).as_ref() {
            Some(file) => Ok(work(file)?),
            None => Ok(T::default()),
        }
    }

    /// Whether several machines share their counts, so that they are not in the file.
    pub fn is_shared(&self) -> bool {
        self.shared.get().is_some()
    }

    /// Runs an integrity check; returns its finding, if there is one.
    ///
    /// # Errors
    /// The database's.
    pub fn integrity_error(&self) -> Result<Option<String>, Error> {
        let file = lock(&self.file);
        let Some(file) = file.as_ref() else {
            return Ok(None);
        };
        let found: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok((found != "ok").then_some(found))
    }

    /// Copies the counts into a file in `directory`, which must have none. The copy is not synced.
    ///
    /// # Errors
    /// The databases'.
    pub fn copy_to(&self, directory: &Path) -> Result<(), Error> {
        {
            let file = lock(&self.file);
            let file = file.as_ref().ok_or(Error::Closed)?;
            sqlite::copy_database(file, &directory.join(COUNTERS_FILE))?;
        }
        if self.shared.get().is_some() {
            // The file has none of them.
            Self::open(directory)?.import_visits(self.all_visits())?;
        }
        Ok(())
    }

    /// Closes the file.
    pub(super) fn close(&self) {
        lock(&self.file).take();
    }
}

async fn run_blocking(
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    spawn_blocking(work).await.unwrap_or(Err(Error::Panicked))
}

fn migrate(file: &mut Connection) -> Result<(), Error> {
    let tx = file.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let done: u32 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (number, script) in (1_u32..)
        .zip(MIGRATION_SCRIPTS)
        .filter(|(number, _)| *number > done)
    {
        tx.execute_batch(script)?;
        tx.pragma_update(None, "user_version", number)?;
    }
    tx.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    #[tokio::test]
    async fn a_flush_counts_once_however_often_it_is_written() {
        let data = tempfile::tempdir().unwrap();
        let (clock, random) = (Clock::system(), Random::system());
        let [one, two] = [(); 2].map(|()| DeploymentId::new(&clock, &random).unwrap());
        let now = clock.now();
        let counters = Arc::new(InstallationCounters::open(data.path()).unwrap());
        let add =
            async |flush, counts: Vec<_>, now| Arc::clone(&counters).add(flush, counts, now).await;
        for _ in 0..2 {
            add(7, vec![(one, 3), (two, 1)], now).await.unwrap();
        }
        add(8, vec![(one, 2)], now).await.unwrap();
        Arc::clone(&counters).forget(vec![two]).await.unwrap();
        let again = InstallationCounters::open(data.path()).unwrap();
        for counters in [&*counters, &again] {
            assert_eq!((counters.visits(&one), counters.visits(&two)), (5, 0));
            assert_eq!(counters.counted_deployments(), [one]);
        }
        // Old flush ids are deleted, and the counts stay.
        add(9, Vec::new(), now.plus_seconds(2 * FLUSH_ID_SECONDS))
            .await
            .unwrap();
        counters.import_visits(vec![(two, 4)]).unwrap();
        counters.import_visits(vec![(two, 4)]).unwrap();
        assert_eq!((counters.visits(&one), counters.visits(&two)), (5, 4));
        counters.close();
        let closed = add(1, Vec::new(), now).await;
        assert!(matches!(closed, Err(Error::Closed)));
    }

    /// A place that has one sum for everything, or fails.
    #[derive(Debug)]
    struct Place(Result<u64, String>);

    impl SharedVisits for Place {
        fn add<'a>(
            &'a self,
            _: i64,
            counts: &'a [DeploymentVisits],
        ) -> BoxFuture<'a, Result<Vec<DeploymentVisits>, String>> {
            let sum = |sum: u64| counts.iter().map(|(id, _)| (*id, sum)).collect::<Vec<_>>();
            let answer = self.0.clone().map(sum);
            Box::pin(async move { answer })
        }

        fn forget<'a>(&'a self, _: &'a [DeploymentId]) -> BoxFuture<'a, Result<(), String>> {
            let answer = self.0.clone().map(|_| ());
            Box::pin(async move { answer })
        }
    }

    #[tokio::test]
    async fn counts_that_are_shared_are_what_their_place_says() {
        let (clock, random) = (Clock::system(), Random::system());
        let [one, two] = [(); 2].map(|()| DeploymentId::new(&clock, &random).unwrap());
        for place in [Ok(9), Err("no answer".to_owned())] {
            let data = tempfile::tempdir().unwrap();
            let counters = Arc::new(InstallationCounters::open(data.path()).unwrap());
            let is_up = place.is_ok();
            counters.share(Arc::new(Place(place)), vec![(one, 3), (two, 2)]);
            // Another machine has added to one of them.
            counters.raise(vec![(one, 4), (two, 1)]);
            assert_eq!((counters.visits(&one), counters.visits(&two)), (4, 2));
            let added = Arc::clone(&counters).add(1, vec![(one, 1)], clock.now());
            assert_eq!(added.await.is_ok(), is_up);
            assert_eq!(counters.visits(&one), if is_up { 9 } else { 4 });
            let forgotten = Arc::clone(&counters).forget(vec![two]).await;
            assert_eq!(forgotten.is_ok(), is_up);
            assert_eq!(counters.visits(&two), if is_up { 0 } else { 2 });
            // A copy has them; the file of the node has nothing.
            let copy = tempfile::tempdir().unwrap();
            counters.copy_to(copy.path()).unwrap();
            for (directory, counted) in [(&copy, counters.all_visits()), (&data, Vec::new())] {
                let file = InstallationCounters::open(directory.path()).unwrap();
                let (mut there, mut counted) = (file.all_visits(), counted);
                there.sort_unstable();
                counted.sort_unstable();
                assert_eq!(there, counted);
            }
        }
    }
}
