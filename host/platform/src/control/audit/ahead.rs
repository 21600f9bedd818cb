//! Audit entries of changes in another database: no transaction can hold both such a change and its entry.
//!
//! The entry is durable before the change begins, and is deleted if the change fails. So a crash never leaves a change without its
//! entry; a crash between the two leaves an entry of a change that may not have been made.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{AuditAction, workspace_column};
use crate::control::{ErrandWork, Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// An audit entry whose change has not been made yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedAuditEntry {
    workspace: String,
    number: i64,
}

/// Errand: the change of this entry failed. Done twice, it could delete a later entry, which may get the number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditWithdrawal(pub UncommittedAuditEntry);

impl ErrandWork for AuditWithdrawal {
    const KIND: &'static str = "audit_withdrawal";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        tx.withdraw_audit(&self.0)
    }
}

impl Tx<'_> {
    /// Adds the audit entry of a change that is about to be made, if the transaction has an actor.
    ///
    /// # Errors
    /// The database's.
    pub fn record_audit_ahead(
        &self,
        act: AuditAction,
        workspace: Option<&WorkspaceId>,
        target: &dyn std::fmt::Display,
        now: Timestamp,
    ) -> Result<Option<UncommittedAuditEntry>, Error> {
        let Some(actor) = self.actor() else {
            return Ok(None);
        };
        let number = self.insert_entry(actor, act, workspace, target, now)?;
        let workspace = workspace_column(workspace);
        Ok(Some(UncommittedAuditEntry { workspace, number }))
    }

    /// Deletes the entry of a change that failed.
    ///
    /// # Errors
    /// The database's.
    pub fn withdraw_audit(&self, entry: &UncommittedAuditEntry) -> Result<(), Error> {
        self.execute(
            "DELETE FROM audit WHERE workspace_id = ?1 AND number = ?2",
            params![entry.workspace, entry.number],
        )?;
        Ok(())
    }
}
