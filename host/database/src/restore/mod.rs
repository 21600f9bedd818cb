//! Restores: a database as it was is read from the history, made in memory, and put over the live one as one commit.
//!
//! That commit is atomic and synced as every other, those who read beside it see the state before or after, and the
//! history has it as it has the commit before: going back can be undone by going back.

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, params, params_from_iter};

use super::catalog::query_rows;
use super::connection::{OpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{RunError, disk_error, internal};
use super::history::{HistoryLimitExceeded, HistoryMoments, has_expired_moments};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::migrate::{Script, ScriptError, apply_script, insert_marker};
use super::schema::{MigrationMarker, read_markers};
use super::transaction::{begin, commit};
use super::writer::Writer;
use svc_base::Stopwatch;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;
use svc_base::{fault, sqlite};

/// Tables that the platform derives: what they have now is what they are to have.
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

/// Why there is no way back.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// History does not reach back so far.
    #[error("there is no such moment")]
    TooOld {
        /// The first moment that there is.
        oldest: Option<Timestamp>,
    },
    /// That is yet to come.
    #[error("the moment is in the future")]
    Future,
    /// The database's.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A database as it was: bytes, and nothing that is open.
#[derive(Debug)]
pub struct PastSnapshot {
    /// When it was so.
    pub at: Timestamp,
    /// The migrations that it has.
    pub markers: Vec<MigrationMarker>,
    /// The migrations that the live one has.
    pub live_markers: Vec<MigrationMarker>,
    /// Bytes of the database file.
    image: Vec<u8>,
}

/// Restore, as the ledger is to record it.
#[derive(Clone, Debug)]
pub struct RestoreRecord {
    /// Marker of the restore in the file.
    pub marker: MigrationMarker,
    /// Description for the ledger.
    pub sql: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// Identity of the caller, as the host spells it.
    pub made_by: Option<String>,
}

/// Steps that make a rewound database live.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// Later migrations without their seeds, oldest first, each with its version.
    pub later_migrations: Vec<(u32, Script)>,
    /// The restore itself.
    pub record: RestoreRecord,
}

/// Outcome of a restore.
#[derive(Clone, Copy, Debug)]
pub struct RestoreOutcome {
    /// The moment to go back to for the state before.
    pub previous: Timestamp,
}

/// Why a rewound database is not live.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RestoreError {
    /// Which migration cannot be applied to what was there, by its place in the plan.
    pub migration: Option<usize>,
    /// Error of the script.
    pub error: ScriptError,
}

impl From<RunError> for RestoreError {
    fn from(error: RunError) -> Self {
        Self {
            migration: None,
            error: error.into(),
        }
    }
}

impl Databases {
    /// The moments that a database can go back to, before `before`, newest first.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn list_moments(
        &self,
        id: BackendId,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<HistoryMoments, RunError> {
        self.get(id)?
            .with_writer_silently(move |writer| {
                writer.record_history();
                let past = writer.history.list_moments(before, limit);
                past.map_err(|error| disk_error(&error))
            })
            .await
    }

