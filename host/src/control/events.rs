//! What operators' commands tell the running server: rows that it reads when the database has changed.

use rusqlite::Connection;

use super::{Error, Tx};
use crate::clock::Timestamp;

/// Something that the server must act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorEvent {
    /// Its number; later ones are larger.
    pub id: i64,
    /// What happened.
    pub kind: String,
    /// To what.
    pub subject: String,
}

/// The kind of event that says: forget what you hold in memory about this slug.
pub const SLUG_CHANGED: &str = "slug_changed";

/// Tells the server.
///
/// # Errors
/// The database's.
pub fn tell(tx: &Tx<'_>, kind: &str, subject: &str, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO operator_events (kind, subject, at) VALUES (?1, ?2, ?3)",
        rusqlite::params![kind, subject, now],
    )?;
    Ok(())
}

/// Events after `last`, oldest first.
pub fn after(c: &Connection, last: i64) -> rusqlite::Result<Vec<OperatorEvent>> {
    c.prepare_cached("SELECT id, kind, subject FROM operator_events WHERE id > ?1 ORDER BY id")?
        .query_map([last], |row| {
            Ok(OperatorEvent {
                id: row.get(0)?,
                kind: row.get(1)?,
                subject: row.get(2)?,
            })
        })?
        .collect()
}

/// The newest event's number.
pub fn newest(c: &Connection) -> rusqlite::Result<i64> {
    c.query_row(
        "SELECT coalesce(max(id), 0) FROM operator_events",
        [],
        |row| row.get(0),
    )
}

/// Forgets events from before `before`.
///
/// # Errors
/// The database's.
pub fn forget(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events WHERE at < ?1", [before])?;
    Ok(())
}
