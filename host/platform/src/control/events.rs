//! Events of operators' commands that ran without a server: rows that stay until the next start has handled them.

use rusqlite::Connection;

use super::{Error, Tx};
use svc_base::clock::Timestamp;

/// An event that the next start must handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartupEvent {
    /// The content of a slug changed: the edge cache must be purged.
    SlugChanged(String),
    /// A domain is served no more: the edge cache must forget its host.
    DomainEnded(String),
    /// An operator ran a command: the server's log must have it.
    CommandRun(OperatorCommandRecord),
}

/// A command that an operator ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCommandRecord {
    /// The command line, without secrets.
    pub command: String,
    /// The system's user who ran it.
    pub actor: String,
}

const SLUG_CHANGED: &str = "slug_changed";
const DOMAIN_ENDED: &str = "domain_ended";
const COMMAND_RUN_KIND: &str = "noted";

/// Writes an operator's command into the log.
pub fn log_command(record: &OperatorCommandRecord) {
    tracing::info!(
        command = record.command,
        by = record.actor,
        "an operator did something"
    );
}

/// Stores an event for the next start.
pub fn record(tx: &Tx<'_>, event: &StartupEvent, now: Timestamp) -> Result<(), Error> {
    let (kind, subject, command, actor) = match event {
        StartupEvent::SlugChanged(slug) => (SLUG_CHANGED, slug.as_str(), "", ""),
        StartupEvent::DomainEnded(name) => (DOMAIN_ENDED, name.as_str(), "", ""),
        StartupEvent::CommandRun(record) => (
            COMMAND_RUN_KIND,
            "",
            record.command.as_str(),
            record.actor.as_str(),
        ),
    };
    tx.execute(
        "INSERT INTO operator_events (kind, subject, at, command, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
        rusqlite::params![kind, subject, now, command, actor],
    )?;
    Ok(())
}

/// Reads the events that no start has handled, oldest first, each with its id. A kind that this version does not know is `None`.
pub fn list_unhandled(c: &Connection) -> rusqlite::Result<Vec<(i64, Option<StartupEvent>)>> {
    c.prepare_cached("SELECT id, kind, subject, command, actor FROM operator_events ORDER BY id")?
        .query_map([], |row| {
            let record = OperatorCommandRecord {
                command: row.get(3)?,
                actor: row.get(4)?,
            };
            let event = match row.get_ref(1)?.as_str()? {
                SLUG_CHANGED => Some(StartupEvent::SlugChanged(row.get(2)?)),
                DOMAIN_ENDED => Some(StartupEvent::DomainEnded(row.get(2)?)),
                COMMAND_RUN_KIND => Some(StartupEvent::CommandRun(record)),
                _ => None,
            };
            Ok((row.get(0)?, event))
        })?
        .collect()
}

/// Deletes an event, in the transaction that handles it.
pub fn delete(tx: &Tx<'_>, id: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events WHERE id = ?1", [id])?;
    Ok(())
}

/// Deletes all events in a copy: the running server has handled them.
pub fn delete_all(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM operator_events", [])?;
    Ok(())
}
