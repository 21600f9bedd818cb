//! A database as one plain file for its owner: without the platform's own tables, and without what was deleted.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::limits::Limit;
use tokio::sync::oneshot;

use super::connection::{OpenSettings, TenantConnection};
use super::database::await_answer;
use super::databases::Databases;
use super::error::{RunError, internal};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::meter::WatchMode;
use svc_base::ids::BackendId;
use svc_base::sqlite;
use svc_base::work_state::WorkState;

/// The tables that only the platform has a use for.
const INTERNAL_TABLES_SQL: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name LIKE 'svc\\_%' ESCAPE '\\' AND name <> 'svc_payments' COLLATE NOCASE";

impl Databases {
    /// The file, as the database is at one moment. It is long work: it has the share of a thread that other long work
    /// of the database has, and the writer waits for it no more than for a reader.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn export(&self, id: BackendId) -> Result<Vec<u8>, RunError> {
        let database = self.get(id)?;
        let owner = database.owner;
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let (answer, answered) = oneshot::channel();
        let work_state = WorkState::new();
        let begun = Arc::clone(&work_state);
        let job = Box::new(move || {
            if begun.start() {
                let source = TenantConnection::reader(&database.settings);
                let file = source.and_then(|source| export(&source, &database.settings, budget));
                // A caller that has gone away does not want it.
                let _ = answer.send(file);
            }
        });
        if !self.lanes.queue_long(owner, job) {
            return Err(RunError::Busy);
        }
        await_answer(answered, &work_state).await
    }
}

/// Copies the pages into memory, and makes of them the file that is wanted.
fn export(
    source: &TenantConnection,
    settings: &OpenSettings,
    budget: Duration,
) -> Result<Vec<u8>, RunError> {
    let mut copy = Connection::open_in_memory().map_err(internal)?;
    // What the schema calls may be called here, and nothing else.
    let (meter, _authorizer) = settings.install_guards(&mut copy).map_err(internal)?;
    sqlite::copy_pages(&source.connection, &mut copy).map_err(internal)?;
    meter.start(budget, WatchMode::InLane);
    let stripped = remove_internal_tables(&copy);
    let exceeded = meter.stop();
    stripped.map_err(|error| match exceeded {
        Some(_) => RunError::from_sqlite(error, exceeded),
        None => internal(error),
    })?;
    let file = copy.serialize("main").map_err(internal)?;
    Ok(file.to_vec())
}

fn remove_internal_tables(copy: &Connection) -> rusqlite::Result<()> {
    copy.pragma_update(None, "foreign_keys", false)?;
    copy.pragma_update(None, "temp_store", "MEMORY")?;
    let internal: Vec<String> = copy
        .prepare(INTERNAL_TABLES_SQL)?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in internal {
        copy.execute_batch(&format!("DROP TABLE \"{}\"", name.replace('"', "\"\"")))?;
    }
    // Copying what is there into a new database leaves out what was deleted. SQLite attaches that one itself.
    copy.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1)?;
    copy.execute_batch("VACUUM")
}
