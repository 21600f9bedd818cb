//! What operators' commands tell the server: rows that stay until it has acted on them, after its next start if need be.

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

/// Events that the server has not acted on, oldest first; a row is there until it has.
pub fn unhandled(c: &Connection) -> rusqlite::Result<Vec<OperatorEvent>> {
    c.prepare_cached("SELECT id, kind, subject FROM operator_events ORDER BY id")?
        .query_map([], |row| {
            Ok(OperatorEvent {
                id: row.get(0)?,
                kind: row.get(1)?,
                subject: row.get(2)?,
            })
        })?
        .collect()
}

/// Notes that an event was acted on, in the transaction that did.
///
/// # Errors
/// The database's.
pub fn handled(tx: &Tx<'_>, event: &OperatorEvent) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events WHERE id = ?1", [event.id])?;
    Ok(())
}

/// Forgets all events, in a copy: they are for a server that has been running since.
///
/// # Errors
/// The database's.
pub fn forget(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events", [])?;
    Ok(())
}
