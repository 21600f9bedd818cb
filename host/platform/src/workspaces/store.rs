//! Queries of workspaces in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{Plan, UserId, Workspace, WorkspaceAccess};
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Subquery that counts the live projects of a workspace.
const PROJECT_COUNT_SQL: &str = "(SELECT count(*) FROM projects p WHERE p.workspace_id = w.id AND p.state = 'active' \
    AND (p.expires_at IS NULL OR p.expires_at > ?2))";

fn unsigned_column(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

fn workspace_from_row(row: &Row<'_>) -> rusqlite::Result<Workspace> {
    let plan: String = row.get("plan")?;
    Ok(Workspace {
        id: row.get("id")?,
        slug: row.get("slug")?,
        display_name: row.get("display_name")?,
        plan: plan
            .parse::<Plan>()
            .map_err(|()| rusqlite::Error::InvalidQuery)?,
        created_at: row.get("created_at")?,
    })
}

pub(super) fn workspace_by_slug(c: &Connection, slug: &str) -> rusqlite::Result<Option<Workspace>> {
    c.query_row(
        "SELECT id, slug, display_name, plan, created_at FROM workspaces
         WHERE slug = ?1 AND state = 'active'",
        [slug],
        workspace_from_row,
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
    .query_row([id], workspace_from_row)
    .optional()
}

/// Returns the plan of a workspace; the free one for a workspace that has ended.
pub fn plan_of(c: &Connection, id: &WorkspaceId) -> rusqlite::Result<Plan> {
    let plan: Option<String> = c
        .prepare_cached("SELECT plan FROM workspaces WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let plan = plan.as_deref().map_or(Ok(Plan::Free), str::parse);
    plan.map_err(|()| rusqlite::Error::InvalidQuery)
}

pub(super) fn workspaces(c: &Connection) -> rusqlite::Result<Vec<Workspace>> {
    c.prepare(
        "SELECT id, slug, display_name, plan, created_at FROM workspaces
         WHERE state = 'active' ORDER BY id",
    )?
    .query_map([], workspace_from_row)?
    .collect()
}

pub(super) fn insert_workspace(tx: &Tx<'_>, new: &Workspace) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO workspaces (id, slug, display_name, plan, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![new.id, new.slug, new.display_name, new.plan.as_str(), new.created_at],
    )?;
    Ok(())
}

/// Stores the user who created a workspace.
pub(super) fn set_founder(tx: &Tx<'_>, id: &WorkspaceId, founder: &UserId) -> Result<(), Error> {
    tx.execute(
        "UPDATE workspaces SET founder_id = ?2 WHERE id = ?1",
        params![id, founder.as_str()],
    )?;
    Ok(())
}

/// Returns the founder of a free workspace; `None` for one that pays or that the operator created.
pub(super) fn founder_if_free(
    c: &Connection,
    id: &WorkspaceId,
) -> rusqlite::Result<Option<UserId>> {
    let founder: Option<Option<String>> = c
        .prepare_cached("SELECT founder_id FROM workspaces WHERE id = ?1 AND plan = 'free'")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    founder.flatten().as_deref().map(parse_user_id).transpose()
}

/// Parses the id of a user, as a row has it.
pub(super) fn parse_user_id(id: &str) -> rusqlite::Result<UserId> {
    id.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

/// Lists the free workspaces that a user created, including those in deletion.
pub(super) fn free_workspaces_of(
    c: &Connection,
    founder: &UserId,
) -> rusqlite::Result<Vec<WorkspaceId>> {
    c.prepare_cached("SELECT id FROM workspaces WHERE founder_id = ?1 AND plan = 'free'")?
        .query_map([founder.as_str()], |row| row.get(0))?
        .collect()
}

/// Counts the active free workspaces that a user created.
pub(super) fn count_free_workspaces(c: &Connection, founder: &UserId) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT count(*) FROM workspaces WHERE founder_id = ?1 AND plan = 'free' AND state = 'active'",
    )?
    .query_row([founder.as_str()], |row| unsigned_column(row, 0))
}

pub(super) fn set_plan(tx: &Tx<'_>, id: &WorkspaceId, plan: Plan) -> Result<(), Error> {
    tx.execute(
        "UPDATE workspaces SET plan = ?2 WHERE id = ?1",
        params![id, plan.as_str()],
    )?;
    Ok(())
}

pub(super) fn set_display_name(tx: &Tx<'_>, id: &WorkspaceId, name: &str) -> Result<(), Error> {
    tx.execute(
        "UPDATE workspaces SET display_name = ?2 WHERE id = ?1",
        params![id, name],
    )?;
    Ok(())
}

/// Whether any workspace uses a slug.
pub(super) fn slug_taken(c: &Connection, slug: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM workspaces WHERE slug = ?1)")?
        .query_row([slug], |row| row.get(0))
}

/// Finds a workspace, with the number of its live projects.
pub(super) fn with_project_count(
    c: &Connection,
    id: &WorkspaceId,
    now: Timestamp,
) -> rusqlite::Result<Option<(Workspace, u64)>> {
    c.prepare_cached(&format!(
        "SELECT w.id, w.slug, w.display_name, w.plan, w.created_at, {PROJECT_COUNT_SQL}
         FROM workspaces w WHERE w.id = ?1 AND w.state = 'active'"
    ))?
    .query_row(params![id, now], |row| {
        Ok((workspace_from_row(row)?, unsigned_column(row, 5)?))
    })
    .optional()
}

/// Lists the workspaces of a user, oldest first.
pub(super) fn list_accessible(
    c: &Connection,
    user: &UserId,
    now: Timestamp,
) -> rusqlite::Result<Vec<WorkspaceAccess>> {
    c.prepare_cached(&format!(
        "SELECT w.id, w.slug, w.display_name, w.plan, w.created_at, {PROJECT_COUNT_SQL}, m.role
         FROM memberships m JOIN workspaces w ON w.id = m.workspace_id
         WHERE m.user_id = ?1 AND w.state = 'active' ORDER BY w.created_at, w.slug"
    ))?
    .query_map(params![user.as_str(), now], |row| {
        let role: String = row.get(6)?;
        Ok(WorkspaceAccess {
            workspace: workspace_from_row(row)?,
            role: role.parse().map_err(|()| rusqlite::Error::InvalidQuery)?,
            projects: unsigned_column(row, 5)?,
        })
    })?
    .collect()
}

/// Marks a workspace as deleting: from this commit on no caller can act for it, and its slug is free.
pub(super) fn mark_deleting(tx: &Tx<'_>, id: &WorkspaceId, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "INSERT OR IGNORE INTO ended_workspaces (id, ended_at) VALUES (?1, ?2)",
        params![id, now],
    )?;
    tx.execute("DELETE FROM keys WHERE workspace_id = ?1", [id])?;
    tx.execute("DELETE FROM console_links WHERE workspace_id = ?1", [id])?;
    tx.execute("DELETE FROM memberships WHERE workspace_id = ?1", [id])?;
    tx.execute(
        "UPDATE workspaces SET state = 'deleting', slug = id WHERE id = ?1",
        [id],
    )?;
    Ok(())
}

/// Removes workspaces in deletion that have no projects left.
pub(super) fn remove_ended(tx: &Tx<'_>) -> Result<(), Error> {
    tx.prepare_cached(
        "DELETE FROM workspaces WHERE state = 'deleting'
            AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.workspace_id = workspaces.id)",
    )?
    .execute([])?;
    Ok(())
}

/// Whether any workspace is in deletion.
pub(super) fn any_deleting(c: &Connection) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM workspaces WHERE state = 'deleting')")?
        .query_row([], |row| row.get(0))
}
