//! Exports: a database as one plain file for its owner, without the platform's own tables and without deleted rows.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::limits::Limit;
use tokio::sync::oneshot;

use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::database::await_answer;
use super::databases::Databases;
use super::error::{StatementRunError, internal_error};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::meter::LimitCheckFrequency;
use svc_base::ids::BackendId;
use svc_base::sqlite;
use svc_base::work_state::QueuedWorkState;

/// Query for the tables that only the platform uses.
const INTERNAL_TABLES_SQL: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'
    AND name LIKE 'svc\\_%' ESCAPE '\\' AND name COLLATE NOCASE NOT IN ('svc_files', 'svc_payments')";

impl Databases {
    /// Returns a file of the database as it is now. It is long work, and holds the writer up no more than a reader does.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn export(&self, id: BackendId) -> Result<Vec<u8>, StatementRunError> {
        let database = self.load(id).await?;
        let (owner, shared) = (database.owner, database.shared_commits.clone());
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let (answer, answered) = oneshot::channel();
        let work_state = QueuedWorkState::new();
        let begun = Arc::clone(&work_state);
        let job = Box::new(move || {
            if begun.start() {
                let source = TenantConnection::reader(&database.settings);
                let file = source.and_then(|source| export(&source, &database.settings, budget));
                // The caller may have gone away.
                let _ = answer.send(file);
            }
        });
        if !self.lanes.queue_long(owner, job) {
            return Err(StatementRunError::Busy);
        }
        let file = await_answer(answered, &work_state).await;
        if let Some(shared) = shared {
            shared.wait_for_visible().await?;
        }
        file
    }
}

/// Copies the pages into memory, removes the internal tables, and returns the file.
fn export(
    source: &TenantConnection,
    settings: &DatabaseOpenSettings,
    budget: Duration,
) -> Result<Vec<u8>, StatementRunError> {
    let mut copy = Connection::open_in_memory().map_err(internal_error)?;
    // The schema may call functions, so the guards are needed here, too.
    let (meter, _authorizer) = settings.install_guards(&mut copy).map_err(internal_error)?;
    sqlite::copy_pages(&source.connection, &mut copy).map_err(internal_error)?;
    meter.start(budget, LimitCheckFrequency::InLane);
    let stripped = remove_internal_tables(&copy);
    let exceeded = meter.stop();
    stripped.map_err(|error| match exceeded {
        Some(_) => StatementRunError::from_sqlite(error, exceeded),
        None => internal_error(error),
    })?;
    let file = copy.serialize("main").map_err(internal_error)?;
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
    // VACUUM into a new file leaves deleted rows out. SQLite attaches that file itself.
    copy.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 1)?;
    copy.execute_batch("VACUUM")
}
