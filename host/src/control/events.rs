//! What operators' commands tell the server: rows that stay until it has acted on them, after its next start if need be.

use rusqlite::Connection;

use super::audit::Act;
use super::{Control, Error, Tx};
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
    /// By which command of whom.
    pub deed: Deed,
}

/// What an operator did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The command, without what is secret in it.
    pub command: String,
    /// The system's user who gave it.
    pub actor: String,
}

/// The kind of event that says: forget what you hold in memory about this slug.
pub const SLUG_CHANGED: &str = "slug_changed";
/// The kind of event that says: a workspace is being deleted.
pub const WORKSPACE_ENDED: &str = "workspace_ended";
/// The kind of event that says: forget what you hold in memory about the visitors of this project.
pub const VISITORS_CHANGED: &str = "visitors_changed";
/// The kind of event that only says what was done.
pub const NOTED: &str = "noted";

/// Tells the server.
///
/// # Errors
/// The database's.
pub fn tell(
    tx: &Tx<'_>,
    kind: &str,
    subject: &str,
    deed: &Deed,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO operator_events (kind, subject, at, command, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
        rusqlite::params![kind, subject, now, deed.command, deed.actor],
    )?;
    Ok(())
}

/// Tells the server what was done, for its log, and the audit what of it no transaction of its own has said.
///
/// # Errors
/// The database's.
pub async fn note(
    control: &Control,
    deed: Deed,
    act: Option<(Act, String)>,
    now: Timestamp,
) -> Result<(), Error> {
    control
        .write(move |tx| {
            tell(tx, NOTED, "", &deed, now)?;
            match &act {
                Some((act, target)) => tx.did(*act, None, target, now),
                None => Ok(()),
            }
        })
        .await
}

/// Events that the server has not acted on, oldest first; a row is there until it has.
pub fn unhandled(c: &Connection) -> rusqlite::Result<Vec<OperatorEvent>> {
    c.prepare_cached("SELECT id, kind, subject, command, actor FROM operator_events ORDER BY id")?
        .query_map([], |row| {
            Ok(OperatorEvent {
                id: row.get(0)?,
                kind: row.get(1)?,
                subject: row.get(2)?,
                deed: Deed {
                    command: row.get(3)?,
                    actor: row.get(4)?,
                },
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
