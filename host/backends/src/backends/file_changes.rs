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

    /// Notes a backend once what is returned is dropped, if a statement may delete files of it.
    pub(super) fn note_after(
        &self,
        backend: BackendId,
        (sql, statement): (&str, &AllowedStatement),
    ) -> Option<ChangeNote<'_>> {
        let may_delete = is_writing_statement(statement) && names_files(sql);
        may_delete.then(|| ChangeNote {
            changes: self,
            backend,
        })
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

/// Note of a change that is made when this is dropped: at the end of a statement, also where nobody waits for it any more.
#[derive(Debug)]
#[must_use]
pub(super) struct ChangeNote<'c> {
    changes: &'c FileChanges,
    backend: BackendId,
}

impl Drop for ChangeNote<'_> {
    fn drop(&mut self) {
        self.changes.note(self.backend);
    }
}

/// Whether a statement may name the table of files. Which tables it names is not stored with its verdict.
fn names_files(sql: &str) -> bool {
    let mut parts = sql.as_bytes().windows(FILES_TABLE.len());
    parts.any(|part| part.eq_ignore_ascii_case(FILES_TABLE.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;
    use svc_sandbox::StatementKind;

    #[test]
    fn a_statement_that_may_delete_files_is_noted_at_its_end() {
        let clock = Clock::manual(Timestamp(0));
        let backend = BackendId::new(&clock, &Random::system()).unwrap();
        let changes = FileChanges::default();
        for (sql, kind, noted) in [
            ("DELETE FROM \"SVC_files\"", StatementKind::Write, true),
            ("DELETE FROM t", StatementKind::Write, false),
            ("SELECT * FROM svc_files", StatementKind::Read, false),
        ] {
            let statement = AllowedStatement {
                kind,
                binds: Vec::new(),
                returns_rows: false,
                tables: Vec::new(),
                view: None,
                parts: 0,
                start: 0,
                end: sql.len(),
            };
            let note = changes.note_after(backend, (sql, &statement));
            assert!(changes.take_changed().is_empty(), "{sql}");
            drop(note);
            assert_eq!(changes.take_changed().contains(&backend), noted, "{sql}");
        }
    }
}
