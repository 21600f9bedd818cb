//! All databases at one moment, copied while their server goes on writing to them.

use std::collections::HashMap;

use anyhow::Context as _;

use super::store;
use crate::control::{Control, Snapshot};
use svc_base::ids::BackendId;
use svc_database::{BackupSource, DatabaseFiles};

/// The databases to copy. Its functions block.
#[derive(Debug)]
pub struct DatabaseSources {
    files: DatabaseFiles,
    open: HashMap<BackendId, BackupSource>,
}

impl DatabaseSources {
    /// Opens the databases that there are, so that nothing that takes long is left to do at the moment.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open(control: &Control, files: DatabaseFiles) -> anyhow::Result<Self> {
        let mut open = HashMap::new();
        for id in control.read_blocking(store::ids)? {
            match BackupSource::open(&files, &id) {
                Ok(source) => drop(open.insert(id, source)),
                // One that was deleted meanwhile is not among those of the moment.
                Err(_) if !control.read_blocking(|c| store::exists(c, &id))? => {}
                Err(error) => return Err(error).with_context(|| format!("opening backend {id}")),
            }
        }
        Ok(Self { files, open })
    }

    /// From now on they are seen as they are now, and they are those that the control database has at this moment,
    /// while it is still. A database is there before its row and after it, so each is.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn pin(&mut self, moment: &Snapshot) -> anyhow::Result<()> {
        let mut before = std::mem::take(&mut self.open);
        for id in moment.read(store::ids)? {
            let source = match before.remove(&id) {
                Some(source) => Ok(source),
                None => BackupSource::open(&self.files, &id),
            };
            let pinned = source.and_then(|source| source.begin_snapshot().map(|()| source));
            let pinned = pinned.with_context(|| format!("reading backend {id}"))?;
            self.open.insert(id, pinned);
        }
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Copies them, each let go when it is done; `copied` is told after each.
    ///
    /// # Errors
    /// The databases' or the disk's.
    pub fn copy_to(
        self,
        files: &DatabaseFiles,
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
