//! Entries of changes that another database holds: no transaction has such a change and its entry.
//!
//! The entry is durable before the change begins, and is taken back if the change fails. So no crash leaves a change without its
//! entry; one between the two leaves an entry of a change that may not have been made.

use rusqlite::params;

use super::{Act, stored};
use crate::control::{Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// An entry of a change that is yet to be made.
#[derive(Debug)]
pub struct Ahead {
    workspace: String,
    number: i64,
}

impl Tx<'_> {
    /// Says what is about to be done, if somebody acts.
    ///
    /// # Errors
    /// The database's.
    pub fn does(
        &self,
        act: Act,
        workspace: Option<&WorkspaceId>,
        target: &dyn std::fmt::Display,
        now: Timestamp,
    ) -> Result<Option<Ahead>, Error> {
        let Some(doer) = self.doer() else {
            return Ok(None);
        };
        let number = self.enter(doer, act, workspace, target, now)?;
        let workspace = stored(workspace);
        Ok(Some(Ahead { workspace, number }))
    }

    /// Takes back the entry of what was not done after all.
    ///
    /// # Errors
    /// The database's.
    pub fn did_not(&self, entry: &Ahead) -> Result<(), Error> {
        self.execute(
            "DELETE FROM audit WHERE workspace_id = ?1 AND number = ?2",
            params![entry.workspace, entry.number],
        )?;
        Ok(())
    }
}
