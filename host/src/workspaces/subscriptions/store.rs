//! Subscriptions in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Subscription;
use crate::clock::Timestamp;
use crate::control::{Error, Tx};
use crate::ids::WorkspaceId;

const COLUMNS: &str = "id, workspace_id, customer, started, deleted, status, status_at";

fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    Ok(Subscription {
        id: row.get(0)?,
        workspace: row.get(1)?,
        customer: row.get(2)?,
        started: row.get(3)?,
        deleted: row.get(4)?,
        status: row
            .get::<_, Option<String>>(5)?
            .map(|status| Ok::<_, rusqlite::Error>((status, row.get(6)?)))
            .transpose()?,
    })
}

pub(super) fn by_id(c: &Connection, id: &str) -> rusqlite::Result<Option<Subscription>> {
    c.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM subscriptions WHERE id = ?1"
    ))?
    .query_row([id], subscription)
    .optional()
}

/// The subscriptions of a workspace, the last that changed first.
pub(super) fn of_workspace(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<Vec<Subscription>> {
    c.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM subscriptions WHERE workspace_id = ?1 ORDER BY status_at DESC, id"
    ))?
    .query_map([workspace], subscription)?
    .collect()
}

pub(super) fn put(tx: &Tx<'_>, known: &Subscription) -> Result<(), Error> {
    tx.execute(
        "INSERT OR REPLACE INTO subscriptions
            (id, workspace_id, customer, started, deleted, status, status_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            known.id,
            known.workspace,
            known.customer,
            known.started,
            known.deleted,
            known.status.as_ref().map(|(status, _)| status),
            known.status.as_ref().map_or(Timestamp(0), |(_, at)| *at),
        ],
    )?;
    Ok(())
}

pub(super) fn remove(tx: &Tx<'_>, workspace: &WorkspaceId) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM subscriptions WHERE workspace_id = ?1",
        [workspace],
    )?;
    Ok(())
}
