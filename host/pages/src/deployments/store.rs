//! Rows of deployments in the control database, as all their services read and remove them.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{Deployment, DeploymentType};
use super::open_tabs;
use super::sites::SiteSize;
use crate::content::Digest;
use crate::control::{Error, NamedColumnReader, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};
use svc_sandbox::ContentType;

/// A deployment with its project. What is not active, or belongs to a project that is not, does not resolve.
const SELECT_DEPLOYMENT: &str = "SELECT d.id, d.slug, d.content_type, d.title, d.one_time, d.password_hash, \
    d.source_digest, d.artifact_digest, d.disabled_at, d.created_at, d.expires_at, d.project_id, p.host_label, \
    (SELECT b.id FROM backends b WHERE b.id = d.backend_id) AS backend_id, d.delete_sha256 \
    FROM deployments d JOIN projects p ON p.id = d.project_id";
const SERVED_CONDITION: &str = "d.state = 'active' AND p.state = 'active'";

fn read_deployment(row: &Row<'_>) -> rusqlite::Result<Deployment> {
    let row = NamedColumnReader::new(row);
    Ok(Deployment {
        id: row.get("id")?,
        slug: row.get("slug")?,
        content_type: parse_type(&row.get::<String>("content_type")?)?,
        title: row.get("title")?,
        one_time: row.get("one_time")?,
        password_hash: row.get("password_hash")?,
        source: row.get("source_digest")?,
        artifact: row.get("artifact_digest")?,
        disabled: row.get::<Option<Timestamp>>("disabled_at")?.is_some(),
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        project: row.get("project_id")?,
        host_label: row.get("host_label")?,
        backend: row.get("backend_id")?,
        delete_token: row.get("delete_sha256")?,
    })
}

pub(super) fn parse_type(text: &str) -> rusqlite::Result<DeploymentType> {
    text.parse().map_err(|_| rusqlite::Error::InvalidQuery)
}

/// Reads the number and length of a site's files; a page has none.
pub(super) fn read_site_size(
    row: &NamedColumnReader<'_, '_>,
) -> rusqlite::Result<Option<SiteSize>> {
    let files: Option<i64> = row.get("site_files")?;
    let bytes: Option<i64> = row.get("site_bytes")?;
    Ok(files.zip(bytes).map(|(files, bytes)| SiteSize {
        files: files.unsigned_abs(),
        bytes: bytes.unsigned_abs(),
    }))
}

/// Parses the type of a page's source, in a query that leaves sites out.
pub(super) fn parse_content_type(text: &str) -> rusqlite::Result<ContentType> {
    text.parse().map_err(|_| rusqlite::Error::InvalidQuery)
}

/// Finds the deployment that answers at a slug, whether or not its time is over.
pub(super) fn find_by_slug(c: &Connection, slug: &str) -> rusqlite::Result<Option<Deployment>> {
    c.prepare_cached(&format!(
        "{SELECT_DEPLOYMENT} WHERE d.slug = ?1 AND {SERVED_CONDITION}"
    ))?
    .query_row([slug], read_deployment)
    .optional()
}

/// Finds the deployment of an id, whether or not its time is over.
pub(super) fn find_by_id(
    c: &Connection,
    id: &DeploymentId,
) -> rusqlite::Result<Option<Deployment>> {
    c.prepare_cached(&format!(
        "{SELECT_DEPLOYMENT} WHERE d.id = ?1 AND {SERVED_CONDITION}"
    ))?
    .query_row([id], read_deployment)
    .optional()
}

/// Whether a deployment is there, answering or not.
pub(super) fn exists(c: &Connection, id: &DeploymentId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM deployments WHERE id = ?1)")?
        .query_row([id], |row| row.get(0))
}

/// Whether a row has this slug, resolving or not.
pub(super) fn is_taken(c: &Connection, slug: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM deployments WHERE slug = ?1)")?
        .query_row([slug], |row| row.get(0))
}

