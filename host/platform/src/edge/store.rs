//! The queue of purges in the control database.

use rusqlite::{Connection, params};

use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;

/// A prefix to purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuedPurge {
    pub(super) prefix: String,
    pub(super) attempts: u32,
    pub(super) repeats: u32,
    /// Number that a newer request for the same prefix increments.
    pub(super) generation: i64,
}

/// Queues a prefix, to be purged twice; one that is queued already starts again.
pub fn enqueue_purge(tx: &Tx<'_>, prefix: &str, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO purges (prefix, due_at, repeats) VALUES (?1, ?2, 1)
         ON CONFLICT (prefix) DO UPDATE SET due_at = ?2, repeats = 1, attempts = 0,
             generation = generation + 1",
    )?
    .execute(params![prefix, now])?;
    Ok(())
}

/// Reads the purges that are due, oldest first.
pub(super) fn list_due(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<QueuedPurge>> {
    c.prepare_cached(
        "SELECT prefix, attempts, repeats, generation FROM purges WHERE due_at <= ?1
         ORDER BY due_at LIMIT ?2",
    )?
    .query_map(params![now, most], |row| {
        Ok(QueuedPurge {
            prefix: row.get(0)?,
            attempts: row.get(1)?,
            repeats: row.get(2)?,
            generation: row.get(3)?,
        })
    })?
    .collect()
}

/// Postpones a purge, unless it was queued again meanwhile.
pub(super) fn reschedule(
    tx: &Tx<'_>,
    purge: &QueuedPurge,
    until: Timestamp,
    attempts: u32,
    repeats: u32,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE purges SET due_at = ?3, attempts = ?4, repeats = ?5
         WHERE prefix = ?1 AND generation = ?2",
    )?
    .execute(params![
        purge.prefix,
        purge.generation,
        until,
        attempts,
        repeats
    ])?;
    Ok(())
}

/// Deletes a finished purge, unless it was queued again meanwhile.
pub(super) fn delete(tx: &Tx<'_>, purge: &QueuedPurge) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM purges WHERE prefix = ?1 AND generation = ?2")?
        .execute(params![purge.prefix, purge.generation])?;
    Ok(())
}
