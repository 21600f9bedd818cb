//! Rows of files in the control database.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::model::{FileOwner, FileUsage};
use crate::content::{Digest, StoredFile};
use crate::control::{Error, Tx};
use crate::deployments::sites::SiteFile;
use crate::deployments::store::mark_garbage;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, ProjectId, RevisionId};

/// A file of an owner, for the sweep.
#[derive(Debug)]
pub(super) struct OwnedFile {
    /// Digest of the file.
    pub(super) digest: Digest,
    /// Until when it waits for a publication.
    pub(super) staged_until: Option<Timestamp>,
}

/// File whose encodings are to be made.
#[derive(Debug)]
pub(super) struct FileToEncode {
    /// The file.
    pub(super) file: SiteFile,
    /// Whether they are made for another owner.
    pub(super) is_encoded_elsewhere: bool,
}

/// Revisions of an owner's sites, for the sweep.
#[derive(Debug)]
pub(super) struct OwnedSites {
    /// Version of the owner's files.
    pub(super) version: i64,
    /// Canonical forms of the manifests.
    pub(super) manifests: Vec<Digest>,
    /// Files that visitors have brought.
    pub(super) visitor_files: Vec<Digest>,
    /// Whether the owner is there.
    pub(super) is_there: bool,
}

/// Whether an owner has a file.
pub(super) fn has(c: &Connection, owner: &FileOwner, digest: &Digest) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM blobs WHERE owner_id = ?1 AND digest = ?2)")?
        .query_row(params![owner.as_str(), digest], |row| row.get(0))
}

/// Writes digests as the JSON array that queries take.
fn json_array(digests: &[Digest]) -> rusqlite::Result<String> {
    let digests: Vec<String> = digests.iter().map(ToString::to_string).collect();
    serde_json::to_string(&digests)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Returns those of these files that an owner has.
pub(super) fn find(
    c: &Connection,
    owner: &FileOwner,
    digests: &[Digest],
) -> rusqlite::Result<HashMap<Digest, SiteFile>> {
    c.prepare_cached(
        "SELECT b.digest, b.bytes, b.list_digest FROM json_each(?2) j
         CROSS JOIN blobs b ON b.owner_id = ?1 AND b.digest = unhex(j.value)",
    )?
    .query_map(params![owner.as_str(), json_array(digests)?], |row| {
        let digest = row.get(0)?;
        let file = SiteFile {
            digest,
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
            list: row.get(2)?,
        };
        Ok((digest, file))
    })?
    .collect()
}

/// Returns those of these files of an owner whose encodings are made or asked for.
pub(super) fn find_encoded(
    c: &Connection,
    owner: &FileOwner,
    digests: &[Digest],
) -> rusqlite::Result<HashSet<Digest>> {
    c.prepare_cached(
        "SELECT b.digest FROM json_each(?2) j CROSS JOIN blobs b ON b.owner_id = ?1 AND b.digest = unhex(j.value)
         WHERE b.encoded_digest IS NOT NULL OR b.encode_since IS NOT NULL",
    )?
    .query_map(params![owner.as_str(), json_array(digests)?], |row| row.get(0))?
    .collect()
}

/// Asks for encodings of files of an owner, unless they are made.
pub(super) fn ask_for_encodings(
    tx: &Tx<'_>,
    owner: &FileOwner,
    digests: &[Digest],
    now: Timestamp,
) -> Result<(), Error> {
    let mut asking = tx.prepare_cached(
        "UPDATE blobs SET encode_since = ?3 WHERE owner_id = ?1 AND digest = ?2 AND encoded_digest IS NULL AND encode_since IS NULL",
    )?;
    for digest in digests {
        asking.execute(params![owner.as_str(), digest, now])?;
    }
    Ok(())
}

/// Lists at most `most` files whose encodings are to be made, in the order in which they were asked for.
pub(super) fn list_to_encode(c: &Connection, most: u32) -> rusqlite::Result<Vec<FileToEncode>> {
    c.prepare_cached(
        "SELECT b.digest, b.bytes, b.list_digest,
            EXISTS (SELECT 1 FROM blobs o WHERE o.digest = b.digest AND o.encoded_digest IS NOT NULL)
         FROM blobs b WHERE b.encode_since IS NOT NULL ORDER BY b.encode_since LIMIT ?1",
    )?
    .query_map([most], |row| {
        let file = SiteFile {
            digest: row.get(0)?,
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
            list: row.get(2)?,
        };
        Ok(FileToEncode {
            file,
            is_encoded_elsewhere: row.get(3)?,
        })
    })?
    .collect()
}

/// Notes the encodings of a file, with the bytes of their object, for all who have asked for them; none where it has none.
pub(super) fn set_encodings(
    tx: &Tx<'_>,
    digest: &Digest,
    encodings: Option<(Digest, u64)>,
    now: Timestamp,
) -> Result<(), Error> {
    let bytes = encodings.map_or(0, |(_, bytes)| i64::try_from(bytes).unwrap_or(i64::MAX));
    let object = encodings.map(|(object, _)| object);
    let asked_for = tx
        .prepare_cached(
            "UPDATE blobs SET encoded_digest = ?2, encoded_bytes = ?3, encode_since = NULL
             WHERE digest = ?1 AND encode_since IS NOT NULL",
        )?
        .execute(params![digest, object, bytes])?;
    let asked_for = i64::try_from(asked_for).unwrap_or(i64::MAX);
    count_all(tx, bytes.saturating_mul(asked_for))?;
    // Collected unless somebody still has the file.
    object.map_or(Ok(()), |object| mark_garbage(tx, &object, now))
}

/// Gives the encodings of a file that an owner has to all who have asked for them.
pub(super) fn share_encodings(tx: &Tx<'_>, digest: &Digest, now: Timestamp) -> Result<(), Error> {
    let encodings = tx
        .prepare_cached(
            "SELECT encoded_digest, encoded_bytes FROM blobs WHERE digest = ?1 AND encoded_digest IS NOT NULL LIMIT 1",
        )?
        .query_row([digest], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })
        .optional()?;
    match encodings {
        Some(_) => set_encodings(tx, digest, encodings, now),
        // That owner is gone: they are made at the next look.
        None => Ok(()),
    }
}

