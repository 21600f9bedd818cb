//! Counters: views of deployments, in a file of their own.
//!
//! Counts change with every view, a thousand times as often as everything else, and each is worth little. So they are in a file of
//! their own beside the control database. The stored counts are in memory, too: reading them costs no query.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::Error;
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;
use svc_base::sqlite;

/// The name of the file in the data directory.
pub const COUNTERS_FILE: &str = "counters.db";
/// Migrations in order, as those of the control database.
const MIGRATION_SCRIPTS: &[&str] = &[include_str!("../../../migrations/counters/0001_visits.sql")];
/// Time for which a statement waits for another process, such as an operator's command.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Age after which flush ids are deleted, in seconds.
const FLUSH_ID_SECONDS: i64 = 3600;

/// The counters of an installation. Functions that write block on the disk.
#[derive(Debug)]
pub struct InstallationCounters {
    file: Mutex<Option<Connection>>,
    visits: Mutex<HashMap<DeploymentId, u64>>,
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
        })
    }

    /// Returns the stored number of views of a deployment.
    pub fn visits(&self, id: &DeploymentId) -> u64 {
        lock(&self.visits).get(id).copied().unwrap_or(0)
    }

    /// Adds counted views durably. A flush id that was added before adds nothing.
    ///
    /// # Errors
    /// The database's; nothing is counted then.
    pub fn add(
        &self,
        flush: i64,
        counts: &[(DeploymentId, u64)],
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
    /// The database's.
    pub fn forget(&self, gone: &[DeploymentId]) -> Result<(), Error> {
        let mut file = lock(&self.file);
        let file = file.as_mut().ok_or(Error::Closed)?;
        let tx = file.transaction()?;
        for id in gone {
            tx.prepare_cached("DELETE FROM visits WHERE deployment_id = ?1")?
                .execute([id])?;
        }
        tx.commit()?;
        let mut visits = lock(&self.visits);
        for id in gone {
            visits.remove(id);
        }
        Ok(())
    }

    /// Imports the counts from their earlier place in the control database. Repeating it changes nothing.
    pub(super) fn import_visits(&self, counts: Vec<(DeploymentId, u64)>) -> Result<(), Error> {
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

    /// Copies the file into `directory`, which must have none. The copy is not synced.
    ///
    /// # Errors
    /// The databases'.
    pub fn copy_to(&self, directory: &Path) -> Result<(), Error> {
        let file = lock(&self.file);
        let file = file.as_ref().ok_or(Error::Closed)?;
        Ok(sqlite::copy_database(file, &directory.join(COUNTERS_FILE))?)
    }

    /// Closes the file.
    pub(super) fn close(&self) {
        lock(&self.file).take();
    }
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

    #[test]
    fn a_flush_counts_once_however_often_it_is_written() {
        let data = tempfile::tempdir().unwrap();
        let (clock, random) = (Clock::system(), Random::system());
        let [one, two] = [(); 2].map(|()| DeploymentId::new(&clock, &random).unwrap());
        let now = clock.now();
        let counters = InstallationCounters::open(data.path()).unwrap();
        for _ in 0..2 {
            counters.add(7, &[(one, 3), (two, 1)], now).unwrap();
        }
        counters.add(8, &[(one, 2)], now).unwrap();
        counters.forget(&[two]).unwrap();
        let again = InstallationCounters::open(data.path()).unwrap();
        for counters in [&counters, &again] {
            assert_eq!((counters.visits(&one), counters.visits(&two)), (5, 0));
            assert_eq!(counters.counted_deployments(), [one]);
        }
        // Old flush ids are deleted, and the counts stay.
        counters
            .add(9, &[], now.plus_seconds(2 * FLUSH_ID_SECONDS))
            .unwrap();
        counters.import_visits(vec![(two, 4)]).unwrap();
        counters.import_visits(vec![(two, 4)]).unwrap();
        assert_eq!((counters.visits(&one), counters.visits(&two)), (5, 4));
        counters.close();
        assert!(matches!(counters.add(1, &[], now), Err(Error::Closed)));
    }
}
