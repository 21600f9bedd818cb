//! `svc audit`.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::control::audit;
use crate::terminal::table;
use crate::workspaces::{WorkspaceError, Workspaces};
use svc_base::ids::WorkspaceId;

/// Entries of the audit, newest first; they are kept for 90 days.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub struct ListAuditEntries {
    /// A workspace, by its name or id; without one, what operators did that is of no workspace
    workspace: Option<String>,
    /// How many entries at most
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

impl ListAuditEntries {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        let workspace = match &self.workspace {
            Some(name) => Some(find_workspace_id(&at.workspaces(), name).await?),
            None => None,
        };
        let now = at.clock.now();
        let found = audit::list_entries(&at.control, workspace, None, self.limit, now).await;
        let entries = found.context("reading the audit")?.entries;
        let rows = entries.iter().map(|entry| {
            [
                entry.at.to_string(),
                entry.principal.clone(),
                entry.action.clone(),
                entry.target.clone(),
                entry.request_id.clone(),
            ]
        });
        let text = table(["at", "principal", "action", "target", "request"], rows);
        OperationAnswer::new(&serde_json::json!({ "entries": entries }), text)
    }
}

/// Finds the id of a workspace, also of a deleted one, whose entries are still kept.
async fn find_workspace_id(workspaces: &Workspaces, name: &str) -> anyhow::Result<WorkspaceId> {
    match workspaces.find(name).await {
        Ok(workspace) => Ok(workspace.id),
        Err(WorkspaceError::Unknown(_)) if name.parse::<WorkspaceId>().is_ok() => {
            Ok(name.parse().context("reading the id")?)
        }
        Err(error) => Err(error.into()),
    }
}
