//! The tables that statements read and write, and the listener of commits, which thus learns which results may have changed.
//!
//! The tables of a statement have two sources, and both count. SQLite's authorizer is asked about every table when a statement is
//! prepared, also behind views and foreign keys. And the compiled program opens each table by its root page. SQLite's update hook
//! would miss tables without rowid, deletes by truncation, and rows that a REPLACE removes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rusqlite::hooks::AuthAction;

use svc_base::ids::BackendId;
use svc_base::sync::lock;

/// Tables of a statement, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementTables {
    reads: BTreeSet<Box<str>>,
    writes: BTreeSet<Box<str>>,
    /// Whether some table is not known, which may then be any.
    unknown: bool,
}

impl StatementTables {
    pub(super) fn add_read(&mut self, name: &str) {
        self.reads.insert(name.to_ascii_lowercase().into());
    }

    pub(super) fn add_write(&mut self, name: &str) {
        self.writes.insert(name.to_ascii_lowercase().into());
    }

    pub(super) fn mark_unknown(&mut self) {
        self.unknown = true;
    }
}

/// Recorder of the tables that SQLite asks the authorizer about.
#[derive(Clone, Debug, Default)]
pub(super) struct AuthorizedTableRecorder(Arc<Mutex<Option<StatementTables>>>);

impl AuthorizedTableRecorder {
    fn lock(&self) -> MutexGuard<'_, Option<StatementTables>> {
        lock(&self.0)
    }

    /// Starts to record.
    pub(super) fn start(&self) {
        *self.lock() = Some(StatementTables::default());
    }

    /// Ends recording; returns the tables.
    pub(super) fn finish(&self) -> StatementTables {
        self.lock().take().unwrap_or_default()
    }

    /// Records the table of an action, if recording is on.
    pub(super) fn note(&self, action: &AuthAction<'_>) {
        let mut noted = self.lock();
        let Some(tables) = noted.as_mut() else { return };
        match action {
            AuthAction::Read { table_name, .. } => tables.add_read(table_name),
            AuthAction::Insert { table_name }
            | AuthAction::Delete { table_name }
            | AuthAction::Update { table_name, .. } => tables.add_write(table_name),
            _ => {}
        }
    }
}

/// Tables that a commit may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedTables {
    /// Any table: rows, the schema and actions may have changed.
    All,
    /// The tables that these statements write.
    Statements(Vec<Arc<StatementTables>>),
}

impl Default for ChangedTables {
    /// Returns a value without tables.
    fn default() -> Self {
        Self::Statements(Vec::new())
    }
}

impl ChangedTables {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Statements(tables) if tables.is_empty())
    }

    /// Adds the tables that a statement writes; `None` means any.
    pub(super) fn add(&mut self, tables: Option<Arc<StatementTables>>) {
        match (&mut *self, tables) {
            (Self::All, _) => {}
            (_, None) => *self = Self::All,
            (Self::Statements(known), Some(tables)) => {
                if !known.iter().any(|one| Arc::ptr_eq(one, &tables)) {
                    known.push(tables);
                }
            }
        }
    }

    /// Adds the tables of another commit.
    pub fn merge(&mut self, other: Self) {
        match other {
            Self::All => *self = Self::All,
            Self::Statements(tables) => tables.into_iter().for_each(|one| self.add(Some(one))),
        }
    }

    /// Whether a statement that reads `tables` may have another result now; `None` may read any.
    pub fn affects(&self, tables: Option<&StatementTables>) -> bool {
        let Self::Statements(touched) = self else {
            return true;
        };
        let Some(read) = tables.filter(|tables| !tables.unknown) else {
            return !touched.is_empty();
        };
        let written = |name| touched.iter().any(|one| one.writes.contains(name));
        touched.iter().any(|one| one.unknown) || read.reads.iter().any(written)
    }
}

type CommitCallback = Box<dyn Fn(BackendId, ChangedTables) + Send + Sync>;

/// Listener of commits. It is called once a commit is durable, and before its callers are answered.
#[derive(Clone, Default)]
pub(super) struct CommitListener(Arc<OnceLock<CommitCallback>>);

impl CommitListener {
    /// Sets the listener. It can be set once.
    pub(super) fn set(&self, listener: impl Fn(BackendId, ChangedTables) + Send + Sync + 'static) {
        if self.0.set(Box::new(listener)).is_err() {
            tracing::error!("somebody else is told of commits already");
        }
    }

    pub(super) fn notify(&self, id: BackendId, touched: ChangedTables) {
        if let Some(listener) = self.0.get()
            && !touched.is_empty()
        {
            listener(id, touched);
        }
    }
}

impl fmt::Debug for CommitListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitListener").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