/// Returns the version of an owner's files: while it stays, none of them goes.
pub(super) fn version(c: &Connection, owner: &FileOwner) -> rusqlite::Result<i64> {
    let version = c
        .prepare_cached("SELECT version FROM file_owners WHERE owner_id = ?1")?
        .query_row([owner.as_str()], |row| row.get(0))
        .optional()?;
    Ok(version.unwrap_or(0))
}

/// Notes that other revisions name an owner's files, or that some of them went.
pub(super) fn raise_version(tx: &Tx<'_>, owner: &FileOwner) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO file_owners (owner_id, version) VALUES (?1, 1)
         ON CONFLICT (owner_id) DO UPDATE SET version = version + 1",
    )?
    .execute([owner.as_str()])?;
    Ok(())
}

/// Returns the bytes that an owner's files take, and those of all owners with their encodings.
pub(super) fn usage(c: &Connection, owner: &FileOwner) -> rusqlite::Result<FileUsage> {
    c.prepare_cached(
        "SELECT (SELECT bytes FROM file_owners WHERE owner_id = ?1), (SELECT bytes FROM file_totals)",
    )?
    .query_row([owner.as_str()], |row| {
        let bytes = |column| row.get::<_, Option<i64>>(column);
        Ok(FileUsage {
            owner: bytes(0)?.map_or(0, i64::unsigned_abs),
            all: bytes(1)?.map_or(0, i64::unsigned_abs),
        })
    })
}

/// Has a file that an owner has wait for a publication until a moment; returns whether it was there.
pub(super) fn stage_again(
    tx: &Tx<'_>,
    owner: &FileOwner,
    digest: &Digest,
    until: Timestamp,
) -> Result<bool, Error> {
    let again = tx
        .prepare_cached("UPDATE blobs SET staged_until = ?3 WHERE owner_id = ?1 AND digest = ?2")?
        .execute(params![owner.as_str(), digest, until])?;
    Ok(again > 0)
}

/// A file to add to those of an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewBlob<'f> {
    /// Digest of the file.
    pub(super) digest: Digest,
    /// Length of the file.
    pub(super) bytes: u64,
    /// Digest of the list of a large file's objects, with theirs in order.
    pub(super) objects: Option<(Digest, &'f [Digest])>,
}

