//! Former revisions of sites in the control database.

use rusqlite::{Connection, params};

use super::FormerRevision;
use crate::content::Digest;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// Former revisions of a site that are kept at most; the oldest are forgotten. Memory has a bound of its own.
const MAX_FORMER_REVISIONS: u32 = 500;

/// Whether files of former revisions of a site are served.
pub(in crate::deployments) fn any(
    c: &Connection,
    deployment: &DeploymentId,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM former_revisions WHERE deployment_id = ?1 AND until > ?2 AND deletions_digest IS NULL)",
    )?
    .query_row(params![deployment, now], |row| row.get(0))
}

/// Lists the former revisions of a site whose files are served, and those that say what is not, the one that was live last first.
pub(in crate::deployments) fn list(
    c: &Connection,
    deployment: &DeploymentId,
    now: Timestamp,
) -> rusqlite::Result<Vec<FormerRevision>> {
    c.prepare_cached(
        "SELECT coalesce(f.deletions_digest, r.preview_digest) AS manifest, f.until AS until, f.deletions_digest IS NOT NULL AS only_deletes
         FROM former_revisions f LEFT JOIN revisions r ON r.id = f.revision_id
         WHERE f.deployment_id = ?1 AND f.until > ?2 AND manifest IS NOT NULL ORDER BY f.number DESC",
    )?
    .query_map(params![deployment, now], |row| {
        Ok(FormerRevision {
            manifest: row.get("manifest")?,
            until: row.get("until")?,
            only_deletes: row.get("only_deletes")?,
        })
    })?
    .collect()
}

/// Has the files of a displaced revision serve open tabs until a moment; returns manifests that no former revision names any more.
pub(in crate::deployments) fn add(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    displaced: &RevisionId,
    until: Timestamp,
) -> Result<Vec<Digest>, Error> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO former_revisions (deployment_id, revision_id, until) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![deployment, displaced, until])?;
    forget_oldest(tx, deployment)
}

/// Has a displaced revision, whose files serve nobody, say until a moment what it has deleted by name; returns manifests as [`add`] does.
pub(in crate::deployments) fn keep_deletions(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    displaced: &RevisionId,
    until: Timestamp,
) -> Result<Vec<Digest>, Error> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO former_revisions (deployment_id, revision_id, until, deletions_digest)
         SELECT ?1, id, ?3, preview_digest FROM revisions WHERE id = ?2 AND deletes_files = 1 AND preview_digest IS NOT NULL",
    )?
    .execute(params![deployment, displaced, until])?;
    forget_oldest(tx, deployment)
}

/// Forgets the former revisions of a site that are more than may be kept; returns the manifests that they alone have named.
fn forget_oldest(tx: &Tx<'_>, deployment: &DeploymentId) -> Result<Vec<Digest>, Error> {
    let named = tx
        .prepare_cached(
            "DELETE FROM former_revisions WHERE deployment_id = ?1 AND number <= (SELECT number FROM former_revisions
                WHERE deployment_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2) RETURNING deletions_digest",
        )?
        .query_map(params![deployment, MAX_FORMER_REVISIONS], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<Option<Digest>>>>()?;
    Ok(named.into_iter().flatten().collect())
}

/// Has the files of a revision that ends serve no open tab any more; returns whether they did. One that has deleted files by name still
/// says which: those of earlier revisions serve nobody.
pub(in crate::deployments) fn forget_revision(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    revision: &RevisionId,
) -> Result<bool, Error> {
    let kept = tx
        .prepare_cached(
            "UPDATE former_revisions SET deletions_digest = r.preview_digest FROM revisions r
             WHERE former_revisions.deployment_id = ?1 AND former_revisions.revision_id = ?2
                AND former_revisions.deletions_digest IS NULL
                AND r.id = ?2 AND r.deletes_files = 1 AND r.preview_digest IS NOT NULL",
        )?
        .execute(params![deployment, revision])?;
    let ended = tx
        .prepare_cached(
            "DELETE FROM former_revisions WHERE deployment_id = ?1 AND revision_id = ?2 AND deletions_digest IS NULL",
        )?
        .execute(params![deployment, revision])?;
    Ok(kept + ended > 0)
}

/// Has a revision that is live again serve as what it is. It names its manifest itself.
pub(in crate::deployments) fn take_back(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    revision: &RevisionId,
) -> Result<(), Error> {
    tx.prepare_cached(
        "DELETE FROM former_revisions WHERE deployment_id = ?1 AND revision_id = ?2",
    )?
    .execute(params![deployment, revision])?;
    Ok(())
}

/// Has no file that was live before serve open tabs of a site any more; returns manifests that no former revision names any more.
pub(in crate::deployments) fn forget_all(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
) -> Result<Vec<Digest>, Error> {
    let named = tx
        .prepare_cached(
            "DELETE FROM former_revisions WHERE deployment_id = ?1 RETURNING deletions_digest",
        )?
        .query_map([deployment], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<Option<Digest>>>>()?;
    Ok(named.into_iter().flatten().collect())
}

/// Forgets revisions whose time is over, in all sites; returns manifests that no former revision names any more.
pub(in crate::deployments) fn forget_old(
    tx: &Tx<'_>,
    now: Timestamp,
) -> Result<Vec<Digest>, Error> {
    let named = tx
        .prepare_cached(
            "DELETE FROM former_revisions WHERE until <= ?1 RETURNING deletions_digest",
        )?
        .query_map([now], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<Option<Digest>>>>()?;
    Ok(named.into_iter().flatten().collect())
}
