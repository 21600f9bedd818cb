//! Deployments in the control database.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::Deployment;
use super::publish::RenderedBy;
use super::room::{ShareCounts, ShareHolder};
use crate::content::Digest;
use crate::control::{Columns, Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, ReportId, WorkspaceId};
use svc_sandbox::ContentType;

/// A deployment with its project. What is not active, or belongs to a project that is not, does not resolve.
const SELECT: &str = "SELECT d.id, d.slug, d.content_type, d.title, d.one_time, d.password_hash, \
    d.source_digest, d.artifact_digest, d.disabled_at, d.created_at, d.expires_at, p.host_label, \
    (SELECT b.id FROM backends b WHERE b.id = d.backend_id) AS backend_id, d.delete_sha256 \
    FROM deployments d JOIN projects p ON p.id = d.project_id";
const RESOLVES: &str = "d.state = 'active' AND p.state = 'active'";

fn deployment(row: &Row<'_>) -> rusqlite::Result<Deployment> {
    let row = Columns::new(row);
    Ok(Deployment {
        id: row.get("id")?,
        slug: row.get("slug")?,
        content_type: content_type(&row.get::<String>("content_type")?)?,
        title: row.get("title")?,
        one_time: row.get("one_time")?,
        password_hash: row.get("password_hash")?,
        source: row.get("source_digest")?,
        artifact: row.get("artifact_digest")?,
        disabled: row.get::<Option<Timestamp>>("disabled_at")?.is_some(),
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        host_label: row.get("host_label")?,
        backend: row.get("backend_id")?,
        delete_token: row.get("delete_sha256")?,
    })
}

pub(super) fn content_type(text: &str) -> rusqlite::Result<ContentType> {
    text.parse().map_err(|_| rusqlite::Error::InvalidQuery)
}

/// The deployment that answers at a slug, whether or not its time is over.
pub(super) fn by_slug(c: &Connection, slug: &str) -> rusqlite::Result<Option<Deployment>> {
    c.prepare_cached(&format!("{SELECT} WHERE d.slug = ?1 AND {RESOLVES}"))?
        .query_row([slug], deployment)
        .optional()
}

/// The deployment of an id, on the same terms.
pub(super) fn by_id(c: &Connection, id: &DeploymentId) -> rusqlite::Result<Option<Deployment>> {
    c.prepare_cached(&format!("{SELECT} WHERE d.id = ?1 AND {RESOLVES}"))?
        .query_row([id], deployment)
        .optional()
}

/// Whether a deployment is there, answering or not.
pub(super) fn exists(c: &Connection, id: &DeploymentId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM deployments WHERE id = ?1)")?
        .query_row([id], |row| row.get(0))
}

/// Whether a slug is anybody's, resolving or not.
pub(super) fn is_taken(c: &Connection, slug: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM deployments WHERE slug = ?1)")?
        .query_row([slug], |row| row.get(0))
}

/// How many deployments live, counted no further than `most`.
pub(super) fn count_active(c: &Connection, now: Timestamp, most: u64) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT count(*) FROM (
            SELECT 1 FROM deployments WHERE expires_at > ?1 OR expires_at IS NULL LIMIT ?2)",
    )?
    .query_row(
        params![now, i64::try_from(most).unwrap_or(i64::MAX)],
        |row| row.get::<_, i64>(0).map(i64::unsigned_abs),
    )
}

/// Counts quick shares that live: all, those of strangers, and those of one holder.
pub(super) fn count_shares(
    c: &Connection,
    now: Timestamp,
    holder: &ShareHolder,
) -> rusqlite::Result<ShareCounts> {
    c.prepare_cached(&format!(
        "SELECT count(*) FILTER (WHERE is_owners = 0), count(*) FILTER (WHERE holder = ?2), sum(bytes),
            sum(bytes) FILTER (WHERE is_owners = 0), sum(bytes) FILTER (WHERE holder = ?2)
         FROM deployments WHERE project_id = '{}' AND expires_at > ?1",
        ProjectId::QUICK_SHARES
    ))?
    .query_row(params![now, holder.hash], |row| {
        let number = |column| row.get::<_, Option<i64>>(column).map(|n| n.unwrap_or(0).unsigned_abs());
        Ok(ShareCounts {
            strangers: number(0)?,
            own: number(1)?,
            bytes: number(2)?,
            strangers_bytes: number(3)?,
            own_bytes: number(4)?,
        })
    })
}

/// Projects of the workspaces whose ids a JSON array has, without the free one, so that the index of frontends serves.
fn of_workspaces(workspaces: &[WorkspaceId]) -> rusqlite::Result<(String, String)> {
    let list = serde_json::to_string(workspaces)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let condition = format!(
        "d.project_id <> '{}' AND d.project_id IN
            (SELECT p.id FROM json_each(?1) w JOIN projects p ON p.workspace_id = w.value)",
        ProjectId::QUICK_SHARES
    );
    Ok((condition, list))
}

