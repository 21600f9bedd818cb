//! Workspaces and keys in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{Key, Plan, Workspace};
use crate::clock::Timestamp;
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::ids::WorkspaceId;

fn workspace(row: &Row<'_>) -> rusqlite::Result<Workspace> {
    let plan: String = row.get(3)?;
    Ok(Workspace {
        id: row.get(0)?,
        slug: row.get(1)?,
        display_name: row.get(2)?,
        plan: plan
            .parse::<Plan>()
            .map_err(|()| rusqlite::Error::InvalidQuery)?,
        created_at: row.get(4)?,
    })
}

pub(super) fn workspace_by_slug(c: &Connection, slug: &str) -> rusqlite::Result<Option<Workspace>> {
    c.query_row(
        "SELECT id, slug, display_name, plan, created_at FROM workspaces
         WHERE slug = ?1 AND state = 'active'",
        [slug],
        workspace,
    )
    .optional()
}

pub(super) fn workspace_by_id(
    c: &Connection,
    id: &WorkspaceId,
) -> rusqlite::Result<Option<Workspace>> {
    c.prepare_cached(
        "SELECT id, slug, display_name, plan, created_at FROM workspaces
         WHERE id = ?1 AND state = 'active'",
    )?
    .query_row([id], workspace)
    .optional()
}

pub(super) fn workspaces(c: &Connection) -> rusqlite::Result<Vec<Workspace>> {
    c.prepare(
        "SELECT id, slug, display_name, plan, created_at FROM workspaces
         WHERE state = 'active' ORDER BY id",
    )?
    .query_map([], workspace)?
    .collect()
}

pub(super) fn insert_workspace(tx: &Tx<'_>, new: &Workspace) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO workspaces (id, slug, display_name, plan, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![new.id, new.slug, new.display_name, new.plan.as_str(), new.created_at],
    )?;
    Ok(())
}

/// Changes what a workspace pays for.
pub(super) fn set_plan(tx: &Tx<'_>, id: &WorkspaceId, plan: Plan) -> Result<(), Error> {
    tx.execute(
        "UPDATE workspaces SET plan = ?2 WHERE id = ?1",
        params![id, plan.as_str()],
    )?;
    Ok(())
}

/// Begins the end of a workspace: from this commit on nobody can act for it, and its name is free.
pub(super) fn begin_end(tx: &Tx<'_>, id: &WorkspaceId) -> Result<(), Error> {
    tx.execute("DELETE FROM keys WHERE workspace_id = ?1", [id])?;
    tx.execute(
        "UPDATE workspaces SET state = 'deleting', slug = id WHERE id = ?1",
        [id],
    )?;
    Ok(())
}

/// Removes workspaces whose end has begun and whose projects have gone.
pub(super) fn remove_ended(tx: &Tx<'_>) -> Result<(), Error> {
    tx.prepare_cached(
        "DELETE FROM workspaces WHERE state = 'deleting'
            AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.workspace_id = workspaces.id)",
    )?
    .execute([])?;
    Ok(())
}

/// Whether the end of some workspace has begun.
pub(super) fn some_end(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM workspaces WHERE state = 'deleting')")?
        .query_row([], |row| row.get(0))
}

pub(super) fn insert_key(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    key_id: &str,
    secret: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO keys (key_id, workspace_id, secret_sha256, created_at) VALUES (?1, ?2, ?3, ?4)",
        params![key_id, workspace, secret, now],
    )?;
    Ok(())
}

pub(super) fn keys(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<Vec<Key>> {
    c.prepare(
        "SELECT key_id, created_at, last_used_at, revoked_at FROM keys
         WHERE workspace_id = ?1 ORDER BY created_at, key_id",
    )?
    .query_map([workspace], |row| {
        Ok(Key {
            key_id: row.get(0)?,
            created_at: row.get(1)?,
            last_used_at: row.get(2)?,
            revoked_at: row.get(3)?,
        })
    })?
    .collect()
}

/// Revokes a key; answers whether the workspace has it. Revoking twice keeps the first time.
pub(super) fn revoke_key(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    key_id: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let changed = tx.execute(
        "UPDATE keys SET revoked_at = coalesce(revoked_at, ?3)
         WHERE workspace_id = ?1 AND key_id = ?2",
        params![workspace, key_id, now],
    )?;
    Ok(changed > 0)
}

/// A key that is not revoked: its workspace, the digest of its credential, and when it was last used.
pub(super) fn live_key(
    c: &Connection,
    key_id: &str,
) -> rusqlite::Result<Option<(WorkspaceId, Digest, Option<Timestamp>)>> {
    c.prepare_cached(
        "SELECT workspace_id, secret_sha256, last_used_at FROM keys
         WHERE key_id = ?1 AND revoked_at IS NULL",
    )?
    .query_row([key_id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    .optional()
}

pub(super) fn touch_key(tx: &Tx<'_>, key_id: &str, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE keys SET last_used_at = ?2 WHERE key_id = ?1",
        params![key_id, now],
    )?;
    Ok(())
}
