//! Queries of projects in the control database.

use std::collections::HashSet;
use std::fmt::Display;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::domains::remove_all as remove_domains;
use super::model::Project;
use crate::config::Config;
use crate::control::audit::{AuditAction, AuditActor, UncommittedAuditEntry};
use crate::control::{ControlDatabase, Error, NamedColumnReader, Tx};
use crate::workspaces::WorkspaceRef;
use svc_base::clock::Timestamp;
use svc_base::ids::{ProjectId, WorkspaceId};

const SELECT_PROJECT: &str = "SELECT p.id, w.id AS workspace_id, w.slug AS workspace_slug, p.name, p.description, p.host_label, \
    p.allowed_providers, p.created_at, p.updated_at, p.expires_at, \
    (SELECT b.id FROM backends b WHERE b.project_id = p.id) AS backend_id, p.home \
    FROM projects p JOIN workspaces w ON w.id = p.workspace_id";
/// Condition for live projects: neither in deletion nor expired.
const LIVE_CONDITION: &str = "p.state = 'active' AND (p.expires_at IS NULL OR p.expires_at > ?1)";

/// How long the host label of a deleted project without visitors stays reserved, in seconds.
const LABEL_RESERVATION_SECONDS: i64 = 30 * 24 * 3600;
/// Maximum number of labels of a workspace that are reserved for a time; beyond it, the oldest are released.
const MAX_RESERVED_LABELS: i64 = 1_000;

fn project_from_row(row: &Row<'_>) -> rusqlite::Result<Project> {
    let row = NamedColumnReader::new(row);
    let providers: Option<String> = row.get("allowed_providers")?;
    Ok(Project {
        id: row.get("id")?,
        workspace: WorkspaceRef {
            id: row.get("workspace_id")?,
            slug: row.get("workspace_slug")?,
        },
        name: row.get("name")?,
        description: row.get("description")?,
        host_label: row.get("host_label")?,
        allowed_providers: providers.and_then(|list| serde_json::from_str(&list).ok()),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        expires_at: row.get("expires_at")?,
        backend: row.get("backend_id")?,
        home: row.get("home")?,
    })
}

pub(super) fn find_by_id(
    c: &Connection,
    id: &ProjectId,
    now: Timestamp,
) -> rusqlite::Result<Option<Project>> {
    c.prepare_cached(&format!(
        "{SELECT_PROJECT} WHERE {LIVE_CONDITION} AND p.id = ?2"
    ))?
    .query_row(params![now, id], project_from_row)
    .optional()
}

pub(super) fn find_by_label(
    c: &Connection,
    label: &str,
    now: Timestamp,
) -> rusqlite::Result<Option<Project>> {
    c.prepare_cached(&format!(
        "{SELECT_PROJECT} WHERE {LIVE_CONDITION} AND p.host_label = ?2"
    ))?
    .query_row(params![now, label], project_from_row)
    .optional()
}

/// Lists the live projects of workspaces, oldest first.
pub(super) fn list_by_workspaces(
    c: &Connection,
    workspaces: &[WorkspaceId],
    now: Timestamp,
) -> rusqlite::Result<Vec<Project>> {
    let workspaces = serde_json::to_string(workspaces)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    c.prepare_cached(&format!(
        "{SELECT_PROJECT} WHERE {LIVE_CONDITION} AND p.workspace_id IN (SELECT value FROM json_each(?2)) ORDER BY p.rowid"
    ))?
    .query_map(params![now, workspaces], project_from_row)?
    .collect()
}

/// Counts the live projects of a workspace.
pub(super) fn count(
    c: &Connection,
    workspace: &WorkspaceId,
    now: Timestamp,
) -> rusqlite::Result<u64> {
    c.prepare_cached(&format!(
        "SELECT count(*) FROM projects p WHERE {LIVE_CONDITION} AND p.workspace_id = ?2"
    ))?
    .query_row(params![now, workspace], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// Whether a workspace cannot have a host label: a project uses it, or it is reserved for another workspace.
pub(super) fn label_taken(
    c: &Connection,
    label: &str,
    workspace: &WorkspaceId,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM projects WHERE host_label = ?1)
            OR EXISTS (SELECT 1 FROM resting_labels
                WHERE host_label = ?1 AND workspace_id <> ?2 AND (until > ?3 OR until IS NULL))",
    )?
    .query_row(params![label, workspace, now], |row| row.get(0))
}

