//! Files of visitors that were uploaded, and backends in which some may have been deleted, for the looks that follow them.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::model::is_writing_statement;
use svc_base::ids::BackendId;
use svc_sandbox::AllowedStatement;

/// Name of the table of visitors' files.
const FILES_TABLE: &str = "svc_files";

/// Changes of files since they were last followed.
#[derive(Debug, Default)]
pub(super) struct FileChanges(Mutex<NotedChanges>);

#[derive(Debug, Default)]
struct NotedChanges {
    /// Ids of files whose rows were committed.
    uploaded: HashMap<BackendId, Vec<String>>,
    /// Backends in which rows may be gone, or back.
    changed: HashSet<BackendId>,
}

impl FileChanges {
    /// Notes that files of a backend may be gone, or back.
    pub(super) fn note(&self, backend: BackendId) {
        self.lock().changed.insert(backend);
    }

    /// Notes that rows of files are committed.
    pub(super) fn note_uploaded(&self, backend: BackendId, files: Vec<String>) {
        let mut noted = self.lock();
        noted.uploaded.entry(backend).or_default().extend(files);
    }

    /// Notes a backend if a statement may have deleted files of it.
    pub(super) fn note_statement(&self, backend: BackendId, statement: &AllowedStatement) {
        let names_files = || {
            statement
                .tables
                .iter()
                .any(|table| table.name == FILES_TABLE)
        };
        if is_writing_statement(statement) && names_files() {
            self.note(backend);
        }
    }

    /// Takes the uploaded files.
    pub(super) fn take_uploaded(&self) -> HashMap<BackendId, Vec<String>> {
        std::mem::take(&mut self.lock().uploaded)
    }

    /// Takes the backends in which files may be gone, or back.
    pub(super) fn take_changed(&self) -> HashSet<BackendId> {
        std::mem::take(&mut self.lock().changed)
    }

    fn lock(&self) -> MutexGuard<'_, NotedChanges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
