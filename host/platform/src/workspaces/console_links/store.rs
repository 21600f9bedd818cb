//! Queries of the table `console_links` in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::workspaces::model::Role;
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Link whose code was taken.
pub(super) struct TakenLink {
    pub(super) workspace: WorkspaceId,
    /// Role of the key that it is exchanged for.
    pub(super) role: Role,
    pub(super) expires_at: Option<Timestamp>,
}

pub(super) fn insert(
    tx: &Tx<'_>,
    code: &Digest,
    (workspace, role): (&WorkspaceId, Role),
    expires_at: Option<Timestamp>,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO console_links (code_sha256, workspace_id, role, expires_at) VALUES (?1, ?2, ?3, ?4)",
        params![code, workspace, role.as_str(), expires_at],
    )?;
    Ok(())
}

/// Whether a code is that of a link.
pub(super) fn exists(c: &Connection, code: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM console_links WHERE code_sha256 = ?1)")?
        .query_row([code], |row| row.get(0))
}

/// Deletes the link of a code, and returns it.
pub(super) fn take(tx: &Tx<'_>, code: &Digest) -> Result<Option<TakenLink>, Error> {
    let taken = tx
        .prepare_cached(
            "DELETE FROM console_links WHERE code_sha256 = ?1 RETURNING workspace_id, role, expires_at",
        )?
        .query_row([code], |row| {
            let role: String = row.get("role")?;
            Ok(TakenLink {
                workspace: row.get("workspace_id")?,
                role: role.parse().map_err(|()| rusqlite::Error::InvalidQuery)?,
                expires_at: row.get("expires_at")?,
            })
        })
        .optional()?;
    Ok(taken)
}

/// Deletes the links that are past their end.
pub(super) fn delete_ended(tx: &Tx<'_>, now: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM console_links WHERE expires_at <= ?1", [now])?;
    Ok(())
}

/// Whether any link ends with its server.
pub(super) fn has_endless(c: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM console_links WHERE expires_at IS NULL)";
    c.query_row(sql, [], |row| row.get(0))
}

/// Deletes the links that end with their server.
pub(super) fn delete_endless(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM console_links WHERE expires_at IS NULL", [])?;
    Ok(())
}
