//! Deployments in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::frontends::{Frontend, FrontendState, MemberSummary, Target};
use super::model::Deployment;
use super::releases::Released;
use crate::clock::Timestamp;
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::ids::{DeploymentId, ProjectId, ReportId};
use crate::sandbox::ContentType;

/// A deployment with its project. What is not active, or belongs to a project that is not, does not resolve.
const SELECT: &str = "SELECT d.id, d.slug, d.content_type, d.title, d.one_time, d.password_hash, \
    d.source_digest, d.artifact_digest, d.disabled_at, d.created_at, d.expires_at, p.host_label \
    FROM deployments d JOIN projects p ON p.id = d.project_id";
const RESOLVES: &str = "d.state = 'active' AND p.state = 'active'";

fn deployment(row: &Row<'_>) -> rusqlite::Result<Deployment> {
    Ok(Deployment {
        id: row.get(0)?,
        slug: row.get(1)?,
        content_type: content_type(row.get(2)?)?,
        title: row.get(3)?,
        one_time: row.get(4)?,
        password_hash: row.get(5)?,
        source: row.get(6)?,
        artifact: row.get(7)?,
        disabled: row.get::<_, Option<Timestamp>>(8)?.is_some(),
        created_at: row.get(9)?,
        expires_at: row.get(10)?,
        host_label: row.get(11)?,
    })
}

fn content_type(text: String) -> rusqlite::Result<ContentType> {
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

/// Adds a deployment, whose slug must be free.
pub(super) fn insert(tx: &Tx<'_>, new: &Deployment) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO deployments (id, slug, content_type, title, one_time, password_hash,
            source_digest, artifact_digest, created_at, updated_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)",
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
    ])?;
    Ok(())
}

/// Removes a deployment with its history and marks its content for collection; answers whether it was there.
pub(super) fn remove(tx: &Tx<'_>, id: &DeploymentId, now: Timestamp) -> Result<bool, Error> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO garbage (digest, since)
         SELECT source_digest, ?2 FROM revisions WHERE deployment_id = ?1
         UNION SELECT preview_digest, ?2 FROM revisions
            WHERE deployment_id = ?1 AND preview_digest IS NOT NULL",
    )?
    .execute(params![id, now])?;
    let digests: Option<[Option<Digest>; 2]> = tx
        .prepare_cached(
            "DELETE FROM deployments WHERE id = ?1 RETURNING source_digest, artifact_digest",
        )?
        .query_row([id], |row| Ok([row.get(0)?, row.get(1)?]))
        .optional()?;
    let Some(digests) = digests else {
        return Ok(false);
    };
    for digest in digests.into_iter().flatten() {
        add_garbage(tx, &digest, now)?;
    }
    Ok(true)
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
    .query_map(params![now, ProjectId::FREE, most], deployment)?
    .collect()
}

/// Sets or lifts an operator's ban; answers whether there is such a slug.
pub(super) fn set_disabled(
    tx: &Tx<'_>,
    slug: &str,
    since: Option<Timestamp>,
) -> Result<bool, Error> {
    let changed = tx.execute(
        "UPDATE deployments SET disabled_at = ?2 WHERE slug = ?1",
        params![slug, since],
    )?;
    Ok(changed > 0)
}

/// Ids of the one-time shares that are there.
pub(super) fn one_time_ids(c: &Connection) -> rusqlite::Result<Vec<DeploymentId>> {
    c.prepare("SELECT id FROM deployments WHERE one_time = 1")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Adds counted visits, once for each flush id; answers whether this call did.
pub(super) fn add_visits(
    tx: &Tx<'_>,
    flush: i64,
    counts: &[(DeploymentId, u64)],
    now: Timestamp,
) -> Result<bool, Error> {
    let new = tx
        .prepare_cached("INSERT OR IGNORE INTO visit_flushes (id, at) VALUES (?1, ?2)")?
        .execute(params![flush, now])?;
    if new == 0 {
        return Ok(false);
    }
    let mut add = tx.prepare_cached("UPDATE deployments SET visits = visits + ?2 WHERE id = ?1")?;
    for (id, count) in counts {
        add.execute(params![id, i64::try_from(*count).unwrap_or(i64::MAX)])?;
    }
    Ok(true)
}

/// Forgets flushes that nobody retries any more.
pub(super) fn forget_flushes(tx: &Tx<'_>, before: Timestamp) -> Result<(), Error> {
    tx.execute("DELETE FROM visit_flushes WHERE at < ?1", [before])?;
    Ok(())
}

/// Marks content that may have lost its last reference.
pub(super) fn add_garbage(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("INSERT OR IGNORE INTO garbage (digest, since) VALUES (?1, ?2)")?
        .execute(params![digest, now])?;
    Ok(())
}

/// Content marked before `before`, `most` at most.
pub(super) fn garbage(
    c: &Connection,
    before: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<Digest>> {
    c.prepare_cached("SELECT digest FROM garbage WHERE since <= ?1 ORDER BY since LIMIT ?2")?
        .query_map(params![before, most], |row| row.get(0))?
        .collect()
}

/// Takes a mark back: the content is gone, or still referred to.
pub(super) fn unmark(tx: &Tx<'_>, digest: &Digest) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM garbage WHERE digest = ?1")?
        .execute([digest])?;
    Ok(())
}

/// Whether any row refers to this content.
pub(super) fn is_referenced(c: &Connection, digest: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deployments WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM deployments WHERE artifact_digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE preview_digest = ?1)
             OR EXISTS (SELECT 1 FROM runtimes WHERE digest = ?1)",
    )?
    .query_row([digest], |row| row.get(0))
}

