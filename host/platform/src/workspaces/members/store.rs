//! Queries of users and memberships in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::control::{Error, Tx};
use crate::workspaces::model::{Role, UserId, WorkspaceMember};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

pub(super) fn user_id_column(row: &Row<'_>, column: usize) -> rusqlite::Result<UserId> {
    let id: String = row.get(column)?;
    id.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

pub(super) fn role_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Role> {
    let role: String = row.get(column)?;
    role.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

/// Finds the user of an issuer's subject, with the stored e-mail address.
pub(super) fn find_user_by_subject(
    c: &Connection,
    issuer: &str,
    subject: &str,
) -> rusqlite::Result<Option<(UserId, Option<String>)>> {
    c.prepare_cached("SELECT id, email FROM users WHERE issuer = ?1 AND subject = ?2")?
        .query_row([issuer, subject], |row| {
            Ok((user_id_column(row, 0)?, row.get(1)?))
        })
        .optional()
}

pub(super) fn insert_user(
    tx: &Tx<'_>,
    id: &UserId,
    (issuer, subject, email): (&str, &str, Option<&str>),
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO users (id, issuer, subject, email, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.as_str(), issuer, subject, email, now],
    )?;
    Ok(())
}

pub(super) fn set_email(tx: &Tx<'_>, id: &UserId, email: Option<&str>) -> Result<(), Error> {
    tx.execute(
        "UPDATE users SET email = ?2 WHERE id = ?1",
        params![id.as_str(), email],
    )?;
    Ok(())
}

/// Returns the stored e-mail address of a user; `None` if there is no such user.
pub(super) fn find_email(c: &Connection, id: &UserId) -> rusqlite::Result<Option<Option<String>>> {
    c.prepare_cached("SELECT email FROM users WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()
}

pub(super) fn role_of(
    c: &Connection,
    workspace: &WorkspaceId,
    user: &UserId,
) -> rusqlite::Result<Option<Role>> {
    c.prepare_cached("SELECT role FROM memberships WHERE workspace_id = ?1 AND user_id = ?2")?
        .query_row(params![workspace, user.as_str()], |row| role_column(row, 0))
        .optional()
}

/// Returns the roles of a user in all active workspaces.
pub(super) fn roles_of(c: &Connection, user: &UserId) -> rusqlite::Result<Vec<Role>> {
    c.prepare_cached(
        "SELECT m.role FROM memberships m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = ?1 AND w.state = 'active'",
    )?
    .query_map([user.as_str()], |row| role_column(row, 0))?
    .collect()
}

fn member_from_row(row: &Row<'_>) -> rusqlite::Result<WorkspaceMember> {
    Ok(WorkspaceMember {
        user: user_id_column(row, 0)?,
        email: row.get(1)?,
        role: role_column(row, 2)?,
        created_at: row.get(3)?,
    })
}

pub(super) fn find_by_id(
    c: &Connection,
    workspace: &WorkspaceId,
    user: &UserId,
) -> rusqlite::Result<Option<WorkspaceMember>> {
    c.prepare_cached(
        "SELECT m.user_id, u.email, m.role, m.created_at
         FROM memberships m JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = ?1 AND m.user_id = ?2",
    )?
    .query_row(params![workspace, user.as_str()], member_from_row)
    .optional()
}

/// Lists the members of a workspace, oldest first.
pub(super) fn list(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<Vec<WorkspaceMember>> {
    c.prepare_cached(
        "SELECT m.user_id, u.email, m.role, m.created_at
         FROM memberships m JOIN users u ON u.id = m.user_id
         WHERE m.workspace_id = ?1 ORDER BY m.created_at, m.user_id",
    )?
    .query_map([workspace], member_from_row)?
    .collect()
}

/// Sets the role of a user in a workspace, and adds the membership if there is none.
pub(super) fn set_role(
    tx: &Tx<'_>,
    workspace: &WorkspaceId,
    user: &UserId,
    role: Role,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO memberships (workspace_id, user_id, role, created_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role",
        params![workspace, user.as_str(), role.as_str(), now],
    )?;
    Ok(())
}

pub(super) fn remove(tx: &Tx<'_>, workspace: &WorkspaceId, user: &UserId) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM memberships WHERE workspace_id = ?1 AND user_id = ?2",
        params![workspace, user.as_str()],
    )?;
    Ok(())
}

/// Returns the number of members of a workspace, and how many of them are owners.
pub(super) fn count_members(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<(u64, u64)> {
    c.prepare_cached(
        "SELECT count(*), coalesce(sum(role = 'owner'), 0) FROM memberships WHERE workspace_id = ?1",
    )?
    .query_row([workspace], |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok((number(0)?, number(1)?))
    })
}

/// Counts the workspaces that a user owns.
pub(super) fn count_owned(c: &Connection, user: &UserId) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT count(*) FROM memberships WHERE user_id = ?1 AND role = 'owner'")?
        .query_row([user.as_str()], |row| {
            row.get::<_, i64>(0).map(i64::unsigned_abs)
        })
}

/// Lists the workspaces of a user, oldest first, at most `most`.
pub(super) fn workspaces_of(
    c: &Connection,
    user: &UserId,
    most: u64,
) -> rusqlite::Result<Vec<(WorkspaceId, String)>> {
    c.prepare_cached(
        "SELECT w.id, w.slug FROM memberships m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = ?1 AND w.state = 'active' ORDER BY w.created_at, w.slug LIMIT ?2",
    )?
    .query_map(
        params![user.as_str(), i64::try_from(most).unwrap_or(i64::MAX)],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?
    .collect()
}