/// Counts the frontends of workspaces, whatever their state.
pub(super) fn count_frontends(
    c: &Connection,
    workspaces: &[WorkspaceId],
    now: Timestamp,
) -> rusqlite::Result<u64> {
    let (condition, list) = of_workspaces(workspaces)?;
    c.prepare_cached(&format!(
        "SELECT count(*) FROM deployments d
         WHERE {condition} AND (d.expires_at > ?2 OR d.expires_at IS NULL)"
    ))?
    .query_row(params![list, now], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// Adds up the bytes of the frontends of workspaces, and of their revisions.
pub(super) fn owner_bytes(c: &Connection, workspaces: &[WorkspaceId]) -> rusqlite::Result<u64> {
    let (condition, list) = of_workspaces(workspaces)?;
    c.prepare_cached(&format!(
        "SELECT coalesce(sum(d.bytes + coalesce(
            (SELECT sum(r.bytes) FROM revisions r WHERE r.deployment_id = d.id), 0)), 0)
         FROM deployments d WHERE {condition}"
    ))?
    .query_row([list], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// Adds a quick share, whose slug must be free.
pub(super) fn insert(
    tx: &Tx<'_>,
    new: &Deployment,
    made_by: &RenderedBy,
    holder: &ShareHolder,
    bytes: u64,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO deployments (id, slug, content_type, title, one_time, password_hash,
            source_digest, artifact_digest, created_at, updated_at, expires_at, made_by, delete_sha256,
            holder, is_owners, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        new.id,
        new.slug,
        new.content_type.as_str(),
        new.title,
        new.one_time,
        new.password_hash,
        new.source,
        new.artifact,
        new.created_at,
        new.expires_at,
        (!new.one_time).then_some(made_by.as_str()),
        new.delete_token,
        holder.hash,
        holder.is_owners,
        i64::try_from(bytes).unwrap_or(i64::MAX),
    ])?;
    Ok(())
}

/// Removes a deployment with its history and marks its content for collection; returns whether it was there. The token of a
/// share is remembered for whoever deletes it again.
pub(super) fn remove(tx: &Tx<'_>, id: &DeploymentId, now: Timestamp) -> Result<bool, Error> {
    remember_token(tx, id, now)?;
    let mut unused = remove_history(tx, id)?;
    let digests: Option<[Option<Digest>; 2]> = tx
        .prepare_cached(
            "DELETE FROM deployments WHERE id = ?1 RETURNING source_digest, artifact_digest",
        )?
        .query_row([id], |row| Ok([row.get(0)?, row.get(1)?]))
        .optional()?;
    let was_there = digests.is_some();
    unused.extend(digests.into_iter().flatten().flatten());
    for digest in unused {
        add_garbage(tx, &digest, now)?;
    }
    Ok(was_there)
}

/// Removes the history of a deployment; answers which content it has named.
fn remove_history(tx: &Tx<'_>, id: &DeploymentId) -> Result<BTreeSet<Digest>, Error> {
    let mut named = BTreeSet::new();
    let mut removing = tx.prepare_cached(
        "DELETE FROM revisions WHERE deployment_id = ?1 RETURNING source_digest, preview_digest",
    )?;
    let mut removed = removing.query([id])?;
    while let Some(row) = removed.next()? {
        named.extend(
            [row.get::<_, Option<Digest>>(0)?, row.get(1)?]
                .into_iter()
                .flatten(),
        );
    }
    tx.prepare_cached("DELETE FROM releases WHERE deployment_id = ?1")?
        .execute([id])?;
    Ok(named)
}

/// Remembers the token of a share whose end is now.
pub(super) fn remember_token(tx: &Tx<'_>, id: &DeploymentId, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO ended_shares (id, delete_sha256, ended_at)
         SELECT id, delete_sha256, ?2 FROM deployments WHERE id = ?1 AND delete_sha256 IS NOT NULL",
    )?
    .execute(params![id, now])?;
    Ok(())
}

/// Whether a share's time is over: what has become a frontend meanwhile lives as long as its project.
pub(super) fn has_expired(
    c: &Connection,
    id: &DeploymentId,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deployments WHERE id = ?1 AND expires_at <= ?2 AND project_id = ?3)",
    )?
    .query_row(params![id, now, ProjectId::QUICK_SHARES], |row| row.get(0))
}

