//! Retention of audit entries: how long they are kept, and how many of a workspace and of a principal.
//!
//! Entries about access, and those of operators, are counted apart from all others. So an editor who makes many changes cannot
//! push them out, and can push out only a part of the entries of other principals.

use rusqlite::{Connection, params};

use super::RETENTION_SECONDS;
use crate::control::{ControlDatabase, Error};
use svc_base::clock::Timestamp;

/// Largest numbers of entries of one kind; beyond them the oldest are deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuditRetention {
    /// Number of entries of a workspace.
    pub(super) of_workspace: i64,
    /// Number of entries of one principal in it.
    pub(super) of_principal: i64,
}

/// Number of entries that are kept of each kind.
const RETENTION_LIMITS: AuditRetention = AuditRetention {
    of_workspace: 100_000,
    of_principal: 20_000,
};
/// Most entries that one transaction deletes, so that other writers do not wait long.
const DELETE_BATCH: i64 = 2_000;

/// Deletes entries that are too old, and the oldest of principals and workspaces that have too many.
///
/// # Errors
/// The database's.
pub async fn forget_old(control: &ControlDatabase, now: Timestamp) -> Result<(), Error> {
    forget(
        control,
        now.plus_seconds(-RETENTION_SECONDS),
        RETENTION_LIMITS,
    )
    .await
}

pub(super) async fn forget(
    control: &ControlDatabase,
    until: Timestamp,
    most: AuditRetention,
) -> Result<(), Error> {
    let step = DELETE_BATCH;
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
    let principals = control.read(move |c| principals_over_limit(c, most.of_principal));
    forget_before(control, principals.await?).await?;
    let workspaces = control.read(move |c| workspaces_over_limit(c, most.of_workspace));
    forget_before(control, workspaces.await?).await
}

/// Entries of one kind, of a workspace or of one principal in it, of which the oldest are to be deleted.
#[derive(Clone, Debug)]
struct ExcessAuditEntries {
    workspace: String,
    is_lasting: bool,
    /// All principals, if there is none.
    principal: Option<String>,
    /// Number of the first entry that stays.
    first: i64,
}

async fn forget_before(
    control: &ControlDatabase,
    excesses: Vec<ExcessAuditEntries>,
) -> Result<(), Error> {
    for excess in excesses {
        loop {
            let excess = excess.clone();
            let removed: Result<usize, Error> = control
                .write(move |tx| {
                    let sql = "DELETE FROM audit WHERE workspace_id = ?1 AND number IN
                        (SELECT number FROM audit WHERE workspace_id = ?1 AND is_lasting = ?2
                            AND (?3 IS NULL OR principal = ?3) AND number < ?4 ORDER BY number LIMIT ?5)";
                    let ExcessAuditEntries {
                        workspace,
                        is_lasting,
                        principal,
                        first,
                    } = excess;
                    Ok(tx.execute(sql, params![workspace, is_lasting, principal, first, DELETE_BATCH])?)
                })
                .await;
            if removed? == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Finds principals with more entries of a kind than `most`.
fn principals_over_limit(c: &Connection, most: i64) -> rusqlite::Result<Vec<ExcessAuditEntries>> {
    c.prepare_cached(
        "SELECT workspace_id, is_lasting, principal,
            (SELECT number FROM audit b WHERE b.workspace_id = a.workspace_id AND b.is_lasting = a.is_lasting
                AND b.principal = a.principal ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)
         FROM audit a GROUP BY workspace_id, is_lasting, principal HAVING count(*) > ?1",
    )?
    .query_map([most], |row| {
        Ok(ExcessAuditEntries {
            workspace: row.get(0)?,
            is_lasting: row.get(1)?,
            principal: row.get(2)?,
            first: row.get(3)?,
        })
    })?
    .collect()
}

/// Finds workspaces with more entries of a kind than `most`.
fn workspaces_over_limit(c: &Connection, most: i64) -> rusqlite::Result<Vec<ExcessAuditEntries>> {
    c.prepare_cached(
        "SELECT workspace_id, is_lasting,
            (SELECT number FROM audit b WHERE b.workspace_id = a.workspace_id AND b.is_lasting = a.is_lasting
                ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)
         FROM audit a GROUP BY workspace_id, is_lasting HAVING count(*) > ?1",
    )?
    .query_map([most], |row| {
        Ok(ExcessAuditEntries {
            workspace: row.get(0)?,
            is_lasting: row.get(1)?,
            principal: None,
            first: row.get(2)?,
        })
    })?
    .collect()
}
