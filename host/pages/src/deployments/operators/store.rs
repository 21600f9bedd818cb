//! Queries of `svc check` to the control database.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::ReplayedPage;
use super::takedown::ContentScope;
use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::deployments::store::parse_content_type;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};

/// Reference to stored content, for `svc check`.
#[derive(Debug)]
pub(super) struct ContentReference {
    /// Row that refers to the object, for people.
    pub(super) by: String,
    /// To what.
    pub(super) digest: Digest,
    /// Whether that is a finished page.
    pub(super) is_page: bool,
}

/// Lists every reference to stored content.
pub(super) fn references(c: &Connection) -> rusqlite::Result<Vec<ContentReference>> {
    let by = [
        "SELECT slug AS referrer, source_digest AS digest, 0 AS is_page FROM deployments WHERE source_digest IS NOT NULL
         UNION ALL SELECT slug, artifact_digest, content_type <> 'site' FROM deployments WHERE artifact_digest IS NOT NULL
         UNION ALL SELECT 'immutable files of ' || slug, immutable_digest, 0 FROM deployments WHERE immutable_digest IS NOT NULL
         UNION ALL SELECT 'runtime ' || name, digest, 0 FROM runtimes",
        "SELECT 'revision ' || id AS referrer, source_digest AS digest, 0 AS is_page FROM revisions
         UNION ALL SELECT 'preview ' || id, preview_digest, site_files IS NULL FROM revisions
            WHERE preview_digest IS NOT NULL
         UNION ALL SELECT 'immutable files of ' || id, immutable_digest, 0 FROM revisions WHERE immutable_digest IS NOT NULL
         UNION ALL SELECT 'files deleted by ' || revision_id, deletions_digest, 0 FROM former_revisions WHERE deletions_digest IS NOT NULL",
        "SELECT 'file ' || lower(hex(digest)) AS referrer, coalesce(list_digest, digest) AS digest, 0 AS is_page FROM blobs
         UNION ALL SELECT 'encodings of ' || lower(hex(digest)), encoded_digest, 0 FROM blobs WHERE encoded_digest IS NOT NULL
         UNION ALL SELECT 'list ' || lower(hex(list_digest)), digest, 0 FROM file_objects",
        "SELECT 'file of a visitor ' || file_id AS referrer, coalesce(list_digest, digest) AS digest, 0 AS is_page FROM visitor_files",
    ];
    let mut found = Vec::new();
    for rows in by {
        let mut rows = c.prepare(rows)?;
        let rows = rows.query_map([], |row| {
            Ok(ContentReference {
                by: row.get("referrer")?,
                digest: row.get("digest")?,
                is_page: row.get("is_page")?,
            })
        })?;
        for reference in rows {
            found.push(reference?);
        }
    }
    Ok(found)
}

/// Revision of a site, for `svc check`: a draft, an earlier one, or what is live.
#[derive(Clone, Debug)]
pub(super) struct NamedManifest {
    /// Row that names it, for people.
    pub(super) by: String,
    /// Canonical form of the manifest.
    pub(super) canonical: Digest,
    /// Form that is served from.
    pub(super) served: Digest,
}

/// List of the objects of a large file, for `svc check`.
#[derive(Debug)]
pub(super) struct NamedList {
    /// Digest of the list.
    pub(super) list: Digest,
    /// Length of the file.
    pub(super) bytes: u64,
}

/// Lists everybody who has files: projects, and quick shares for themselves.
pub(super) fn file_owners(c: &Connection) -> rusqlite::Result<Vec<String>> {
    c.prepare(
        "SELECT DISTINCT iif(project_id = ?1, id, project_id) FROM deployments WHERE content_type = 'site'",
    )?
    .query_map([ProjectId::QUICK_SHARES], |row| row.get(0))?
    .collect()
}

/// Lists the manifests that rows of an owner name.
pub(super) fn manifests(c: &Connection, owner: &str) -> rusqlite::Result<Vec<NamedManifest>> {
    c.prepare_cached(
        "SELECT d.slug AS referrer, d.source_digest AS canonical, d.artifact_digest AS served FROM deployments d
            WHERE (d.project_id = ?1 OR d.id = ?1 AND d.project_id = ?2) AND d.content_type = 'site'
               AND d.source_digest IS NOT NULL AND d.artifact_digest IS NOT NULL
         UNION ALL SELECT 'revision ' || r.id, r.source_digest, r.preview_digest
            FROM revisions r JOIN deployments d ON d.id = r.deployment_id
            WHERE d.project_id = ?1 AND d.content_type = 'site' AND r.preview_digest IS NOT NULL",
    )?
    .query_map(params![owner, ProjectId::QUICK_SHARES], |row| {
        Ok(NamedManifest {
            by: row.get("referrer")?,
            canonical: row.get("canonical")?,
            served: row.get("served")?,
        })
    })?
    .collect()
}

