//! Backends whose files of visitors may have changed, for the look that follows them.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::model::is_writing_statement;
use svc_base::ids::BackendId;
use svc_sandbox::AllowedStatement;

/// Name of the table of visitors' files.
const FILES_TABLE: &str = "svc_files";

/// Backends whose files may have changed since they were last looked at.
#[derive(Debug, Default)]
pub(super) struct FileChanges(Mutex<HashSet<BackendId>>);

impl FileChanges {
    /// Notes that files of a backend may have changed.
    pub(super) fn note(&self, backend: BackendId) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(backend);
    }

    /// Notes it for a backend if a statement may have deleted files.
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

    /// Takes the backends.
    pub(super) fn take(&self) -> HashSet<BackendId> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
