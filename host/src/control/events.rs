//! Events of operators' commands that ran without a server: rows that stay until the next start has acted on them.

use rusqlite::Connection;

use super::{Error, Tx};
use svc_base::clock::Timestamp;

/// Something that the next start must act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A slug answers something else, which an edge in front is yet to forget.
    SlugChanged(String),
    /// An operator did something, which the log is yet to say.
    CommandRun(CommandRecord),
}

/// Event of an operator's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The command, without what is secret in it.
    pub command: String,
    /// The system's user who gave it.
    pub actor: String,
}

const SLUG_CHANGED: &str = "slug_changed";
const NOTED: &str = "noted";

/// Says in the log what an operator did.
pub fn log_command(record: &CommandRecord) {
    tracing::info!(
        command = record.command,
        by = record.actor,
        "an operator did something"
    );
}

/// Tells the next start.
pub fn record(tx: &Tx<'_>, event: &Event, now: Timestamp) -> Result<(), Error> {
    let (kind, subject, command, actor) = match event {
        Event::SlugChanged(slug) => (SLUG_CHANGED, slug.as_str(), "", ""),
        Event::CommandRun(record) => (NOTED, "", record.command.as_str(), record.actor.as_str()),
    };
    tx.execute(
        "INSERT INTO operator_events (kind, subject, at, command, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
        rusqlite::params![kind, subject, now, command, actor],
    )?;
    Ok(())
}

/// Events that no start has acted on, oldest first, each with its number. Kinds that this version does not tell are none.
pub fn unhandled(c: &Connection) -> rusqlite::Result<Vec<(i64, Option<Event>)>> {
    c.prepare_cached("SELECT id, kind, subject, command, actor FROM operator_events ORDER BY id")?
        .query_map([], |row| {
            let record = CommandRecord {
                command: row.get(3)?,
                actor: row.get(4)?,
            };
            let event = match row.get_ref(1)?.as_str()? {
                SLUG_CHANGED => Some(Event::SlugChanged(row.get(2)?)),
                NOTED => Some(Event::CommandRun(record)),
                _ => None,
            };
            Ok((row.get(0)?, event))
        })?
        .collect()
}

/// Forgets an event, in the transaction that acted on it.
pub fn delete(tx: &Tx<'_>, id: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events WHERE id = ?1", [id])?;
    Ok(())
}

/// Forgets all events, in a copy: they are for a server that has been running since.
pub fn delete_all(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events", [])?;
    Ok(())
}
