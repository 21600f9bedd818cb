//! Marks of content that may have lost its last reference, in the control database.

use rusqlite::{Connection, params};

use crate::content::Digest;
use crate::control::{Error, Tx};
use crate::deployments::store::is_referenced;
use svc_base::clock::Timestamp;

/// Marks content that never had a reference, unless it is marked.
pub(super) fn mark_orphan(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("INSERT OR IGNORE INTO garbage (digest, since) VALUES (?1, ?2)")?
        .execute(params![digest, now])?;
    Ok(())
}

/// Content marked before `before`, `most` at most, behind the first `skipped`.
pub(super) fn list_marked(
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

/// Whether content has a mark made before `before`.
pub(in crate::deployments) fn is_marked_before(
    c: &Connection,
    digest: &Digest,
    before: Timestamp,
) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM garbage WHERE digest = ?1 AND since <= ?2)")?
        .query_row(params![digest, before], |row| row.get(0))
}

/// Takes back a mark made before `before`: the content is gone, or was still referred to. A newer one tells of more.
pub(super) fn unmark(tx: &Tx<'_>, digest: &Digest, before: Timestamp) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM garbage WHERE digest = ?1 AND since <= ?2")?
        .execute(params![digest, before])?;
    Ok(())
}

/// Returns the content of `marked` that still has a mark made before `before` and that nothing refers to. Its marks are made a
/// millisecond older, because a transaction that changes nothing is no commit, and so is acknowledged by nobody.
pub(super) fn confirm_marks(
    tx: &Tx<'_>,
    marked: &[Digest],
    before: Timestamp,
) -> Result<Vec<Digest>, Error> {
    let mut unreferenced = Vec::new();
    for digest in marked {
        if is_referenced(tx, digest)? {
            continue;
        }
        let aged = tx
            .prepare_cached(
                "UPDATE garbage SET since = since - 1 WHERE digest = ?1 AND since <= ?2",
            )?
            .execute(params![digest, before])?;
        if aged > 0 {
            unreferenced.push(*digest);
        }
    }
    Ok(unreferenced)
}
