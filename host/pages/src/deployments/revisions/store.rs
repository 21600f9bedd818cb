//! Revisions and releases in the control database.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{NewRevision, Revision, RevisionKind, RevisionState};
use super::releases::{ReleaseEntry, RevisionToRelease};
use crate::content::Digest;
use crate::control::{Error, NamedColumnReader, Tx};
use crate::deployments::publication::PublishedDigests;
use crate::deployments::store::{mark_garbage, read_site_size};
use crate::deployments::views::Warning;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, RevisionId};

const REVISION_COLUMNS: &str = "number, id, source_digest, preview_digest, title, message, kind, state, \
                       created_at, promoted_at, site_files, site_bytes, warnings";

fn revision_from_row(row: &Row<'_>) -> rusqlite::Result<Revision> {
    let row = NamedColumnReader::new(row);
    let kind: String = row.get("kind")?;
    let state: String = row.get("state")?;
    Ok(Revision {
        number: row.get("number")?,
        id: row.get("id")?,
        source: row.get("source_digest")?,
        preview: row.get("preview_digest")?,
        site: read_site_size(&row)?,
        title: row.get("title")?,
        message: row.get("message")?,
        kind: match kind.as_str() {
            "draft" => RevisionKind::Draft,
            "baseline" => RevisionKind::Baseline,
            "publish" => RevisionKind::Publish,
            "promote" => RevisionKind::Promote,
            _ => RevisionKind::Rollback,
        },
        state: match state.as_str() {
            "draft" => RevisionState::Draft,
            "active" => RevisionState::Active,
            "superseded" => RevisionState::Superseded,
            _ => RevisionState::RolledBack,
        },
        created_at: row.get("created_at")?,
        promoted_at: row.get("promoted_at")?,
        warnings: Warning::from_row(row.get("warnings")?),
    })
}

/// Finds a revision of a frontend.
pub(super) fn find_by_id(
    c: &Connection,
    deployment: &DeploymentId,
    id: &RevisionId,
) -> rusqlite::Result<Option<Revision>> {
    c.prepare_cached(&format!(
        "SELECT {REVISION_COLUMNS} FROM revisions WHERE deployment_id = ?1 AND id = ?2"
    ))?
    .query_row(params![deployment, id], revision_from_row)
    .optional()
}

/// Finds the frontend of a revision.
pub(super) fn find_deployment(
    c: &Connection,
    id: &RevisionId,
) -> rusqlite::Result<Option<DeploymentId>> {
    c.prepare_cached("SELECT deployment_id FROM revisions WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}

/// Finds the oldest revision of a frontend with this content and title; with `only_drafts` one that was never live, so that what has been
/// live stays as it was.
pub(super) fn find_same(
    c: &Connection,
    deployment: &DeploymentId,
    (source, title): (&Digest, &str),
    only_drafts: bool,
) -> Result<Option<RevisionId>, Error> {
    let found = c
        .prepare_cached(
            "SELECT id FROM revisions WHERE deployment_id = ?1 AND source_digest = ?2 AND title = ?3
                AND (state = 'draft' OR NOT ?4)
             ORDER BY number LIMIT 1",
        )?
        .query_row(params![deployment, source, title, only_drafts], |row| {
            row.get(0)
        });
    Ok(found.optional()?)
}

/// Lists the revisions of a frontend made before number `before`, newest first.
pub(super) fn list(
    c: &Connection,
    deployment: &DeploymentId,
    before: Option<i64>,
    limit: u32,
) -> rusqlite::Result<Vec<Revision>> {
    c.prepare_cached(&format!(
        "SELECT {REVISION_COLUMNS} FROM revisions WHERE deployment_id = ?1 AND number < ?2
         ORDER BY number DESC LIMIT ?3"
    ))?
    .query_map(
        params![deployment, before.unwrap_or(i64::MAX), limit],
        revision_from_row,
    )?
    .collect()
}

/// Adds a revision, which is a draft until it is released.
pub(super) fn insert(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    new: &NewRevision<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO revisions (id, deployment_id, title, source_digest, preview_digest, message,
            kind, state, created_at, bytes, site_files, site_bytes, warnings)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'draft', ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        new.id,
        deployment,
        new.title,
        new.source,
        new.preview,
        new.message,
        new.kind.as_str(),
        now,
        i64::try_from(new.bytes).unwrap_or(i64::MAX),
        new.site
            .map(|site| i64::try_from(site.files).unwrap_or(i64::MAX)),
        new.site
            .map(|site| i64::try_from(site.bytes).unwrap_or(i64::MAX)),
        Warning::to_row(new.warnings),
    ])?;
    Ok(())
}