/// Returns the lists of an owner's files, by their digests; a small file has none.
pub(super) fn lists_of(
    c: &Connection,
    owner: &str,
) -> rusqlite::Result<HashMap<Digest, (u64, Option<Digest>)>> {
    c.prepare_cached("SELECT digest, bytes, list_digest FROM blobs WHERE owner_id = ?1")?
        .query_map([owner], |row| {
            let bytes = row.get::<_, i64>(1)?.unsigned_abs();
            Ok((row.get(0)?, (bytes, row.get(2)?)))
        })?
        .collect()
}

/// Lists the lists of all large files, each once.
pub(super) fn named_lists(c: &Connection) -> rusqlite::Result<Vec<NamedList>> {
    c.prepare(
        "SELECT list_digest, min(bytes) FROM (
            SELECT list_digest, bytes FROM blobs WHERE list_digest IS NOT NULL
            UNION SELECT list_digest, bytes FROM visitor_files WHERE list_digest IS NOT NULL)
         GROUP BY list_digest",
    )?
    .query_map([], |row| {
        Ok(NamedList {
            list: row.get(0)?,
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?
    .collect()
}

/// Returns the objects of a large file, in order.
pub(super) fn objects_of(c: &Connection, list: &Digest) -> rusqlite::Result<Vec<Digest>> {
    c.prepare_cached("SELECT digest FROM file_objects WHERE list_digest = ?1 ORDER BY number")?
        .query_map([list], |row| row.get(0))?
        .collect()
}

/// Content that is live at a slug.
#[derive(Debug)]
pub(super) struct LiveContent {
    /// Where it answers.
    pub(super) slug: String,
    /// Digest of the source.
    pub(super) source: Digest,
    /// Manifest of a site.
    pub(super) manifest: Option<Digest>,
}

/// Returns whose files a list of content has; none if there is no such share.
pub(super) fn content_owner(
    c: &Connection,
    scope: &ContentScope,
) -> rusqlite::Result<Option<String>> {
    match scope {
        ContentScope::Project(project) => Ok(Some(project.to_string())),
        ContentScope::Share(slug) => c
            .prepare_cached("SELECT id FROM deployments WHERE slug = ?1 AND project_id = ?2")?
            .query_row(params![slug, ProjectId::QUICK_SHARES], |row| row.get(0))
            .optional(),
    }
}

/// Lists what is live, by slug. A one-time share has nothing that is stored.
pub(super) fn live_content(
    c: &Connection,
    scope: &ContentScope,
) -> rusqlite::Result<Vec<LiveContent>> {
    let (project, slug) = match scope {
        ContentScope::Project(project) => (project, None),
        ContentScope::Share(slug) => (&ProjectId::QUICK_SHARES, Some(slug)),
    };
    c.prepare_cached(
        "SELECT slug, source_digest, iif(content_type = 'site', artifact_digest, NULL) AS manifest FROM deployments
         WHERE project_id = ?1 AND (?2 IS NULL OR slug = ?2) AND source_digest IS NOT NULL ORDER BY slug",
    )?
    .query_map(params![project, slug], |row| {
        Ok(LiveContent {
            slug: row.get("slug")?,
            source: row.get("source_digest")?,
            manifest: row.get("manifest")?,
        })
    })?
    .collect()
}

/// Lists the files that visitors of a project have brought, with their smaller copies: id, digest as sent, digest as stored, and bytes.
pub(super) fn visitor_files_of(
    c: &Connection,
    owner: &str,
) -> rusqlite::Result<Vec<(String, Digest, Digest, u64)>> {
    c.prepare_cached(
        "SELECT file_id, sent_digest, digest, bytes FROM visitor_files WHERE project_id = ?1 AND state <> 'ended'
         ORDER BY file_id, size",
    )?
    .query_map([owner], |row| {
        let bytes = row.get::<_, i64>(3)?.unsigned_abs();
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, bytes))
    })?
    .collect()
}

/// Lists the files of an owner, with their lengths.
pub(super) fn files_of(c: &Connection, owner: &str) -> rusqlite::Result<Vec<(Digest, u64)>> {
    c.prepare_cached("SELECT digest, bytes FROM blobs WHERE owner_id = ?1 ORDER BY digest")?
        .query_map([owner], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })?
        .collect()
}

/// Lists the slugs of projects' pages and sites that name some content: as their source, as what is stored of it, or as a file that the
/// project has.
pub(super) fn slugs_naming(c: &Connection, digest: &Digest) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached(
        "SELECT slug FROM deployments WHERE source_digest = ?1 AND project_id <> ?2
         UNION SELECT slug FROM deployments WHERE artifact_digest = ?1 AND project_id <> ?2
         UNION SELECT slug FROM deployments WHERE content_type = 'site' AND project_id IN (
            SELECT owner_id FROM blobs WHERE digest = ?1
            UNION SELECT owner_id FROM blobs WHERE list_digest = ?1
            UNION SELECT owner_id FROM blobs
                WHERE list_digest IN (SELECT list_digest FROM file_objects WHERE digest = ?1))",
    )?
    .query_map(params![digest, ProjectId::QUICK_SHARES], |row| row.get(0))?
    .collect()
}

/// Pages that answer at a moment, without sites, which no guest has made.
const ANSWERING_PAGES: &str = "FROM deployments d JOIN projects p ON p.id = d.project_id
    WHERE d.state = 'active' AND p.state = 'active' AND d.content_type <> 'site' AND (d.expires_at IS NULL OR d.expires_at > ?1)";

