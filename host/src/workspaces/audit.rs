//! Reads of the audit: what was changed in a workspace.

use super::service::Workspaces;
use crate::control::Error;
use crate::control::audit::{self, Entries};
use svc_base::ids::WorkspaceId;

impl Workspaces {
    /// A page of the audit of a workspace, newest first, before a place.
    pub async fn audit(
        &self,
        workspace: WorkspaceId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Entries, Error> {
        let now = self.clock.now();
        audit::entries(&self.control, Some(workspace), before, limit, now).await
    }
}
