//! Queries of the ledger in the control database.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params};

use super::BillingInterval;
use super::event::{EventReference, VerifiedEvent};
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;

/// Entry of the ledger.
#[derive(Clone, Debug)]
pub struct EventLedgerEntry {
    /// Number of the event, in the order of arrival.
    pub number: i64,
    pub event: VerifiedEvent,
    /// When the event arrived.
    pub received_at: Timestamp,
}

/// Appends an event; returns whether it is new.
pub fn append(tx: &Tx<'_>, event: &VerifiedEvent, now: Timestamp) -> Result<bool, Error> {
    let fact = serde_json::to_string(&event.fact)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let added = tx
        .prepare_cached(
            "INSERT OR IGNORE INTO payment_events (id, kind, happened_at, received_at, fact)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![event.id, event.kind, event.at, now, fact])?;
    if added == 0 {
        return Ok(false);
    }
    let number = tx.last_insert_rowid();
    let mut insert = tx.prepare_cached(
        "INSERT OR IGNORE INTO payment_references (reference, event) VALUES (?1, ?2)",
    )?;
    for reference in event.references() {
        insert.execute(params![reference.0, number])?;
    }
    Ok(true)
}

/// Events that are connected to some references: those that have one of them, those that share a reference with these, and so on,
/// by arrival.
#[derive(Debug, Default)]
pub struct RelatedEvents {
    /// Entries, by arrival.
    pub entries: Vec<EventLedgerEntry>,
    /// All references of the entries.
    pub references: BTreeSet<EventReference>,
}

impl RelatedEvents {
    /// Iterates over the events.
    pub fn events(&self) -> impl Iterator<Item = &VerifiedEvent> {
        self.entries.iter().map(|entry| &entry.event)
    }
}

/// Finds all events that are connected to some references.
pub fn find_related(
    c: &Connection,
    names: impl IntoIterator<Item = EventReference>,
) -> rusqlite::Result<RelatedEvents> {
    let mut query = c.prepare_cached(
        "SELECT e.number, e.id, e.kind, e.happened_at, e.received_at, e.fact
         FROM payment_references r JOIN payment_events e ON e.number = r.event
         WHERE r.reference = ?1",
    )?;
    let mut open: Vec<EventReference> = names.into_iter().collect();
    let mut seen: BTreeSet<EventReference> = BTreeSet::new();
    let mut read: HashSet<i64> = HashSet::new();
    let mut entries = BTreeMap::new();
    while let Some(reference) = open.pop() {
        if !seen.insert(reference.clone()) {
            continue;
        }
        for found in query.query_map([&reference.0], entry_from_row)? {
            let found = found?;
            if read.insert(found.number) {
                open.extend(found.event.references());
                entries.insert(found.number, found);
            }
        }
    }
    Ok(RelatedEvents {
        entries: entries.into_values().collect(),
        references: seen,
    })
}

fn entry_from_row(row: &Row<'_>) -> rusqlite::Result<EventLedgerEntry> {
    let fact: String = row.get(5)?;
    let fact = serde_json::from_str(&fact).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(5, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(EventLedgerEntry {
        number: row.get(0)?,
        event: VerifiedEvent {
            id: row.get(1)?,
            kind: row.get(2)?,
            at: row.get(3)?,
            fact,
        },
        received_at: row.get(4)?,
    })
}

/// Marks entries as belonging to an object of ours, so that they are kept.
pub fn mark_claimed(tx: &Tx<'_>, found: &RelatedEvents) -> Result<(), Error> {
    let mut update = tx.prepare_cached(
        "UPDATE payment_events SET claimed = 1 WHERE number = ?1 AND claimed = 0",
    )?;
    for entry in &found.entries {
        update.execute([entry.number])?;
    }
    Ok(())
}

/// Deletes entries about a deleted object.
pub fn remove(tx: &Tx<'_>, found: &RelatedEvents) -> Result<(), Error> {
    for entry in &found.entries {
        let mut delete = tx
            .prepare_cached("DELETE FROM payment_references WHERE reference = ?1 AND event = ?2")?;
        for reference in entry.event.references() {
            delete.execute(params![reference.0, entry.number])?;
        }
        tx.prepare_cached("DELETE FROM payment_events WHERE number = ?1")?
            .execute([entry.number])?;
    }
    Ok(())
}

/// Lists entries that belong to no object of ours and arrived before `before`, oldest first.
pub fn list_unclaimed(
    c: &Connection,
    before: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<EventLedgerEntry>> {
    c.prepare_cached(
        "SELECT number, id, kind, happened_at, received_at, fact FROM payment_events
         WHERE claimed = 0 AND received_at < ?1 ORDER BY number LIMIT ?2",
    )?
    .query_map(params![before, most], entry_from_row)?
    .collect()
}

impl FromSql for BillingInterval {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        Self::from_name(text)
            .ok_or_else(|| FromSqlError::Other(format!("there is no interval {text}").into()))
    }
}

impl ToSql for BillingInterval {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(
            self.as_str().as_bytes(),
        )))
    }
}