impl<'f> From<&'f StoredFile> for NewBlob<'f> {
    fn from(file: &'f StoredFile) -> Self {
        let objects = file.objects.as_ref();
        Self {
            digest: file.digest,
            bytes: file.bytes,
            objects: objects.map(|objects| (objects.list, &*objects.objects)),
        }
    }
}

/// Adds files to those of an owner, who has none of them. They may wait for a publication until a moment.
pub(super) fn insert(
    tx: &Tx<'_>,
    owner: &FileOwner,
    files: &[NewBlob<'_>],
    until: Option<Timestamp>,
) -> Result<(), Error> {
    let mut all = 0_i64;
    let mut inserting = tx.prepare_cached(
        "INSERT INTO blobs (owner_id, digest, bytes, list_digest, staged_until) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut naming = tx.prepare_cached(
        "INSERT OR IGNORE INTO file_objects (list_digest, number, digest) VALUES (?1, ?2, ?3)",
    )?;
    for file in files {
        let bytes = i64::try_from(file.bytes).unwrap_or(i64::MAX);
        let list = file.objects.map(|(list, _)| list);
        inserting.execute(params![owner.as_str(), file.digest, bytes, list, until])?;
        all = all.saturating_add(bytes);
        let Some((list, objects)) = file.objects else {
            continue;
        };
        for (number, object) in (0_i64..).zip(objects) {
            naming.execute(params![list, number, object])?;
        }
    }
    count(tx, owner, all)
}

/// Adds to the bytes of an owner, and to those of all.
fn count(tx: &Tx<'_>, owner: &FileOwner, bytes: i64) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO file_owners (owner_id, bytes) VALUES (?1, ?2)
         ON CONFLICT (owner_id) DO UPDATE SET bytes = bytes + excluded.bytes",
    )?
    .execute(params![owner.as_str(), bytes])?;
    count_all(tx, bytes)
}

/// Adds to the bytes of all owners.
fn count_all(tx: &Tx<'_>, bytes: i64) -> Result<(), Error> {
    if bytes != 0 {
        tx.prepare_cached("UPDATE file_totals SET bytes = bytes + ?1")?
            .execute([bytes])?;
    }
    Ok(())
}

/// Lists at most `most` owners of whose files some may be named by nothing, but for those that rest: a revision or the owner ended, or a
/// file has waited until `now`.
pub(super) fn list_due(
    c: &Connection,
    now: Timestamp,
    resting: &[FileOwner],
    most: u32,
) -> rusqlite::Result<Vec<FileOwner>> {
    let resting: Vec<&str> = resting.iter().map(FileOwner::as_str).collect();
    let resting = serde_json::to_string(&resting)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    c.prepare_cached(
        "SELECT owner_id FROM file_owners WHERE is_due = 1 AND owner_id NOT IN (SELECT value FROM json_each(?3))
         UNION SELECT owner_id FROM blobs WHERE staged_until <= ?1 AND owner_id NOT IN (SELECT value FROM json_each(?3))
         LIMIT ?2",
    )?
    .query_map(params![now, most, resting], |row| {
        row.get(0).map(FileOwner::from_row)
    })?
    .collect()
}

