//! Restores: a snapshot from the history is built in memory, and copied over the live database in one commit.
//!
//! That commit is atomic and synced like any other, and readers see the state before or after it. The history records it like any
//! other commit, so a restore can be undone by a restore.

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, params, params_from_iter};

use super::catalog::query_rows;
use super::connection::{DatabaseOpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{StatementRunError, disk_error, internal_error};
use super::files_tables::FILES_TABLES_SQL;
use super::history::{HistoryLimitExceeded, HistoryMoments, has_expired_moments};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::migrate::{MigrationScript, MigrationScriptError, apply_script, insert_marker};
use super::schema::{MigrationMarker, read_markers};
use super::transaction::{begin, commit};
use super::writer::DatabaseWriter;
use svc_base::Stopwatch;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;
use svc_base::{fault, sqlite};

/// Tables that the platform derives. A restore keeps their live rows.
const DERIVED_TABLES: [&str; 1] = ["svc_payments"];
/// Restores applied to the file whose ledger entry may still be missing.
const RESTORES_TABLE_SQL: &str = "
DROP TABLE IF EXISTS svc_restores;
CREATE TABLE svc_restores (
    version INTEGER PRIMARY KEY,
    sql TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT
) STRICT;";

/// Error of reading a snapshot from the history.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The history does not reach back so far.
    #[error("there is no such moment")]
    TooOld {
        /// The oldest moment in the history.
        oldest: Option<Timestamp>,
    },
    /// The moment is in the future.
    #[error("the moment is in the future")]
    Future,
    /// Error of the database.
    #[error(transparent)]
    Run(#[from] StatementRunError),
}

/// A past state of a database: only bytes, nothing open.
#[derive(Debug)]
pub struct PastSnapshot {
    /// Time of the state.
    pub at: Timestamp,
    /// Markers of the migrations that the state has.
    pub markers: Vec<MigrationMarker>,
    /// Markers of the migrations that the live database has.
    pub live_markers: Vec<MigrationMarker>,
    /// Bytes of the database file.
    image: Vec<u8>,
}

/// A restore, as the ledger records it.
#[derive(Clone, Debug)]
pub struct RestoreRecord {
    /// Marker of the restore in the file.
    pub marker: MigrationMarker,
    /// Description for the ledger.
    pub sql: String,
    /// Time of the restore.
    pub made_at: Timestamp,
    /// Identity of the caller, as the host spells it.
    pub made_by: Option<String>,
}

/// Plan of a restore: changes that make a snapshot fit for the present schema.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// Later migrations without their seeds, oldest first, each with its version.
    pub later_migrations: Vec<(u32, MigrationScript)>,
    /// The restore itself.
    pub record: RestoreRecord,
}

/// Outcome of a restore.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseRestoreOutcome {
    /// The moment that restores the state from before.
    pub previous: Timestamp,
}

/// Error of a restore, which has changed nothing.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RestoreError {
    /// Index in the plan of the migration that cannot be applied to the old rows.
    pub migration: Option<usize>,
    /// Error of the script.
    pub error: MigrationScriptError,
}

impl From<StatementRunError> for RestoreError {
    fn from(error: StatementRunError) -> Self {
        Self {
            migration: None,
            error: error.into(),
        }
    }
}

impl Databases {
    /// Lists the moments that can be restored, before `before`, newest first.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn list_moments(
        &self,
        id: BackendId,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<HistoryMoments, StatementRunError> {
        self.load(id)
            .await?
            .with_writer_silently(move |writer| {
                writer.record_history();
                let past = writer.history.list_moments(before, limit);
                past.map_err(|error| disk_error(&error))
            })
            .await
    }

