//! Former revisions of sites in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use super::FormerRevision;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// Former revisions of a site that are kept at most; the oldest are forgotten.
const MAX_FORMER_REVISIONS: u32 = 50;

/// Whether files of former revisions of a site are served.
pub(in crate::deployments) fn any(
    c: &Connection,
    deployment: &DeploymentId,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM former_revisions WHERE deployment_id = ?1 AND until > ?2)",
    )?
    .query_row(params![deployment, now], |row| row.get(0))
}

/// Lists the former revisions of a site whose files are served, the one that was live last first.
pub(in crate::deployments) fn list(
    c: &Connection,
    deployment: &DeploymentId,
    now: Timestamp,
) -> rusqlite::Result<Vec<FormerRevision>> {
    c.prepare_cached(
        "SELECT r.preview_digest, f.until FROM former_revisions f JOIN revisions r ON r.id = f.revision_id
         WHERE f.deployment_id = ?1 AND f.until > ?2 AND r.preview_digest IS NOT NULL ORDER BY f.number DESC",
    )?
    .query_map(params![deployment, now], |row| {
        Ok(FormerRevision {
            manifest: row.get(0)?,
            until: row.get(1)?,
        })
    })?
    .collect()
}

/// Has the files of a displaced revision serve open tabs until a moment.
pub(in crate::deployments) fn add(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    displaced: &RevisionId,
    until: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO former_revisions (deployment_id, revision_id, until) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![deployment, displaced, until])?;
    tx.prepare_cached(
        "DELETE FROM former_revisions WHERE deployment_id = ?1 AND number <= (SELECT number FROM former_revisions
            WHERE deployment_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![deployment, MAX_FORMER_REVISIONS])?;
    Ok(())
}

/// Has the files of a revision serve no open tab any more; returns whether they did. If it deletes files by name, those of earlier
/// revisions serve none either: only its manifest says which.
pub(in crate::deployments) fn forget_revision(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    revision: &RevisionId,
) -> Result<bool, Error> {
    let found: Option<(i64, bool)> = tx
        .prepare_cached(
            "DELETE FROM former_revisions WHERE deployment_id = ?1 AND revision_id = ?2
             RETURNING number, EXISTS (SELECT 1 FROM revisions r WHERE r.id = ?2 AND r.deletes_files = 1)",
        )?
        .query_row(params![deployment, revision], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if let Some((number, true)) = found {
        tx.prepare_cached("DELETE FROM former_revisions WHERE deployment_id = ?1 AND number < ?2")?
            .execute(params![deployment, number])?;
    }
    Ok(found.is_some())
}

/// Has a revision that is live again serve as what it is.
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

/// Has no file that was live before serve open tabs of a site any more.
pub(in crate::deployments) fn forget_all(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM former_revisions WHERE deployment_id = ?1")?
        .execute([deployment])?;
    Ok(())
}

/// Forgets revisions whose time is over, in all sites.
pub(in crate::deployments) fn forget_old(tx: &Tx<'_>, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM former_revisions WHERE until <= ?1")?
        .execute([now])?;
    Ok(())
}
