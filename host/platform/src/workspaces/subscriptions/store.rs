//! Queries of subscriptions in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::CombinedSubscription;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

const SUBSCRIPTION_COLUMNS: &str =
    "id, workspace_id, customer, started, deleted, status, status_at, told";

fn subscription_from_row(row: &Row<'_>) -> rusqlite::Result<CombinedSubscription> {
    Ok(CombinedSubscription {
        id: row.get(0)?,
        workspace: row.get(1)?,
        customer: row.get(2)?,
        started: row.get(3)?,
        deleted: row.get(4)?,
        status: row
            .get::<_, Option<String>>(5)?
            .map(|status| Ok::<_, rusqlite::Error>((status, row.get(6)?)))
            .transpose()?,
        end_sent: row.get(7)?,
    })
}

pub(super) fn find_by_id(
    c: &Connection,
    id: &str,
) -> rusqlite::Result<Option<CombinedSubscription>> {
    c.prepare_cached(&format!(
        "SELECT {SUBSCRIPTION_COLUMNS} FROM subscriptions WHERE id = ?1"
    ))?
    .query_row([id], subscription_from_row)
    .optional()
}

/// Lists the subscriptions of a workspace, the most recently changed first.
pub(super) fn list_by_workspace(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<Vec<CombinedSubscription>> {
    c.prepare_cached(&format!(
        "SELECT {SUBSCRIPTION_COLUMNS} FROM subscriptions WHERE workspace_id = ?1 ORDER BY status_at DESC, id"
    ))?
    .query_map([workspace], subscription_from_row)?
    .collect()
}

pub(super) fn upsert(tx: &Tx<'_>, known: &CombinedSubscription) -> Result<(), Error> {
    tx.execute(
        "INSERT OR REPLACE INTO subscriptions
            (id, workspace_id, customer, started, deleted, status, status_at, told)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            known.id,
            known.workspace,
            known.customer,
            known.started,
            known.deleted,
            known.status.as_ref().map(|(status, _)| status),
            known.status.as_ref().map_or(Timestamp(0), |(_, at)| *at),
            known.end_sent,
        ],
    )?;
    Ok(())
}

/// Whether a workspace exists or did.
pub(super) fn is_known_workspace(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM workspaces WHERE id = ?1)
            OR EXISTS (SELECT 1 FROM ended_workspaces WHERE id = ?1)",
    )?
    .query_row([workspace], |row| row.get(0))
}

/// Records that the provider was told to end a subscription.
pub(super) fn set_end_sent(tx: &Tx<'_>, id: &str) -> Result<(), Error> {
    tx.execute("UPDATE subscriptions SET told = 1 WHERE id = ?1", [id])?;
    Ok(())
}

/// Lists subscriptions of deleted workspaces that the provider was not told to end.
pub(super) fn list_orphans(c: &Connection) -> rusqlite::Result<Vec<CombinedSubscription>> {
    c.prepare_cached(&format!(
        "SELECT {SUBSCRIPTION_COLUMNS} FROM subscriptions
         WHERE told = 0 AND deleted = 0 AND workspace_id IS NOT NULL
            AND workspace_id IN (SELECT id FROM ended_workspaces)"
    ))?
    .query_map([], subscription_from_row)?
    .collect()
}