    /// Reads the state of a database at `at`.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub async fn snapshot_at(
        &self,
        id: BackendId,
        at: Timestamp,
    ) -> Result<PastSnapshot, SnapshotError> {
        let settings = self.settings(&id);
        self.load(id)
            .await?
            .with_writer_silently(move |writer| Ok(take_snapshot(writer, at, &settings)))
            .await?
    }

    /// Copies a snapshot over the live database.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing is changed then.
    pub async fn restore_snapshot(
        &self,
        id: BackendId,
        rewound: PastSnapshot,
        plan: RestorePlan,
    ) -> Result<DatabaseRestoreOutcome, RestoreError> {
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let settings = self.settings(&id);
        let own = settings.clone();
        self.load(id)
            .await?
            .with_writer(move |writer| {
                let image = open_image(&rewound.image, &own)?;
                // The bytes are as large as the database, and no longer needed.
                drop(rewound);
                Ok(apply_snapshot(writer, &image, &plan, budget))
            })
            .await?
            .map_err(|mut failure| {
                failure.error.error = settings.distinguish_full_disk(failure.error.error);
                failure
            })
    }

    /// Lists restores that the file has, which may be missing in the ledger.
    ///
    /// # Errors
    /// [`StatementRunError`].
    pub async fn restore_records(
        &self,
        id: BackendId,
    ) -> Result<Vec<RestoreRecord>, StatementRunError> {
        self.load(id).await?.inspect(read_records).await
    }

    /// Removes expired history of databases, also of those without writes.
    pub async fn prune_histories(&self) -> anyhow::Result<()> {
        let (files, now) = (
            self.files.clone(),
            self.writers.history_settings().clock.now(),
        );
        let look = move || {
            let stale = |id: &BackendId| {
                files
                    .directory(id)
                    .and_then(|dir| has_expired_moments(&dir, now))
            };
            // A database that is removed meanwhile takes its history with it.
            let ids = files.list()?.into_iter();
            io::Result::Ok(
                ids.filter(|id| stale(id).unwrap_or(false))
                    .collect::<Vec<_>>(),
            )
        };
        for id in tokio::task::spawn_blocking(look).await?? {
            if let Err(error) = self.prune_history(id).await {
                tracing::warn!(%error, backend = %id, "a database's history is longer than it should be");
            }
        }
        Ok(())
    }

    async fn prune_history(&self, id: BackendId) -> Result<(), StatementRunError> {
        self.load(id)
            .await?
            .with_writer_silently(|writer| {
                writer.record_history();
                let forgotten = writer.history.prune(&mut writer.handle.connection);
                forgotten.map_err(|error| disk_error(&error))
            })
            .await
    }
}

fn take_snapshot(
    writer: &mut DatabaseWriter,
    at: Timestamp,
    settings: &DatabaseOpenSettings,
) -> Result<PastSnapshot, SnapshotError> {
    let disk = |error: io::Error| SnapshotError::Run(disk_error(&error));
    writer.record_history();
    let now = writer.history.now();
    if writer.history.last().is_none_or(|last| at > last) && at > now {
        return Err(SnapshotError::Future);
    }
    let Some(image) = writer.history.image_at(at).map_err(disk)? else {
        let oldest = writer.history.list_moments(None, 0).map_err(disk)?.oldest;
        return Err(SnapshotError::TooOld { oldest });
    };
    let rewound = PastSnapshot {
        at: image.at,
        markers: read_markers(&open_image(&image.bytes, settings)?.connection)
            .map_err(internal_error)?,
        live_markers: read_markers(&writer.handle.connection).map_err(internal_error)?,
        image: image.bytes,
    };
    fault::point("rewind.unrolled");
    Ok(rewound)
}

/// Opens a database image in memory.
fn open_image(
    image: &[u8],
    settings: &DatabaseOpenSettings,
) -> Result<TenantConnection, StatementRunError> {
    TenantConnection::in_memory(settings, |connection| {
        connection.deserialize_read_exact(MAIN_DB, image, image.len(), false)
    })
}

