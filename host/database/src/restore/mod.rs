//! Restores: a database as it was is read from the history, made in memory, and put over the live one as one commit.
//!
//! That commit is atomic and synced as every other, those who read beside it see the state before or after, and the
//! history has it as it has the commit before: going back can be undone by going back.

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, params, params_from_iter};

use super::catalog::rows;
use super::connection::{OpenSettings, TenantConnection};
use super::databases::Databases;
use super::error::{RunError, disk_error, internal};
use super::history::{HistoryLimitExceeded, HistoryMoments, is_stale};
use super::limits::MIGRATION_BUDGET_FACTOR;
use super::migrate::{Script, ScriptError, apply, mark};
use super::schema::{MigrationMarker, markers};
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
    pub live: Vec<MigrationMarker>,
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
    pub later: Vec<(u32, Script)>,
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
    pub async fn past(
        &self,
        id: BackendId,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<HistoryMoments, RunError> {
        self.get(id)?
            .beside_writes(move |writer| {
                writer.remember();
                let past = writer.history.past(before, limit);
                past.map_err(|error| disk_error(&error))
            })
            .await
    }

    /// Makes a copy of what a database was at `at`.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub async fn rewind(
        &self,
        id: BackendId,
        at: Timestamp,
    ) -> Result<PastSnapshot, SnapshotError> {
        let settings = self.settings(&id);
        self.get(id)?
            .beside_writes(move |writer| Ok(rewind(writer, at, &settings)))
            .await?
    }

    /// Puts a rewound database over the live one.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing is changed then.
    pub async fn reinstate(
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
                Ok(reinstate(writer, &image, &plan, budget))
            })
            .await?
            .map_err(|mut failure| {
                failure.error.error = settings.full_disk_or_database(failure.error.error);
                failure
            })
    }

    /// Restores that the file has and the ledger may not have.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn restores(&self, id: BackendId) -> Result<Vec<RestoreRecord>, RunError> {
        self.get(id)?.inspect(records).await
    }

    /// Forgets history that is too old, of databases that nobody writes to any more.
    pub async fn forget_old(&self) -> anyhow::Result<()> {
        let (files, now) = (self.files.clone(), self.writers.terms().clock.now());
        let look = move || {
            let stale = |id: &BackendId| files.directory(id).and_then(|dir| is_stale(&dir, now));
            // One that goes meanwhile takes its history along.
            let ids = files.list()?.into_iter();
            io::Result::Ok(
                ids.filter(|id| stale(id).unwrap_or(false))
                    .collect::<Vec<_>>(),
            )
        };
        for id in tokio::task::spawn_blocking(look).await?? {
            if let Err(error) = self.forget_old_of(id).await {
                tracing::warn!(%error, backend = %id, "a database's history is longer than it should be");
            }
        }
        Ok(())
    }

    async fn forget_old_of(&self, id: BackendId) -> Result<(), RunError> {
        self.get(id)?
            .beside_writes(|writer| {
                writer.remember();
                let forgotten = writer.history.forget_old(&mut writer.handle.connection);
                forgotten.map_err(|error| disk_error(&error))
            })
            .await
    }
}

fn rewind(
    writer: &mut Writer,
    at: Timestamp,
    settings: &OpenSettings,
) -> Result<PastSnapshot, SnapshotError> {
    let disk = |error: io::Error| SnapshotError::Run(disk_error(&error));
    writer.remember();
    let now = writer.history.now();
    if writer.history.last().is_none_or(|last| at > last) && at > now {
        return Err(SnapshotError::Future);
    }
    let Some(image) = writer.history.at(at).map_err(disk)? else {
        let oldest = writer.history.past(None, 0).map_err(disk)?.oldest;
        return Err(SnapshotError::TooOld { oldest });
    };
    let rewound = PastSnapshot {
        at: image.at,
        markers: markers(&open_image(&image.bytes, settings)?.connection).map_err(internal)?,
        live: markers(&writer.handle.connection).map_err(internal)?,
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

fn reinstate(
    writer: &mut Writer,
    rewound: &TenantConnection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<RestoreOutcome, RestoreError> {
    prepare(rewound, &writer.handle.connection, plan, budget)?;
    fault::point("rewind.prepared");
    // Without the present in the history there would be no way back to it.
    writer.take().map_err(|error| history_error(&error))?;
    let previous = writer.history.last().ok_or(RunError::HistoryTooSmall)?;
    let bytes = rewound.bytes().map_err(internal)?;
    if !writer.history.outlives(bytes) {
        return Err(RunError::HistoryTooSmall.into());
    }
    put_over(&mut writer.handle, rewound)?;
    writer.history.note_apart(writer.handle.log_pages());
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
fn prepare(
    rewound: &TenantConnection,
    live: &Connection,
    plan: &RestorePlan,
    budget: Duration,
) -> Result<(), RestoreError> {
    begin(rewound)?;
    let watch = Stopwatch::start();
    for (number, (version, script)) in plan.later.iter().enumerate() {
        apply(rewound, script, budget.saturating_sub(watch.elapsed()))
            .and_then(|()| mark(rewound, *version, &script.checksum))
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
        derive(live, &rewound.connection, table).map_err(internal)?;
    }
    rewound.platform(RESTORES_TABLE_SQL).map_err(internal)?;
    rewound
        .connection
        .execute(
            "INSERT INTO svc_restores (version, sql, made_at, made_by) VALUES (?1, ?2, ?3, ?4)",
            params![marker.version, sql, made_at, made_by],
        )
        .map_err(internal)?;
    mark(rewound, marker.version, &marker.checksum).map_err(|error| error.error)?;
    Ok(commit(rewound)?)
}

/// Gives a table the rows that it has in the live database.
fn derive(live: &Connection, rewound: &Connection, table: &str) -> rusqlite::Result<()> {
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
fn put_over(live: &mut TenantConnection, other: &TenantConnection) -> Result<(), RunError> {
    sqlite::copy_pages(&other.connection, &mut live.connection).map_err(internal)?;
    // SQLite tells how long the log is when a statement has come to its end, which a backup is not.
    if let Err(error) = live.platform("SELECT 1 WHERE 0") {
        tracing::warn!(%error, "how long a log is will be known with the next write");
    }
    Ok(())
}

fn records(connection: &Connection) -> rusqlite::Result<Vec<RestoreRecord>> {
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
    rows(connection, &sql, |row| {
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