/// Returns the sites of an owner: all revisions, and what is live.
pub(super) fn sites(c: &Connection, owner: &FileOwner) -> rusqlite::Result<OwnedSites> {
    let manifests = c
        .prepare_cached(
            "SELECT d.source_digest FROM deployments d
                WHERE d.project_id = ?1 AND d.content_type = 'site' AND d.source_digest IS NOT NULL
             UNION SELECT d.source_digest FROM deployments d
                WHERE d.id = ?1 AND d.project_id = ?2 AND d.content_type = 'site' AND d.source_digest IS NOT NULL
             UNION SELECT r.source_digest FROM revisions r JOIN deployments d ON d.id = r.deployment_id
                WHERE d.project_id = ?1 AND d.content_type = 'site'",
        )?
        .query_map(params![owner.as_str(), ProjectId::QUICK_SHARES], |row| {
            row.get(0)
        })?
        .collect::<rusqlite::Result<_>>()?;
    let is_there = c
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM projects WHERE id = ?1)
                OR EXISTS (SELECT 1 FROM deployments WHERE id = ?1 AND project_id = ?2)",
        )?
        .query_row(params![owner.as_str(), ProjectId::QUICK_SHARES], |row| {
            row.get(0)
        })?;
    let visitor_files = c
        .prepare_cached(
            "SELECT DISTINCT digest FROM visitor_files WHERE project_id = ?1 AND state <> 'ended'",
        )?
        .query_map([owner.as_str()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(OwnedSites {
        version: version(c, owner)?,
        manifests,
        visitor_files,
        is_there,
    })
}

/// Lists at most `most` files of an owner, in the order of their digests, after one of them.
pub(super) fn list_files(
    c: &Connection,
    owner: &FileOwner,
    after: Option<Digest>,
    most: u32,
) -> rusqlite::Result<Vec<OwnedFile>> {
    c.prepare_cached(
        "SELECT digest, staged_until FROM blobs WHERE owner_id = ?1 AND digest > coalesce(?2, x'')
         ORDER BY digest LIMIT ?3",
    )?
    .query_map(params![owner.as_str(), after, most], |row| {
        Ok(OwnedFile {
            digest: row.get(0)?,
            staged_until: row.get(1)?,
        })
    })?
    .collect()
}

/// Notes that a file does not wait for a publication any more, because a revision names it.
pub(super) fn settle(
    tx: &Tx<'_>,
    owner: &FileOwner,
    digest: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE blobs SET staged_until = NULL WHERE owner_id = ?1 AND digest = ?2 AND staged_until <= ?3",
    )?
    .execute(params![owner.as_str(), digest, now])?;
    Ok(())
}

/// Removes a file that nothing names, unless it waits for a publication after `now`, and marks its objects for collection.
pub(super) fn remove(
    tx: &Tx<'_>,
    owner: &FileOwner,
    digest: &Digest,
    now: Option<Timestamp>,
    marked_at: Timestamp,
) -> Result<(), Error> {
    let removed: Option<([i64; 2], [Option<Digest>; 2])> = tx
        .prepare_cached(
            "DELETE FROM blobs WHERE owner_id = ?1 AND digest = ?2
                AND (?3 IS NULL OR staged_until IS NULL OR staged_until <= ?3)
             RETURNING bytes, encoded_bytes, list_digest, encoded_digest",
        )?
        .query_row(params![owner.as_str(), digest, now], |row| {
            Ok(([row.get(0)?, row.get(1)?], [row.get(2)?, row.get(3)?]))
        })
        .optional()?;
    let Some(([bytes, encoded_bytes], [list, encodings])) = removed else {
        return Ok(());
    };
    count(tx, owner, -bytes)?;
    count_all(tx, -encoded_bytes)?;
    if let Some(encodings) = encodings {
        mark_garbage(tx, &encodings, marked_at)?;
    }
    match list {
        Some(list) => remove_list(tx, &list, marked_at),
        None => mark_garbage(tx, digest, marked_at),
    }
}

/// Removes the objects of a large file that no owner has any more, nor any file of a visitor.
pub(super) fn remove_list(tx: &Tx<'_>, list: &Digest, now: Timestamp) -> Result<(), Error> {
    let is_named: bool = tx
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM blobs WHERE list_digest = ?1)
                 OR EXISTS (SELECT 1 FROM visitor_files WHERE list_digest = ?1)",
        )?
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

/// Notes that all files of an owner were looked through; an owner who is gone, and has none, is forgotten.
pub(super) fn finish(tx: &Tx<'_>, owner: &FileOwner, is_there: bool) -> Result<(), Error> {
    match is_there {
        true => tx
            .prepare_cached("UPDATE file_owners SET is_due = 0 WHERE owner_id = ?1")?
            .execute([owner.as_str()])?,
        false => tx
            .prepare_cached("DELETE FROM file_owners WHERE owner_id = ?1 AND bytes = 0")?
            .execute([owner.as_str()])?,
    };
    Ok(())
}

