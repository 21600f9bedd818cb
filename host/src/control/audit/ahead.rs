//! Entries of changes that another database holds: no transaction has such a change and its entry.
//!
//! The entry is durable before the change begins, and is taken back if the change fails. So no crash leaves a change without its
//! entry; one between the two leaves an entry of a change that may not have been made.

use rusqlite::params;

use super::{AuditAction, workspace_column};
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// An entry of a change that is yet to be made.
#[derive(Debug)]
pub struct AuditEntryAhead {
    workspace: String,
    number: i64,
}

impl Tx<'_> {
    /// Says what is about to be done, if somebody acts.
    ///
    /// # Errors
    /// The database's.
    pub fn record_audit_ahead(
        &self,
        act: AuditAction,
        workspace: Option<&WorkspaceId>,
        target: &dyn std::fmt::Display,
        now: Timestamp,
    ) -> Result<Option<AuditEntryAhead>, Error> {
        let Some(actor) = self.actor() else {
            return Ok(None);
        };
        let number = self.insert_entry(actor, act, workspace, target, now)?;
        let workspace = workspace_column(workspace);
        Ok(Some(AuditEntryAhead { workspace, number }))
    }

    /// Takes back the entry of what was not done after all.
    ///
    /// # Errors
    /// The database's.
    pub fn withdraw_audit(&self, entry: &AuditEntryAhead) -> Result<(), Error> {
        self.execute(
            "DELETE FROM audit WHERE workspace_id = ?1 AND number = ?2",
            params![entry.workspace, entry.number],
        )?;
        Ok(())
    }
}