/// Something that refers to stored content, for `svc check`.
#[derive(Debug)]
pub(super) struct Reference {
    /// Who refers, for people.
    pub(super) by: String,
    /// To what.
    pub(super) digest: Digest,
    /// Whether that is a finished page.
    pub(super) is_page: bool,
}

/// Every reference to stored content.
pub(super) fn references(c: &Connection) -> rusqlite::Result<Vec<Reference>> {
    c.prepare(
        "SELECT slug, source_digest, 0 FROM deployments WHERE source_digest IS NOT NULL
         UNION ALL SELECT slug, artifact_digest, 1 FROM deployments WHERE artifact_digest IS NOT NULL
         UNION ALL SELECT 'revision ' || id, source_digest, 0 FROM revisions
         UNION ALL SELECT 'preview ' || id, preview_digest, 1 FROM revisions
            WHERE preview_digest IS NOT NULL
         UNION ALL SELECT 'runtime ' || name, digest, 0 FROM runtimes",
    )?
    .query_map([], |row| Ok(Reference { by: row.get(0)?, digest: row.get(1)?, is_page: row.get(2)? }))?
    .collect()
}

/// How many deployments there are.
pub(super) fn count(c: &Connection) -> rusqlite::Result<u64> {
    c.query_row("SELECT count(*) FROM deployments", [], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// What contradicts itself, for `svc check`: a sentence each.
pub(super) fn contradictions(c: &Connection) -> rusqlite::Result<Vec<String>> {
    c.prepare(
        "SELECT 'frontend ' || slug || ' has no page' FROM deployments
            WHERE state = 'active' AND one_time = 0 AND artifact_digest IS NULL
         UNION ALL SELECT 'frontend ' || d.slug || ' points at a revision that is not active'
            FROM deployments d LEFT JOIN revisions r ON r.id = d.active_revision_id
            WHERE d.active_revision_id IS NOT NULL AND r.state IS NOT 'active'
         UNION ALL SELECT 'frontend ' || d.slug || ' does not show its active revision'
            FROM deployments d JOIN revisions r ON r.id = d.active_revision_id
            WHERE r.source_digest IS NOT d.source_digest OR r.title IS NOT d.title
         UNION ALL SELECT 'deployment ' || slug || ' belongs to no project' FROM deployments d
            WHERE NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = d.project_id)",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

const FRONTEND: &str = "SELECT d.id, d.slug, d.content_type, d.title, d.state, d.source_digest, \
    d.visits, d.created_at, d.updated_at, d.active_revision_id, \
    (SELECT count(*) FROM revisions r WHERE r.deployment_id = d.id) FROM deployments d";

fn frontend_row(row: &Row<'_>) -> rusqlite::Result<Frontend> {
    Ok(Frontend {
        id: row.get(0)?,
        slug: row.get(1)?,
        content_type: content_type(row.get(2)?)?,
        title: row.get(3)?,
        state: state(&row.get::<_, String>(4)?)?,
        source: row.get(5)?,
        visits: row.get::<_, i64>(6)?.unsigned_abs(),
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        active_revision: row.get(9)?,
        revision_count: row.get::<_, i64>(10)?.unsigned_abs(),
    })
}

fn state(text: &str) -> rusqlite::Result<FrontendState> {
    text.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

/// A frontend of a project, whatever its state.
pub(super) fn frontend(
    c: &Connection,
    project: &ProjectId,
    target: &Target,
) -> rusqlite::Result<Option<Frontend>> {
    let column = match target {
        Target::Id(_) => "id",
        Target::Slug(_) => "slug",
    };
    c.prepare_cached(&format!(
        "{FRONTEND} WHERE d.project_id = ?1 AND d.{column} = ?2"
    ))?
    .query_row(params![project, target.to_string()], frontend_row)
    .optional()
}

/// The frontends of a project, oldest first, whatever their state.
pub(super) fn frontends(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<Frontend>> {
    c.prepare_cached(&format!(
        "{FRONTEND} WHERE d.project_id = ?1 ORDER BY d.rowid"
    ))?
    .query_map([project], frontend_row)?
    .collect()
}

/// The same, in short.
pub(super) fn members(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<MemberSummary>> {
    c.prepare_cached(
        "SELECT id, slug, content_type, state, visits FROM deployments
         WHERE project_id = ?1 ORDER BY rowid",
    )?
    .query_map([project], |row| {
        Ok(MemberSummary {
            id: row.get(0)?,
            slug: row.get(1)?,
            content_type: content_type(row.get(2)?)?,
            state: state(&row.get::<_, String>(3)?)?,
            visits: row.get::<_, i64>(4)?.unsigned_abs(),
        })
    })?
    .collect()
}

/// Takes a slug for a frontend that is being created.
pub(super) fn insert_frontend(
    tx: &Tx<'_>,
    project: &ProjectId,
    expires_at: Option<Timestamp>,
    new: &Frontend,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO deployments
            (id, slug, content_type, title, project_id, state, created_at, updated_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, 'creating', ?6, ?6, ?7)",
    )?
    .execute(params![
        new.id,
        new.slug,
        new.content_type.as_str(),
        new.title,
        project,
        new.created_at,
        expires_at,
    ])?;
    Ok(())
}

/// Makes a created frontend answer; answers whether it was still being created.
pub(super) fn activate(
    tx: &Tx<'_>,
    id: &DeploymentId,
    source: Option<&Digest>,
    artifact: &Digest,
) -> Result<bool, Error> {
    let changed = tx
        .prepare_cached(
            "UPDATE deployments SET state = 'active', source_digest = ?2, artifact_digest = ?3
             WHERE id = ?1 AND state = 'creating'",
        )?
        .execute(params![id, source, artifact])?;
    Ok(changed > 0)
}

/// Ends a creation that failed; answers nothing, because there may be nothing left to end.
pub(super) fn remove_unfinished(tx: &Tx<'_>, id: &DeploymentId) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM deployments WHERE id = ?1 AND state = 'creating'")?
        .execute([id])?;
    Ok(())
}

/// Ends every creation that a crash interrupted.
pub(super) fn remove_all_unfinished(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM deployments WHERE state = 'creating'", [])?;
    Ok(())
}

/// Makes a released revision the page: one row, so that nobody sees a mixture.
pub(super) fn set_live(
    tx: &Tx<'_>,
    id: &DeploymentId,
    released: &Released<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let replaced: Option<Digest> = tx
        .prepare_cached("SELECT artifact_digest FROM deployments WHERE id = ?1")?
        .query_row([id], |row| row.get(0))?;
    tx.prepare_cached(
        "UPDATE deployments SET title = ?2, source_digest = ?3, artifact_digest = ?4,
            active_revision_id = ?5, updated_at = ?6 WHERE id = ?1",
    )?
    .execute(params![
        id,
        released.title,
        released.source,
        released.artifact,
        released.revision,
        now
    ])?;
    match replaced {
        Some(digest) if digest != released.artifact => add_garbage(tx, &digest, now),
        _ => Ok(()),
    }
}

/// Makes all frontends of a project stop to resolve; answers their slugs.
pub(super) fn mark_deleting(tx: &Tx<'_>, project: &ProjectId) -> Result<Vec<String>, Error> {
    let slugs = tx
        .prepare_cached(
            "UPDATE deployments SET state = 'deleting' WHERE project_id = ?1 RETURNING slug",
        )?
        .query_map([project], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(slugs)
}

/// Ids of frontends of a project that are on their way out, `most` at most.
pub(super) fn deleting(
    c: &Connection,
    project: &ProjectId,
    most: u32,
) -> rusqlite::Result<Vec<DeploymentId>> {
    c.prepare_cached(
        "SELECT id FROM deployments WHERE project_id = ?1 AND state = 'deleting' LIMIT ?2",
    )?
    .query_map(params![project, most], |row| row.get(0))?
    .collect()
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

/// All reports, newest first.
pub(super) fn reports(c: &Connection) -> rusqlite::Result<Vec<super::reports::Report>> {
    c.prepare("SELECT id, slug, reason, details, contact, created_at FROM reports ORDER BY created_at DESC, id DESC")?
        .query_map([], |row| {
            Ok(super::reports::Report {
                id: row.get(0)?,
                slug: row.get(1)?,
                reason: row.get(2)?,
                details: row.get(3)?,
                contact: row.get(4)?,
                created_at: row.get(5)?,
            })
        })?
        .collect()
}
