//! Blocked content in the control database.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::BlockedContentEntry;
use crate::content::Digest;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;

/// Returns the digests of all blocked content.
pub(super) fn digests(c: &Connection) -> rusqlite::Result<HashSet<Digest>> {
    c.prepare("SELECT digest FROM blocked")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Lists all blocked content, newest first.
pub(super) fn list(c: &Connection) -> rusqlite::Result<Vec<BlockedContentEntry>> {
    c.prepare("SELECT digest, note, blocked_at FROM blocked ORDER BY blocked_at DESC, digest")?
        .query_map([], |row| {
            Ok(BlockedContentEntry {
                sha256: row.get::<_, Digest>("digest")?.to_string(),
                note: row.get("note")?,
                blocked_at: row.get("blocked_at")?,
            })
        })?
        .collect()
}

/// Adds content. What is there keeps its moment, and its note unless there is another one.
pub(super) fn insert(
    tx: &Tx<'_>,
    digest: &Digest,
    note: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO blocked (digest, note, blocked_at) VALUES (?1, ?2, ?3)
         ON CONFLICT (digest) DO UPDATE SET note = coalesce(excluded.note, note)",
    )?
    .execute(params![digest, note, now])?;
    Ok(())
}

/// Removes content; returns whether it was there.
pub(super) fn delete(tx: &Tx<'_>, digest: &Digest) -> Result<bool, Error> {
    let deleted = tx
        .prepare_cached("DELETE FROM blocked WHERE digest = ?1")?
        .execute([digest])?;
    Ok(deleted > 0)
}
