//! Copies of all databases as they are at one moment, while the server continues to write.
//!
//! Most databases do not change while a backup is made. They are copied before its moment, one after the other, so that at the moment
//! itself only those are open that have changed meanwhile, however many there are.

use std::collections::{HashMap, HashSet};

use anyhow::Context as _;

use super::store;
use crate::control::{self, ControlDatabase, ControlSnapshot};
use svc_base::clock::Clock;
use svc_base::ids::BackendId;
use svc_database::{BackupSourceDatabase, DatabasesDirectory, FileStamps};

/// Rounds of copies before the moment, of which each copies what has changed since the one before.
const MAX_ROUNDS: usize = 3;
/// Databases that may be held at the moment without another round.
const MAX_HELD: usize = 64;

/// Lists the databases of all backends.
///
/// # Errors
/// The control database's.
pub async fn all_ids(control: &ControlDatabase) -> Result<Vec<BackendId>, control::Error> {
    control.read(store::ids).await
}

/// Copies of databases that are being made. The functions block.
#[derive(Debug)]
pub struct DatabaseCopies {
    from: DatabasesDirectory,
    to: DatabasesDirectory,
    /// Databases that are copied, with what the files of each looked like before; `None` where that does not tell whether they changed.
    copied: HashMap<BackendId, Option<FileStamps>>,
    /// Databases that have changed since they were copied, opened before the moment.
    open: HashMap<BackendId, BackupSourceDatabase>,
    /// Databases that are copied and were deleted before the moment.
    deleted: Vec<BackendId>,
    /// Databases that are held as they were at the moment.
    held: Vec<(BackendId, BackupSourceDatabase)>,
}

impl DatabaseCopies {
    /// Begins copies of the databases in `from`; `to` has none yet.
    pub fn begin(from: DatabasesDirectory, to: DatabasesDirectory) -> Self {
        Self {
            from,
            to,
            copied: HashMap::new(),
            open: HashMap::new(),
            deleted: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Copies all databases as they are, and opens those that have changed meanwhile; `watch` is told how many of how many are copied.
    ///
    /// # Errors
    /// Errors of the databases or of the disk.
    pub fn copy_early(
        &mut self,
        control: &ControlDatabase,
        mut watch: impl FnMut(u64, u64),
    ) -> anyhow::Result<()> {
        for _ in 0..MAX_ROUNDS {
            let ids = control.read_blocking(store::ids)?;
            let all = ids.len() as u64;
            let changed: Vec<BackendId> = ids.into_iter().filter(|id| !self.is_same(id)).collect();
            if !self.copied.is_empty() && changed.len() <= MAX_HELD {
                break;
            }
            let mut done = all - changed.len() as u64;
            watch(done, all);
            for id in changed {
                let copied = self.copy_one(&id);
                unless_deleted(control, &id, copied)?;
                done += 1;
                watch(done, all);
            }
        }
        for id in control.read_blocking(store::ids)? {
            if !self.is_same(&id) {
                let opened = self.open_one(&id);
                let opened = unless_deleted(control, &id, opened)?;
                self.open.extend(opened.map(|source| (id, source)));
            }
        }
        Ok(())
    }

    fn open_one(&self, id: &BackendId) -> anyhow::Result<BackupSourceDatabase> {
        let opened = BackupSourceDatabase::open(&self.from, id);
        opened.with_context(|| format!("opening backend {id}"))
    }

    /// Whether a database is copied as it is.
    fn is_same(&self, id: &BackendId) -> bool {
        let copied = self.copied.get(id).copied().flatten();
        copied.is_some_and(|stamps| self.from.stamps(id).is_ok_and(|now| now == stamps))
    }

    fn copy_one(&mut self, id: &BackendId) -> anyhow::Result<()> {
        self.copied.insert(*id, None);
        let copy = || {
            let stamps = self.from.stamps(id)?;
            // The system stamps files, whatever the installation's clock says.
            let is_settled = stamps.are_older_than(Clock::system().now());
            let source = BackupSourceDatabase::open(&self.from, id)?;
            self.write_copy(id, &source)?;
            anyhow::Ok(is_settled.then_some(stamps))
        };
        let stamps = copy().with_context(|| format!("copying backend {id}"))?;
        self.copied.insert(*id, stamps);
        Ok(())
    }

    /// Writes a copy in place of an earlier one.
    fn write_copy(&self, id: &BackendId, source: &BackupSourceDatabase) -> anyhow::Result<()> {
        self.to.make_empty_directory(id)?;
        Ok(source.copy_to(&self.to, id)?)
    }

    /// Holds the state of all databases that the control database has at this moment, while its writer is paused, unless their copies have
    /// it. A database exists before its row and after it, so every one is found.
    ///
    /// # Errors
    /// When a database cannot be read.
    pub fn hold(&mut self, moment: &ControlSnapshot) -> anyhow::Result<()> {
        let ids = moment.read(store::ids)?;
        let (same, changed): (HashSet<_>, HashSet<_>) =
            ids.into_iter().partition(|id| self.is_same(id));
        changed.iter().try_for_each(|id| self.hold_one(*id))?;
        let others = self.copied.extract_if(|id, _| !same.contains(id));
        let deleted = others.map(|(id, _)| id).filter(|id| !changed.contains(id));
        self.deleted.extend(deleted);
        Ok(())
    }

    fn hold_one(&mut self, id: BackendId) -> anyhow::Result<()> {
        let source = match self.open.remove(&id) {
            Some(source) => source,
            None => self.open_one(&id)?,
        };
        let held = source.begin_snapshot();
        held.with_context(|| format!("reading backend {id}"))?;
        self.held.push((id, source));
        Ok(())
    }

    /// Counts the databases that are copied, and those that are held.
    pub fn counts(&self) -> (u64, u64) {
        (self.copied.len() as u64, self.held.len() as u64)
    }

    /// Copies the databases that are held, and releases each; `copied` is called after each. Returns the databases that are copied.
    ///
    /// # Errors
    /// Errors of the databases or of the disk.
    pub fn finish(mut self, mut copied: impl FnMut()) -> anyhow::Result<Vec<BackendId>> {
        for id in &self.deleted {
            self.to.remove(id)?;
        }
        let mut ids: Vec<BackendId> = self.copied.keys().copied().collect();
        for (id, source) in std::mem::take(&mut self.held) {
            let done = self.write_copy(&id, &source);
            done.with_context(|| format!("copying backend {id}"))?;
            ids.push(id);
            copied();
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Returns what was done with a database; `None` for one that failed because its backend was deleted meanwhile, which is not part of the
/// backup.
fn unless_deleted<T>(
    control: &ControlDatabase,
    id: &BackendId,
    done: anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(_) if !control.read_blocking(|c| store::exists(c, id))? => Ok(None),
        Err(error) => Err(error),
    }
}
