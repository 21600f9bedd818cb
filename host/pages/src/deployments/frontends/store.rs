//! Frontends in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{Frontend, FrontendSelector, FrontendState, FrontendSummary};
use crate::control::{ControlChange, Error, InstallationCounters, NamedColumnReader, Tx};
use crate::deployments::address::is_root;
use crate::deployments::publication::PublishedDigests;
use crate::deployments::store::{parse_type, read_site_size};
use crate::deployments::views::Warning;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId, ProjectId};

const SELECT_FRONTEND: &str = "SELECT d.id, d.slug, d.content_type, d.title, d.state, d.source_digest, \
    d.created_at, d.updated_at, d.active_revision_id, d.site_files, d.site_bytes FROM deployments d";

/// Reads a frontend from its row, without the numbers that are counted elsewhere.
fn read_frontend(row: &Row<'_>) -> rusqlite::Result<Frontend> {
    let row = NamedColumnReader::new(row);
    Ok(Frontend {
        id: row.get("id")?,
        slug: row.get("slug")?,
        content_type: parse_type(&row.get::<String>("content_type")?)?,
        title: row.get("title")?,
        warnings: Vec::new(),
        state: parse_state(&row.get::<String>("state")?)?,
        source: row.get("source_digest")?,
        site: read_site_size(&row)?,
        visits: 0,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        active_revision: row.get("active_revision_id")?,
        revision_count: 0,
        at_root: false,
    })
}

/// Adds the numbers of views and revisions to a frontend, and whether it answers at the root of its project's origin.
fn with_counts(
    c: &Connection,
    counters: &InstallationCounters,
    frontend: Frontend,
) -> rusqlite::Result<Frontend> {
    let revisions = c
        .prepare_cached("SELECT count(*) FROM revisions WHERE deployment_id = ?1")?
        .query_row([frontend.id], |row| row.get::<_, i64>(0))?;
    Ok(Frontend {
        visits: counters.visits(&frontend.id),
        revision_count: revisions.unsigned_abs(),
        at_root: answers_at_root(c, &frontend)?,
        ..frontend
    })
}

/// Whether a frontend is a site at the root of its project's origin.
pub(super) fn answers_at_root(c: &Connection, frontend: &Frontend) -> rusqlite::Result<bool> {
    Ok(frontend.content_type.is_site() && is_root(c, &frontend.id)?)
}

fn parse_state(text: &str) -> rusqlite::Result<FrontendState> {
    text.parse().map_err(|()| rusqlite::Error::InvalidQuery)
}

/// Finds a frontend of a project, whatever its state.
pub(super) fn find(
    c: &Connection,
    counters: &InstallationCounters,
    project: &ProjectId,
    target: &FrontendSelector,
) -> rusqlite::Result<Option<Frontend>> {
    let columns: &[&str] = match target {
        FrontendSelector::Id(_) => &["id", "slug"],
        FrontendSelector::Slug(_) => &["slug"],
    };
    let mut found = None;
    for column in columns {
        found = c
            .prepare_cached(&format!(
                "{SELECT_FRONTEND} WHERE d.project_id = ?1 AND d.{column} = ?2"
            ))?
            .query_row(params![project, target.to_string()], read_frontend)
            .optional()?;
        if found.is_some() {
            break;
        }
    }
    found
        .map(|frontend| with_counts(c, counters, frontend))
        .transpose()
}

/// Lists the frontends of a project, oldest first, whatever their state.
pub(super) fn list(
    c: &Connection,
    counters: &InstallationCounters,
    project: &ProjectId,
) -> rusqlite::Result<Vec<Frontend>> {
    c.prepare_cached(&format!(
        "{SELECT_FRONTEND} WHERE d.project_id = ?1 ORDER BY d.rowid"
    ))?
    .query_map([project], read_frontend)?
    .map(|frontend| with_counts(c, counters, frontend?))
    .collect()
}

