//! Workspaces with all that they own, and their end.

use std::sync::Arc;

use crate::config::Config;
use crate::envelope::Teardown;
use crate::fault;
use crate::http::problem::Problem;
use crate::ids::WorkspaceId;
use crate::projects;
use crate::workspaces::{Caller, Workspaces};

/// Workspaces, and what they own.
#[derive(Clone, Debug)]
pub struct Accounts {
    workspaces: Workspaces,
    envelope: Teardown,
    config: Arc<Config>,
}

impl Accounts {
    /// Of these services.
    pub fn new(workspaces: Workspaces, envelope: Teardown, config: Arc<Config>) -> Self {
        Self {
            workspaces,
            envelope,
            config,
        }
    }

    /// The workspaces.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Ends a workspace with all that it owns: its subscription at the provider first, then, in one transaction, everybody's
    /// access to it, then the pages of its projects, before this returns; the rest follows. Each step begins by looking at what
    /// is left, so that a crash between any two loses nothing: before the transaction the workspace is whole, and after it
    /// the next start goes on.
    ///
    /// # Errors
    /// `forbidden`, `provider_unavailable`: nothing is destroyed then.
    pub async fn end(&self, workspace: WorkspaceId, by: Caller) -> Result<(), Problem> {
        let told = Vec::new();
        fault::point("workspace.told");
        let ended = self
            .workspaces
            .end(workspace, by, told, projects::begin_ends);
        ended.await?;
        fault::point("workspace.ended");
        let internal = |error: anyhow::Error| Problem::internal(&format!("{error:#}"));
        self.envelope.begin_all().await.map_err(internal)?;
        fault::point("workspace.unreachable");
        let envelope = self.envelope.clone();
        tokio::spawn(async move {
            if let Err(error) = envelope.run().await {
                // The background task goes on with it.
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the end of a workspace was interrupted"
                );
            }
        });
        Ok(())
    }
}