fn apply_snapshot(
    writer: &mut DatabaseWriter,
    rewound: &TenantConnection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<DatabaseRestoreOutcome, RestoreError> {
    prepare_snapshot(rewound, &writer.handle.connection, plan, budget)?;
    fault::point("rewind.prepared");
    // The present state must be in the history, so that the restore can be undone.
    writer.record_log().map_err(|error| history_error(&error))?;
    let previous = writer
        .history
        .last()
        .ok_or(StatementRunError::HistoryTooSmall)?;
    let bytes = rewound.bytes().map_err(internal_error)?;
    if !writer.history.survives_new_chain(bytes) {
        return Err(StatementRunError::HistoryTooSmall.into());
    }
    writer.begin_commit();
    overwrite_database(&mut writer.handle, rewound)?;
    writer
        .history
        .note_distinct_commit(writer.handle.log_pages());
    fault::point("rewind.committed");
    Ok(DatabaseRestoreOutcome { previous })
}

fn history_error(error: &io::Error) -> StatementRunError {
    if HistoryLimitExceeded::is(error) {
        StatementRunError::HistoryTooSmall
    } else {
        disk_error(error)
    }
}

/// Applies later migrations, derived tables and the restore's marker to a snapshot.
fn prepare_snapshot(
    rewound: &TenantConnection,
    live: &Connection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<(), RestoreError> {
    begin(rewound)?;
    // A state from before there were such tables gets empty ones.
    rewound
        .execute_as_platform(FILES_TABLES_SQL)
        .map_err(internal_error)?;
    let watch = Stopwatch::start();
    for (number, (version, script)) in plan.later_migrations.iter().enumerate() {
        apply_script(rewound, script, budget.saturating_sub(watch.elapsed()))
            .and_then(|()| insert_marker(rewound, *version, &script.checksum))
            .map_err(|error| RestoreError {
                migration: Some(number),
                error,
            })?;
    }
    let RestoreRecord {
        marker,
        sql,
        made_at,
        made_by,
    } = &plan.record;
    for table in DERIVED_TABLES {
        copy_table(live, &rewound.connection, table).map_err(internal_error)?;
    }
    rewound
        .execute_as_platform(RESTORES_TABLE_SQL)
        .map_err(internal_error)?;
    rewound
        .connection
        .execute(
            "INSERT INTO svc_restores (version, sql, made_at, made_by) VALUES (?1, ?2, ?3, ?4)",
            params![marker.version, sql, made_at, made_by],
        )
        .map_err(internal_error)?;
    insert_marker(rewound, marker.version, &marker.checksum).map_err(|error| error.error)?;
    Ok(commit(rewound)?)
}

/// Replaces the rows of a table with those of the live database.
fn copy_table(live: &Connection, rewound: &Connection, table: &str) -> rusqlite::Result<()> {
    rewound.execute(&format!("DELETE FROM {table}"), [])?;
    let mut read = live.prepare(&format!("SELECT * FROM {table} ORDER BY rowid"))?;
    let places = vec!["?"; read.column_count()].join(", ");
    let mut write = rewound.prepare(&format!("INSERT INTO {table} VALUES ({places})"))?;
    let columns = read.column_count();
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column));
        let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
        write.execute(params_from_iter(values))?;
    }
    Ok(())
}

/// Replaces all pages of the live database, in one transaction.
fn overwrite_database(
    live: &mut TenantConnection,
    other: &TenantConnection,
) -> Result<(), StatementRunError> {
    sqlite::copy_pages(&other.connection, &mut live.connection).map_err(internal_error)?;
    // SQLite reports the length of the log at the end of a statement, but not after a backup.
    if let Err(error) = live.execute_as_platform("SELECT 1 WHERE 0") {
        tracing::warn!(%error, "how long a log is will be known with the next write");
    }
    Ok(())
}

fn read_records(connection: &Connection) -> rusqlite::Result<Vec<RestoreRecord>> {
    let there = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'svc_restores')";
    if !connection.query_row(there, [], |row| row.get::<_, bool>(0))? {
        return Ok(Vec::new());
    }
    // Older files have no column for the caller.
    let said =
        "SELECT EXISTS (SELECT 1 FROM pragma_table_info('svc_restores') WHERE name = 'made_by')";
    let made_by = match connection.query_row(said, [], |row| row.get::<_, bool>(0))? {
        true => "r.made_by",
        false => "NULL",
    };
    let sql = format!(
        "SELECT r.version, m.checksum, r.sql, r.made_at, {made_by}
        FROM svc_restores r JOIN svc_migrations m USING (version) ORDER BY version"
    );
    query_rows(connection, &sql, |row| {
        Ok(RestoreRecord {
            marker: MigrationMarker {
                version: row.get(0)?,
                checksum: row.get(1)?,
            },
            sql: row.get(2)?,
            made_at: row.get(3)?,
            made_by: row.get(4)?,
        })
    })
}
