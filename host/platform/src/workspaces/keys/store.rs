//! Queries of the table `keys` in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::NewKey;
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::workspaces::model::{Role, UserId, WorkspaceKey};
use crate::workspaces::store::parse_user_id;
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Key that is neither revoked nor expired.
pub(super) struct UsableKey {
    pub(super) workspace: WorkspaceId,
    pub(super) secret: Digest,
    pub(super) role: Role,
    /// User who created the workspace, if it is free.
    pub(super) founder: Option<UserId>,
    pub(super) last_used_at: Option<Timestamp>,
}

fn role_column(row: &Row<'_>, column: &str) -> rusqlite::Result<Role> {
    let role: String = row.get(column)?;
    role.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

pub(in crate::workspaces) fn insert(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    secret: &Digest,
    key: &NewKey,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO keys (key_id, workspace_id, secret_sha256, created_at, role, note, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            key.key_id,
            workspace,
            secret,
            key.created_at,
            key.role.as_str(),
            key.note,
            key.expires_at,
        ],
    )?;
    Ok(())
}

pub(super) fn list(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<Vec<WorkspaceKey>> {
    c.prepare(
        "SELECT key_id, created_at, last_used_at, revoked_at, role, note, expires_at FROM keys
         WHERE workspace_id = ?1 ORDER BY created_at, key_id",
    )?
    .query_map([workspace], |row| {
        Ok(WorkspaceKey {
            key_id: row.get("key_id")?,
            created_at: row.get("created_at")?,
            last_used_at: row.get("last_used_at")?,
            revoked_at: row.get("revoked_at")?,
            role: role_column(row, "role")?,
            note: row.get("note")?,
            expires_at: row.get("expires_at")?,
        })
    })?
    .collect()
}

/// Counts the keys of a workspace that are not revoked.
pub(super) fn count(c: &Connection, workspace: &WorkspaceId) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT count(*) FROM keys WHERE workspace_id = ?1 AND revoked_at IS NULL")?
        .query_row([workspace], |row| {
            row.get::<_, i64>(0).map(i64::unsigned_abs)
        })
}

/// Returns the role of a key, revoked or not; `None` if the workspace has no such key.
pub(super) fn role_of(
    c: &Connection,
    workspace: &WorkspaceId,
    key_id: &str,
) -> rusqlite::Result<Option<Role>> {
    c.prepare_cached("SELECT role FROM keys WHERE workspace_id = ?1 AND key_id = ?2")?
        .query_row(params![workspace, key_id], |row| role_column(row, "role"))
        .optional()
}

/// Revokes a key; returns whether it was revoked by this call. The first revocation time stays.
pub(super) fn revoke(tx: &Tx<'_>, key_id: &str, now: Timestamp) -> Result<bool, Error> {
    let sql = "UPDATE keys SET revoked_at = ?2 WHERE key_id = ?1 AND revoked_at IS NULL";
    Ok(tx.execute(sql, params![key_id, now])? == 1)
}

/// Revokes a key that has a note; returns whether it was revoked by this call.
pub(in crate::workspaces) fn revoke_noted(
    tx: &Tx<'_>,
    key_id: &str,
    note: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let sql =
        "UPDATE keys SET revoked_at = ?3 WHERE key_id = ?1 AND note = ?2 AND revoked_at IS NULL";
    Ok(tx.execute(sql, params![key_id, note, now])? == 1)
}

/// Deletes a workspace's keys with a note that are revoked or past their end.
pub(in crate::workspaces) fn delete_ended(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    note: &str,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM keys WHERE workspace_id = ?1 AND note = ?2
         AND (revoked_at IS NOT NULL OR expires_at <= ?3)",
        params![workspace, note, now],
    )?;
    Ok(())
}

/// Finds a key that is neither revoked nor expired.
pub(super) fn find_usable(
    c: &Connection,
    key_id: &str,
    now: Timestamp,
) -> rusqlite::Result<Option<UsableKey>> {
    c.prepare_cached(
        "SELECT k.workspace_id, k.secret_sha256, k.role, k.last_used_at, w.founder_id
         FROM keys k LEFT JOIN workspaces w ON w.id = k.workspace_id AND w.plan = 'free'
         WHERE k.key_id = ?1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?2)",
    )?
    .query_row(params![key_id, now], |row| {
        Ok(UsableKey {
            workspace: row.get("workspace_id")?,
            secret: row.get("secret_sha256")?,
            role: role_column(row, "role")?,
            founder: row
                .get::<_, Option<String>>("founder_id")?
                .as_deref()
                .map(parse_user_id)
                .transpose()?,
            last_used_at: row.get("last_used_at")?,
        })
    })
    .optional()
}

/// Records that a key was used. Uses on several machines may be recorded in another order.
pub(super) fn touch(tx: &Tx<'_>, key_id: &str, at: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE keys SET last_used_at = max(coalesce(last_used_at, ?2), ?2) WHERE key_id = ?1",
        params![key_id, at],
    )?;
    Ok(())
}