/// Returns the bytes of a frontend's source and live page, which a preview of the same source takes again.
pub(super) fn live_bytes(c: &Connection, deployment: &DeploymentId) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT bytes FROM deployments WHERE id = ?1")?
        .query_row([deployment], |row| {
            row.get::<_, i64>(0).map(i64::unsigned_abs)
        })
}

/// Returns the warnings about the first files of a site.
pub(super) fn first_warnings(
    c: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Vec<Warning>> {
    c.prepare_cached("SELECT warnings FROM deployments WHERE id = ?1")?
        .query_row([deployment], |row| row.get(0))
        .map(Warning::from_row)
}

/// Returns the manifest of a frontend's live site; a page has none.
pub(super) fn live_manifest(
    c: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached(
        "SELECT artifact_digest FROM deployments WHERE id = ?1 AND content_type = 'site'",
    )?
    .query_row([deployment], |row| row.get(0))
    .optional()
    .map(Option::flatten)
}

/// Returns a stored revision of a site as it is published.
pub(super) fn stored_site(
    c: &Connection,
    deployment: &DeploymentId,
    id: &RevisionId,
) -> rusqlite::Result<Option<PublishedDigests>> {
    c.prepare_cached(
        "SELECT source_digest, preview_digest, site_files, site_bytes, bytes FROM revisions
         WHERE deployment_id = ?1 AND id = ?2 AND site_files IS NOT NULL",
    )?
    .query_row(params![deployment, id], |row| {
        let row = NamedColumnReader::new(row);
        Ok(PublishedDigests {
            source: row.get("source_digest")?,
            artifact: row.get("preview_digest")?,
            by: None,
            site: read_site_size(&row)?,
            bytes: row.get::<i64>("bytes")?.unsigned_abs(),
        })
    })
    .optional()
}

/// Deletes a revision that is not live; returns the content that it has named, if it was there.
pub(super) fn delete(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    id: &RevisionId,
) -> Result<Option<[Option<Digest>; 3]>, Error> {
    Ok(tx
        .prepare_cached(
            "DELETE FROM revisions WHERE deployment_id = ?1 AND id = ?2 AND state <> 'active'
             RETURNING source_digest, preview_digest, immutable_digest",
        )?
        .query_row(params![deployment, id], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?])
        })
        .optional()?)
}

/// Deletes a draft that nobody has made or asked for since a moment; returns the content that it has named, if there was one.
pub(super) fn delete_old_draft(
    tx: &Tx<'_>,
    id: &RevisionId,
    before: Timestamp,
) -> Result<Option<[Option<Digest>; 3]>, Error> {
    Ok(tx
        .prepare_cached(
            "DELETE FROM revisions WHERE id = ?1 AND state = 'draft' AND coalesce(kept_since, created_at) <= ?2
             RETURNING source_digest, preview_digest, immutable_digest",
        )?
        .query_row(params![id, before], |row| {
            Ok([row.get(0)?, row.get(1)?, row.get(2)?])
        })
        .optional()?)
}

/// Notes that a draft which was there already was asked for, so that it is kept as long as a new one.
pub(super) fn keep_draft(tx: &Tx<'_>, id: &RevisionId, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("UPDATE revisions SET kept_since = ?2 WHERE id = ?1 AND state = 'draft'")?
        .execute(params![id, now])?;
    Ok(())
}

