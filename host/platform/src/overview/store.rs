//! Queries of operators to the control database.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    BackendListEntry, DeploymentCounts, DeploymentFilter, DeploymentKind, DeploymentListEntry,
    ProjectListEntry, ResourceCounts,
};
use crate::control::InstallationCounters;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};

fn unsigned_column(
    row: &rusqlite::Row<'_>,
    column: impl rusqlite::RowIndex,
) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

/// Counts everything.
pub(super) fn counts(c: &Connection, now: Timestamp) -> rusqlite::Result<ResourceCounts> {
    let counted = c
        .prepare_cached(
            "WITH held AS (SELECT project_id = ?2 AS share, disabled_at IS NOT NULL AS disabled
            FROM deployments WHERE expires_at > ?1 OR expires_at IS NULL)
         SELECT count(*) AS deployments, CAST(total(share) AS INTEGER) AS shares,
            CAST(total(NOT share) AS INTEGER) AS frontends, CAST(total(disabled) AS INTEGER) AS disabled,
            (SELECT count(*) FROM backends) AS backends,
            (SELECT count(*) FROM projects WHERE id <> ?2 AND state = 'active'
                AND (expires_at IS NULL OR expires_at > ?1)) AS projects,
            (SELECT count(*) FROM workspaces WHERE state = 'active') AS namespaces
         FROM held",
        )?
        .query_row(params![now, ProjectId::QUICK_SHARES], |row| {
            Ok(ResourceCounts {
                deployments: unsigned_column(row, "deployments")?,
                shares: unsigned_column(row, "shares")?,
                frontends: unsigned_column(row, "frontends")?,
                disabled: unsigned_column(row, "disabled")?,
                backends: unsigned_column(row, "backends")?,
                projects: unsigned_column(row, "projects")?,
                namespaces: unsigned_column(row, "namespaces")?,
                ..ResourceCounts::default()
            })
        })?;
    let counted = ResourceCounts {
        open_reports: open_reports(c, None)?,
        ..counted
    };
    count_files(c, counted)
}

/// Adds the numbers of files, and of what is blocked.
fn count_files(c: &Connection, counted: ResourceCounts) -> rusqlite::Result<ResourceCounts> {
    c.prepare_cached(
        "SELECT (SELECT count(*) FROM blobs) AS files,
            (SELECT count(*) FROM blobs WHERE staged_until IS NOT NULL) AS staged,
            (SELECT count(*) FROM visitor_files WHERE size = 0 AND state = 'kept') AS visitors,
            (SELECT count(*) FROM visitor_files WHERE state = 'ended') AS ended,
            (SELECT coalesce(sum(bytes), 0) FROM file_owners) AS bytes,
            (SELECT count(*) FROM blocked) AS blocked",
    )?
    .query_row([], |row| {
        Ok(ResourceCounts {
            files: unsigned_column(row, "files")?,
            staged_files: unsigned_column(row, "staged")?,
            visitor_files: unsigned_column(row, "visitors")?,
            ended_visitor_files: unsigned_column(row, "ended")?,
            file_bytes: unsigned_column(row, "bytes")?,
            blocked: unsigned_column(row, "blocked")?,
            ..counted
        })
    })
}

/// Counts open reports: those of a slug, if one is named.
fn open_reports(c: &Connection, slug: Option<&str>) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT count(*) FROM reports WHERE closed_at IS NULL AND (?1 IS NULL OR slug = ?1)",
    )?
    .query_row([slug], |row| unsigned_column(row, 0))
}

