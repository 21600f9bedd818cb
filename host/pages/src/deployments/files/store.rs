//! Rows of files in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use super::model::FileUsage;
use crate::content::{Digest, StoredFile};
use crate::control::{Error, Tx};
use crate::deployments::store::mark_garbage;
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Whether an owner has a file.
pub(super) fn has(c: &Connection, owner: &ProjectId, digest: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE owner_id = ?1 AND digest = ?2)")?
        .query_row(params![owner, digest], |row| row.get(0))
}

/// Returns the bytes that an owner's files take, and those of all owners.
pub(super) fn usage(c: &Connection, owner: &ProjectId) -> rusqlite::Result<FileUsage> {
    c.prepare_cached(
        "SELECT coalesce(sum(bytes) FILTER (WHERE owner_id = ?1), 0), coalesce(sum(bytes), 0) FROM file_owners",
    )?
    .query_row([owner], |row| {
        let bytes = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(FileUsage {
            owner: bytes(0)?,
            all: bytes(1)?,
        })
    })
}

/// Adds a file that waits for its publication until a moment, or has one that is there wait until then.
pub(super) fn stage(
    tx: &Tx<'_>,
    owner: &ProjectId,
    file: &StoredFile,
    until: Timestamp,
) -> Result<(), Error> {
    let again = tx
        .prepare_cached("UPDATE blobs SET staged_until = ?3 WHERE owner_id = ?1 AND digest = ?2")?
        .execute(params![owner, file.digest, until])?;
    if again > 0 {
        return Ok(());
    }
    let bytes = i64::try_from(file.bytes).unwrap_or(i64::MAX);
    let list = file.objects.as_ref().map(|objects| objects.list);
    tx.prepare_cached(
        "INSERT INTO blobs (owner_id, digest, bytes, list_digest, staged_until) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![owner, file.digest, bytes, list, until])?;
    count(tx, owner, bytes)?;
    let Some(objects) = &file.objects else {
        return Ok(());
    };
    let mut naming = tx.prepare_cached(
        "INSERT OR IGNORE INTO file_objects (list_digest, number, digest) VALUES (?1, ?2, ?3)",
    )?;
    for (number, object) in (0_i64..).zip(&objects.objects) {
        naming.execute(params![objects.list, number, object])?;
    }
    Ok(())
}

/// Adds to the bytes of an owner.
fn count(tx: &Tx<'_>, owner: &ProjectId, bytes: i64) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO file_owners (owner_id, bytes) VALUES (?1, ?2)
         ON CONFLICT (owner_id) DO UPDATE SET bytes = bytes + excluded.bytes",
    )?
    .execute(params![owner, bytes])?;
    Ok(())
}

/// Lists at most `most` files that waited for a publication until `now`, each with its owner.
pub(super) fn list_ended(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<(ProjectId, Digest)>> {
    c.prepare_cached(
        "SELECT owner_id, digest FROM blobs WHERE staged_until <= ?1 ORDER BY staged_until LIMIT ?2",
    )?
    .query_map(params![now, most], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Removes a file that does not wait for a publication after `now`, and marks its objects for collection.
pub(super) fn remove(
    tx: &Tx<'_>,
    owner: &ProjectId,
    digest: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    let removed: Option<(i64, Option<Digest>)> = tx
        .prepare_cached(
            "DELETE FROM blobs WHERE owner_id = ?1 AND digest = ?2 AND staged_until <= ?3
             RETURNING bytes, list_digest",
        )?
        .query_row(params![owner, digest, now], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((bytes, list)) = removed else {
        return Ok(());
    };
    count(tx, owner, -bytes)?;
    match list {
        Some(list) => remove_list(tx, &list, now),
        None => mark_garbage(tx, digest, now),
    }
}

/// Removes the objects of a large file that no owner has any more.
fn remove_list(tx: &Tx<'_>, list: &Digest, now: Timestamp) -> Result<(), Error> {
    let is_named: bool = tx
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE list_digest = ?1)")?
        .query_row([list], |row| row.get(0))?;
    if is_named {
        return Ok(());
    }
    let objects = tx
        .prepare_cached("DELETE FROM file_objects WHERE list_digest = ?1 RETURNING digest")?
        .query_map([list], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<Digest>>>()?;
    for object in objects.iter().chain([list]) {
        mark_garbage(tx, object, now)?;
    }
    Ok(())
}