/// Records that a visitor has signed in to a project. From then on its host label is never given to another workspace.
pub fn mark_had_visitors(tx: &Tx<'_>, id: &ProjectId) -> Result<(), Error> {
    tx.prepare_cached("UPDATE projects SET had_visitors = 1 WHERE id = ?1 AND had_visitors = 0")?
        .execute([id])?;
    Ok(())
}

/// Adds a project, whose label must be unused.
pub(super) fn insert(tx: &Tx<'_>, new: &Project) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO projects
            (id, workspace_id, name, description, host_label, created_at, updated_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        new.id,
        new.workspace.id,
        new.name,
        new.description,
        new.host_label,
        new.created_at,
        new.updated_at,
        new.expires_at,
    ])?;
    Ok(())
}

/// Updates the fields that may change.
pub(super) fn update(tx: &Tx<'_>, project: &Project) -> Result<(), Error> {
    let providers = project.allowed_providers.as_ref();
    let providers = providers.map(|list| serde_json::Value::from(list.clone()).to_string());
    tx.prepare_cached(
        "UPDATE projects SET name = ?2, description = ?3, allowed_providers = ?4, updated_at = ?5, home = ?6
         WHERE id = ?1",
    )?
    .execute(params![
        project.id,
        project.name,
        project.description,
        providers,
        project.updated_at,
        project.home,
    ])?;
    Ok(())
}

/// Whether a project has a frontend at a slug, in any state.
pub(super) fn has_frontend(c: &Connection, id: &ProjectId, slug: &str) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deployments WHERE project_id = ?1 AND slug = ?2)",
    )?
    .query_row(params![id, slug], |row| row.get(0))
}

