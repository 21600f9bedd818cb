//! How long entries are kept, and how many of a workspace.

use rusqlite::{Connection, params};

use super::KEPT;
use crate::control::{Control, Error};
use svc_base::clock::Timestamp;

/// The most entries that are kept of a workspace: whoever changes more loses the oldest first.
const MOST: i64 = 100_000;
/// How many entries a transaction forgets at most, so that nobody waits for it long.
const STEP: i64 = 2_000;

/// Forgets entries that are kept long enough, and of each workspace those beyond the most that are kept.
///
/// # Errors
/// The database's.
pub async fn forget_old(control: &Control, now: Timestamp) -> Result<(), Error> {
    forget(control, now.plus_seconds(-KEPT), MOST).await
}

pub(super) async fn forget(control: &Control, until: Timestamp, most: i64) -> Result<(), Error> {
    let step = STEP;
    loop {
        let removed: Result<usize, Error> = control
            .write(move |tx| {
                let sql = "DELETE FROM audit WHERE (workspace_id, number) IN
                    (SELECT workspace_id, number FROM audit WHERE at <= ?1 ORDER BY at LIMIT ?2)";
                Ok(tx.execute(sql, params![until, step])?)
            })
            .await;
        if removed? == 0 {
            break;
        }
    }
    for (workspace, first) in control.read(move |c| beyond(c, most)).await? {
        loop {
            let of = workspace.clone();
            let removed: Result<usize, Error> = control
                .write(move |tx| {
                    let sql = "DELETE FROM audit WHERE workspace_id = ?1 AND number IN
                        (SELECT number FROM audit WHERE workspace_id = ?1 AND number < ?2 ORDER BY number LIMIT ?3)";
                    Ok(tx.execute(sql, params![of, first, step])?)
                })
                .await;
            if removed? == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Workspaces with more entries than `most`, each with the number of the first that stays.
fn beyond(c: &Connection, most: i64) -> rusqlite::Result<Vec<(String, i64)>> {
    c.prepare_cached(
        "SELECT workspace_id,
            (SELECT number FROM audit WHERE workspace_id = a.workspace_id ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)
         FROM audit a GROUP BY workspace_id HAVING count(*) > ?1",
    )?
    .query_map([most], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}
