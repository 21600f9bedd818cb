//! The queue of cancellations in the control database.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, params};

use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;

/// Kind of object to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CancellationKind {
    /// Subscription, which ends with the paid period.
    Subscription,
    /// Hosted checkout that is still open.
    Checkout,
}

impl CancellationKind {
    const ALL: [Self; 2] = [Self::Subscription, Self::Checkout];

    fn as_str(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Checkout => "checkout",
        }
    }
}

/// Object that the provider is to end.
#[derive(Clone, Debug)]
pub(super) struct PendingCancellation {
    number: i64,
    pub(super) kind: CancellationKind,
    /// The provider's id of the object.
    pub(super) object: String,
    /// Number of failed attempts.
    pub(super) attempts: u32,
}

/// Queues an object, unless it is in the queue already.
pub(super) fn insert(
    tx: &Tx<'_>,
    kind: CancellationKind,
    object: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO payment_endings (kind, object, created_at, due_at) VALUES (?1, ?2, ?3, ?3)",
    )?
    .execute(params![kind.as_str(), object, now])?;
    Ok(())
}

/// Whether an object is or was in the queue.
pub(super) fn was_ever_queued(c: &Connection, object: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM payment_endings WHERE object = ?1)")?
        .query_row([object], |row| row.get(0))
}

/// Lists due cancellations, oldest first.
pub(super) fn list_due(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<PendingCancellation>> {
    c.prepare_cached(
        "SELECT number, kind, object, attempts FROM payment_endings WHERE due_at <= ?1
         ORDER BY due_at LIMIT ?2",
    )?
    .query_map(params![now, most], |row| {
        Ok(PendingCancellation {
            number: row.get("number")?,
            kind: row.get("kind")?,
            object: row.get("object")?,
            attempts: row.get("attempts")?,
        })
    })?
    .collect()
}

impl FromSql for CancellationKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or_else(|| FromSqlError::Other(format!("there is no kind {text}").into()))
    }
}

/// Reschedules a cancellation after a failed attempt.
pub(super) fn reschedule(
    tx: &Tx<'_>,
    cancellation: &PendingCancellation,
    until: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE payment_endings SET due_at = ?2, attempts = attempts + 1 WHERE number = ?1",
    )?
    .execute(params![cancellation.number, until])?;
    Ok(())
}

/// Marks a cancellation as finished: sent, or given up.
pub(super) fn mark_finished(tx: &Tx<'_>, cancellation: &PendingCancellation) -> Result<(), Error> {
    tx.prepare_cached("UPDATE payment_endings SET due_at = NULL WHERE number = ?1")?
        .execute([cancellation.number])?;
    Ok(())
}

/// Deletes finished cancellations that are older than `before`.
pub(super) fn delete_finished(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM payment_endings WHERE due_at IS NULL AND created_at < ?1")?
        .execute([before])?;
    Ok(())
}