/// Returns the site that an edge may hold at the root of a project's origin, by its slug.
pub fn edge_root(c: &Connection, id: &ProjectId) -> rusqlite::Result<Option<String>> {
    c.prepare_cached("SELECT edge_root FROM projects WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Notes which site an edge may hold at the root of a project's origin from now on.
pub fn set_edge_root(tx: &Tx<'_>, id: &ProjectId, slug: Option<&str>) -> Result<(), Error> {
    tx.prepare_cached("UPDATE projects SET edge_root = ?2 WHERE id = ?1")?
        .execute(params![id, slug])?;
    Ok(())
}

/// Whether a project is live, for a transaction that adds something to it.
pub fn is_live(c: &Connection, id: &ProjectId, now: Timestamp) -> Result<bool, Error> {
    Ok(c.prepare_cached(&format!(
        "SELECT EXISTS (SELECT 1 FROM projects p WHERE {LIVE_CONDITION} AND p.id = ?2)"
    ))?
    .query_row(params![now, id], |row| row.get(0))?)
}

/// Lists the ids of all projects, in any state.
pub async fn all_ids(control: &ControlDatabase) -> Result<HashSet<ProjectId>, Error> {
    let read = control.read(|c| {
        c.prepare("SELECT id FROM projects")?
            .query_map([], |row| row.get(0))?
            .collect()
    });
    read.await
}

/// Whether a project is live and allows a sign-in provider, for a transaction that begins a session.
pub fn offers_provider(
    c: &Connection,
    id: &ProjectId,
    provider: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let allowed: Option<Option<String>> = c
        .prepare_cached(&format!(
            "SELECT p.allowed_providers FROM projects p WHERE {LIVE_CONDITION} AND p.id = ?2"
        ))?
        .query_row(params![now, id], |row| row.get(0))
        .optional()?;
    Ok(match allowed {
        None => false,
        Some(None) => true,
        Some(Some(list)) => serde_json::from_str::<Vec<String>>(&list)
            .is_ok_and(|list| list.iter().any(|name| name == provider)),
    })
}

/// Records an action on something of a project in the audit log.
pub fn record_audit(
    tx: &Tx<'_>,
    project: &ProjectId,
    act: AuditAction,
    target: &dyn Display,
    now: Timestamp,
) -> Result<(), Error> {
    let owner = workspace_of(tx, project)?;
    tx.record_audit(act, owner.as_ref(), target, now)
}

/// Records an action of another actor than this task's in the audit log.
pub fn record_audit_as(
    tx: &Tx<'_>,
    actor: &AuditActor,
    project: &ProjectId,
    act: AuditAction,
    target: &dyn Display,
    now: Timestamp,
) -> Result<(), Error> {
    let owner = workspace_of(tx, project)?;
    tx.record_audit_as(actor, act, owner.as_ref(), target, now)
}

/// Records in the audit log an action on something of a project that another database is about to commit.
///
/// # Errors
/// Errors of the database.
pub fn record_audit_ahead(
    tx: &Tx<'_>,
    project: &ProjectId,
    act: AuditAction,
    target: &dyn Display,
    now: Timestamp,
) -> Result<Option<UncommittedAuditEntry>, Error> {
    let owner = workspace_of(tx, project)?;
    tx.record_audit_ahead(act, owner.as_ref(), target, now)
}

/// Returns the workspace of a project.
fn workspace_of(c: &Connection, project: &ProjectId) -> rusqlite::Result<Option<WorkspaceId>> {
    c.prepare_cached("SELECT workspace_id FROM projects WHERE id = ?1")?
        .query_row([project], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Starts the deletion of a project: from this commit on neither its origin nor its domains resolve, and its host label is reserved.
/// Returns the label, the first time only.
pub fn begin_deletion(
    tx: &Tx<'_>,
    config: &Config,
    id: &ProjectId,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    let label: Option<String> = tx
        .prepare_cached(
            "SELECT host_label FROM projects
             WHERE id = ?1 AND workspace_id IS NOT NULL AND host_label IS NOT NULL",
        )?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if label.is_some() {
        reserve_label(tx, id, now)?;
        remove_domains(tx, config, id, now)?;
    }
    tx.prepare_cached(
        "UPDATE projects SET state = 'deleting', host_label = NULL
         WHERE id = ?1 AND workspace_id IS NOT NULL",
    )?
    .execute([id])?;
    Ok(label)
}

/// Reserves the host label of a project: its origin has storage and permissions in browsers, which no other project may get. A
/// permanent reservation stays permanent. Only `sign_in_per_minute` limits the number of permanent reservations: each needs a sign-in,
/// takes about a hundred bytes, and has a name that ends in its workspace's. Releasing one would give its origin to a stranger.
fn reserve_label(tx: &Tx<'_>, id: &ProjectId, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO resting_labels (host_label, workspace_id, ended_at, until)
         SELECT host_label, workspace_id, ?2, CASE WHEN had_visitors THEN NULL ELSE ?3 END
         FROM projects WHERE id = ?1
         ON CONFLICT (host_label) DO UPDATE SET workspace_id = excluded.workspace_id,
            ended_at = excluded.ended_at,
            until = CASE WHEN resting_labels.until IS NULL AND resting_labels.workspace_id = excluded.workspace_id
                THEN NULL ELSE excluded.until END",
    )?
    .execute(params![id, now, now.plus_seconds(LABEL_RESERVATION_SECONDS)])?;
    tx.prepare_cached("DELETE FROM resting_labels WHERE until <= ?1")?
        .execute([now])?;
    // Creating and deleting many projects must not fill the disk.
    tx.prepare_cached(
        "DELETE FROM resting_labels WHERE host_label IN (
            SELECT l.host_label FROM resting_labels l
            WHERE l.until IS NOT NULL AND l.workspace_id = (SELECT workspace_id FROM projects WHERE id = ?1)
            ORDER BY l.ended_at DESC LIMIT -1 OFFSET ?2)",
    )?
    .execute(params![id, MAX_RESERVED_LABELS])?;
    Ok(())
}

/// Starts the deletion of all projects of a workspace; returns how many there are.
pub fn begin_deletions(tx: &Tx<'_>, workspace: &WorkspaceId) -> Result<usize, Error> {
    let sql = "UPDATE projects SET state = 'deleting' WHERE workspace_id = ?1 AND state = 'active'";
    Ok(tx.execute(sql, [workspace])?)
}

/// Lists projects in deletion: marked so, expired, or of a workspace in deletion.
pub(super) fn list_ending(c: &Connection, now: Timestamp) -> rusqlite::Result<Vec<ProjectId>> {
    c.prepare_cached(
        "SELECT id FROM projects WHERE state = 'deleting'
         UNION SELECT id FROM projects WHERE expires_at IS NOT NULL AND expires_at <= ?1
         UNION SELECT p.id FROM workspaces w CROSS JOIN projects p ON p.workspace_id = w.id
            WHERE w.state = 'deleting'",
    )?
    .query_map([now], |row| row.get(0))?
    .collect()
}

/// Removes the row of a project whose contents are removed.
pub(super) fn remove(tx: &Tx<'_>, id: &ProjectId) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM projects WHERE id = ?1 AND state = 'deleting'")?
        .execute([id])?;
    Ok(())
}