/// Notes that a site's revision deletes files by name, with the manifest that says which.
pub(super) fn set_deletions(
    tx: &Tx<'_>,
    id: &RevisionId,
    manifest: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    let replaced: Option<Digest> = tx
        .prepare_cached("SELECT preview_digest FROM revisions WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?
        .flatten();
    tx.prepare_cached("UPDATE revisions SET deletes_files = 1, preview_digest = ?2 WHERE id = ?1")?
        .execute(params![id, manifest])?;
    match replaced {
        Some(digest) if digest != *manifest => mark_garbage(tx, &digest, now),
        _ => Ok(()),
    }
}

/// Lists at most `most` drafts of sites that nobody has made or asked for since a moment, each with its project.
pub(super) fn list_old_drafts(
    c: &Connection,
    before: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<(ProjectId, RevisionId)>> {
    c.prepare_cached(
        "SELECT d.project_id, r.id FROM revisions r JOIN deployments d ON d.id = r.deployment_id
         WHERE r.state = 'draft' AND r.site_files IS NOT NULL AND r.created_at <= ?1
            AND coalesce(r.kept_since, r.created_at) <= ?1 LIMIT ?2",
    )?
    .query_map(params![before, most], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Stores the base of a draft; a revision that was live has none.
pub(super) fn set_base(tx: &Tx<'_>, id: &RevisionId, base: &RevisionId) -> Result<(), Error> {
    tx.prepare_cached("UPDATE revisions SET base_id = ?2 WHERE id = ?1 AND state = 'draft'")?
        .execute(params![id, base])?;
    Ok(())
}

/// Finds the revision that a draft was made from, if that is not `active`.
pub(super) fn outdated_base(
    c: &Connection,
    draft: &RevisionId,
    active: &RevisionId,
) -> rusqlite::Result<Option<RevisionId>> {
    c.prepare_cached(
        "SELECT base_id FROM revisions WHERE id = ?1 AND state = 'draft' AND base_id <> ?2",
    )?
    .query_row(params![draft, active], |row| row.get(0))
    .optional()
}

/// Lists the revisions that became live after `base` last did, newest first.
pub(super) fn released_since(
    c: &Connection,
    deployment: &DeploymentId,
    base: &RevisionId,
) -> rusqlite::Result<Vec<RevisionId>> {
    c.prepare_cached(
        "SELECT revision_id FROM releases WHERE deployment_id = ?1 AND id > (
            SELECT max(id) FROM releases WHERE deployment_id = ?1 AND revision_id = ?2
         ) GROUP BY revision_id ORDER BY max(id) DESC",
    )?
    .query_map(params![deployment, base], |row| row.get(0))?
    .collect()
}

/// Keeps the rendered preview of a revision.
pub(super) fn set_preview(
    tx: &Tx<'_>,
    id: &RevisionId,
    preview: &Digest,
    bytes: u64,
) -> Result<(), Error> {
    tx.prepare_cached("UPDATE revisions SET preview_digest = ?2, bytes = ?3 WHERE id = ?1")?
        .execute(params![
            id,
            preview,
            i64::try_from(bytes).unwrap_or(i64::MAX)
        ])?;
    Ok(())
}

/// Moves the live revision into the history.
pub(super) fn displace_active(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    state: RevisionState,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE revisions SET state = ?2 WHERE deployment_id = ?1 AND state = 'active'",
    )?
    .execute(params![deployment, state.as_str()])?;
    Ok(())
}

/// Marks a revision as live.
pub(super) fn make_active(
    tx: &Tx<'_>,
    id: &RevisionId,
    kind: RevisionKind,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE revisions SET state = 'active', kind = ?2, promoted_at = ?3 WHERE id = ?1",
    )?
    .execute(params![id, kind.as_str(), now])?;
    Ok(())
}

/// Points a frontend at its live revision.
pub(super) fn set_active_revision(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    revision: &RevisionId,
) -> Result<(), Error> {
    tx.prepare_cached("UPDATE deployments SET active_revision_id = ?2 WHERE id = ?1")?
        .execute(params![deployment, revision])?;
    Ok(())
}

/// Makes a released revision the page: in one row, so that no visitor sees a mixture.
pub(super) fn set_live_page(
    tx: &Tx<'_>,
    id: &DeploymentId,
    released: &RevisionToRelease<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let replaced: Option<Digest> = tx
        .prepare_cached("SELECT artifact_digest FROM deployments WHERE id = ?1")?
        .query_row([id], |row| row.get(0))?;
    tx.prepare_cached(
        "UPDATE deployments SET title = ?2, source_digest = ?3, artifact_digest = ?4,
            active_revision_id = ?5, updated_at = ?6, made_by = ?7, bytes = ?8, site_files = ?9, site_bytes = ?10, backend_id = coalesce(
                (SELECT b.id FROM backends b WHERE b.project_id = deployments.project_id), backend_id)
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        released.title,
        released.published.source,
        released.published.artifact,
        released.revision,
        now,
        released.published.made_by(),
        released.published.bytes_stored(),
        released.published.site_files(),
        released.published.site_bytes(),
    ])?;
    match replaced {
        Some(digest) if digest != released.published.artifact => mark_garbage(tx, &digest, now),
        _ => Ok(()),
    }
}

/// Adds a release to the list of releases.
pub(super) fn insert_release(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    revision: &RevisionId,
    kind: RevisionKind,
    message: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO releases (deployment_id, revision_id, kind, message, at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![deployment, revision, kind.as_str(), message, now])?;
    Ok(())
}

/// Lists all releases, newest first.
pub(super) fn releases(
    c: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Vec<ReleaseEntry>> {
    c.prepare_cached(
        "SELECT l.revision_id, l.kind, coalesce(l.message, r.message) AS message, l.at
         FROM releases l LEFT JOIN revisions r ON r.id = l.revision_id
         WHERE l.deployment_id = ?1 ORDER BY l.id DESC",
    )?
    .query_map([deployment], |row| {
        Ok(ReleaseEntry {
            revision: row.get("revision_id")?,
            kind: row.get("kind")?,
            message: row.get("message")?,
            at: row.get("at")?,
        })
    })?
    .collect()
}
