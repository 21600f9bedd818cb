//! The tables that statements read and write, and who is told of commits: so that a follower of an answer learns when it may
//! have changed.
//!
//! Two sources name the tables of a statement, and both count: SQLite's authorizer, which is asked about every table as the
//! statement is prepared, those behind views and those that foreign keys reach included; and the program itself, which opens
//! each of them by its root page. SQLite's update hook would miss tables without rowid, deletes by truncation, and rows that
//! a REPLACE removes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rusqlite::hooks::AuthAction;

use svc_base::ids::BackendId;
use svc_base::sync::lock;

/// The tables of a statement, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementTables {
    reads: BTreeSet<Box<str>>,
    writes: BTreeSet<Box<str>>,
    /// Whether one of them is not known: then it may be any.
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

/// Tables that are being noted.
#[derive(Clone, Debug, Default)]
pub(super) struct TableRecorder(Arc<Mutex<Option<StatementTables>>>);

impl TableRecorder {
    fn lock(&self) -> MutexGuard<'_, Option<StatementTables>> {
        lock(&self.0)
    }

    /// Notes from now on.
    pub(super) fn start(&self) {
        *self.lock() = Some(StatementTables::default());
    }

    /// The tables since the beginning.
    pub(super) fn finish(&self) -> StatementTables {
        self.lock().take().unwrap_or_default()
    }

    /// Notes what an action is about, if somebody wants to know.
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
    /// Anything: rows, the schema, the actions.
    All,
    /// Tables that these statements write.
    Statements(Vec<Arc<StatementTables>>),
}

impl Default for ChangedTables {
    /// No table.
    fn default() -> Self {
        Self::Statements(Vec::new())
    }
}

impl ChangedTables {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Statements(tables) if tables.is_empty())
    }

    /// Adds what a statement writes; one of which nothing is known may write anything.
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

    /// Adds what another commit has changed.
    pub fn merge(&mut self, other: Self) {
        match other {
            Self::All => *self = Self::All,
            Self::Statements(tables) => tables.into_iter().for_each(|one| self.add(Some(one))),
        }
    }

    /// Whether a statement that reads `tables` may answer something else now; `None` may read anything.
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

type Listener = Box<dyn Fn(BackendId, ChangedTables) + Send + Sync>;

/// The follower of commits, who is told of each: once it is durable, and before its callers are answered.
#[derive(Clone, Default)]
pub(super) struct CommitListener(Arc<OnceLock<Listener>>);

impl CommitListener {
    /// Has `follow` told from now on; the first one stays.
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
