//! In debug builds, a statement about tables of two homes fails whatever runs it.
//!
//! What runs is noted, and each text is looked at once: it is prepared on a database that has the schema and no rows, where
//! SQLite's authorizer names every table that it may read or write, those that foreign keys reach included.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::homes::{Home, TABLES};
use super::migrations;

thread_local! {
    /// Fault of a statement that this thread has run.
    static CROSSED: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Named = BTreeMap<&'static str, Home>;

/// A database with the schema, for looking at statements.
struct Judge {
    connection: Connection,
    named: Arc<Mutex<Named>>,
    known: HashMap<String, Option<String>>,
}

static JUDGE: LazyLock<Option<Mutex<Judge>>> = LazyLock::new(|| Judge::new().ok().map(Mutex::new));

/// Notes what a connection runs.
pub(super) fn watch(connection: &mut Connection) -> rusqlite::Result<()> {
    let look = |event: TraceEvent<'_>| {
        let TraceEvent::Stmt(_, sql) = event else {
            return;
        };
        let Some(judge) = JUDGE.as_ref() else { return };
        let found = judge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .look(sql);
        if found.is_some() {
            CROSSED.set(found);
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(look))
}

/// Returns the fault of what this thread has run since the last call.
pub(super) fn found() -> Option<rusqlite::Error> {
    let crossed = CROSSED.take()?;
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_AUTH);
    Some(rusqlite::Error::SqliteFailure(code, Some(crossed)))
}

impl Judge {
    fn new() -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        migrations::make_schema(&connection)?;
        let named = Arc::new(Mutex::new(Named::new()));
        let noted = Arc::clone(&named);
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let name = match context.action {
                AuthAction::Read { table_name, .. }
                | AuthAction::Insert { table_name }
                | AuthAction::Delete { table_name }
                | AuthAction::Update { table_name, .. } => table_name,
                _ => return Authorization::Allow,
            };
            if let Some(table) = TABLES.iter().find(|table| table.name == name) {
                let mut named = noted.lock().unwrap_or_else(PoisonError::into_inner);
                named.insert(table.name, table.home);
            }
            Authorization::Allow
        }))?;
        Ok(Self {
            connection,
            named,
            known: HashMap::new(),
        })
    }

    /// Looks at a statement, and returns its fault.
    fn look(&mut self, sql: &str) -> Option<String> {
        if let Some(known) = self.known.get(sql) {
            return known.clone();
        }
        let named = || self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named().clear();
        // What cannot be prepared here is about tables that the schema does not have, as a copy's or SQLite's own.
        let prepared = self.connection.prepare(sql).is_ok();
        let tables = std::mem::take(&mut *named());
        let mut homes: Vec<Home> = tables.values().copied().collect();
        homes.sort_unstable();
        homes.dedup();
        let found = (prepared && homes.len() > 1)
            .then(|| format!("a statement is about tables of several homes, {tables:?}: {sql}"));
        self.known.insert(sql.to_owned(), found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_across_homes_is_found() {
        let mut judge = Judge::new().unwrap();
        for sql in [
            "SELECT d.slug FROM deployments d JOIN revisions r ON r.deployment_id = d.id",
            "SELECT slug, (SELECT count(*) FROM revisions) FROM deployments",
            "INSERT INTO garbage (digest, since) SELECT source_digest, 0 FROM revisions",
            "DELETE FROM reports WHERE slug NOT IN (SELECT slug FROM deployments)",
            "SELECT slug FROM deployments UNION SELECT id FROM visitors",
        ] {
            assert!(judge.look(sql).is_some(), "{sql}");
            assert!(judge.look(sql).is_some(), "once more: {sql}");
        }
        for sql in [
            "SELECT d.slug FROM deployments d JOIN projects p ON p.id = d.project_id",
            "DELETE FROM deployments WHERE id = ?1 RETURNING source_digest",
            "DELETE FROM backends WHERE project_id = ?1",
            "DELETE FROM visitors WHERE id = ?1",
            "SELECT count(*) FROM nowhere",
            "BEGIN IMMEDIATE",
        ] {
            assert_eq!(judge.look(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_runs_it_fails() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::make_schema(&connection).unwrap();
        watch(&mut connection).unwrap();
        let run = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        run("SELECT count(*) FROM deployments").unwrap();
        assert!(found().is_none());
        run("SELECT (SELECT count(*) FROM deployments) + (SELECT count(*) FROM revisions)")
            .unwrap();
        assert!(found().is_some());
        assert!(found().is_none(), "it is told once");
    }
}