/// Returns the bytes of an owner's files that another one does not have.
pub(super) fn bytes_beyond(
    c: &Connection,
    owner: &FileOwner,
    other: &FileOwner,
) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT coalesce(sum(b.bytes), 0) FROM blobs b WHERE b.owner_id = ?1
            AND NOT EXISTS (SELECT 1 FROM blobs o WHERE o.owner_id = ?2 AND o.digest = b.digest)",
    )?
    .query_row(params![owner.as_str(), other.as_str()], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// Moves all files of an owner to another one, of which `more` bytes are new to that. Encodings of a file that both have are made anew,
/// unless the other has them.
pub(super) fn move_all(
    tx: &Tx<'_>,
    (owner, other): (&FileOwner, &FileOwner),
    more: u64,
    now: Timestamp,
) -> Result<(), Error> {
    let ids = [owner.as_str(), other.as_str()];
    tx.prepare_cached(
        "UPDATE blobs SET encode_since = ?3 WHERE owner_id = ?2 AND encoded_digest IS NULL AND encode_since IS NULL
            AND digest IN (SELECT digest FROM blobs
                WHERE owner_id = ?1 AND (encoded_digest IS NOT NULL OR encode_since IS NOT NULL))",
    )?
    .execute(params![ids[0], ids[1], now])?;
    // Those that nothing names by then are collected.
    tx.prepare_cached(
        "INSERT INTO garbage (digest, since)
         SELECT DISTINCT encoded_digest, ?2 FROM blobs WHERE owner_id = ?1 AND encoded_digest IS NOT NULL
         ON CONFLICT (digest) DO UPDATE SET since = excluded.since",
    )?
    .execute(params![ids[0], now])?;
    let twice: i64 = tx
        .prepare_cached(
            "SELECT coalesce(sum(b.encoded_bytes), 0) FROM blobs b WHERE b.owner_id = ?1
                AND EXISTS (SELECT 1 FROM blobs o WHERE o.owner_id = ?2 AND o.digest = b.digest)",
        )?
        .query_row(ids, |row| row.get(0))?;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO blobs
            (owner_id, digest, bytes, list_digest, staged_until, encoded_digest, encoded_bytes, encode_since)
         SELECT ?2, digest, bytes, list_digest, NULL, encoded_digest, encoded_bytes, encode_since FROM blobs WHERE owner_id = ?1",
    )?
    .execute(ids)?;
    count(tx, other, i64::try_from(more).unwrap_or(i64::MAX))?;
    raise_version(tx, other)?;
    tx.prepare_cached("DELETE FROM blobs WHERE owner_id = ?1")?
        .execute([ids[0]])?;
    let moved: Option<i64> = tx
        .prepare_cached("DELETE FROM file_owners WHERE owner_id = ?1 RETURNING bytes")?
        .query_row([ids[0]], |row| row.get(0))
        .optional()?;
    count_all(tx, -moved.unwrap_or(0) - twice)
}

/// Returns the object that lists what was live at immutable paths of a site.
pub(super) fn live_immutables(
    c: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached("SELECT immutable_digest FROM deployments WHERE id = ?1")?
        .query_row([deployment], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Has a site name another object that lists what was live at immutable paths.
pub(super) fn set_live_immutables(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    object: &Digest,
) -> Result<(), Error> {
    tx.prepare_cached("UPDATE deployments SET immutable_digest = ?2 WHERE id = ?1")?
        .execute(params![deployment, object])?;
    Ok(())
}

/// Returns the object that the immutable files of a draft were compared with, and the one with them in it.
pub(super) fn draft_immutables(
    c: &Connection,
    revision: &RevisionId,
) -> rusqlite::Result<Option<(Option<Digest>, Digest)>> {
    let found = c
        .prepare_cached("SELECT immutable_base, immutable_digest FROM revisions WHERE id = ?1")?
        .query_row([revision], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (base, next): (Option<Digest>, Option<Digest>) = found.unwrap_or_default();
    Ok(next.map(|next| (base, next)))
}

/// Has a draft name both objects. A revision that is no draft any more names none.
pub(super) fn set_draft_immutables(
    tx: &Tx<'_>,
    draft: &RevisionId,
    base: Option<Digest>,
    next: Digest,
) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE revisions SET immutable_base = ?2, immutable_digest = ?3 WHERE id = ?1 AND state = 'draft'",
    )?
    .execute(params![draft, base, next])?;
    Ok(())
}

/// Has a revision name neither object any more; returns the one with its immutable files.
pub(super) fn take_draft_immutables(
    tx: &Tx<'_>,
    revision: &RevisionId,
) -> Result<Option<Digest>, Error> {
    let Some((_, next)) = draft_immutables(tx, revision)? else {
        return Ok(None);
    };
    tx.prepare_cached(
        "UPDATE revisions SET immutable_base = NULL, immutable_digest = NULL WHERE id = ?1",
    )?
    .execute([revision])?;
    Ok(Some(next))
}
