//! Exports a backend's database as a file.

pub mod routes;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Backends;
use super::model::BackendError;
use crate::projects::Project;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::StatementRunError;

/// Media type of the file.
pub const MEDIA_TYPE: &str = "application/vnd.sqlite3";
/// Maximum number of exports in memory: a file stays there until it is sent.
const MAX_EXPORTS: usize = 16;
/// Maximum number of exports of one backend.
const MAX_EXPORTS_PER_BACKEND: usize = 2;

/// Returns the name of the file.
pub fn file_name(project: &Project) -> String {
    // A label has only letters, digits and hyphens, which need no escaping in a header.
    format!("{}.db", project.host_label)
}

/// Number of running exports, by backend.
#[derive(Clone, Debug, Default)]
struct RunningExports(Arc<Mutex<HashMap<BackendId, usize>>>);

/// Slot of a running export, released when it is dropped.
#[derive(Debug)]
struct ExportSlot {
    exports: RunningExports,
    id: BackendId,
}

impl RunningExports {
    /// Takes a slot, if one is free.
    fn begin(&self, id: BackendId) -> Option<ExportSlot> {
        let mut running = self.lock();
        let own = running.get(&id).copied().unwrap_or(0);
        if own >= MAX_EXPORTS_PER_BACKEND || running.values().sum::<usize>() >= MAX_EXPORTS {
            return None;
        }
        running.insert(id, own + 1);
        Some(ExportSlot {
            exports: self.clone(),
            id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BackendId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ExportSlot {
    fn drop(&mut self) {
        let mut running = self.exports.lock();
        if let Some(own) = running.get_mut(&self.id) {
            *own -= 1;
            if *own == 0 {
                running.remove(&self.id);
            }
        }
    }
}

/// Exported file, which releases its slot when it is sent.
struct ExportedFileBytes {
    file: Vec<u8>,
    _slot: ExportSlot,
}

impl AsRef<[u8]> for ExportedFileBytes {
    fn as_ref(&self) -> &[u8] {
        &self.file
    }
}

/// Exports of backends' databases.
#[derive(Debug)]
pub struct BackendExporter {
    /// Files that wait for their receivers.
    exports: RunningExports,
    backends: Arc<Backends>,
}

impl BackendExporter {
    /// Makes the service of exports of these backends.
    pub fn new(backends: &Arc<Backends>) -> Self {
        Self {
            exports: RunningExports::default(),
            backends: Arc::clone(backends),
        }
    }

    /// The database of a project's backend as one SQLite file, as it is at one moment.
    ///
    /// # Errors
    /// `NotFound` if there is none; busy if too many exports are running.
    pub async fn export(&self, project: ProjectId) -> Result<Bytes, BackendError> {
        let id = self.backends.require_backend(project).await?.id;
        let slot = self.exports.begin(id).ok_or(StatementRunError::Busy)?;
        let file = self.backends.databases.export(id).await?;
        Ok(Bytes::from_owner(ExportedFileBytes { file, _slot: slot }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    #[test]
    fn places_are_few_and_come_back() {
        let clock = Clock::manual(Timestamp(0));
        let id = || BackendId::new(&clock, &Random::system()).unwrap();
        let (exports, greedy) = (RunningExports::default(), id());
        let mut held: Vec<_> = (0..MAX_EXPORTS_PER_BACKEND)
            .map(|_| exports.begin(greedy).unwrap())
            .collect();
        assert!(exports.begin(greedy).is_none());
        held.extend((MAX_EXPORTS_PER_BACKEND..MAX_EXPORTS).map(|_| exports.begin(id()).unwrap()));
        assert!(exports.begin(id()).is_none());
        held.pop();
        let file = Bytes::from_owner(ExportedFileBytes {
            file: vec![1, 2],
            _slot: exports.begin(id()).unwrap(),
        });
        let part = file.slice(1..);
        drop(file);
        assert!(exports.begin(id()).is_none(), "it is not sent yet");
        drop(part);
        assert!(exports.begin(id()).is_some());
        drop(held);
        assert!(exports.lock().is_empty());
    }
}