/// Returns the deployments that a filter lets through, newest first.
pub(super) fn deployments(
    c: &Connection,
    counters: &InstallationCounters,
    now: Timestamp,
    filter: &DeploymentFilter,
) -> rusqlite::Result<Vec<DeploymentListEntry>> {
    c.prepare(
        "SELECT d.id, d.slug, w.slug AS namespace, d.project_id, d.content_type, d.title, d.one_time,
            d.password_hash IS NOT NULL AS protected, d.disabled_at, d.created_at, d.expires_at,
            d.source_digest, d.artifact_digest
         FROM deployments d JOIN projects p ON p.id = d.project_id
            LEFT JOIN workspaces w ON w.id = p.workspace_id
         WHERE d.state = 'active' AND p.state = 'active'
            AND (d.expires_at IS NULL OR d.expires_at > ?1)
            AND (?2 IS NULL OR w.slug = ?2) AND (NOT ?3 OR d.disabled_at IS NOT NULL)
            AND (?4 IS NULL OR d.slug = ?4)
         ORDER BY d.created_at DESC, d.id DESC",
    )?
    .query_map(
        params![now, filter.namespace, filter.disabled, filter.slug],
        |row| {
            let (id, project): (_, ProjectId) = (row.get("id")?, row.get("project_id")?);
            let project = (project != ProjectId::QUICK_SHARES).then_some(project);
            Ok(DeploymentListEntry {
                id,
                slug: row.get("slug")?,
                kind: project.map_or(DeploymentKind::Share, |_| DeploymentKind::Frontend),
                namespace: row.get("namespace")?,
                project_id: project,
                content_type: row.get("content_type")?,
                title: row.get("title")?,
                one_time: row.get("one_time")?,
                protected: row.get("protected")?,
                disabled_at: row.get("disabled_at")?,
                visits: counters.visits(&id),
                created_at: row.get("created_at")?,
                expires_at: row.get("expires_at")?,
                source: row.get("source_digest")?,
                page: row.get("artifact_digest")?,
            })
        },
    )?
    .collect()
}

/// Reads further details of a deployment.
pub(super) fn deployment_counts(
    c: &Connection,
    id: &DeploymentId,
    slug: &str,
) -> rusqlite::Result<DeploymentCounts> {
    c.query_row(
        "SELECT (SELECT count(*) FROM revisions WHERE deployment_id = ?1),
            (SELECT count(*) FROM releases WHERE deployment_id = ?1)",
        [id],
        |row| {
            Ok(DeploymentCounts {
                revisions: unsigned_column(row, 0)?,
                releases: unsigned_column(row, 1)?,
                open_reports: open_reports(c, Some(slug))?,
            })
        },
    )
}

/// Lists the active projects, oldest first.
pub(super) fn projects(
    c: &Connection,
    counters: &InstallationCounters,
    now: Timestamp,
    namespace: Option<&str>,
) -> rusqlite::Result<Vec<ProjectListEntry>> {
    let mut visits = HashMap::new();
    let mut members =
        c.prepare_cached("SELECT project_id, id FROM deployments WHERE state = 'active'")?;
    let mut rows = members.query([])?;
    while let Some(row) = rows.next()? {
        *visits.entry(row.get::<_, ProjectId>(0)?).or_insert(0) += counters.visits(&row.get(1)?);
    }
    c.prepare(
        "SELECT p.id, p.name, p.host_label, w.slug AS namespace, count(d.id) AS frontends,
            (SELECT b.id FROM backends b WHERE b.project_id = p.id) AS backend_id, p.created_at, p.expires_at
         FROM projects p JOIN workspaces w ON w.id = p.workspace_id
            LEFT JOIN deployments d ON d.project_id = p.id AND d.state = 'active'
         WHERE p.state = 'active' AND (p.expires_at IS NULL OR p.expires_at > ?1)
            AND (?2 IS NULL OR w.slug = ?2)
         GROUP BY p.id ORDER BY p.created_at, p.id",
    )?
    .query_map(params![now, namespace], |row| {
        let id = row.get("id")?;
        Ok(ProjectListEntry {
            id,
            name: row.get("name")?,
            host_label: row.get("host_label")?,
            namespace: row.get("namespace")?,
            frontends: unsigned_column(row, "frontends")?,
            visits: visits.get(&id).copied().unwrap_or(0),
            backend_id: row.get("backend_id")?,
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
        })
    })?
    .collect()
}

/// Reads a backend.
pub(super) fn backend(
    c: &Connection,
    id: &BackendId,
) -> rusqlite::Result<Option<BackendListEntry>> {
    let made = c
        .query_row(
            "SELECT created_at FROM backends WHERE id = ?1",
            [id],
            |row| row.get(0),
        )
        .optional()?;
    let Some(created_at) = made else {
        return Ok(None);
    };
    let defined = c.query_row(
        "SELECT (SELECT count(*) FROM ledger WHERE backend_id = ?1),
            (SELECT count(DISTINCT name) FROM actions WHERE backend_id = ?1)",
        [id],
        |row| Ok((unsigned_column(row, 0)?, unsigned_column(row, 1)?)),
    )?;
    Ok(Some(BackendListEntry {
        id: *id,
        migrations: defined.0,
        actions: defined.1,
        created_at,
    }))
}