/// Pages that answer, in the order of their ids.
pub(super) fn pages(
    c: &Connection,
    now: Timestamp,
    after: Option<DeploymentId>,
    most: u32,
) -> rusqlite::Result<Vec<ReplayedPage>> {
    let after = after.map_or_else(String::new, |id| id.to_string());
    c.prepare_cached(&format!(
        "SELECT d.id, d.slug, d.content_type, d.title, d.source_digest, p.host_label IS NOT NULL AS is_frontend,
            d.password_hash IS NOT NULL AS is_protected {ANSWERING_PAGES} AND d.id > ?2 ORDER BY d.id LIMIT ?3"
    ))?
    .query_map(params![now, after, most], |row| {
        Ok(ReplayedPage {
            id: row.get("id")?,
            slug: row.get("slug")?,
            content_type: parse_content_type(&row.get::<_, String>("content_type")?)?,
            title: row.get("title")?,
            source: row.get("source_digest")?,
            is_frontend: row.get("is_frontend")?,
            is_protected: row.get("is_protected")?,
        })
    })?
    .collect()
}

/// Counts the pages that answer.
pub(super) fn count_pages(c: &Connection, now: Timestamp) -> rusqlite::Result<u64> {
    c.query_row(
        &format!("SELECT count(*) {ANSWERING_PAGES}"),
        [now],
        |row| row.get::<_, i64>(0).map(i64::unsigned_abs),
    )
}

/// Counts all deployments, whatever their state.
pub(super) fn count_deployments(c: &Connection) -> rusqlite::Result<u64> {
    c.query_row("SELECT count(*) FROM deployments", [], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// Finds contradictions between rows, for `svc check`: a sentence each.
pub(super) fn find_contradictions(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found: Vec<String> = c
        .prepare(
            "SELECT 'frontend ' || slug || ' has no page' FROM deployments
            WHERE state = 'active' AND one_time = 0 AND artifact_digest IS NULL
         UNION ALL SELECT 'deployment ' || slug || ' belongs to no project' FROM deployments d
            WHERE NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = d.project_id)
         UNION ALL SELECT 'the files of ' || o.owner_id || ' are not counted right' FROM file_owners o
            WHERE o.bytes <> (SELECT coalesce(sum(b.bytes), 0) FROM blobs b WHERE b.owner_id = o.owner_id)
         UNION ALL SELECT 'the files of all owners are not counted right' FROM file_totals t
            WHERE t.bytes <> (SELECT coalesce(sum(b.bytes + b.encoded_bytes), 0) FROM blobs b)
         UNION ALL SELECT 'file ' || lower(hex(digest)) || ' is counted for nobody' FROM blobs b
            WHERE NOT EXISTS (SELECT 1 FROM file_owners o WHERE o.owner_id = b.owner_id)
         UNION ALL SELECT 'file ' || lower(hex(digest)) || ' has no objects' FROM blobs b WHERE list_digest IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM file_objects f WHERE f.list_digest = b.list_digest)
         UNION ALL SELECT 'file of a visitor ' || file_id || ' is not counted' FROM visitor_files v WHERE state <> 'ended'
            AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.owner_id = v.project_id AND b.digest = v.digest)",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    found.extend(mismatched_frontends(c)?);
    found.extend(orphaned_histories(c)?);
    Ok(found)
}

/// Frontends that are not what their active revision is.
fn mismatched_frontends(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut active =
        c.prepare("SELECT state, source_digest, title FROM revisions WHERE id = ?1")?;
    let mut frontends = c.prepare(
        "SELECT slug, active_revision_id, source_digest, title FROM deployments
         WHERE active_revision_id IS NOT NULL",
    )?;
    let mut rows = frontends.query([])?;
    while let Some(row) = rows.next()? {
        let slug: String = row.get(0)?;
        let shown: (Option<Digest>, String) = (row.get(2)?, row.get(3)?);
        let revision = active
            .query_row([row.get::<_, String>(1)?], |row| {
                let state: String = row.get(0)?;
                Ok((state, (row.get(1)?, row.get(2)?)))
            })
            .optional()?;
        if revision.as_ref().is_none_or(|(state, _)| state != "active") {
            found.push(format!(
                "frontend {slug} points at a revision that is not active"
            ));
        }
        if revision.is_some_and(|(_, is)| is != shown) {
            found.push(format!("frontend {slug} does not show its active revision"));
        }
    }
    Ok(found)
}

/// Revisions and releases of deployments that are gone.
fn orphaned_histories(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut there = c.prepare("SELECT EXISTS (SELECT 1 FROM deployments WHERE id = ?1)")?;
    let mut found = Vec::new();
    let mut histories =
        c.prepare("SELECT deployment_id FROM revisions UNION SELECT deployment_id FROM releases")?;
    let mut rows = histories.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        if !there.query_row([&id], |row| row.get(0))? {
            found.push(format!("deployment {id} is gone, and its history is not"));
        }
    }
    Ok(found)
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