/// Removes a deployment with its history and marks its content for collection; returns whether it was there. The token of a
/// share is remembered, so that a second deletion is answered like the first.
pub(super) fn remove(tx: &Tx<'_>, id: &DeploymentId, now: Timestamp) -> Result<bool, Error> {
    remember_token(tx, id, now)?;
    let mut unused = remove_history(tx, id)?;
    let removed: Option<([Option<Digest>; 3], ProjectId, String)> = tx
        .prepare_cached(
            "DELETE FROM deployments WHERE id = ?1
             RETURNING source_digest, artifact_digest, immutable_digest, project_id, content_type",
        )?
        .query_row([id], |row| {
            let digests = [row.get(0)?, row.get(1)?, row.get(2)?];
            Ok((digests, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let was_there = removed.is_some();
    if let Some((digests, project, type_name)) = removed {
        unused.extend(digests.into_iter().flatten());
        if parse_type(&type_name)?.is_site() {
            // A share has its files for itself.
            let owner = match project == ProjectId::QUICK_SHARES {
                true => id.to_string(),
                false => project.to_string(),
            };
            look_through_files(tx, &owner)?;
        }
    }
    for digest in unused {
        mark_garbage(tx, &digest, now)?;
    }
    Ok(was_there)
}

/// Removes the history of a deployment; returns the content that it has named.
fn remove_history(tx: &Tx<'_>, id: &DeploymentId) -> Result<BTreeSet<Digest>, Error> {
    let mut named = BTreeSet::new();
    let mut removing = tx.prepare_cached(
        "DELETE FROM revisions WHERE deployment_id = ?1 RETURNING source_digest, preview_digest, immutable_digest",
    )?;
    let mut removed = removing.query([id])?;
    while let Some(row) = removed.next()? {
        named.extend(
            [row.get::<_, Option<Digest>>(0)?, row.get(1)?, row.get(2)?]
                .into_iter()
                .flatten(),
        );
    }
    tx.prepare_cached("DELETE FROM releases WHERE deployment_id = ?1")?
        .execute([id])?;
    named.extend(open_tabs::forget_all(tx, id)?);
    Ok(named)
}

/// Remembers the token of a share that ends.
pub(super) fn remember_token(tx: &Tx<'_>, id: &DeploymentId, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO ended_shares (id, delete_sha256, ended_at)
         SELECT id, delete_sha256, ?2 FROM deployments WHERE id = ?1 AND delete_sha256 IS NOT NULL",
    )?
    .execute(params![id, now])?;
    Ok(())
}

/// Whether a share has expired; a share that was claimed as a frontend lives as long as its project.
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

/// Lists at most `most` quick shares whose time is over; frontends end with their project.
pub(super) fn list_expired(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<Deployment>> {
    c.prepare_cached(&format!(
        "{SELECT_DEPLOYMENT} WHERE d.expires_at <= ?1 AND d.project_id = ?2 ORDER BY d.expires_at LIMIT ?3"
    ))?
    .query_map(params![now, ProjectId::QUICK_SHARES, most], read_deployment)?
    .collect()
}

/// Returns the object with the encodings of a file of a site, if they are made for whose file it is: a project, or a share for itself.
pub(super) fn find_encodings(
    c: &Connection,
    site: &DeploymentId,
    file: &Digest,
) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached(
        "SELECT b.encoded_digest FROM deployments d
         JOIN blobs b ON b.owner_id = iif(d.project_id = ?3, d.id, d.project_id) AND b.digest = ?2
         WHERE d.id = ?1",
    )?
    .query_row(params![site, file, ProjectId::QUICK_SHARES], |row| {
        row.get(0)
    })
    .optional()
    .map(Option::flatten)
}

/// Ids of the one-time shares that are there.
pub(super) fn one_time_ids(c: &Connection) -> rusqlite::Result<Vec<DeploymentId>> {
    c.prepare("SELECT id FROM deployments WHERE one_time = 1")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Marks content that may have lost its last reference; a mark that was there is of a moment that is over.
pub(super) fn mark_garbage(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO garbage (digest, since) VALUES (?1, ?2)
         ON CONFLICT (digest) DO UPDATE SET since = excluded.since",
    )?
    .execute(params![digest, now])?;
    Ok(())
}

/// Notes that a revision of an owner's sites ends, so that files of it may have lost their last name. A sweep that is under way begins
/// anew.
pub(super) fn look_through_files(tx: &Tx<'_>, owner: &str) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE file_owners SET is_due = 1, version = version + 1 WHERE owner_id = ?1",
    )?
    .execute([owner])?;
    Ok(())
}

/// Whether any row refers to this content.
pub(super) fn is_referenced(c: &Connection, digest: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM deployments WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM deployments WHERE artifact_digest = ?1)
             OR EXISTS (SELECT 1 FROM runtimes WHERE digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE source_digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE preview_digest = ?1)
             OR EXISTS (SELECT 1 FROM blobs WHERE digest = ?1)
             OR EXISTS (SELECT 1 FROM deployments WHERE immutable_digest = ?1)
             OR EXISTS (SELECT 1 FROM revisions WHERE immutable_digest = ?1)
             OR EXISTS (SELECT 1 FROM former_revisions WHERE deletions_digest = ?1)
             OR EXISTS (SELECT 1 FROM blobs WHERE list_digest = ?1)
             OR EXISTS (SELECT 1 FROM blobs WHERE encoded_digest = ?1)
             OR EXISTS (SELECT 1 FROM file_objects WHERE digest = ?1)
             OR EXISTS (SELECT 1 FROM visitor_files WHERE digest = ?1)
             OR EXISTS (SELECT 1 FROM visitor_files WHERE list_digest = ?1)",
    )?
    .query_row([digest], |row| row.get(0))
}

/// Returns the ids of all deployments, whatever their state.
pub(super) fn ids(c: &Connection) -> rusqlite::Result<HashSet<DeploymentId>> {
    c.prepare("SELECT id FROM deployments")?
        .query_map([], |row| row.get(0))?
        .collect()
}