/// Lists the frontends of a project in short.
pub(super) fn summaries(
    c: &Connection,
    counters: &InstallationCounters,
    project: &ProjectId,
) -> rusqlite::Result<Vec<FrontendSummary>> {
    c.prepare_cached(
        "SELECT id, slug, content_type, state FROM deployments
         WHERE project_id = ?1 ORDER BY rowid",
    )?
    .query_map([project], |row| {
        let id = row.get("id")?;
        Ok(FrontendSummary {
            id,
            slug: row.get("slug")?,
            content_type: parse_type(&row.get::<_, String>("content_type")?)?,
            state: parse_state(&row.get::<_, String>("state")?)?,
            visits: counters.visits(&id),
        })
    })?
    .collect()
}

/// Inserts a frontend that is being created, which takes its slug.
pub(super) fn insert(
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

/// Makes a created frontend answer, with warnings about the files of a site; returns whether it was still being created.
pub(super) fn activate(
    tx: &Tx<'_>,
    id: &DeploymentId,
    title: &str,
    published: &PublishedDigests,
    warnings: &[Warning],
) -> Result<bool, Error> {
    let changed = tx
        .prepare_cached(
            "UPDATE deployments SET state = 'active', source_digest = ?2, artifact_digest = ?3,
                made_by = ?4, title = ?5, bytes = ?6, site_files = ?7, site_bytes = ?8, warnings = ?9, backend_id = (SELECT b.id FROM backends b WHERE b.project_id = deployments.project_id)
             WHERE id = ?1 AND state = 'creating'",
        )?
        .execute(params![
            id,
            published.source,
            published.artifact,
            published.made_by(),
            title,
            published.bytes_stored(),
            published.site_files(),
            published.site_bytes(),
            Warning::to_row(warnings),
        ])?;
    Ok(changed > 0)
}

/// Ends a creation that failed; returns nothing, because there may be nothing left to end.
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

/// Makes all frontends of a project stop resolving; returns their slugs.
pub(super) fn mark_deleting(tx: &Tx<'_>, project: &ProjectId) -> Result<Vec<String>, Error> {
    let slugs = tx
        .prepare_cached(
            "UPDATE deployments SET state = 'deleting' WHERE project_id = ?1 RETURNING slug",
        )?
        .query_map([project], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(slugs)
}

/// Lists the slugs of a project's frontends, whatever their state.
fn list_slugs(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached("SELECT slug FROM deployments WHERE project_id = ?1")?
        .query_map([project], |row| row.get(0))?
        .collect()
}

/// Makes a frontend call the backend that its project has, where it calls none or an earlier one.
pub(in crate::deployments) fn rebind_backend(
    tx: &Tx<'_>,
    project: &ProjectId,
    frontend: &Frontend,
) -> Result<(), Error> {
    let changed = tx
        .prepare_cached(
            "UPDATE deployments SET backend_id = b.id FROM backends b
             WHERE deployments.id = ?2 AND b.project_id = ?1 AND b.id IS NOT deployments.backend_id",
        )?
        .execute(params![project, frontend.id])?;
    if changed > 0 {
        tx.note(ControlChange::Slug(frontend.slug.clone()));
    }
    Ok(())
}

/// Says in a transaction that the frontends of a project call another backend from now on, or none: their bytes stay.
pub fn backend_changed(tx: &Tx<'_>, project: &ProjectId) -> Result<(), Error> {
    for slug in list_slugs(tx, project)? {
        tx.note(ControlChange::Slug(slug));
    }
    Ok(())
}

/// Binds the frontends of a project that never had a backend to its first.
pub fn bind_backend(tx: &Tx<'_>, project: &ProjectId, backend: &BackendId) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE deployments SET backend_id = ?2 WHERE project_id = ?1 AND backend_id IS NULL",
    )?
    .execute(params![project, backend])?;
    backend_changed(tx, project)
}

/// Lists at most `most` frontends of a project that are being deleted.
pub(super) fn list_deleting(
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