    /// Makes a copy of what a database was at `at`.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub async fn snapshot_at(
        &self,
        id: BackendId,
        at: Timestamp,
    ) -> Result<PastSnapshot, SnapshotError> {
        let settings = self.settings(&id);
        self.get(id)?
            .with_writer_silently(move |writer| Ok(take_snapshot(writer, at, &settings)))
            .await?
    }

    /// Puts a rewound database over the live one.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing is changed then.
    pub async fn restore_snapshot(
        &self,
        id: BackendId,
        rewound: PastSnapshot,
        plan: RestorePlan,
    ) -> Result<RestoreOutcome, RestoreError> {
        let budget = self.limits.time * MIGRATION_BUDGET_FACTOR;
        let settings = self.settings(&id);
        let own = settings.clone();
        self.get(id)?
            .with_writer(move |writer| {
                let image = open_image(&rewound.image, &own)?;
                // As large as the database, and there twice.
                drop(rewound);
                Ok(apply_snapshot(writer, &image, &plan, budget))
            })
            .await?
            .map_err(|mut failure| {
                failure.error.error = settings.distinguish_full_disk(failure.error.error);
                failure
            })
    }

    /// Restores that the file has and the ledger may not have.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn restore_records(&self, id: BackendId) -> Result<Vec<RestoreRecord>, RunError> {
        self.get(id)?.inspect(read_records).await
    }

    /// Forgets history that is too old, of databases that nobody writes to any more.
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
            // One that goes meanwhile takes its history along.
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

    async fn prune_history(&self, id: BackendId) -> Result<(), RunError> {
        self.get(id)?
            .with_writer_silently(|writer| {
                writer.record_history();
                let forgotten = writer.history.prune(&mut writer.handle.connection);
                forgotten.map_err(|error| disk_error(&error))
            })
            .await
    }
}

fn take_snapshot(
    writer: &mut Writer,
    at: Timestamp,
    settings: &OpenSettings,
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
        markers: read_markers(&open_image(&image.bytes, settings)?.connection).map_err(internal)?,
        live_markers: read_markers(&writer.handle.connection).map_err(internal)?,
        image: image.bytes,
    };
    fault::point("rewind.unrolled");
    Ok(rewound)
}

/// Opens a copy of a database file in memory.
fn open_image(image: &[u8], settings: &OpenSettings) -> Result<TenantConnection, RunError> {
    TenantConnection::in_memory(settings, |connection| {
        connection.deserialize_read_exact(MAIN_DB, image, image.len(), false)
    })
}

fn apply_snapshot(
    writer: &mut Writer,
    rewound: &TenantConnection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<RestoreOutcome, RestoreError> {
    prepare_snapshot(rewound, &writer.handle.connection, plan, budget)?;
    fault::point("rewind.prepared");
    // Without the present in the history there would be no way back to it.
    writer.record_log().map_err(|error| history_error(&error))?;
    let previous = writer.history.last().ok_or(RunError::HistoryTooSmall)?;
    let bytes = rewound.bytes().map_err(internal)?;
    if !writer.history.survives_new_chain(bytes) {
        return Err(RunError::HistoryTooSmall.into());
    }
    overwrite(&mut writer.handle, rewound)?;
    writer
        .history
        .note_distinct_commit(writer.handle.log_pages());
    fault::point("rewind.committed");
    Ok(RestoreOutcome { previous })
}

fn history_error(error: &io::Error) -> RunError {
    if HistoryLimitExceeded::is(error) {
        RunError::HistoryTooSmall
    } else {
        disk_error(error)
    }
}

/// Brings a rewound database up to date in all but its rows.
fn prepare_snapshot(
    rewound: &TenantConnection,
    live: &Connection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<(), RestoreError> {
    begin(rewound)?;
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
        copy_table(live, &rewound.connection, table).map_err(internal)?;
    }
    rewound
        .execute_as_platform(RESTORES_TABLE_SQL)
        .map_err(internal)?;
    rewound
        .connection
        .execute(
            "INSERT INTO svc_restores (version, sql, made_at, made_by) VALUES (?1, ?2, ?3, ?4)",
            params![marker.version, sql, made_at, made_by],
        )
        .map_err(internal)?;
    insert_marker(rewound, marker.version, &marker.checksum).map_err(|error| error.error)?;
    Ok(commit(rewound)?)
}

/// Gives a table the rows that it has in the live database.
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

/// Makes the live database what another is, in one transaction.
fn overwrite(live: &mut TenantConnection, other: &TenantConnection) -> Result<(), RunError> {
    sqlite::copy_pages(&other.connection, &mut live.connection).map_err(internal)?;
    // SQLite tells how long the log is when a statement has come to its end, which a backup is not.
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
    // Files from before there was an audit do not say who it was.
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
