//! Reads the audit log of a workspace.

use super::service::Workspaces;
use crate::control::Error;
use crate::control::audit::{self, AuditEntryPage};
use svc_base::ids::WorkspaceId;

impl Workspaces {
    /// Returns a page of the audit log of a workspace: entries older than `before`, newest first.
    pub async fn audit(
        &self,
        workspace: WorkspaceId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<AuditEntryPage, Error> {
        let now = self.clock.now();
        audit::list_entries(&self.control, Some(workspace), before, limit, now).await
    }
}
