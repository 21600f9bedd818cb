//! Copies all databases at one moment, while the server continues to write.

use std::collections::HashMap;

use anyhow::Context as _;

use super::store;
use crate::control::{self, ControlDatabase, ControlSnapshot};
use svc_base::ids::BackendId;
use svc_database::{BackupSourceDatabase, DatabasesDirectory};

/// Lists the databases of all backends.
///
/// # Errors
/// The control database's.
pub async fn all_ids(control: &ControlDatabase) -> Result<Vec<BackendId>, control::Error> {
    control.read(store::ids).await
}

/// Databases to copy. The functions block.
#[derive(Debug)]
pub struct DatabasesToCopy {
    files: DatabasesDirectory,
    open: HashMap<BackendId, BackupSourceDatabase>,
}

impl DatabasesToCopy {
    /// Opens the databases, so that little is left to do at the moment of the backup.
    ///
    /// # Errors
    /// When a database cannot be opened.
    pub fn open(control: &ControlDatabase, files: DatabasesDirectory) -> anyhow::Result<Self> {
        let mut open = HashMap::new();
        for id in control.read_blocking(store::ids)? {
            match BackupSourceDatabase::open(&files, &id) {
                Ok(source) => drop(open.insert(id, source)),
                // A backend that was deleted meanwhile is not part of the backup.
                Err(_) if !control.read_blocking(|c| store::exists(c, &id))? => {}
                Err(error) => return Err(error).with_context(|| format!("opening backend {id}")),
            }
        }
        Ok(Self { files, open })
    }

    /// Pins the state of all databases that the control database has at this moment, while its writer is paused.
    /// A database exists before its row and after it, so every one is found.
    ///
    /// # Errors
    /// When a database cannot be read.
    pub fn pin(&mut self, moment: &ControlSnapshot) -> anyhow::Result<()> {
        let mut before = std::mem::take(&mut self.open);
        for id in moment.read(store::ids)? {
            let source = match before.remove(&id) {
                Some(source) => Ok(source),
                None => BackupSourceDatabase::open(&self.files, &id),
            };
            let pinned = source.and_then(|source| source.begin_snapshot().map(|()| source));
            let pinned = pinned.with_context(|| format!("reading backend {id}"))?;
            self.open.insert(id, pinned);
        }
        Ok(())
    }

    /// Returns the number of databases.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are no databases.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Copies the databases and releases each; `copied` is called after each.
    ///
    /// # Errors
    /// Errors of the databases or of the disk.
    pub fn copy_to(
        self,
        files: &DatabasesDirectory,
        mut copied: impl FnMut(),
    ) -> anyhow::Result<Vec<BackendId>> {
        let mut ids = Vec::with_capacity(self.open.len());
        for (id, source) in self.open {
            files.create_directory(&id)?;
            let done = source.copy_to(files, &id);
            done.with_context(|| format!("copying backend {id}"))?;
            ids.push(id);
            copied();
        }
        ids.sort_unstable();
        Ok(ids)
    }
}