/// Quick shares whose time is over, `most` at most; frontends end with their project.
pub(super) fn expired(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<Deployment>> {
    c.prepare_cached(&format!(
        "{SELECT} WHERE d.expires_at <= ?1 AND d.project_id = ?2 ORDER BY d.expires_at LIMIT ?3"
    ))?
    .query_map(params![now, ProjectId::QUICK_SHARES, most], deployment)?
    .collect()
}

/// Sets or lifts an operator's ban; returns whether there is such a slug.
pub(super) fn set_disabled(
    tx: &Tx<'_>,
    slug: &str,
    since: Option<Timestamp>,
) -> Result<Option<(DeploymentId, Option<ProjectId>)>, Error> {
    let changed = tx
        .prepare_cached(
            "UPDATE deployments SET disabled_at = ?2 WHERE slug = ?1 RETURNING id, project_id",
        )?
        .query_row(params![slug, since], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(changed)
}

/// Ids of the one-time shares that are there.
pub(super) fn one_time_ids(c: &Connection) -> rusqlite::Result<Vec<DeploymentId>> {
    c.prepare("SELECT id FROM deployments WHERE one_time = 1")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Marks content that may have lost its last reference; a mark that was there is of a moment that is over.
pub(super) fn add_garbage(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO garbage (digest, since) VALUES (?1, ?2)
         ON CONFLICT (digest) DO UPDATE SET since = excluded.since",
    )?
    .execute(params![digest, now])?;
    Ok(())
}

/// Marks content that never had a reference, unless it is marked.
pub(super) fn add_orphan(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("INSERT OR IGNORE INTO garbage (digest, since) VALUES (?1, ?2)")?
        .execute(params![digest, now])?;
    Ok(())
}

/// Content marked before `before`, `most` at most, behind the first `skipped`.
pub(super) fn garbage(
    c: &Connection,
    before: Timestamp,
    most: u32,
    skipped: u32,
) -> rusqlite::Result<Vec<Digest>> {
    c.prepare_cached(
        "SELECT digest FROM garbage WHERE since <= ?1 ORDER BY since, digest LIMIT ?2 OFFSET ?3",
    )?
    .query_map(params![before, most, skipped], |row| row.get(0))?
    .collect()
}

/// Takes back a mark made before `before`: the content is gone, or was still referred to. A newer one tells of more.
pub(super) fn unmark(tx: &Tx<'_>, digest: &Digest, before: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM garbage WHERE digest = ?1 AND since <= ?2")?
        .execute(params![digest, before])?;
    Ok(())
}

/// Whether any row refers to this content.
pub(super) fn is_referenced(c: &Connection, digest: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deployments WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM deployments WHERE artifact_digest = ?1)
             OR EXISTS (SELECT 1 FROM runtimes WHERE digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE preview_digest = ?1)",
    )?
    .query_row([digest], |row| row.get(0))
}

/// Keeps a runtime that pages name.
pub(super) fn insert_runtime(
    tx: &Tx<'_>,
    name: &str,
    digest: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT OR IGNORE INTO runtimes (name, digest, since) VALUES (?1, ?2, ?3)",
        params![name, digest, now],
    )?;
    Ok(())
}

/// The runtime of a name.
pub(super) fn runtime(c: &Connection, name: &str) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached("SELECT digest FROM runtimes WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Adds a report.
pub(super) fn insert_report(
    tx: &Tx<'_>,
    id: &ReportId,
    report: &super::reports::NewReport,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO reports (id, slug, reason, details, contact, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        id,
        report.slug,
        report.reason.as_str(),
        report.details,
        report.contact,
        now
    ])?;
    Ok(())
}

/// Reports, newest first: those that are open, or all.
pub(super) fn reports(c: &Connection, all: bool) -> rusqlite::Result<Vec<super::reports::Report>> {
    c.prepare(
        "SELECT id, slug, reason, details, contact, created_at, closed_at FROM reports
         WHERE ?1 OR closed_at IS NULL ORDER BY created_at DESC, id DESC",
    )?
    .query_map([all], |row| {
        Ok(super::reports::Report {
            id: row.get("id")?,
            slug: row.get("slug")?,
            reason: row.get("reason")?,
            details: row.get("details")?,
            contact: row.get("contact")?,
            created_at: row.get("created_at")?,
            closed_at: row.get("closed_at")?,
        })
    })?
    .collect()
}

/// Closes a report; returns since when it is closed, if there is one.
pub(super) fn close_report(
    tx: &Tx<'_>,
    id: &ReportId,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    Ok(tx
        .prepare_cached(
            "UPDATE reports SET closed_at = coalesce(closed_at, ?2) WHERE id = ?1 RETURNING closed_at",
        )?
        .query_row(params![id, now], |row| row.get(0))
        .optional()?)
}
