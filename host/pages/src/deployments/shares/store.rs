//! Tokens of shares, and the moves of shares, in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::content::Digest;
use crate::control::{Error, NamedColumnReader, Tx};
use crate::deployments::model::Deployment;
use crate::deployments::publication::{PublishedDigests, ShareCapHolder};
use crate::deployments::store::{look_through_files, mark_garbage, read_site_size, remember_token};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId};

/// How long the token of a share that is gone is remembered, in seconds, and of how many: a client that makes and deletes
/// shares without end must not fill the disk.
const TOKEN_RETENTION_SECONDS: i64 = 30 * 24 * 3600;
const MAX_REMEMBERED_TOKENS: i64 = 100_000;

/// A share as its publisher holds it.
#[derive(Clone, Debug)]
pub(super) struct ShareFoundByToken {
    /// Where it answers.
    pub(super) slug: String,
    /// Whether the operator has taken it down.
    pub(super) disabled: bool,
    /// Whether it is shown once, so that its bytes lie by themselves.
    pub(super) one_time: bool,
}

/// Adds a quick share, whose slug must be free.
pub(super) fn insert(
    tx: &Tx<'_>,
    new: &Deployment,
    published: Option<&PublishedDigests>,
    holder: &ShareCapHolder,
    bytes: u64,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO deployments (id, slug, content_type, title, one_time, password_hash,
            source_digest, artifact_digest, created_at, updated_at, expires_at, made_by, delete_sha256,
            holder, is_owners, bytes, site_files, site_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
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
        published.and_then(PublishedDigests::made_by),
        new.delete_token,
        holder.hash,
        holder.is_owners,
        i64::try_from(bytes).unwrap_or(i64::MAX),
        published.and_then(PublishedDigests::site_files),
        published.and_then(PublishedDigests::site_bytes),
    ])?;
    Ok(())
}

/// Returns the digest of a share's token, whether the share is there or gone.
pub(super) fn token_digest(c: &Connection, id: &DeploymentId) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached(
        "SELECT delete_sha256 FROM deployments WHERE id = ?1 AND delete_sha256 IS NOT NULL
         UNION ALL SELECT delete_sha256 FROM ended_shares WHERE id = ?1",
    )?
    .query_row([id], |row| row.get(0))
    .optional()
}

/// Finds a share that still has a token.
pub(super) fn find_with_token(
    c: &Connection,
    id: &DeploymentId,
) -> rusqlite::Result<Option<ShareFoundByToken>> {
    c.prepare_cached(
        "SELECT slug, disabled_at IS NOT NULL AS disabled, one_time FROM deployments
         WHERE id = ?1 AND delete_sha256 IS NOT NULL",
    )?
    .query_row([id], |row| {
        Ok(ShareFoundByToken {
            slug: row.get("slug")?,
            disabled: row.get("disabled")?,
            one_time: row.get("one_time")?,
        })
    })
    .optional()
}

/// Ends a share that the operator has taken down: nothing of it is left, and its slug stays taken until its time is over.
pub(super) fn end_disabled_share(
    tx: &Tx<'_>,
    id: &DeploymentId,
    now: Timestamp,
) -> Result<(), Error> {
    remember_token(tx, id, now)?;
    let digests: [Option<Digest>; 3] = tx
        .prepare_cached(
            "SELECT source_digest, artifact_digest, immutable_digest FROM deployments WHERE id = ?1",
        )?
        .query_row([id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    tx.prepare_cached(
        "UPDATE deployments SET state = 'deleting', title = '', password_hash = NULL, source_digest = NULL,
            artifact_digest = NULL, immutable_digest = NULL, delete_sha256 = NULL, one_time = 0, bytes = 0 WHERE id = ?1",
    )?
    .execute([id])?;
    for digest in digests.into_iter().flatten() {
        mark_garbage(tx, &digest, now)?;
    }
    look_through_files(tx, &id.to_string())
}

/// Returns a share that is a site as it is published.
pub(super) fn published_site(
    c: &Connection,
    id: &DeploymentId,
) -> rusqlite::Result<Option<PublishedDigests>> {
    c.prepare_cached(
        "SELECT source_digest, artifact_digest, site_files, site_bytes, bytes - site_bytes AS manifest_bytes
         FROM deployments WHERE id = ?1 AND content_type = 'site' AND source_digest IS NOT NULL",
    )?
    .query_row([id], |row| {
        let row = NamedColumnReader::new(row);
        Ok(PublishedDigests {
            source: row.get("source_digest")?,
            artifact: row.get("artifact_digest")?,
            by: None,
            site: read_site_size(&row)?,
            bytes: row.get::<i64>("manifest_bytes")?.unsigned_abs(),
        })
    })
    .optional()
}

/// Makes a share a frontend of a project, as if it had been made there now: the youngest of its frontends.
pub(super) fn move_to_project(
    tx: &Tx<'_>,
    id: &DeploymentId,
    (project, slug): (&ProjectId, &str),
    published: &PublishedDigests,
    now: Timestamp,
) -> Result<(), Error> {
    remember_token(tx, id, now)?;
    let replaced: Option<Digest> = tx
        .prepare_cached("SELECT artifact_digest FROM deployments WHERE id = ?1")?
        .query_row([id], |row| row.get(0))?;
    tx.prepare_cached(
        "UPDATE deployments SET project_id = ?2, slug = ?7, delete_sha256 = NULL, holder = NULL, is_owners = 0, bytes = ?6,
            artifact_digest = ?3, made_by = ?4,
            created_at = ?5, updated_at = ?5,
            expires_at = (SELECT p.expires_at FROM projects p WHERE p.id = ?2),
            backend_id = (SELECT b.id FROM backends b WHERE b.project_id = ?2),
            rowid = (SELECT max(rowid) + 1 FROM deployments)
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        project,
        published.artifact,
        published.made_by(),
        now,
        published.bytes_stored(),
        slug,
    ])?;
    match replaced {
        Some(digest) if digest != published.artifact => mark_garbage(tx, &digest, now),
        _ => Ok(()),
    }
}

/// Forgets tokens of shares that have been gone for long.
pub(super) fn forget_tokens(tx: &Tx<'_>, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM ended_shares WHERE ended_at <= ?1
            OR number <= (SELECT max(number) - ?2 FROM ended_shares)",
        params![
            now.plus_seconds(-TOKEN_RETENTION_SECONDS),
            MAX_REMEMBERED_TOKENS
        ],
    )?;
    Ok(())
}
