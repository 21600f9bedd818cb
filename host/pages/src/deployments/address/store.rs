//! Frontends at the origins of projects, in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::content::Digest;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};

/// Row of the frontend that the origin of the project `p` leads to: its home where that is active, else its oldest active frontend.
/// The condition about the project of shares is that of the index.
const ROOT_ROWID: &str = "COALESCE(
    (SELECT h.rowid FROM deployments h WHERE h.slug = p.home AND h.project_id = p.id AND h.state = 'active'),
    (SELECT o.rowid FROM deployments o WHERE o.project_id = p.id AND o.state = 'active'
        AND o.project_id <> '00000000-0000-7000-8000-000000000000' ORDER BY o.rowid LIMIT 1))";

/// Frontend that a project's origin leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::deployments) struct OriginRoot {
    /// Slug of the frontend.
    pub(in crate::deployments) slug: String,
    /// Whether it is a site, which then answers at the root itself.
    pub(in crate::deployments) is_site: bool,
    /// Object that lists the files of a site.
    pub(in crate::deployments) manifest: Option<Digest>,
}

/// Origin of a project.
#[derive(Debug)]
pub(in crate::deployments) struct OriginRows {
    /// Identifier of the project.
    pub(in crate::deployments) project: ProjectId,
    /// When the project ends.
    pub(in crate::deployments) expires_at: Option<Timestamp>,
    /// Frontend that the origin leads to; `None` where nothing is published.
    pub(in crate::deployments) root: Option<OriginRoot>,
}

/// Finds the origin of a label, whether or not its project's time is over.
pub(in crate::deployments) fn find_origin(
    c: &Connection,
    label: &str,
) -> rusqlite::Result<Option<OriginRows>> {
    let found = c
        .prepare_cached(
            "SELECT id, expires_at FROM projects WHERE host_label = ?1 AND state = 'active'",
        )?
        .query_row([label], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((project, expires_at)) = found else {
        return Ok(None);
    };
    Ok(Some(OriginRows {
        root: origin_root(c, &project)?,
        project,
        expires_at,
    }))
}

/// Finds the frontend that a project's origin leads to.
fn origin_root(c: &Connection, project: &ProjectId) -> rusqlite::Result<Option<OriginRoot>> {
    c.prepare_cached(&format!(
        "SELECT d.slug, d.content_type = 'site', CASE WHEN d.content_type = 'site' THEN d.artifact_digest END
         FROM projects p JOIN deployments d ON d.rowid = {ROOT_ROWID}
         WHERE p.id = ?1"
    ))?
    .query_row([project], |row| {
        Ok(OriginRoot {
            slug: row.get(0)?,
            is_site: row.get(1)?,
            manifest: row.get(2)?,
        })
    })
    .optional()
}

/// Whether a frontend is the one that its project's origin leads to.
pub(in crate::deployments) fn is_root(c: &Connection, id: &DeploymentId) -> rusqlite::Result<bool> {
    c.prepare_cached(&format!(
        "SELECT d.rowid = {ROOT_ROWID} FROM deployments d JOIN projects p ON p.id = d.project_id WHERE d.id = ?1"
    ))?
    .query_row([id], |row| row.get::<_, Option<bool>>(0))
    .optional()
    .map(|found| found.flatten().unwrap_or_default())
}

/// Lists the slugs of a project's active frontends.
pub(in crate::deployments) fn active_slugs(
    c: &Connection,
    project: &ProjectId,
) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached(
        "SELECT slug FROM deployments WHERE project_id = ?1 AND state = 'active'
            AND project_id <> '00000000-0000-7000-8000-000000000000'",
    )?
    .query_map(params![project], |row| row.get(0))?
    .collect()
}

/// Lists the slugs whose paths are no files of a site at the root of its project's origin, its own among them; none unless the site at
/// `slug` answers there, or will.
pub(in crate::deployments) fn slugs_before_files(
    c: &Connection,
    label: &str,
    slug: Option<&str>,
) -> rusqlite::Result<Vec<String>> {
    let Some(origin) = find_origin(c, label)? else {
        return Ok(Vec::new());
    };
    if origin.root.is_some_and(|root| Some(&*root.slug) != slug) {
        return Ok(Vec::new());
    }
    let mut slugs = active_slugs(c, &origin.project)?;
    slugs.extend(slug.map(str::to_owned));
    Ok(slugs)
}
