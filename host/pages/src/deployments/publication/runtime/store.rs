//! Runtimes in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::content::Digest;
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;

/// Keeps a runtime that pages name.
pub(super) fn insert_runtime(
    tx: &Tx<'_>,
    name: &str,
    digest: &Digest,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        "INSERT OR IGNORE INTO runtimes (name, digest, since) VALUES (?1, ?2, ?3)",
        params![name, digest, now],
    )?;
    Ok(())
}

/// Returns the digest of the runtime of a name.
pub(super) fn find_runtime_digest(c: &Connection, name: &str) -> rusqlite::Result<Option<Digest>> {
    c.prepare_cached("SELECT digest FROM runtimes WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}
