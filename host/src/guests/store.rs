//! Records of installed guests in the control database.

use rusqlite::{Connection, OptionalExtension as _};

use crate::control::{Error, Tx};
use svc_sandbox::World;

/// Returns the record of a world as text, if there is one.
pub(super) fn find(c: &Connection, world: World) -> rusqlite::Result<Option<String>> {
    c.prepare_cached("SELECT record FROM guests WHERE world = ?1")?
        .query_row([world.as_str()], |row| row.get(0))
        .optional()
}

/// Writes the record of a world.
pub(super) fn put(tx: &Tx<'_>, world: World, record: &str) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO guests (world, record) VALUES (?1, ?2)
         ON CONFLICT (world) DO UPDATE SET record = excluded.record",
    )?
    .execute([world.as_str(), record])?;
    Ok(())
}

/// Removes all records.
pub(super) fn remove_all(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute("DELETE FROM guests", [])?;
    Ok(())
}
